"""The Theta kernels, against the published recursions written down plainly, and against R's forecTheta and statsmodels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from deepforecast import datasets
from deepforecast.kernels import theta as kernel

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "theta_ces.json").read_text())


def passengers():
    return datasets.load("air_passengers")["y"].to_numpy(float)


def published(y, alpha, theta, first, dynamic, steps):
    """Fiorucci et al. (2016), equations of STM/OTM and DSTM/DOTM, row by row; steps ahead take their forecasts for values."""
    count = len(y)
    rows = np.arange(1, count + 1)
    slope, intercept = np.polyfit(rows, y, 1)
    level, mean, found, history = first, 0.0, [], list(y)
    if dynamic:
        slope, intercept = 0.0, 0.0
    for t in range(1, count + steps + 1):
        expected = level + (1 - 1 / theta) * (
            (1 - alpha) ** (t - 1) * intercept + (1 - (1 - alpha) ** t) / alpha * slope
        )
        value = history[t - 1] if t <= count else expected
        found.append(expected)
        if dynamic:
            before, mean = mean, ((t - 1) * mean + value) / t
            slope = 0.0 if t == 1 else ((t - 2) * slope + 6 * (value - before) / t) / (t + 1)
            intercept = mean - (t + 1) / 2 * slope
        level = alpha * value + (1 - alpha) * level
    return np.array(found[:count]), np.array(found[count:])


def state(y, first, dynamic):
    """The state before the first row."""
    found = np.zeros((1, kernel.STATE_SIZE))
    found[0, [kernel.LEVEL, kernel.POWER]] = first, 1.0
    if not dynamic:
        rows = np.arange(1, len(y) + 1)
        found[0, kernel.COUNT :] = (
            len(y), rows.mean(), y.mean(), np.sum((rows - rows.mean()) ** 2), np.sum((rows - rows.mean()) * (y - y.mean()))
        )  # fmt: skip
    return found


def followed(y, alpha, theta, first, dynamic, steps):
    """The same by the kernels."""
    parameters = np.array([alpha]), np.array([1 - 1 / theta]), np.array([dynamic])
    fitted, end = kernel.filter_series(y, np.array([0, len(y)]), state(y, first, dynamic), *parameters)
    return fitted, kernel.simulate_paths(end, *parameters, np.zeros((1, 1, steps)))[0, 0]


def searched(y, indptr=None, *, dynamic, weight=(0.0, 1.0), alpha=(0.1, 0.99), skip=0):
    indptr = np.array([0, len(y)]) if indptr is None else indptr
    size = len(indptr) - 1
    bounds = [[np.full(size, bound) for bound in pair] for pair in (alpha, weight)]
    return kernel.estimate(y, indptr, *bounds, np.full(size, np.nan), np.full(size, dynamic), np.full(size, skip))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("alpha", "theta", "first"), [(0.5, 2.0, 56.0), (0.13, 1.0, -40.0), (0.97, 7.5, 200.0)])
def test_the_recursion_is_the_published_one(alpha, theta, first, dynamic):
    y = passengers()
    fitted, forecast = followed(y, alpha, theta, first, dynamic, 24)
    wanted, ahead = published(y, alpha, theta, first, dynamic, 24)
    np.testing.assert_allclose(fitted, wanted, rtol=1e-9)
    np.testing.assert_allclose(forecast, ahead, rtol=1e-9)


@pytest.mark.parametrize("form", ["static", "dynamic"])
def test_r_forectheta(form):
    known = GOLDEN["theta_r"]
    fitted, forecast = followed(passengers(), known["alpha"], known["theta"], known["first"], form == "dynamic", 5)
    for row, value in known[form]["fitted"].items():
        assert fitted[int(row)] == pytest.approx(value, abs=1e-4)
    np.testing.assert_allclose(forecast, known[form]["forecast"], atol=1e-4)


def plain_objective(y, alpha, dynamic, weight):
    """Sum of squares and objective at an alpha, by numpy's least squares over the first level and w."""
    base, _ = published(y, alpha, 1.0, 0.0, dynamic, 0)
    start = (1 - alpha) ** np.arange(len(y))
    far, _ = published(y, alpha, 1e12, 0.0, dynamic, 0)
    columns = np.column_stack([start, far - base])
    if weight is not None:
        first = np.linalg.lstsq(columns[:, :1], y - base - weight * columns[:, 1], rcond=None)[0][0]
        coefficients = np.array([first, weight])
    else:
        coefficients = np.linalg.lstsq(columns, y - base, rcond=None)[0]
        if not 0 <= coefficients[1] <= 1:
            sides = [plain_objective(y, alpha, dynamic, side) for side in (0.0, 1.0)]
            return min(sides)
    squares = np.sum((y - base - columns @ coefficients) ** 2)
    return squares * np.sum(start**2) ** (1 / (len(y) - 1))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("weight", [None, 0.5])
def test_no_alpha_of_a_fine_grid_is_better(dynamic, weight):
    rng = np.random.default_rng(5)
    for number in range(6):
        y = np.cumsum(rng.normal(0.2 * number, 1, 60)) + rng.normal(0, number, 60)
        y -= y[0]
        light, heavy = (0.0, 1.0) if weight is None else (weight, weight)
        _, _, objective, _, _ = searched(y, dynamic=dynamic, weight=(light, heavy))
        best = min(plain_objective(y, alpha, dynamic, weight) for alpha in np.linspace(0.1, 0.99, 400))
        assert objective[0] <= best * (1 + 1e-9)
        assert objective[0] > best * (1 - 1e-3)


def test_without_the_line_it_is_the_likelihood_of_an_arima():
    sarimax = pytest.importorskip("statsmodels.tsa.statespace.sarimax").SARIMAX
    rng = np.random.default_rng(1)
    y = np.cumsum(rng.normal(size=80))
    model = sarimax(np.diff(y), order=(0, 0, 1), concentrate_scale=True)
    twice = []
    for alpha in (0.2, 0.5, 0.8):
        _, _, objective, _, _ = searched(y - y[0], dynamic=False, weight=(0.0, 0.0), alpha=(alpha, alpha))
        twice.append(79 * np.log(objective[0]) + 2 * model.loglike([alpha - 1]))
    np.testing.assert_allclose(twice, twice[0], rtol=1e-9)


def test_the_sum_of_squares_is_that_of_the_errors_that_count():
    y = passengers() - 112
    for skip in (0, 3):
        for dynamic in (False, True):
            alpha, weight, _, squares, start = searched(y, dynamic=dynamic, skip=skip)
            fitted, _ = kernel.filter_series(y, np.array([0, len(y)]), start, alpha, weight, np.array([dynamic]))
            assert np.sum((y - fitted)[skip:] ** 2) == pytest.approx(squares[0], rel=1e-9)


@pytest.mark.parametrize("dynamic", [False, True])
def test_deviations_are_those_of_the_answers_to_shocks(dynamic):
    y = passengers()
    parameters = np.array([0.4]), np.array([0.8]), np.array([dynamic])
    _, end = kernel.filter_series(y, np.array([0, len(y)]), state(y, 60.0, dynamic), *parameters)
    steps = 15
    shocks = np.concatenate([np.zeros((1, 1, steps)), np.eye(steps)[None]], axis=1)
    paths = kernel.simulate_paths(end, *parameters, shocks)[0]
    wanted = np.sqrt(np.sum((paths[1:] - paths[0]) ** 2, axis=0))
    np.testing.assert_allclose(kernel.path_deviations(end, *parameters, steps)[0], wanted, rtol=1e-7)


@pytest.mark.parametrize("dynamic", [False, True])
def test_missing_values_are_stepped_over_without_error(dynamic):
    y = np.cumsum(np.random.default_rng(4).normal(0.5, 1, 144)) + np.random.default_rng(5).normal(0, 2, 144)
    y[[0, 1, 20, 21, 22, 143]] = np.nan
    alpha, weight, objective, squares, start = searched(y, dynamic=dynamic)
    fitted, _ = kernel.filter_series(y, np.array([0, len(y)]), start, alpha, weight, np.array([dynamic]))
    np.testing.assert_array_equal(np.isnan(fitted), np.arange(144) < 2)
    assert np.nansum((y - fitted) ** 2) == pytest.approx(squares[0], rel=1e-9)
    for shift in (-1e-4, 1e-4):
        _, _, other, _, _ = searched(y, dynamic=dynamic, alpha=(min(alpha[0] + shift, 0.99),) * 2)
        assert other[0] >= objective[0]
    late = searched(y[2:], dynamic=dynamic)
    np.testing.assert_array_equal(late[0], alpha)


def test_a_series_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(2)
    parts = [np.cumsum(rng.normal(size=size)) for size in (7, 40, 23, 90)]
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    whole = searched(np.concatenate(parts), indptr, dynamic=True)
    for number, part in enumerate(parts):
        for together, alone in zip(whole, searched(part, dynamic=True), strict=True):
            np.testing.assert_array_equal(together[number], alone[0])


def test_a_straight_line_is_found_exactly():
    y = np.arange(50.0)
    alpha, weight, objective, _, start = searched(y, dynamic=False)
    _, end = kernel.filter_series(y, np.array([0, 50]), start, alpha, weight, np.array([False]))
    forecast = kernel.simulate_paths(end, alpha, weight, np.array([False]), np.zeros((1, 1, 5)))[0, 0]
    np.testing.assert_allclose(forecast, [50, 51, 52, 53, 54], rtol=1e-7)
    assert objective[0] < 1e-9
