"""Recursive, direct and block forecasts against a table built again for every step, for every kind of feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LinearModel
from deepforecast.data.features import parse_lag_feature
from deepforecast.data.panel import Panel
from deepforecast.models.regression._design import Design, exogenous_columns, feature_table
from deepforecast.models.regression._plan import Plan
from deepforecast.models.regression._series_state import SCALE_NAMES

FEATURES = ["difference_2", "mean_5", "std_6@2", "min_4", "max_3x4", "quantile_9_0.8", "expanding_mean", "expanding_std@3",
            "expanding_min", "expanding_max", "ewm_0.3"]  # fmt: skip
H = 7


def walks(lengths: tuple[int, ...] = (60, 47, 80)) -> pd.DataFrame:
    random = np.random.default_rng(4)
    parts = [
        pd.DataFrame(
            {
                "unique_id": f"s{one}",
                "ds": pd.date_range("2024-01-01", periods=n),
                "y": 50 * one + random.normal(size=n).cumsum() + 3 * np.sin(np.arange(n) * 2 * np.pi / 7),
            }
        )
        for one, n in enumerate(lengths)
    ]
    return pd.concat(parts, ignore_index=True)


def by_hand(model: LinearModel, frame: pd.DataFrame) -> np.ndarray:
    """Each step from a table of the whole history with the steps before it as rows, on the scale that is learned."""
    learned = model.state_.learned
    plan, made = Plan.from_dict(learned["plan"]), learned["regressors"]
    y = {name: list(part["y"]) for name, part in frame.groupby("unique_id")}
    found = []
    for step in range(H):
        at = step % plan.block_size
        grown = pd.concat(
            pd.DataFrame({"unique_id": name, "ds": pd.date_range("2024-01-01", periods=len(held) + 1), "y": [*held, np.nan]})
            for name, held in y.items()
        )
        # rows of the block that are not known at its begin are not looked at: hide them
        hidden = grown.copy()
        from_end = hidden.groupby("unique_id").cumcount(ascending=False)
        hidden.loc[(from_end > 0) & (from_end <= at), "y"] = np.nan
        panel = Panel.from_frame(hidden.assign(y=hidden["y"]), freq="D", calendar=model.state_.series.calendar)
        scales = {name: learned[name] for name in SCALE_NAMES}
        z = plan.target.apply(panel.y, panel.indptr, scales, np.zeros(len(panel), dtype=np.int64))
        beside = exogenous_columns(plan.design, panel.calendar, panel.row_positions, panel.row_series, {})
        rows = feature_table(plan.design.shift(at), panel, z, beside, np.float64)[panel.indptr[1:] - 1]
        values = model._predict_rows(made.models[at][0], rows) * learned["scale"] + learned["centre"]
        found.append(values)
        for held, value in zip(y.values(), values, strict=True):
            held.append(float(value))
    return np.stack(found, axis=1)


@pytest.mark.parametrize(
    "strategy", [{"strategy": "recursive"}, {"strategy": "direct"}, {"strategy": "blocks", "block_size": 3}]
)
@pytest.mark.parametrize("feature", FEATURES)
def test_a_step_sees_what_a_table_built_anew_holds(feature: str, strategy: dict[str, Any]) -> None:
    frame = walks()
    model = LinearModel(
        horizon=H, lags=[1, 2, 7], lag_transforms=[feature], differences=None, calendar=["day_of_week"], **strategy
    )
    found = model.fit(frame).predict()["LinearModel"].to_numpy().reshape(3, H)
    np.testing.assert_allclose(found, by_hand(model, frame), rtol=1e-6)


@pytest.mark.parametrize(
    "strategy", [{"strategy": "recursive"}, {"strategy": "blocks", "block_size": 3}, {"strategy": "direct"}]
)
@pytest.mark.parametrize("feature", FEATURES)
def test_an_update_is_a_longer_history(feature: str, strategy: dict[str, Any]) -> None:
    frame = walks()
    late = frame.groupby("unique_id").cumcount(ascending=False) < 5
    model = LinearModel(horizon=H, lags=[1, 2, 7], lag_transforms=[feature], differences=[1], **strategy).fit(frame[~late])
    wanted = model.predict(frame=frame)["LinearModel"]
    first = frame[late].groupby("unique_id").head(2)
    model.update(first).update(frame[late].drop(first.index))
    np.testing.assert_allclose(model.predict()["LinearModel"], wanted, rtol=1e-9)


@pytest.mark.parametrize("strategy", ["recursive", "direct", "direct_multioutput", "blocks"])
def test_the_line_of_a_perfect_recursion_goes_on(strategy: str) -> None:
    n = 60
    y = [1.0, 2.0]
    while len(y) < n + H:
        y.append(1.6 * y[-1] - 0.8 * y[-2] + 0.3)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=n), "y": y[:n]})
    model = LinearModel(
        horizon=H,
        lags=2,
        lag_transforms=None,
        calendar=None,
        differences=None,
        scale=False,
        ridge=0.0,
        strategy=strategy,
        block_size=3 if strategy == "blocks" else 7,
    )
    np.testing.assert_allclose(model.fit(frame).predict()["LinearModel"], y[n:], atol=1e-6)


@pytest.mark.parametrize("ahead", [0, 1, 4])
@pytest.mark.parametrize("feature", ["lag_1", "lag_7", *FEATURES])
def test_no_feature_of_a_row_moves_with_what_comes_after_its_origin(feature: str, ahead: int) -> None:
    design = Design((parse_lag_feature(feature),), {}).shift(ahead)
    panel = Panel.from_frame(walks((60,)))
    rows = feature_table(design, panel, panel.y, np.empty((60, 0)), np.float64)
    for at in (20, 33):
        y = panel.y.copy()
        y[at - ahead :] = 1e6 * np.random.default_rng(at).normal(size=60 - at + ahead)
        other = feature_table(design, panel, y, np.empty((60, 0)), np.float64)
        np.testing.assert_array_equal(other[: at + 1], rows[: at + 1])
        if feature not in ("expanding_min", "expanding_max"):
            assert not np.array_equal(other[at + 1 :], rows[at + 1 :], equal_nan=True)
