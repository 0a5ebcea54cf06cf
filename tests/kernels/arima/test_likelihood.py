"""The likelihood and its gradient, against the multivariate normal density written out in full."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz
from statsmodels.tsa.arima_process import arma_acovf

from deepforecast.kernels.arima.estimation import Problem, estimate
from deepforecast.kernels.arima.layout import lag_structure

FORMS = [
    ((1,), (), (0, 0), 1),
    ((), (1,), (0, 0), 1),
    ((1, 2), (1,), (0, 0), 1),
    ((1,), (1, 2), (0, 0), 1),
    ((), (1,), (0, 1), 4),
    ((1, 2), (1,), (1, 1), 4),
    ((1,), (1, 2), (2, 1), 12),
    ((1, 2), (1, 2), (2, 2), 7),
    ((1, 2, 3), (1, 2, 3), (0, 0), 1),
    ((1,), (1, 4), (0, 0), 1),
    ((1,), (1, 2), (2, 1), 2),
]


def differencing(d, big_d, season):
    """1 - delta_1 B - ... by lag."""
    product = np.ones(1)
    for lag in [1] * d + [season] * big_d:
        product = np.convolve(product, np.r_[1, np.zeros(lag - 1), -1])
    return np.r_[1.0, -product[1:]]


def evaluated(data, form, point, delta=(1.0,), unknown=0, whole=True):
    problem = Problem(np.ascontiguousarray(data), np.asarray(delta, float), unknown, whole, 0.0)
    return estimate(problem, form, point[None], max_evaluations=0)


def product_of(factor, seasonal, season):
    spread = np.zeros(season * (len(seasonal) - 1) + 1)
    spread[::season] = seasonal
    return np.convolve(factor, spread)


def written_out(data, form, found, delta=(1.0,), unknown=0):
    """Half of n log(S / n) + log det, from the whole covariance matrix; missing values are unknowns with a flat prior."""
    (p, q, many_p, _, season, *_), (ar, ma, *_) = form.orders, form.lags
    first, second, third, fourth = np.split(found.factors, np.cumsum([p, q, many_p]))
    phi, theta = np.zeros(ar[:p].max(initial=0) + 1), np.zeros(ma[:q].max(initial=0) + 1)
    phi[0], theta[0] = 1, 1
    phi[ar[:p]], theta[ma[:q]] = -first, second
    phi = product_of(phi, np.r_[1, -third], season)
    theta = product_of(theta, np.r_[1, fourth], season)
    rows, lost = data.shape[1], len(delta) - 1
    by_difference = np.zeros((rows - lost, rows))
    for row in range(rows - lost):
        by_difference[row, row : row + lost + 1] = np.r_[1, -np.asarray(delta[1:])][::-1]
    root = np.linalg.cholesky(toeplitz(arma_acovf(phi, theta, rows - lost)[: rows - lost]))
    missing = np.isnan(data[0])
    whitened = np.linalg.solve(root, by_difference @ np.where(missing, 0, data[0]))
    unknowns = np.linalg.solve(root, by_difference[:, missing])
    regressors = np.linalg.solve(root, by_difference @ data[1 + unknown :].T)
    every = np.c_[unknowns, regressors]
    rest = whitened - every @ np.linalg.lstsq(every, whitened, rcond=None)[0]
    count = (~missing).sum() - lost
    determinant = 2 * np.log(np.diag(root)).sum() + np.linalg.slogdet(unknowns.T @ unknowns)[1]
    return 0.5 * (count * np.log(rest @ rest / count) + determinant)


def by_differences(value, point):
    return np.array([(value(point + step) - value(point - step)) / 2e-5 for step in 1e-5 * np.eye(len(point))])


def a_point(rng, form):
    point = 0.4 * rng.normal(size=form.size)
    if form.orders[6]:
        point[1:] = 0.3, 0.2
    return point


@pytest.mark.parametrize(("rows", "regressors"), [(60, 0), (60, 2), (9, 1)])
@pytest.mark.parametrize(("ar", "ma", "seasonal", "season"), FORMS)
def test_complete(ar, ma, seasonal, season, rows, regressors):
    rng = np.random.default_rng(len(ar) + 10 * rows)
    form = lag_structure(ar, ma, seasonal, season, (False, ma == (1, 4)))
    point, data = a_point(rng, form), rng.normal(size=(1 + regressors, rows)).cumsum(1)
    found = evaluated(data, form, point)
    assert found.value == pytest.approx(written_out(data, form, found), abs=1e-11)
    slopes = by_differences(lambda at: evaluated(data, form, at).value, point)
    np.testing.assert_allclose(found.gradient, slopes, atol=1e-8 * (1 + np.abs(slopes).max()))


@pytest.mark.parametrize(
    ("regressors", "missing"), [(0, []), (0, [20, 21, 40]), (1, [1, 20, 21, 22, 50]), (2, [2, 5, 6, 33, 59])]
)
@pytest.mark.parametrize(("d", "big_d"), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize(("ar", "ma", "seasonal", "season"), [*(FORMS[one] for one in (2, 5, 6)), ((), (), (0, 0), 1)])
def test_with_holes(ar, ma, seasonal, season, d, big_d, regressors, missing):
    rng = np.random.default_rng(7)
    form, delta = lag_structure(ar, ma, seasonal, season), differencing(d, big_d, season)
    point, data = a_point(rng, form), rng.normal(size=(1 + regressors, 60)).cumsum(1)
    data[0, missing] = np.nan
    early = [row for row in missing if row < len(delta) - 1]
    data = np.vstack([data[:1], np.eye(60)[early], data[1:]])
    found = evaluated(data, form, point, delta, len(early), whole=False)
    assert found.value == pytest.approx(written_out(data, form, found, delta, len(early)), abs=1e-10)
    slopes = by_differences(lambda at: evaluated(data, form, at, delta, len(early), whole=False).value, point)
    np.testing.assert_allclose(found.gradient, slopes, atol=1e-7 * (1 + np.abs(slopes).max(initial=0)))


@pytest.mark.parametrize(("ar", "ma", "seasonal", "season"), FORMS)
def test_the_filter_and_the_recursion_agree(ar, ma, seasonal, season):
    rng = np.random.default_rng(3)
    form = lag_structure(ar, ma, seasonal, season, (False, ma == (1, 4)))
    point, data = a_point(rng, form), rng.normal(size=(2, 150)).cumsum(1)
    one, other = evaluated(data, form, point), evaluated(data, form, point, whole=False)
    assert one.value == pytest.approx(other.value, abs=1e-9)
    np.testing.assert_allclose(one.beta, other.beta, rtol=1e-8)
    np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-7)


def test_a_root_on_the_unit_circle_of_a_moving_average_has_a_likelihood():
    rng = np.random.default_rng(0)
    form, data = lag_structure((), (1,)), np.diff(rng.normal(size=(1, 101)))
    at_the_edge = evaluated(data, form, np.array([np.pi / 2]))
    assert at_the_edge.factors[0] == pytest.approx(-1, abs=1e-6)
    assert at_the_edge.value == pytest.approx(written_out(data, form, at_the_edge), abs=1e-6)
    assert at_the_edge.gradient[0] == pytest.approx(0, abs=1e-5)


def test_a_list_of_lags_outside_the_region_is_refused():
    data, form = np.random.default_rng(0).normal(size=(1, 50)), lag_structure((), (1, 4), lag_lists=(False, True))
    assert np.isinf(evaluated(data, form, np.array([0.5, 1.2])).value)
