"""Which columns are models, intervals and quantiles, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deepforecast.errors import DataError, DataWarning, ParameterError
from deepforecast.evaluation import metrics
from deepforecast.evaluation.score import score


def test_intervals_by_level(given: Any) -> None:
    found = score(given.rolled, train=given.frame, metrics=["coverage", "width-95", "winkler", "msis"]).set_index("model")
    expected = ["coverage-80", "coverage-95", "width-95", "winkler-80", "winkler-95", "msis-80", "msis-95"]
    assert found.columns.tolist() == expected
    for level in (80, 95):
        lo, hi = given.rolled[f"A-lo-{level}"], given.rolled[f"A-hi-{level}"]
        assert found.loc["A", f"coverage-{level}"] == metrics.coverage(given.rolled["y"], lo, hi)
        assert found.loc["A", f"winkler-{level}"] == pytest.approx(metrics.winkler(given.rolled["y"], lo, hi, level))
    assert found.loc["A", "width-95"] == pytest.approx(4.0)


def test_default_metrics_follow_what_there_is(given: Any) -> None:
    plain = ["mae", "rmse", "smape", "wape", "bias"]
    bands = [f"{name}-{level}" for name in ("coverage", "width", "winkler") for level in (80, 95)]
    assert score(given.points).columns.tolist() == ["model", *plain]
    assert score(given.rolled).columns.tolist() == ["model", *plain, *bands]
    full = score(given.rolled.assign(**{"A-q-0.1": given.rolled["A-lo-80"]}), train=given.frame, reference="B").columns.tolist()
    assert full == ["model", *plain, "mase", "rmsse", "owa", *bands, "msis-80", "msis-95", "weighted_quantile_loss"]


def test_a_model_without_a_level_has_no_value_there(given: Any) -> None:
    frame = given.rolled.drop(columns=["B-lo-95", "B-hi-95"])
    found = score(frame, metrics="coverage").set_index("model")
    assert np.isnan(found.loc["B", "coverage-95"])
    assert found.loc["A", "coverage-95"] > 0
    assert found.columns.tolist() == ["coverage-80", "coverage-95"]


@pytest.mark.parametrize("name", ["A-lo-fi", "A-lo-120", "C-lo-80", "A-q-2", "C-q-0.5", "lo-80", "A-lo-"])
def test_a_suffix_counts_only_where_it_is_one(given: Any, name: str) -> None:
    found = score(given.points.assign(**{name: given.points["y"]}), metrics="mae")
    assert found["model"].tolist() == ["B", "A", name]
    assert found["mae"].tolist()[2] == 0


def test_models_with_names_like_suffixes_have_intervals_too(given: Any) -> None:
    frame = given.points.rename(columns={"A": "A-lo-fi"})
    frame["A-lo-fi-lo-99.5"], frame["A-lo-fi-hi-99.5"] = frame["A-lo-fi"] - 1, frame["A-lo-fi"] + 1
    found = score(frame, metrics="width").set_index("model")
    assert found.columns.tolist() == ["width-99.5"]
    assert found.loc["A-lo-fi", "width-99.5"] == pytest.approx(2)


def test_half_an_interval_is_refused(given: Any) -> None:
    with pytest.raises(DataError, match="a column A-lo-80 and no column A-hi-80"):
        score(given.rolled.drop(columns="A-hi-80"))
    with pytest.raises(DataError, match=r"A model must have one column per level or quantile, but columns A-lo-80 and A-lo-8"):
        score(given.rolled.assign(**{"A-lo-80.0": 1.0}))


def test_quantiles_of_their_own_columns(given: Any) -> None:
    frame = given.points.drop(columns="B").assign(**{"A-q-0.1": given.points["A"] - 1, "A-q-0.9": given.points["A"] + 1})
    found = score(frame, metrics=["pinball", "weighted_quantile_loss", "crps_from_quantiles"]).iloc[0]
    stack = np.stack([frame["A-q-0.1"], frame["A-q-0.9"]])
    assert found["weighted_quantile_loss"] == pytest.approx(metrics.weighted_quantile_loss(frame["y"], stack, [0.1, 0.9]))
    assert found["crps_from_quantiles"] == pytest.approx(metrics.crps_from_quantiles(frame["y"], stack, [0.1, 0.9]))


def test_quantiles_from_the_ends_of_intervals_and_the_point(given: Any) -> None:
    found = score(given.rolled, metrics="weighted_quantile_loss").set_index("model")["weighted_quantile_loss"]
    names = ["A-lo-95", "A-lo-80", "A", "A-hi-80", "A-hi-95"]
    stack = given.rolled[names].to_numpy().T
    expected = metrics.weighted_quantile_loss(given.rolled["y"], stack, [0.025, 0.1, 0.5, 0.9, 0.975])
    assert found["A"] == pytest.approx(expected)


def test_models_are_measured_at_the_same_quantiles(given: Any) -> None:
    more = given.rolled.assign(**{f"A-q-{q}": given.rolled["A"] + q - 0.5 for q in (0.1, 0.5, 0.9)})
    found = score(more, metrics="weighted_quantile_loss").set_index("model")["weighted_quantile_loss"]
    for model, names in (("A", ["A-q-0.1", "A-q-0.5", "A-q-0.9"]), ("B", ["B-lo-80", "B", "B-hi-80"])):
        expected = metrics.weighted_quantile_loss(more["y"], more[names].to_numpy().T, [0.1, 0.5, 0.9])
        assert found[model] == pytest.approx(expected)
    scores = score(more.assign(**{"A-q-0.3": more["A"]}), metrics="weighted_quantile_loss").set_index("model")
    assert np.isnan(scores.loc["B", "weighted_quantile_loss"])


def test_some_of_the_models(given: Any) -> None:
    assert score(given.rolled, models="A", metrics="mae")["model"].tolist() == ["A"]
    assert score(given.rolled, models=["A", "B"], metrics="mae")["model"].tolist() == ["B", "A"]
    with pytest.raises(ParameterError, match=r"got a\. Use one of B, A"):
        score(given.rolled, models=["a"])
    with pytest.raises(ParameterError, match="got A-lo-80"):
        score(given.rolled, models=["A-lo-80"])
    with pytest.raises(ParameterError, match="Did you mean SeasonalNaive"):
        score(given.points.rename(columns={"A": "SeasonalNaive"}), models=["SeasonalNaiv"])
    with pytest.raises(ParameterError, match="at least one"):
        score(given.rolled, models=[])
    broken = given.rolled.assign(B=np.nan)
    assert score(broken, models="A", metrics="mae")["model"].tolist() == ["A"]


def test_columns_that_are_not_numbers_are_said_and_left_out(given: Any) -> None:
    with pytest.warns(DataWarning, match="ignored: note") as caught:
        found = score(given.points.assign(note="x"), metrics="mae")
    assert found["model"].tolist() == ["B", "A"]
    assert caught[0].filename == __file__
    assert score(given.points.assign(note="x"), metrics="mae", models=["A"])["model"].tolist() == ["A"]
