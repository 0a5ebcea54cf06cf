"""Columns far from 0, very large or very small say what they said near 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GradientBoosting, LightGBM, LinearModel, XGBoost, load
from deepforecast.data.covariates import Covariate
from deepforecast.models.regression import _rescaling
from tests.models.regression.promoted import PLAIN, sales

MODELS = [
    LinearModel(horizon=4, **PLAIN),
    GradientBoosting(horizon=4, n_estimators=20, learning_rate=0.3, **PLAIN),
    LightGBM(horizon=4, n_estimators=20, learning_rate=0.3, **PLAIN),
    XGBoost(horizon=4, n_estimators=20, learning_rate=0.3, **PLAIN),
]
MISSING_ROWS = [(1e9, 1e-1), (-3e12, 1.0), (0.0, 1e300), (0.0, 1e-300), (1e8, 1e-3)]


@pytest.mark.parametrize(("origin", "unit"), MISSING_ROWS)
@pytest.mark.parametrize("role", ["future", "past", "static"])
@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
def test_a_column_says_the_same_wherever_it_lies(model: Any, role: str, origin: float, unit: float, tmp_path: Path) -> None:
    if getattr(model, "package", None) is not None:
        pytest.importorskip(model.package, reason="the package is not installed")
    history, future = sales(4, 60)
    history, future = history.drop(columns="weather"), future.drop(columns="weather")
    if role == "static":
        history["promotion"] = history["unique_id"].map({"s0": 0.0, "s1": 1.0, "s2": 2.0, "s3": 0.5})
        history["y"] += 30 * history["promotion"]
    given: dict[str, Any] = {"future": future} if role == "future" else {}
    near = model.clone().fit(history, columns={role: ["promotion"]}).predict(**given)[model.name].to_numpy()
    history["promotion"], future["promotion"] = (origin + unit * one["promotion"] for one in (history, future))
    far = model.clone().fit(history, columns={role: ["promotion"]})
    np.testing.assert_allclose(far.predict(**given)[model.name], near, rtol=1e-4)
    far.save(tmp_path / "model")
    pd.testing.assert_frame_equal(load(tmp_path / "model").predict(**given), far.predict(**given), check_exact=True)
    assert np.ptp(near) > 5 or role == "past"


def test_most_columns_stay_as_they_are() -> None:
    columns = {"x": Covariate(np.array([0.0, 1.0, np.nan]), None), "kind": Covariate(np.array([1e12, 1e12 + 1]), ("a", "b"))}
    assert _rescaling.fit_scales(columns) == {}
    assert _rescaling.fit_scales({"x": Covariate(np.array([1e9, 1e9 + 1, np.nan]), None)}) == {"x": [1e9 + 0.5, 1.0]}
    assert _rescaling.fit_scales({"x": Covariate(np.array([np.nan, 0.0]), None)}) == {}


def test_the_number_of_a_row_counts_from_the_begin_of_the_fit() -> None:
    """Seconds since 1970 have ten digits; the step of level lies between two of them."""
    stamps = pd.date_range("2024-01-01", periods=200, freq="s")
    frame = pd.DataFrame({"ds": stamps, "y": np.where(np.arange(200) < 190, 0.0, 50.0)})
    late = pd.DataFrame({"ds": stamps[:60], "y": 0.0})
    given = {**PLAIN, "time_index": True, "season_length": 60}
    model = GradientBoosting(horizon=4, n_estimators=40, min_child_samples=1, learning_rate=0.3, **given).fit(frame)
    np.testing.assert_allclose(model.predict()["GradientBoosting"], 50, atol=1)
    np.testing.assert_allclose(model.predict(frame=late)["GradientBoosting"], 0, atol=1)
