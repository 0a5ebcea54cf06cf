"""Sample paths: their moments are those of the bands, their steps belong together, their noise belongs to the series."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Drift, Forecaster, Mean, Naive, SeasonalMean, SeasonalNaive, load
from deepforecast.errors import DataWarning

SAMPLES, STEPS = 4000, 8


def series() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    y = 20 + 6 * (np.arange(40) % 3) + random.normal(size=40)
    holes = np.where(np.isin(np.arange(40), [9, 21, 37, 39]), np.nan, y)
    return {"A": y, "B": holes}


def paths(model: Forecaster, frame: pd.DataFrame, steps: int = STEPS, seed: int = 0, samples: int = SAMPLES) -> np.ndarray:
    """Shape (series, samples, steps)."""
    found = model.simulate(samples, steps, seed=seed)
    names = found["unique_id"].nunique() if "unique_id" in found else 1
    assert list(found["sample"][: 2 * steps]) == [0] * steps + [1] * steps
    return found[model.name].to_numpy().reshape(names, samples, steps)


def fitted(model: Forecaster, frame: pd.DataFrame) -> Forecaster:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return model.fit(frame)


def test_moments_are_the_analytic_ones(model: Forecaster, daily: Any) -> None:
    """Mean and variance of every step within 5 standard errors of the forecast and its band."""
    data = series() if model.capabilities.missing else {"A": series()["A"]}
    frame = daily(**data)
    found = paths(fitted(model, frame), frame)
    said = model.predict(STEPS, level=80)
    mean = said[model.name].to_numpy().reshape(-1, STEPS)
    deviation = (said[f"{model.name}-hi-80"].to_numpy().reshape(-1, STEPS) - mean) / 1.2815515655446004
    assert (np.abs(found.mean(axis=1) - mean) < 5 * deviation / np.sqrt(SAMPLES)).all()
    assert (np.abs(found.var(axis=1) / deviation**2 - 1) < 5 * np.sqrt(2 / SAMPLES)).all()


def correlation(model: Forecaster, frame: pd.DataFrame) -> np.ndarray:
    found = paths(fitted(model, frame), frame)[0]
    return np.corrcoef(found.T)


@pytest.mark.parametrize("cls", [Naive, Drift])
def test_a_walk_goes_on_from_step_to_step(cls: type[Forecaster], daily: Any) -> None:
    """Covariance of steps h < k: h for the walk, h * k / (T - 1) more for the error of the drift."""
    h = np.arange(1, STEPS + 1)
    covariance = np.minimum(h[:, None], h) + (np.outer(h, h) / 39 if cls is Drift else 0)
    expected = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(correlation(cls(), daily(A=series()["A"])), expected, atol=0.06)


def test_drift_after_rows_without_a_value(daily: Any) -> None:
    """The walk since the last value is common to all steps, and so is the error of the drift, but they are two."""
    y = np.append(series()["A"], [np.nan] * 4)
    h = np.arange(5, 5 + STEPS)
    covariance = 4 + np.minimum(h[:, None], h) - 4 + np.outer(h, h) / 39
    expected = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(correlation(Drift(), daily(A=y)), expected, atol=0.06)


def test_seasonal_naive_walks_from_season_to_season(daily: Any) -> None:
    found = correlation(SeasonalNaive(season_length=3), daily(A=series()["A"]))
    expected = np.eye(STEPS)
    for h in range(STEPS):
        for k in range(h + 3, STEPS, 3):
            expected[h, k] = expected[k, h] = np.sqrt((h // 3 + 1) / (k // 3 + 1))
    np.testing.assert_allclose(found, expected, atol=0.06)


def test_means_err_together(daily: Any) -> None:
    """The error of a mean is common to the steps it is the forecast of."""
    frame = daily(A=series()["A"][:6])
    np.testing.assert_allclose(correlation(Mean(), frame)[0, 1:], (1 / 6) / (1 + 1 / 6), atol=0.06)
    found = correlation(SeasonalMean(season_length=3), frame)
    np.testing.assert_allclose(found[0, [3, 6]], (1 / 2) / (1 + 1 / 2), atol=0.06)
    np.testing.assert_allclose(found[0, [1, 2, 4, 5, 7]], 0, atol=0.06)


def test_series_with_one_forecast_have_noise_of_their_own(model: Forecaster, daily: Any) -> None:
    """Different pasts, the same forecast: sums over the panel would be too spread if the noise were common."""
    past = series()["A"]
    other = np.concatenate([past[2::-1], past[3:]])  # the same values, the first season in another order
    frame = daily(A=past, B=other) if model.name not in ("Drift", "SeasonalMean") else daily(A=past, B=past + 1e-9)
    found = paths(fitted(model, frame), frame)
    assert abs(np.corrcoef(found[0, :, 0], found[1, :, 0])[0, 1]) < 0.1 or model.name in ("Mean", "WindowMean")


def test_series_of_equal_values_have_equal_noise(model: Forecaster, daily: Any) -> None:
    """Names do not matter, so nothing tells two equal series apart."""
    y = series()["A"]
    found = paths(fitted(model, daily(A=y, B=y)), daily(A=y, B=y))
    np.testing.assert_array_equal(found[0], found[1])


def test_a_longer_horizon_goes_on_with_the_same_paths(model: Forecaster, daily: Any) -> None:
    frame = daily(A=series()["A"])
    longer = paths(fitted(model, frame), frame, 12, samples=50)
    for steps in (1, 2, 3, 7):
        np.testing.assert_array_equal(paths(model, frame, steps, samples=50), longer[..., :steps])


def test_seeds_and_the_callers_generators(model: Forecaster, daily: Any) -> None:
    """One seed, one result; another seed, another; numpy's global state is as before."""
    frame = daily(A=series()["A"])
    fitted(model, frame)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, other = (paths(model, frame, seed=seed, samples=20) for seed in (0, 0, 1))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


def test_loaded_model_simulates_the_same_paths(model: Forecaster, daily: Any, tmp_path: Path) -> None:
    frame = daily(A=series()["A"], B=np.full(20, 0.1))
    fitted(model, frame).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(paths(loaded, frame, samples=5), paths(model, frame, samples=5))


def test_constants_have_no_noise(model: Forecaster, daily: Any) -> None:
    frame = daily(A=np.full(30, 0.1))
    assert (paths(fitted(model, frame), frame, samples=5) == 0.1).all()
