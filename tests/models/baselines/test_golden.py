"""Published numbers: R's forecast package, sktime. Sources are in tests/golden/baselines.json."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deepforecast import Drift, Forecaster, Mean, Naive, SeasonalNaive, datasets

PRINTED = 0.00006  # four decimals, rounded


def forecast(model: Forecaster, frame: pd.DataFrame, horizon: int, freq: Any = None) -> pd.DataFrame:
    found = model.fit(frame, freq=freq).predict(horizon, level=[80, 95])
    return found.rename(columns=lambda name: str(name).removeprefix(f"{model.name}-")).rename(columns={model.name: "point"})


def agrees(found: pd.DataFrame, known: Mapping[str, Any], tolerance: float = PRINTED) -> None:
    expected = np.array(known["forecast"])
    np.testing.assert_allclose(found[known["columns"]].to_numpy()[: len(expected)], expected, rtol=1e-7, atol=tolerance)


def stepping(last: list[float], size: float, rows: int) -> np.ndarray:
    """A series that ends on `last` and changes by exactly `size` from season to season, up and down."""
    season = len(last)
    y = np.empty(rows)
    for place in range(season):
        back = np.arange(rows - season + place, -1, -season)
        y[back] = last[place] + size * (np.arange(len(back)) % 2)
    return y


def test_naive_goog(golden: Mapping[str, Any], daily: Any) -> None:
    known = golden["naive_goog"]
    agrees(forecast(Naive(), daily(goog=stepping([known["last"]], known["rmse"], known["rows"])), 20), known)


def test_seasonal_naive_ausbeer(golden: Mapping[str, Any]) -> None:
    known = golden["seasonal_naive_ausbeer"]
    quarters = pd.date_range("1956-01-01", periods=known["rows"], freq="QS")
    frame = pd.DataFrame({"ds": quarters, "y": stepping(known["last"], known["rmse"], known["rows"])})
    found = forecast(SeasonalNaive(), frame, 20)
    assert found["ds"].iloc[0] == pd.Timestamp("2010-07-01")
    agrees(found, known)


@pytest.mark.parametrize(
    ("case", "model"),
    [
        ("naive_nile", Naive()),
        ("naive_air_passengers", Naive()),
        ("seasonal_naive_air_passengers", SeasonalNaive()),
    ],
)
def test_on_data_that_ship(golden: Mapping[str, Any], case: str, model: Forecaster) -> None:
    known = golden[case]
    found = forecast(model, datasets.load(known["dataset"]), len(known["forecast"]))
    agrees(found, known, tolerance=0.0006 if case == "naive_nile" else PRINTED)  # Nile: three decimals above 1,000


def test_seasonal_naive_to_the_last_digit(golden: Mapping[str, Any]) -> None:
    known = golden["seasonal_naive_air_passengers_sktime"]
    agrees(forecast(SeasonalNaive(), datasets.load("air_passengers"), 1), known, tolerance=1e-10)


def test_mean_nile_with_the_normal_quantile_for_students(golden: Mapping[str, Any]) -> None:
    """R's band is Student's; ours, by the book, the normal one: the same half width but for the quantile."""
    known = golden["mean_nile"]
    found = forecast(Mean(), datasets.load("nile"), len(known["forecast"]))
    for level in (80, 95):
        tail = (1 + level / 100) / 2
        half = (found[f"hi-{level}"] - found["point"]) * stats.t.ppf(tail, known["freedom"]) / NormalDist().inv_cdf(tail)
        found[f"lo-{level}"], found[f"hi-{level}"] = found["point"] - half, found["point"] + half
    agrees(found, known, tolerance=0.006)  # two decimals are printed of 1138.77


def test_drift_air_passengers_with_rs_divisor(golden: Mapping[str, Any]) -> None:
    """R's `rwf` divides the noise's sum of squares by T - 1, we and the book by the T - 2 degrees of freedom."""
    known = golden["drift_air_passengers"]
    found = forecast(Drift(), datasets.load("air_passengers"), len(known["forecast"]))
    np.testing.assert_allclose(found["point"][:2], known["points"], atol=PRINTED)
    h, changes = np.arange(1, len(found) + 1), known["rows"] - 1
    ours = h * (1 + h / changes)
    theirs = h * (changes - 1) / changes + h**2 / changes
    found["lo-80"] = found["point"] - (found["point"] - found["lo-80"]) * np.sqrt(theirs / ours)
    agrees(found, known)
    assert (np.sqrt(ours / theirs) > 1.0005).all()  # so that the difference would be seen
