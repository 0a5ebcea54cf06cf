"""A column of weights is no feature, whatever its role, and asks for nothing that only features need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GradientBoosting, LightGBM, LinearModel, XGBoost
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError
from deepforecast.models.regression import _samples
from tests.models.regression.promoted import PLAIN, walks

GIVEN: dict[str, Any] = {"season_length": 7, "weight_column": "counts"}


def weighted(rows: int = 60) -> pd.DataFrame:
    frame = walks(2, rows)
    return frame.assign(counts=1.0 + frame.index % 4)


def test_known_ahead_or_not_it_gives_the_same() -> None:
    frame = weighted()
    past = LinearModel(horizon=3, **GIVEN).fit(frame, columns={"past": ["counts"]})
    future = LinearModel(horizon=3, **GIVEN).fit(frame, columns={"future": ["counts"]})
    ahead = future.future_frame().assign(counts=1.0)
    pd.testing.assert_frame_equal(past.predict(), future.predict(future=ahead))
    np.testing.assert_allclose(
        future.explain(future=ahead).groupby(["unique_id", "ds"])["value"].sum(), past.predict()["LinearModel"], rtol=1e-10
    )
    assert not future.importance()["feature"].str.contains("counts").any()


def test_rows_around_a_step_leave_it_out_too() -> None:
    frame = weighted()
    early = frame.groupby("unique_id").head(55)
    model = LinearModel(horizon=3, future_lags=[-1, 0], **GIVEN).fit(early, columns={"future": ["counts"]})
    model.update(frame.groupby("unique_id").tail(5))
    assert np.isfinite(model.predict(future=model.future_frame().assign(counts=1.0))["LinearModel"]).all()


def test_a_model_that_goes_step_by_step_needs_no_horizon_for_it() -> None:
    found = LinearModel(**GIVEN).fit(weighted(), columns={"past": ["counts"]}).predict(2)
    assert len(found) == 4


def test_what_is_no_weight_is_refused() -> None:
    frame = weighted()
    with pytest.raises(ParameterError, match="`weight_column` must be the name of a declared covariate"):
        LinearModel(horizon=2, season_length=7, weight_column="else").fit(frame, columns={"past": ["counts"]})
    for wrong in (-1.0, np.nan):
        bad = frame.assign(counts=frame["counts"].where(frame.index != 7, wrong))
        with pytest.raises(DataError, match=r"counts.*s0|missing"):
            LinearModel(horizon=2, **GIVEN).fit(bad, columns={"past": ["counts"]})
    with pytest.raises(DataError, match=r"Column counts .* is 0 in all rows of series s0.*Set a positive weight"):
        LinearModel(horizon=2, **GIVEN).fit(frame.assign(counts=0.0), columns={"past": ["counts"]})


def test_half_life_halves_what_a_row_counts() -> None:
    panel = Panel.from_frame(walks(2, 9))
    found = _samples.sample_weights(panel, None, 4.0)
    assert found is not None
    np.testing.assert_allclose(found[[8, 4, 0, 17, 13, 9]] / found[8], [1, 0.5, 0.25] * 2)
    assert found.mean() == pytest.approx(1)
    assert _samples.sample_weights(panel, None, None) is None


def test_a_column_and_a_half_life_multiply() -> None:
    panel = Panel.from_frame(weighted(9), columns={"past": ["counts"]})
    both, column, life = (_samples.sample_weights(panel, *one) for one in (("counts", 2.0), ("counts", None), (None, 2.0)))
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
    columns = {"past": ["counts"]}
    given = {**PLAIN, "calendar": ["day_of_week"]}
    found = [
        LinearModel(horizon=3, weight_column="counts", **given).fit(one, columns=columns).predict() for one in (frame, wild)
    ]
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
@pytest.mark.parametrize(
    "model",
    [GradientBoosting(horizon=2, n_estimators=20, reg_lambda=1.0), LightGBM(horizon=2, n_estimators=20), XGBoost(horizon=2)],
)
def test_weights_count_beside_each_other_whatever_their_unit(model: Any, unit: float) -> None:
    if model.package is not None:
        pytest.importorskip(model.package, reason="the package is not installed")
    model, frame = model.clone(weight_column="counts"), weighted()
    found = model.clone().fit(frame, columns={"past": ["counts"]}).predict()
    model.fit(frame.assign(counts=frame["counts"] * unit), columns={"past": ["counts"]})
    np.testing.assert_allclose(model.predict()[model.name], found[model.name], rtol=1e-4)
    assert len(np.unique(model.predict()[model.name])) > 2
