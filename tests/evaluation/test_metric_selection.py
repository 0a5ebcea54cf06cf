"""Metrics by name, object and function; an error for what cannot be scored suggests the fix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error

from deepforecast.errors import ParameterError
from deepforecast.evaluation import metrics
from deepforecast.evaluation.metrics import METRICS, Metric
from deepforecast.evaluation.score import score


def test_metrics_by_name_object_and_function(given: Any) -> None:
    largest = Metric.from_function(lambda actual, forecast: abs(actual - forecast).max(), name="largest")
    wanted = ["MAE", METRICS["rmse"], metrics.bias, largest, mean_absolute_error, "mae"]
    found = score(given.points, metrics=wanted, by="series")
    assert found.columns.tolist() == ["unique_id", "model", "mae", "rmse", "bias", "largest", "mean_absolute_error"]
    np.testing.assert_allclose(found["mean_absolute_error"], found["mae"])
    first = given.points[given.points["unique_id"] == "a"]
    assert found["largest"][0] == pytest.approx((first["y"] - first["B"]).abs().max())


def test_owa_is_taken_on_totals(given: Any) -> None:
    found = score(given.points, metrics="owa", train=given.frame, reference="B").set_index("model")["owa"]
    total = {
        model: (given.by_hand(given.points, model, "smape"), given.by_hand(given.points, model, "mase", scale=given.scales()))
        for model in ("A", "B")
    }
    assert found["B"] == pytest.approx(1)
    assert found["A"] == pytest.approx(metrics.owa(*total["A"], *total["B"]))
    alone = score(given.points, metrics="owa", train=given.frame, reference="B", models="A")
    assert alone["owa"].tolist() == [found["A"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metrics": "maee"}, r"Unknown metric 'maee'\. Did you mean 'm"),
        ({"metrics": ["mase"]}, "mase cannot be computed without .*Pass `train`"),
        ({"metrics": "owa", "reference": "A"}, "owa cannot be computed without .*Pass `train`"),
        ({"reference": "A"}, "owa cannot be computed without .*Pass `train`"),
        ({"metrics": "owa", "train": "the frame"}, "owa cannot be computed without .*Pass `reference`"),
        ({"metrics": "coverage"}, "coverage cannot be computed without intervals.*level="),
        ({"metrics": "coverage-80"}, "coverage cannot be computed without intervals.*level="),
        ({"metrics": "pinball"}, "pinball cannot be computed without quantiles.*quantiles="),
        ({"metrics": "crps_from_samples"}, r"sample paths\. Use forecasts of simulate\(\)"),
        ({"metrics": "mae-80"}, "Unknown metric 'mae-80"),
        ({"metrics": []}, "`metrics` must contain at least one metric"),
        ({"metrics": 3}, "a name, a Metric or a function, got 3"),
        ({"reference": "C"}, r"`reference` must be a model column .* got C\. Use one of B, A"),
        (
            {"by": "weekday"},
            r"`by` must contain keys of the forecasts, got weekday\. Use one of model, series, unique_id, cutoff, step",
        ),
        ({"by": ["serie"]}, "Did you mean series"),
        ({"by": 3}, "`by` must be a name or a list"),
        ({"season_length": 0, "train": "the frame"}, r"`season_length` must be at least 1"),
        ({"season_length": 1.5, "train": "the frame"}, r"`season_length` must be an integer of at least 1"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(list(value.items())[:2])[:40],
)
def test_what_cannot_be_scored_says_the_way_out(given: Any, options: dict[str, Any], said: str) -> None:
    if "train" in options:
        options = {**options, "train": given.frame}
    with pytest.raises(ParameterError, match=said):
        score(given.points, **options)


def test_other_levels_than_those_there_are_refused(given: Any) -> None:
    with pytest.raises(
        ParameterError, match="coverage-90 requires intervals of level 90; the forecasts have the levels 80, 95"
    ):
        score(given.rolled, metrics="coverage-90")


def test_two_columns_of_one_name_are_refused(given: Any) -> None:
    other = Metric.from_function(lambda actual, forecast: 0.0, name="mae")
    with pytest.raises(ParameterError, match="two metrics are named mae"):
        score(given.points, metrics=["mae", other])
    with pytest.raises(ParameterError, match="two are named model"):
        score(given.points.rename(columns={"unique_id": "model"}), by="series", columns={"id": "model"})
    with pytest.raises(ParameterError, match="two are named mae"):
        score(given.points.rename(columns={"unique_id": "mae"}), by="series", columns={"id": "mae"})
