"""Observation weights of regressions: how much each row counts in training, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GradientBoosting, LightGBM, LinearModel, XGBoost
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, DataWarning
from deepforecast.models.regression import _samples
from tests.models.regression.promoted import PLAIN, walks

GIVEN: dict[str, Any] = {"season_length": 7}
COLUMNS = {"weight": "counts"}


def weighted(rows: int = 60) -> pd.DataFrame:
    frame = walks(2, rows)
    return frame.assign(counts=1.0 + frame.index % 4)


def test_a_weight_is_no_feature() -> None:
    frame = weighted()
    model = LinearModel(horizon=3, **GIVEN).fit(frame, columns=COLUMNS)
    features = LinearModel(horizon=3, **GIVEN).fit(frame.drop(columns="counts")).importance()["feature"]
    assert set(model.importance()["feature"]) == set(features)
    np.testing.assert_allclose(
        model.explain().groupby(["unique_id", "ds"])["value"].sum(), model.predict()["LinearModel"], rtol=1e-10
    )
    pd.testing.assert_frame_equal(model.importance(frame), model.importance(frame.drop(columns="counts")))


def test_a_recursive_model_with_weights_requires_no_horizon() -> None:
    forecast = LinearModel(**GIVEN).fit(weighted(), columns=COLUMNS).predict(2)
    assert len(forecast) == 4


def test_weights_of_each_series_must_not_all_be_zero_with_per_series() -> None:
    frame = weighted()
    frame["counts"] = np.where(frame["unique_id"] == "s1", 0.0, frame["counts"])
    assert LinearModel(horizon=2, **GIVEN).fit(frame, columns=COLUMNS).predict()["LinearModel"].notna().all()
    with pytest.raises(DataError, match=r"Column counts must have a positive weight .* series s1\."):
        LinearModel(horizon=2, per_series=True, **GIVEN).fit(frame, columns=COLUMNS)
    model = LinearModel(horizon=2, per_series=True, on_failure="fallback", **GIVEN)
    with pytest.warns(DataWarning, match="s1"):
        model.fit(frame, columns=COLUMNS)
    assert model.failures_["unique_id"].tolist() == ["s1"]
    later = frame.groupby("unique_id").tail(1)
    model.update(later.assign(ds=later["ds"] + pd.Timedelta(days=1)))
    assert model.predict()["LinearModel"].notna().all()


def test_series_fitted_in_predict_use_their_weights() -> None:
    frame = weighted()
    model = LinearModel(horizon=2, per_series=True, **GIVEN).fit(frame, columns=COLUMNS)
    renamed = frame.assign(unique_id=frame["unique_id"] + "x")
    with pytest.warns(DataWarning, match="are fitted now"):
        forecast = model.predict(frame=renamed)
    np.testing.assert_array_equal(forecast["LinearModel"], model.predict()["LinearModel"])


def test_half_life_halves_what_a_row_counts() -> None:
    panel = Panel.from_frame(walks(2, 9))
    found = _samples.sample_weights(panel, 4.0)
    assert found is not None
    np.testing.assert_allclose(found[[8, 4, 0, 17, 13, 9]] / found[8], [1, 0.5, 0.25] * 2)
    assert found.mean() == pytest.approx(1)
    assert _samples.sample_weights(panel, None) is None


def test_a_column_and_a_half_life_multiply() -> None:
    panel = Panel.from_frame(weighted(9), columns=COLUMNS)
    unweighted = Panel.from_frame(weighted(9).drop(columns="counts"))
    both, column = (_samples.sample_weights(panel, half_life) for half_life in (2.0, None))
    life = _samples.sample_weights(unweighted, 2.0)
    assert column is not None
    assert life is not None
    np.testing.assert_allclose(both, column * life / (column * life).mean())


def test_the_newest_rows_rule_where_older_ones_are_forgotten() -> None:
    """The level moved 60 rows ago: with a short half-life the forecast is the new one."""
    y = np.where(np.arange(120) < 60, 10.0, 30.0) + 0.1 * np.random.default_rng(0).normal(size=120)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=120), "y": y})
    given = {**PLAIN, "calendar": ["day_of_week"]}
    found = [LinearModel(horizon=2, half_life=life, **given).fit(frame).predict()["LinearModel"].mean() for life in (None, 5.0)]
    np.testing.assert_allclose(found, [20, 30], atol=1.5)


def test_a_row_of_weight_zero_counts_for_nothing() -> None:
    frame = weighted()
    frame["counts"] = np.where(frame.index % 5 == 0, 0.0, frame["counts"])
    wild = frame.assign(y=np.where(frame["counts"] == 0, 1e4, frame["y"]))
    given = {**PLAIN, "calendar": ["day_of_week"]}
    found = [LinearModel(horizon=3, **given).fit(one, columns=COLUMNS).predict() for one in (frame, wild)]
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
@pytest.mark.parametrize(
    "model",
    [GradientBoosting(horizon=2, n_estimators=20, reg_lambda=1.0), LightGBM(horizon=2, n_estimators=20), XGBoost(horizon=2)],
)
def test_weights_count_beside_each_other_whatever_their_unit(model: Any, unit: float) -> None:
    if model.package is not None:
        pytest.importorskip(model.package, reason="the package is not installed")
    model, frame = model.clone(), weighted()
    found = model.clone().fit(frame, columns=COLUMNS).predict()
    model.fit(frame.assign(counts=frame["counts"] * unit), columns=COLUMNS)
    np.testing.assert_allclose(model.predict()[model.name], found[model.name], rtol=1e-4)
    assert len(np.unique(model.predict()[model.name])) > 2
