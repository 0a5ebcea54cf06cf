"""Bands count what is not known of the regression: against least squares in closed form and statsmodels' own."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from deepforecast import ARIMA, AutoARIMA
from deepforecast.data.columns import Columns


def daily(y, **columns) -> pd.DataFrame:
    return pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=len(y)), "y": y, **columns})


def half(model: ARIMA, level: int = 95, **given) -> np.ndarray:
    found = model.predict(level=level, **given)
    return (found[f"ARIMA-hi-{level}"] - found["ARIMA"]).to_numpy()


def test_without_lags_the_band_is_that_of_least_squares():
    """statsmodels' prediction interval of a regression, exactly: t, sigma^2 with n - k, and the error of the coefficients."""
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(2, 40))
    frame = daily(3 + 2 * x + other + rng.normal(size=40), x=x, other=100 + 5 * other)
    model = ARIMA(order=(0, 0, 0), horizon=10).fit(frame[:30], columns=Columns(future=("x", "other")))
    ahead = frame[30:].drop(columns="y")
    table = sm.add_constant(frame[["x", "other"]])
    found = sm.OLS(frame["y"][:30], table[:30]).fit().get_prediction(table[30:]).summary_frame(alpha=0.05)
    wanted = (found["obs_ci_upper"] - found["mean"]).to_numpy()
    np.testing.assert_allclose(half(model, future=ahead), wanted, rtol=1e-6)


def test_a_drift_is_as_uncertain_as_the_mean_of_the_changes():
    y = np.random.default_rng(1).normal(0.3, 1, 31).cumsum()
    changes, ahead = np.diff(y), np.arange(1.0, 9.0)
    model = ARIMA(order=(0, 1, 0), constant=True, horizon=8).fit(daily(y))
    wanted = stats.t(29).ppf(0.975) * changes.std(ddof=1) * np.sqrt(ahead + ahead**2 / 30)
    np.testing.assert_allclose(half(model), wanted, rtol=1e-6)


def test_a_mean_is_as_uncertain_as_generalised_least_squares_says():
    """AR(1): the columns' own filter written out, and 1 + k / n for the coefficient."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=60)
    for t in range(1, 60):
        y[t] += 0.6 * y[t - 1]
    model = ARIMA(order=(1, 0, 0), horizon=6).fit(daily(5 + y))
    phi, sigma = model.parameters()["ar1"].item(), model.parameters()["sigma"].item()
    information = (1 - phi**2) + 59 * (1 - phi) ** 2
    ahead = np.arange(1, 7)
    shocks = np.cumsum(phi ** (2.0 * (ahead - 1)))
    wanted = stats.t(58).ppf(0.975) * sigma * np.sqrt(shocks * (1 + 1 / 60) + (1 - phi**ahead) ** 2 / information)
    np.testing.assert_allclose(half(model), wanted, rtol=1e-6)


def test_what_is_not_known_goes_on_with_the_rows_and_over_missing_ones():
    rng = np.random.default_rng(3)
    x = rng.normal(size=90)
    y = 2 * x + rng.normal(size=90).cumsum() + 0.2 * np.arange(90)
    y[[20, 21, 70]] = np.nan
    frame = daily(y, x=x)
    model = ARIMA(order=(1, 1, 1), constant=True, horizon=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame[:60], columns=Columns(future=("x",)))
        ahead = frame[85:].drop(columns="y")
        through = model.predict(level=80, frame=frame[:85], future=ahead)
        stepped = model.update(frame[60:85]).predict(level=80, future=ahead)
    pd.testing.assert_frame_equal(stepped, through, rtol=1e-8)
    assert model.state_.learned["coefficient_directions"].any(axis=-1).sum() == 2


def test_columns_that_say_the_same_widen_nothing_beyond_bounds():
    rng = np.random.default_rng(4)
    x = rng.normal(size=80)
    y = x + rng.normal(size=80)
    plain = ARIMA(order=(1, 0, 0), horizon=5).fit(daily(y, x=x)[:75], columns=Columns(future=("x",)))
    twice = daily(y, x=x, again=2 * x)
    model = ARIMA(order=(1, 0, 0), horizon=5).fit(twice[:75], columns=Columns(future=("x", "again")))
    wide = half(model, future=twice[75:].drop(columns="y"))
    np.testing.assert_allclose(wide, half(plain, future=twice[75:][["ds", "x"]]), rtol=0.05)


@pytest.mark.slow
def test_coverage_of_a_drift_from_thirty_values():
    steps = np.random.default_rng(5).normal(0.3, 1, (2000, 42))
    y = steps.cumsum(axis=1)
    ids, times = np.repeat(np.arange(2000), 30), np.tile(np.arange(30), 2000)
    frame = pd.DataFrame({"unique_id": ids, "ds": times, "y": y[:, :30].ravel()})
    found = ARIMA(order=(0, 1, 0), constant=True, horizon=12).fit(frame, freq=1).predict(level=[80, 95])
    for level, most in ((80, 2.9), (95, 1.6)):  # the bars of 200 values: the band of a regression is exact
        low, high = (found[f"ARIMA-{side}-{level}"].to_numpy().reshape(2000, 12) for side in ("lo", "hi"))
        inside = 100 * ((y[:, 30:] >= low) & (y[:, 30:] <= high)).mean(axis=0)
        assert np.abs(inside[[0, 11]] - level).max() < most


def test_paths_count_it_too():
    y = np.random.default_rng(6).normal(0.5, 1, 25).cumsum()
    model = ARIMA(order=(0, 1, 0), constant=True, horizon=12).fit(daily(y))
    paths = model.simulate(8000)["ARIMA"].to_numpy().reshape(8000, 12)
    bands = model.predict(level=80)
    width = (bands["ARIMA-hi-80"] - bands["ARIMA-lo-80"]).to_numpy()
    np.testing.assert_allclose(np.ptp(np.quantile(paths, [0.1, 0.9], axis=0), axis=0), width, rtol=0.05)


def test_long_seasons_count_their_waves():
    rng = np.random.default_rng(7)
    y = 10 * np.sin(2 * np.pi * np.arange(400) / 24) + rng.normal(size=400)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=400, freq="h"), "y": y})
    model = AutoARIMA(horizon=24).fit(frame)
    learned = model.state_.learned
    used = np.count_nonzero(learned["beta"][0, 1:])
    assert used >= 2
    assert np.count_nonzero(learned["coefficient_directions"][0].any(axis=1)) >= used
    bands = model.predict(level=80)
    width = (bands["AutoARIMA-hi-80"] - bands["AutoARIMA-lo-80"]).to_numpy()
    assert np.isfinite(width).all()
    assert width.max() < 4 * 2 * 1.2816
