"""Exponential smoothing against statsmodels: its likelihoods and forecasts, regressions and ARIMA models it amounts to."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing as StateSpace

from deepforecast import ETS, SES, AutoETS, HoltWinters
from deepforecast.errors import CapabilityError, DataWarning
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._statsmodels_ets import build_model, statsmodels_parameters
from tests.kernels.ets_plain import log_likelihood

SEASON = 4
WORDS = (None, "additive", "multiplicative")
FORMS = [Form(e, t, d, s) for e, t, d, s in product((0, 1), (0, 1, 2), (0, 1), (0, 1, 2)) if d <= t]


def model_of(form, **given):
    return ETS(
        error=WORDS[form.error + 1], trend=WORDS[form.trend], damped=bool(form.damped), seasonal=WORDS[form.season],
        season_length=SEASON if form.season else "auto", allow_unstable=True, parameter_bounds="usual", **given,
    )  # fmt: skip


def panel(number, seed=0, rows=(40, 90)):
    """Series of many kinds: wandering or steady, flat or rising, with and without a season, calm and noisy."""
    random = np.random.default_rng(seed)
    parts = []
    for one in range(number):
        n = int(random.integers(*rows))
        rate, slope, swing, noise = random.choice([0.0, 0.3, 1.0]), random.normal(0, 0.01), random.choice([0, 0.2]), 0.05
        level = np.log(50) + slope * np.arange(n) + rate * np.cumsum(random.normal(0, noise, n))
        y = np.exp(level + swing * np.sin(np.arange(n) * np.pi / 2) + random.normal(0, noise, n))
        stamps = pd.date_range("2000-01-01", periods=n, freq="QS")
        parts.append(pd.DataFrame({"unique_id": f"s{one:02d}", "ds": stamps, "y": y}))
    return pd.concat(parts, ignore_index=True)


def textbooks(form, params):
    """statsmodels' parameters as rates and states, factors that are added summing to 0 and those that multiply averaging 1."""
    given, rates = list(params), np.array([0.0, 0.0, 0.0, 1.0])
    for place, there in enumerate((True, form.trend > 0, form.season > 0, form.damped)):
        if there:
            rates[place] = given.pop(0)
    level, slope = given.pop(0), given.pop(0) if form.trend else 0.0
    factors = np.array(given[::-1]) if form.season else np.zeros(1)
    if form.season == 1:
        level, factors = level + factors.mean(), factors - factors.mean()
    elif form.season == 2:
        size = factors.mean()
        level, slope, factors = level * size, slope * (1.0 if form.trend == 2 else size), factors / size
    return rates, np.array([level, slope, *factors])


def compared(form, frame):
    """Our log-likelihoods less those of what statsmodels finds, by the textbook's recursion. Two of statsmodels' are others:
    it has a season that multiplies follow value / new level, and beside a trend that multiplies its last factor is 0."""
    found = model_of(form).fit(frame).parameters()["log_likelihood"].to_numpy()
    gains = []
    for mine, (_, part) in zip(found, frame.groupby("unique_id"), strict=True):
        y = part["y"].to_numpy()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            theirs = build_model(y, form, SEASON).fit(disp=False, maxiter=2000)
            gains.append(mine - log_likelihood(y, form, *textbooks(form, theirs.params)))
    return np.array(gains)


@pytest.mark.parametrize("form", [Form(0, 1, 1, 1), Form(1, 1, 0, 2), Form(1, 2, 0, 0)], ids=str)
def test_statsmodels_finds_nothing_more_likely(form):
    assert compared(form, panel(3)).min() >= -1e-4


@pytest.mark.parametrize(("form", "name"), [(Form(0, 1, 0, 1), "s26"), (Form(0, 1, 1, 1), "s39"), (Form(1, 1, 0, 1), "s47")])
def test_slow_rates_are_found_with_their_states(form, name):
    """Where the likelihood has several maxima, the highest at rates near 0."""
    frame = panel(50, seed=1)
    assert compared(form, frame[frame["unique_id"] == name]).min() >= -1e-4


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_statsmodels_finds_nothing_more_likely_on_fifty_series(form):
    gains = compared(form, panel(50, seed=1))
    assert gains.mean() >= -1e-4
    assert gains.min() >= -1e-3


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_at_equal_parameters_statsmodels_has_our_likelihood_and_forecasts(form):
    """A season that multiplies stays here: statsmodels' follows another error."""
    frame = panel(4, seed=2)
    model = model_of(form, **({"gamma": 0} if form.season == 2 else {})).fit(frame)
    mine, forecasts = model.parameters()["log_likelihood"], model.predict(8)[model.name].to_numpy().reshape(-1, 8)
    for number, (_, part) in enumerate(frame.groupby("unique_id")):
        theirs = build_model(part["y"].to_numpy(), form, SEASON).smooth(statsmodels_parameters(model.state_.learned, number))
        np.testing.assert_allclose(theirs.llf, mine[number], rtol=1e-9)
        np.testing.assert_allclose(forecasts[number], theirs.forecast(8), rtol=1e-8)


@pytest.mark.parametrize("form", [Form(0, 0, 0, 0), Form(0, 1, 0, 0), Form(0, 1, 1, 1), Form(0, 0, 0, 1)], ids=str)
def test_variances_are_statsmodels(form):
    """Class 1, by its exact method; sigma^2 there is the mean square.

    Ours on top: t for the normal quantile, and 1 + k / n for what is estimated.
    """
    frame = panel(1, seed=3)
    model = model_of(form).fit(frame)
    levels = model.predict(9, level=[95])
    mine = (levels["ETS-hi-95"] - levels["ETS"]).to_numpy() / model.parameters()["sigma"].item()
    y = pd.Series(frame["y"].to_numpy(), index=pd.DatetimeIndex(frame["ds"], freq="QS"))
    result = ETSModel(
        y, error="add", trend="add" if form.trend else None, damped_trend=bool(form.damped),
        seasonal="add" if form.season else None, seasonal_periods=SEASON if form.season else None,
    ).smooth(statsmodels_parameters(model.state_.learned, 0))  # fmt: skip
    found = result.get_prediction(start=len(y), end=len(y) + 8, method="exact")
    theirs = (found.pred_int(0.05).iloc[:, 1] - found.predicted_mean).to_numpy() / np.sqrt(result.mse)
    count = model.parameters()["parameters"].item()
    wider = stats.t(len(y) - count).ppf(0.975) / stats.norm.ppf(0.975) * np.sqrt(1 + count / len(y))
    np.testing.assert_allclose(mine, theirs * wider, rtol=1e-6)


def test_the_likelihood_with_regressors_is_the_state_space_models():
    """Given parameters: statsmodels' Kalman filter on what regressors leave, its first states known."""
    frame = panel(1, seed=4)
    frame["x"] = np.random.default_rng(0).normal(size=len(frame))
    frame["y"] += 3 * frame["x"]
    model = model_of(Form(0, 1, 1, 1)).fit(frame, columns={"future": ["x"]})
    learned = model.state_.learned
    x = (frame["x"].to_numpy() - learned["centre"][0, 0]) / learned["scale"][0, 0]
    alpha, beta, gamma, phi = learned["rates"][0]
    level, slope, *factors = learned["start"][0]
    known = {"initial_level": level, "initial_trend": slope, "initial_seasonal": factors[::-1]}
    left = frame["y"].to_numpy() - x * learned["effects"][0, 0]
    space = StateSpace(left, trend=True, damped_trend=True, seasonal=SEASON, initialization_method="known", **known)
    found = space.smooth([alpha, beta, gamma, phi])
    np.testing.assert_allclose(found.llf, model.parameters()["log_likelihood"].item(), rtol=1e-7)
    assert abs(learned["effects"][0, 0] / learned["scale"][0, 0] - 3) < 1.5


def regression_frame():
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"ds": pd.date_range("2015-01-01", periods=48, freq="QS")})
    frame["x"], frame["z"] = random.normal(size=48), np.cos(np.arange(48) / 5.0)
    season = np.tile([2.0, -1.0, 3.0, -4.0], 12)
    frame["y"] = 30 + 0.5 * np.arange(48) + season + 2 * frame["x"] - 3 * frame["z"] + random.normal(size=48)
    return frame


def test_states_that_stay_are_a_regression_also_with_missing_values():
    """alpha = beta = gamma = 0: an intercept, a line and dummies, by statsmodels' OLS on the rows that are there."""
    frame = regression_frame()
    frame.loc[[5, 6, 20], "y"] = np.nan
    frame.loc[33, "x"] = np.nan
    with pytest.warns(DataWarning, match="missing"):
        model = HoltWinters(season_length=SEASON, alpha=0, beta=0, gamma=0).fit(frame, columns={"future": ["x", "z"]})
    there = frame.notna().all(axis=1)
    dummies = np.eye(SEASON)[np.arange(48) % SEASON]
    design = np.column_stack([np.arange(48.0), dummies, frame["x"], frame["z"]])[there]
    result = sm.OLS(frame["y"][there].to_numpy(), design).fit()
    learned, found = model.state_.learned, model.parameters().iloc[0]
    np.testing.assert_allclose(learned["effects"][0] / learned["scale"][0], result.params[-2:], rtol=1e-5)
    np.testing.assert_allclose(learned["start"][0, 1], result.params[0], rtol=1e-5)
    np.testing.assert_allclose(found["log_likelihood"], result.llf, rtol=1e-9)
    np.testing.assert_allclose(found["sigma"] ** 2, result.mse_resid, rtol=1e-7)
    np.testing.assert_allclose(model.fitted_values()["HoltWinters"][there], result.fittedvalues, rtol=1e-5)


def test_smoothing_with_regressors_is_an_arima_with_regressors():
    """SES with alpha: ARIMA(0,1,1) with theta = alpha - 1; coefficients by statsmodels' SARIMAX, the moving average fixed."""
    frame = regression_frame()
    model = SES(alpha=0.4).fit(frame, columns={"future": ["x", "z"]})
    space = sm.tsa.SARIMAX(frame["y"].to_numpy(), exog=frame[["x", "z"]].to_numpy(), order=(0, 1, 1))
    with space.fix_params({"ma.L1": -0.6}):
        result = space.fit(disp=False, method="nm", maxiter=2000, xtol=1e-10, ftol=1e-12)
    learned = model.state_.learned
    np.testing.assert_allclose(learned["effects"][0] / learned["scale"][0], result.params[:2], rtol=2e-4)


def test_a_missing_value_is_one_that_was_forecast_exactly():
    """Filled in with the forecast it misses, the history gives the same states."""
    frame = panel(1, seed=6)
    model = model_of(Form(1, 1, 1, 2)).fit(frame)
    holes = frame.copy()
    holes.loc[[20, 21, 33], "y"] = np.nan
    with pytest.warns(DataWarning, match="missing"):
        filled = model.fitted_values(holes)["ETS"]
    with pytest.warns(DataWarning, match="missing"):
        found = model.predict(4, frame=holes)["ETS"]
    whole = holes.assign(y=holes["y"].fillna(filled))
    np.testing.assert_allclose(found, model.predict(4, frame=whole)["ETS"], rtol=1e-10)


def test_values_missing_at_the_end_widen_the_bands_as_steps_ahead_do():
    frame = panel(1, seed=7)
    model = model_of(Form(0, 1, 0, 1)).fit(frame)
    short = frame.iloc[:-3]
    with pytest.warns(DataWarning, match="missing"):
        later = model.predict(2, frame=short.assign(y=short["y"]).pipe(_with_holes, frame.iloc[-3:]), level=[80])
    early = model.predict(5, frame=short, level=[80])
    for name in ("ETS", "ETS-lo-80", "ETS-hi-80"):
        np.testing.assert_allclose(later[name], early[name].to_numpy()[3:], rtol=1e-9)


def _with_holes(frame, rows):
    return pd.concat([frame, rows.assign(y=np.nan)], ignore_index=True)


def test_the_engine_statsmodels_forecasts_by_our_kernels():
    frame = panel(2, seed=8)
    theirs, mine = (model_of(Form(0, 1, 0, 1), engine=engine).fit(frame) for engine in ("statsmodels", "kernels"))
    gap = mine.parameters()["log_likelihood"] - theirs.parameters()["log_likelihood"]
    assert (gap > -1e-4).all()
    assert (gap < 1).all()
    np.testing.assert_allclose(theirs.predict(3)["ETS"], mine.predict(3)["ETS"], rtol=0.05)
    with pytest.raises(CapabilityError, match="future"):
        theirs.clone().fit(frame.assign(x=1.0), columns={"future": ["x"]})


def test_the_summary_is_statsmodels_at_our_parameters():
    frame = panel(2, seed=9)
    model = model_of(Form(0, 1, 1, 0)).fit(frame)
    text = model.summary("s01")
    assert "ETS(AAdN)" in text
    assert f"{model.parameters()['log_likelihood'][1]:.3f}" in text
    with pytest.raises(ValueError, match="s00"):
        model.summary("nobody")


@pytest.mark.parametrize(("seed", "one"), [(1, "s39"), (3, "s19")])
def test_a_choice_is_as_likely_as_its_forms_alone(seed, one):
    frame = panel(60, seed)
    frame = frame[frame["unique_id"] == one]
    chosen = AutoETS(season_length=SEASON).fit(frame).parameters()["aicc"].item()
    forms = [form for form in FORMS if form.is_stable and form.trend < 2 and form.error == 1]
    assert chosen <= min(model_of(form).fit(frame).parameters()["aicc"].item() for form in forms) + 0.1
