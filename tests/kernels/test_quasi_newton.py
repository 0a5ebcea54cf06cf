"""The shared minimiser, against problems whose answer is known, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from deepforecast.kernels import quasi_newton as searching
from deepforecast.kernels.quasi_newton import CONTINUE, CONVERGED, STALLED, advance, begin_search, new_search


def minimised(objective, starts, *, tolerance=1e-10, most=500):
    """Run the searches side by side from Python; the search, its statuses."""
    search = new_search(len(starts), max(map(len, starts)))
    for lane, start in enumerate(starts):
        begin_search(search, lane, np.asarray(start, float), np.ones(len(start)))
    statuses = [CONTINUE] * len(starts)
    while CONTINUE in statuses:
        for lane in [number for number, status in enumerate(statuses) if status == CONTINUE]:
            value, gradient = objective(search.trial[lane, : search.n_coordinates[lane]])
            statuses[lane] = advance(search, lane, value, np.asarray(gradient, float), tolerance, most)
    return search, statuses


@pytest.mark.parametrize("width", [2, 5, 20])
def test_finds_the_bottom_of_rosenbrocks_valley_in_about_scipys_evaluations(width):
    start = np.linspace(-1.2, 1.0, width)
    search, statuses = minimised(lambda x: (rosen(x), rosen_der(x)), [start])
    peer = minimize(rosen, start, jac=rosen_der, method="BFGS")
    assert statuses == [CONVERGED]
    assert rosen(search.point[0]) < 1e-8 or abs(rosen(search.point[0]) - peer.fun) < 1e-8
    assert search.n_evaluations[0] < 2 * peer.nfev


def test_a_quadratic_of_uneven_scale_is_solved_exactly():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    matrix, target = turn @ np.diag(np.logspace(-3, 3, 8)) @ turn.T, rng.normal(size=8)
    search, statuses = minimised(lambda x: (0.5 * (x - target) @ matrix @ (x - target), matrix @ (x - target)), [np.zeros(8)])
    assert statuses == [CONVERGED]
    assert search.value[0] < 1e-9


def test_lanes_do_not_see_each_other():
    starts = [np.array([-1.2, 1.0]), np.array([3.0, -2.0, 1.0]), np.array([0.5])]

    def objective(x):
        return (rosen(x), rosen_der(x)) if len(x) > 1 else (float(x[0] ** 2), 2 * x)

    together, _ = minimised(objective, starts)
    for lane, start in enumerate(starts):
        alone, _ = minimised(objective, [start])
        np.testing.assert_array_equal(alone.point[0], together.point[lane, : len(start)])


def test_walls_of_infinity_are_stepped_back_from():
    def walled(x):
        return (np.inf, x) if x[0] <= 0 else (x[0] - np.log(x[0]), 1 - 1 / x)

    search, statuses = minimised(walled, [np.array([20.0])])
    assert statuses == [CONVERGED]
    assert search.point[0, 0] == pytest.approx(1, abs=1e-4)


def test_downhill_without_end_stops_at_the_rounds_allowed_with_the_best_seen():
    search, statuses = minimised(lambda x: (-x[0], np.array([-1.0])), [np.zeros(1)], most=30)
    assert statuses == [STALLED]
    assert search.n_evaluations[0] == 30
    assert search.value[0] == -search.point[0, 0]


def test_a_start_without_a_value_is_given_up_at_once():
    search, statuses = minimised(lambda x: (np.nan, x), [np.ones(2)])
    assert statuses == [STALLED]
    np.testing.assert_array_equal(search.point[0], np.ones(2))


def test_a_minimum_is_seen_as_such_at_the_start():
    _, statuses = minimised(lambda x: (float(x @ x), 2 * x), [np.zeros(3)])
    assert statuses == [CONVERGED]


def test_a_wrong_gradient_ends_without_a_loop():
    search, statuses = minimised(lambda x: (float(x @ x), -2 * x), [np.ones(2)], most=200)
    assert statuses == [STALLED]
    assert search.n_evaluations[0] <= 200
    assert searching.MIN_STEP_SIZE > 0
