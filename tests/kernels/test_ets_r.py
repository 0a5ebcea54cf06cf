"""Every form against R's `forecast::ets` (tests/golden/ets_r.json): given R's parameters, and by our own fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from deepforecast.kernels.ets import filter, forecasts
from deepforecast.kernels.ets.estimation import Settings, fit
from deepforecast.kernels.ets.forms import Form

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "ets_r.json").read_text(encoding="utf-8"))
FITS = GOLDEN["fits"]


def of(one):
    """Form, rates, first states, values and season of a row."""
    error, trend, season = one["form"]
    form = Form("AM".index(error), "NAM".index(trend), int(one["damped"]), "NAM".index(season))
    alpha, beta, gamma, phi = one["rates"]
    series = GOLDEN["series"][one["series"]]
    states, given = np.zeros(2 + series["season"]), one["initial"]
    states[0] = given[0]
    if form.trend:
        states[1] = given[1]
    if form.season:
        states[2:] = given[1 + bool(form.trend) :][::-1]
    rates = [alpha, beta or 0.0, gamma or 0.0, phi if form.damped else 1.0]
    return form, np.array(rates), states, np.array(series["y"]), series["season"]


def likelihood_of(one, n):
    """R leaves a constant out."""
    return one["log_likelihood"] - n / 2 * (np.log(2 * np.pi / n) + 1)


def name_of(one):
    return f"{one['series']}-{one['form']}{'d' if one['damped'] else ''}"


def test_every_row_is_there():
    assert len(FITS) == 19
    assert len({name_of(one) for one in FITS}) == 19


@pytest.mark.parametrize("one", FITS, ids=name_of)
def test_given_rs_parameters(one):
    form, rates, states, y, _ = of(one)
    begin = filter.model_arrays(np.array([form]), rates[None], states[None], np.zeros(1))
    fitted, end = filter.filter_series(begin, y, np.zeros(len(y)), np.array([0, len(y)]))
    errors = (y - fitted) / fitted if form.error else y - fitted
    np.testing.assert_allclose(fitted, one["fitted"], rtol=1e-5)
    np.testing.assert_allclose(errors, one["residuals"], rtol=1e-5, atol=1e-6 * np.abs(errors).max())
    n = len(y)
    found = -n / 2 * (np.log(2 * np.pi * np.mean(errors**2)) + 1) - form.error * np.log(np.abs(fitted)).sum()
    np.testing.assert_allclose(found, likelihood_of(one, n), rtol=1e-5)
    np.testing.assert_allclose(forecasts.forecast_means(end, 4)[0][0], one["forecast"], rtol=1e-3)
    shocks = np.array(GOLDEN["innovations"])[None, :, None]
    np.testing.assert_allclose(forecasts.simulate_paths(end, shocks, np.zeros((1, 4)))[0, 0], one["simulation"], rtol=1e-5)


@pytest.mark.parametrize("one", FITS, ids=name_of)
def test_own_fit_is_no_less_likely_than_rs(one):
    form, _, _, y, season = of(one)
    found = fit(y, np.array([0, len(y)]), season, [form], settings=Settings(tolerance=1e-9, thorough=True))
    assert found.log_likelihood[0, 0] >= likelihood_of(one, len(y)) - 1e-4
