"""The filter's state and its forecasts, against statsmodels' exact diffuse filter at equal parameters."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX

from deepforecast.kernels.arima.layout import lag_structure
from deepforecast.kernels.arima.state import continue_filter, filter_history, forecast_moments, impulse_responses

FORMS = [
    ((1, 0, 0), (0, 0, 0, 1)),
    ((2, 1, 1), (0, 0, 0, 1)),
    ((1, 2, 1), (0, 0, 0, 1)),
    ((0, 1, 1), (0, 1, 1, 12)),
    ((1, 0, 1), (1, 1, 0, 4)),
    ((0, 0, 0), (0, 1, 0, 7)),
]


def made(order, seasonal):
    (p, d, q), (many_p, big_d, many_q, season) = order, seasonal
    factors = np.concatenate([[0.5, -0.2][:p], [0.4, 0.2][:q], [0.3][:many_p], [-0.6][:many_q]])
    product = np.ones(1)
    for lag in [1] * d + [season] * big_d:
        product = np.convolve(product, np.r_[1, np.zeros(lag - 1), -1])
    form = lag_structure(tuple(range(1, p + 1)), tuple(range(1, q + 1)), (many_p, many_q), season)
    return form, factors, np.r_[1.0, -product[1:]]


def ahead(state, steps):
    lower = np.tril_indices(len(state.mean))
    mean, deviation, response = forecast_moments(
        state.ar[None], state.ma[None], state.mean[None], state.excess[lower][None], steps
    )
    return mean[0], deviation[0], response[0]


@pytest.mark.parametrize("missing", [[], [50, 51, 119], [2, 5, 60]])
@pytest.mark.parametrize(("order", "seasonal"), FORMS)
def test_forecasts_and_their_variances_are_those_of_statsmodels(order, seasonal, missing):
    y = np.random.default_rng(1).normal(size=120).cumsum()
    y[missing] = np.nan
    form, factors, delta = made(order, seasonal)
    state, seen, variance = filter_history(form, factors, delta, y)
    seasonal = (*seasonal[:3], seasonal[3] if seasonal[3] > 1 else 0)
    result = SARIMAX(y, order=order, seasonal_order=seasonal, trend=None, use_exact_diffuse=True).filter([*factors, 1.0])
    wanted = result.get_forecast(30)
    mean, deviation, _ = ahead(state, 30)
    np.testing.assert_allclose(mean, wanted.predicted_mean, atol=2e-8)
    np.testing.assert_allclose(deviation**2, wanted.var_pred_mean, rtol=1e-8)
    if not missing or min(missing) > len(delta):  # theirs do not go back to what was missing at the start
        rows = slice(len(delta) - 1, None)
        np.testing.assert_allclose(seen[rows], result.fittedvalues[rows], atol=2e-8)
        np.testing.assert_allclose(variance[rows], result.filter_results.forecasts_error_cov[0, 0][rows], rtol=1e-8)


@pytest.mark.parametrize(("order", "seasonal"), FORMS)
def test_going_on_is_like_going_through(order, seasonal):
    y = np.random.default_rng(2).normal(size=90).cumsum()
    y[[40, 85, 89]] = np.nan
    form, factors, delta = made(order, seasonal)
    whole, seen, _ = filter_history(form, factors, delta, y)
    first, _, _ = filter_history(form, factors, delta, y[:70])
    second, after, _ = continue_filter(first, y[70:])
    np.testing.assert_allclose(second.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(second.excess, whole.excess, atol=1e-12)
    np.testing.assert_allclose(after, seen[70:], atol=1e-12)


def test_what_has_died_out_is_exactly_nothing():
    form, factors, delta = made((1, 0, 1), (0, 0, 0, 1))
    state, _, variance = filter_history(form, factors, delta, np.random.default_rng(0).normal(size=200))
    assert not state.excess.any()
    assert variance[-1] == 1.0


def test_responses_are_pulses_of_the_polynomials():
    form, factors, delta = made((2, 1, 1), (0, 0, 0, 1))
    state, _, _ = filter_history(form, factors, delta, np.random.default_rng(0).normal(size=50))
    _, _, response = ahead(state, 20)
    of_state, of_shock = impulse_responses(state.ar[None], state.ma[None], 20)
    np.testing.assert_allclose(of_shock[0], response, rtol=1e-13)
    np.testing.assert_allclose(np.convolve(of_state[0], state.ma)[:20], response, rtol=1e-12)
