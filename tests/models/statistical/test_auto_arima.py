"""AutoARIMA: the order it goes to, what it does with odd series, long seasons and several, and its bands."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.datasets import nile

from deepforecast import ARIMA, AutoARIMA, datasets
from deepforecast.data.columns import Columns
from deepforecast.models.statistical._order_search import Search, SearchOptions, choose_differences, has_near_unit_root
from deepforecast.models.statistical._scaled_series import ScaledSeries

WWW_USAGE = [
    88, 84, 85, 85, 84, 85, 83, 85, 88, 89, 91, 99, 104, 112, 126, 138, 146, 151, 150, 148, 147, 149, 143, 132, 131, 139, 147,
    150, 148, 145, 140, 134, 131, 131, 129, 126, 126, 132, 137, 140, 142, 150, 159, 167, 170, 171, 172, 172, 174, 175, 172,
    172, 174, 174, 169, 165, 156, 142, 131, 121, 112, 104, 102, 99, 99, 95, 88, 84, 84, 87, 89, 88, 85, 86, 89, 91, 91, 94,
    101, 110, 121, 135, 145, 149, 156, 165, 171, 175, 177, 182, 193, 204, 208, 210, 215, 222, 228, 226, 222, 220,
]  # fmt: skip
"""R's dataset of that name: Durbin & Koopman (2001); users of a server by the minute."""


def daily(values, **columns):
    return pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=len(values)), "y": np.asarray(values, float), **columns})


def air():
    return datasets.load("air_passengers")


@pytest.mark.parametrize(
    ("frame", "season", "d", "aicc"),
    [
        (air(), 12, "1,", 1018.17),  # ARIMA(2,1,1)(0,1,0)[12]
        (daily(WWW_USAGE), 1, "1,", 514.55),  # ARIMA(1,1,1)
        (daily(nile.load_pandas().data["volume"]), 1, "1,", 1267.51),  # ARIMA(1,1,1)
    ],
    ids=["AirPassengers", "WWWusage", "Nile"],
)
def test_at_most_two_above_what_r_prints_for_auto_arima(frame, season, d, aicc):
    found = AutoARIMA(season_length=season).fit(frame).parameters().iloc[0]
    assert found["order"].split(",", 1)[1].startswith(d)
    assert found["aicc"] < aicc + 2


def test_the_order_chosen_is_the_best_of_those_visited_and_each_is_its_own_fit():
    y = air()["y"].to_numpy(float)
    series = ScaledSeries.from_values(y, np.empty((len(y), 0)))
    search = Search(series, SearchOptions(), choose_differences(series, 1, 12, "kpss", 2), 1, 12)
    best = search.run()
    scores = [fit.criterion("aicc") for fit in search.fits_by_key.values() if fit is not None]
    assert len(scores) > 10
    assert best.criterion("aicc") <= min(scores) + 1e-6
    for fit in search.fits_by_key.values():
        if fit is not None:
            alone = series.fit_many_starts(fit.order)[0]
            assert fit.log_likelihood <= alone.log_likelihood + 1e-3
            if has_near_unit_root(alone):
                continue
            assert fit.log_likelihood == pytest.approx(alone.log_likelihood, abs=0.5)
    fixed = ARIMA(order=(2, 1, 1), seasonal_order=(0, 1, 0)).fit(air()).parameters().iloc[0]
    assert fixed["aicc"] == pytest.approx(best.criterion("aicc"), abs=1e-4)


def test_a_full_search_finds_nothing_worse():
    whole = AutoARIMA(stepwise=False, max_p=2, max_q=2, max_seasonal_p=1, max_seasonal_q=1).fit(air()).parameters()
    steps = AutoARIMA(max_p=2, max_q=2, max_seasonal_p=1, max_seasonal_q=1).fit(air()).parameters()
    assert whole["aicc"][0] <= steps["aicc"][0] + 1e-6


def test_the_approximation_ends_in_an_exact_fit():
    exact, near = (AutoARIMA(approximation=one).fit(air()).parameters().iloc[0] for one in (False, True))
    assert near["aicc"] < exact["aicc"] + 3
    p, d, q = (int(one) for one in near["order"][1:6].split(","))
    if near["order"].endswith("(0,1,0)[12]"):
        fixed = ARIMA(order=(p, d, q), seasonal_order=(0, 1, 0)).fit(air()).parameters().iloc[0]
        assert near["log_likelihood"] == pytest.approx(fixed["log_likelihood"], abs=1e-3)


@pytest.mark.parametrize("value", [7.0, -7.0, 1e9, 1e-9, 0.0])
def test_constant_is_continued_with_zero_width_intervals(value):
    found = AutoARIMA(horizon=5).fit(daily(np.full(60, value))).predict(level=80)
    np.testing.assert_array_equal(found.iloc[:, 1:], np.full((5, 3), value))


def test_linear_series_is_continued():
    found = AutoARIMA(horizon=5).fit(daily(np.arange(60))).predict(level=80)
    np.testing.assert_allclose(found.iloc[:, 1:], np.repeat(np.arange(60.0, 65.0)[:, None], 3, axis=1), atol=1e-6)


def test_perfect_season_is_continued():
    season = np.array([1.0, 5, 2, 8, 3, 9, 4])
    found = AutoARIMA(horizon=7).fit(daily(np.tile(season, 10))).predict(level=80)
    np.testing.assert_allclose(found.iloc[:, 1:], np.repeat(season[:, None], 3, axis=1), atol=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        np.r_[np.full(59, 3.0), 9.0],
        np.r_[np.zeros(80), 5.0, np.zeros(39)],
        np.random.default_rng(0).poisson(0.12, 120),
        np.tile([1.0, -1.0], 60),
        np.r_[np.random.default_rng(0).normal(size=119), 1e9],
        np.exp(np.arange(60.0) / 3),
        np.sin(np.arange(120.0)),
    ],
    ids=["b071-step", "b072-one", "b073-counts", "b074-alternating", "b078-outlier", "growth", "sine"],
)
def test_odd_series_have_finite_forecasts(values):
    found = AutoARIMA(horizon=8).fit(daily(values)).predict(level=95)
    assert np.isfinite(found.iloc[:, 1:].to_numpy()).all()


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_scale_equivariance(scale):
    frame = air()
    plain = AutoARIMA(horizon=12).fit(frame).predict(level=80).iloc[:, 2:]
    scaled = AutoARIMA(horizon=12).fit(frame.assign(y=frame["y"] * scale)).predict(level=80).iloc[:, 2:]
    np.testing.assert_allclose(scaled / scale, plain, rtol=1e-5)


def test_a_long_season_is_waves():
    hours = np.arange(700)
    rng = np.random.default_rng(0)
    wave = 10 * np.sin(2 * np.pi * hours / 24) + 4 * np.cos(2 * np.pi * hours / 168)
    y = 100 + wave + rng.normal(size=700) + 0.3 * rng.normal(size=700).cumsum()
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=700, freq="h"), "y": y})
    model = AutoARIMA(horizon=168).fit(frame)
    found = model.explain().pivot(index="ds", columns="component", values="value")
    ahead = np.arange(700, 868)
    wanted = 10 * np.sin(2 * np.pi * ahead / 24) + 4 * np.cos(2 * np.pi * ahead / 168)
    assert np.abs(found["season"] - wanted).max() < 2
    np.testing.assert_allclose(found.sum(axis=1), model.predict()["AutoARIMA"], rtol=1e-9)
    moved = model.predict(frame=frame[24:])["AutoARIMA"]  # waves keep their phase on another history
    assert np.abs(moved - model.predict()["AutoARIMA"]).max() < 2


def test_a_season_without_two_cycles_is_left_out_and_said():
    frame = pd.DataFrame({"ds": pd.date_range("2024-04-01", periods=9, freq="MS"), "y": np.arange(9.0) ** 2})
    with pytest.warns(UserWarning, match="they are left out for series"):
        found = AutoARIMA(horizon=3).fit(frame).predict()
    assert np.isfinite(found["AutoARIMA"]).all()


def test_missing_values_are_stepped_over():
    y = np.random.default_rng(1).normal(size=150).cumsum() + np.tile([0, 5, 1, 7, 2, 0, 3.0], 22)[:150]
    holed = y.copy()
    holed[[0, 1, 3, 40, 41, 90, 148]] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole, part = (AutoARIMA(horizon=7).fit(daily(one)).predict(level=80) for one in (y, holed))
    width = (whole["AutoARIMA-hi-80"] - whole["AutoARIMA-lo-80"]).to_numpy()
    assert (np.abs(whole["AutoARIMA"] - part["AutoARIMA"]) < width).all()


def test_columns_known_ahead_are_regressors():
    rng = np.random.default_rng(0)
    x = rng.normal(size=130)
    y = rng.normal(size=130).cumsum() + 7 * x
    frame = daily(y, x=x)
    model = AutoARIMA(horizon=10).fit(frame[:120], columns=Columns(future=("x",)))
    assert model.state_.learned["beta"][0, 1] == pytest.approx(7, abs=0.3)
    ahead = model.predict(future=frame[120:].drop(columns="y"))["AutoARIMA"].to_numpy()
    assert np.corrcoef(np.diff(ahead), np.diff(y[120:]))[0, 1] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rows", "limit"), [("ar", 200, 2.9), ("walk", 200, 2.9), ("ar", 30, 6.0)])
def test_coverage_on_data_of_the_model(kind, rows, limit):
    rng = np.random.default_rng(7)
    shocks = rng.normal(size=(2000, rows + 112))
    y = np.zeros_like(shocks)
    for t in range(1, shocks.shape[1]):
        y[:, t] = (0.6 if kind == "ar" else 1.0) * y[:, t - 1] + shocks[:, t]
    y = y[:, 100:]
    ids = np.repeat(np.arange(2000), rows)
    frame = pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(rows), 2000), "y": y[:, :rows].ravel()})
    order = (1, 0, 0) if kind == "ar" else (0, 1, 0)
    found = ARIMA(order=order, horizon=12).fit(frame, freq=1).predict(level=[80, 95])
    ahead = y[:, rows:]
    for level, allowed in ((80, limit), (95, limit * 1.6 / 2.9)):
        low, high = (found[f"ARIMA-{side}-{level}"].to_numpy().reshape(2000, 12) for side in ("lo", "hi"))
        inside = 100 * ((ahead >= low) & (ahead <= high)).mean(axis=0)
        assert abs(inside[0] - level) < allowed
        # the mean of a short series counts as known: the docstring says that its bands are narrow
        assert abs(inside[11] - level) < (5.0 if rows > 100 else 8.0)


@pytest.mark.parametrize(
    ("model", "moves"),
    [
        (AutoARIMA(horizon=4), True),
        (ARIMA(horizon=4, order=(1, 1, 1)), True),
        (ARIMA(horizon=4, order=(0, 2, 1)), True),
        (ARIMA(horizon=4, order=(1, 0, 1)), False),
    ],
    ids=["auto", "differenced", "twice", "mean"],
)
def test_a_constant_that_moves_gets_bands_from_its_errors_since_and_a_level_that_follows(model, moves):
    new = 7 + np.random.default_rng(0).normal(size=40).cumsum()
    whole = daily(np.r_[np.full(60, 7.0), new])
    fitted = model.clone().fit(whole[:60])
    np.testing.assert_array_equal(fitted.predict(level=80).iloc[:, 1:], np.full((4, 3), 7.0))
    through = fitted.predict(level=80, frame=whole)
    errors = (whole["y"] - fitted.fitted_values(whole)[model.name]).to_numpy()[60:]
    found = fitted.update(whole[60:80]).update(whole[80:]).predict(level=80)
    pd.testing.assert_frame_equal(found, through, rtol=1e-9)
    width = (found[f"{model.name}-hi-80"] - found[f"{model.name}-lo-80"]).to_numpy()
    assert width[0] == pytest.approx(2 * 1.2815515655446004 * np.sqrt(np.mean(errors**2)), rel=1e-9)
    assert (found[model.name][0] != 7.0) == moves
    noisy = model.clone().fit(daily(new))
    before = noisy.state_.learned["sigma"].copy()
    after = daily(np.r_[new, 100, 90])
    assert noisy.update(after[40:]).state_.learned["sigma"] == before


@pytest.mark.parametrize("scale", [1e200, -1e200, 1e-300])
def test_values_near_the_limits_of_float64(scale):
    model = AutoARIMA(horizon=12).fit(air().assign(y=air()["y"] * scale))
    plain = AutoARIMA(horizon=12).fit(air()).predict(level=80).iloc[:, 2:].to_numpy()
    found = model.predict(level=80).iloc[:, 2:].to_numpy() / scale
    found[:, 1:] = np.sort(found[:, 1:], axis=1)
    np.testing.assert_allclose(found, plain, rtol=1e-4)
    assert np.isfinite(model.explain()["value"]).all()
