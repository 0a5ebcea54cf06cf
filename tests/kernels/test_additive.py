"""The likeliest parameters of additive models, straight and curved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from deepforecast.data.frames import Floats
from deepforecast.kernels.additive import Prior, fit_linear
from deepforecast.kernels.gauss_newton import FLAT, LINEAR, LOGISTIC, Rows, fit_nonlinear

ROWS = 200
TIME = np.arange(ROWS) / (ROWS - 1)
HINGES = np.maximum(TIME[:, None] - np.linspace(0.05, 0.8, 10)[None, :], 0.0)
WAVES = np.stack([part(2 * np.pi * k * np.arange(ROWS) / 7) for k in (1, 2) for part in (np.sin, np.cos)], axis=1)
DESIGN = np.concatenate([TIME[:, None], np.ones((ROWS, 1)), WAVES, HINGES], axis=1)
PRIOR = Prior(np.array([0.04, 0.04, 0.01, 0.01, 0.01, 0.01]), 20.0)


def series(seed: int, multiply: bool = False) -> Floats:
    random = np.random.default_rng(seed)
    trend = 0.6 + 0.4 * TIME - 0.7 * np.maximum(TIME - 0.4, 0.0)
    season = 0.2 * np.sin(2 * np.pi * np.arange(ROWS) / 7 + seed)
    return np.asarray((trend * (1 + season) if multiply else trend + season) + 0.03 * random.normal(size=ROWS))


def objective(x: Floats, log_deviation: float, rows: Rows, prior: Prior, smooth: float = 0.0) -> float:
    """Written down a second time, from the text of the module."""
    free, count = (1 if rows.growth == FLAT else 2), len(rows.multiply)
    line = rows.changepoint_hinges @ x[free + count :]
    if rows.growth == LOGISTIC:
        trend = rows.capacity / (1 + np.exp(-(line + x[0] * (rows.time - x[1]))))
    else:
        trend = line + x[free - 1] + (x[0] * rows.time if free == 2 else 0.0)
    coefficients = x[free : free + count]
    share = 1 + rows.features @ (coefficients * rows.multiply)
    left = rows.y - trend * share - rows.features @ (coefficients * (1 - rows.multiply))
    variance = np.exp(2 * log_deviation)
    square = left**2 / variance
    nu = rows.freedom
    losses = square.sum() / 2 if nu == 0 else (nu + 1) / 2 * np.log1p(square / nu).sum()
    sizes = np.sqrt(x[free + count :] ** 2 + smooth).sum()
    free_part = (prior.precision * x[: free + count] ** 2).sum() / 2
    return float(losses + len(left) * log_deviation + 2 * variance + free_part + prior.weight * sizes)


def rows_of(y: Floats, growth: int = LINEAR, multiply: float = 0.0, freedom: float = 0.0) -> Rows:
    hinges = np.empty((ROWS, 0)) if growth == FLAT else HINGES
    return Rows(y, TIME, np.full(ROWS, 1.5), hinges, WAVES, np.full(4, multiply), growth, freedom)


def test_the_slopes_are_those_of_the_most_likely() -> None:
    found = fit_linear(np.stack([series(0), series(1)]), DESIGN, PRIOR, 1)
    for y, x, deviation in zip((series(0), series(1)), found.x, found.deviation, strict=True):
        left = y - DESIGN @ x
        slope = -DESIGN.T @ left / deviation**2
        np.testing.assert_allclose(slope[:6] + PRIOR.precision * x[:6], 0.0, atol=1e-6)
        there = x[6:] != 0
        assert 0 < there.sum() < 10
        np.testing.assert_allclose(slope[6:][there], -20.0 * np.sign(x[6:][there]), atol=1e-6)
        assert (np.abs(slope[6:]) <= 20.0 + 1e-6).all()
        assert ROWS / deviation - left @ left / deviation**3 + 4 * deviation == pytest.approx(0.0, abs=1e-6)


def test_the_objective_is_that_of_its_text() -> None:
    found = fit_linear(series(3)[None], DESIGN, PRIOR, 1)
    wanted = objective(found.x[0], float(np.log(found.deviation[0])), rows_of(series(3)), PRIOR)
    assert found.objective[0] == pytest.approx(wanted, abs=1e-9)


def test_a_series_does_not_depend_on_those_beside_it() -> None:
    many = np.stack([series(seed) * (1 + 100 * (seed % 2)) for seed in range(5)])
    together = fit_linear(many, DESIGN, PRIOR, 1)
    for one in range(5):
        alone = fit_linear(many[one : one + 1], DESIGN, PRIOR, 1)
        assert (alone.x[0] == together.x[one]).all()
        assert alone.objective[0] == together.objective[one]


def test_small_moves_on_a_high_level() -> None:
    week = np.tile([4.0, 1.0, -2.0, 3.0, -4.0, 2.0, -3.0], ROWS // 7 + 1)[:ROWS]
    whole = np.stack([part(2 * np.pi * k * np.arange(ROWS) / 7) for k in (1, 2, 3) for part in (np.sin, np.cos)], axis=1)
    design = np.concatenate([TIME[:, None], np.ones((ROWS, 1)), whole, HINGES], axis=1)
    prior = Prior(np.full(8, 0.04), 20.0)
    x = fit_linear((1 + 1e-9 * week)[None], design, prior, 1).x[0]
    np.testing.assert_allclose((whole @ x[2:8]) * 1e9, week - week[: 7 * (ROWS // 7)].mean(), atol=0.1)


def test_more_parameters_than_values_end_without_noise() -> None:
    found = fit_linear(np.array([[0.5, 1.0, 0.7]]), DESIGN[:3], PRIOR, 1)
    assert found.deviation[0] < 1e-9
    np.testing.assert_allclose(DESIGN[:3] @ found.x[0], [0.5, 1.0, 0.7], atol=1e-6)


@pytest.mark.parametrize(
    ("growth", "multiply", "freedom"),
    [(LINEAR, 1.0, 0.0), (LINEAR, 0.0, 3.0), (LINEAR, 1.0, 3.0), (LOGISTIC, 0.0, 0.0), (LOGISTIC, 1.0, 3.0), (FLAT, 1.0, 0.0)],
)
def test_no_step_is_better_than_the_curved_maximum(growth: int, multiply: float, freedom: float) -> None:
    y = series(5, multiply=bool(multiply))
    if freedom:
        y = y + np.where(np.arange(ROWS) % 40 == 7, 0.8, 0.0)
    rows = rows_of(y, growth, multiply, freedom)
    prior = Prior(PRIOR.precision[1 if growth == FLAT else 0 :], 20.0)
    start = np.zeros(5 if growth == FLAT else 16)
    start[0] = 0.6 if growth == FLAT else 0.1
    x, deviation, found = fit_nonlinear(rows, prior, start)
    assert found == pytest.approx(objective(x, float(np.log(deviation)), rows, prior), abs=1e-9)

    def smoothed(p: Floats) -> float:
        return objective(p[:-1], float(p[-1]), rows, prior, 1e-14)

    here = np.append(x, np.log(deviation))
    further = minimize(smoothed, here, method="L-BFGS-B", options={"maxiter": 30})
    assert further.fun >= smoothed(here) - 1e-4


def test_the_curved_search_finds_the_straight_maximum() -> None:
    wanted = fit_linear(series(2)[None], DESIGN, PRIOR, 1)
    x, deviation, found = fit_nonlinear(rows_of(series(2)), PRIOR, np.zeros(16))
    assert found == pytest.approx(wanted.objective[0], abs=1e-7)
    np.testing.assert_allclose(x, wanted.x[0], atol=1e-6)
    assert deviation == pytest.approx(wanted.deviation[0], rel=1e-6)


def test_outliers_weigh_little_where_errors_are_students() -> None:
    clean = series(4)
    wild = clean + np.where(np.arange(ROWS) == 100, 20.0, 0.0)
    start = np.zeros(16)
    plain, robust = (fit_nonlinear(rows_of(wild, freedom=freedom), PRIOR, start)[0] for freedom in (0.0, 3.0))
    wanted = fit_nonlinear(rows_of(clean, freedom=3.0), PRIOR, start)[0]
    assert np.abs(DESIGN @ (robust - wanted)).max() < 0.02
    assert np.abs(DESIGN @ (plain - wanted)).max() > 0.1
