"""The kernels of complex exponential smoothing, against the published recursion written down plainly and R's smooth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from deepforecast import datasets
from deepforecast.core import seasonality
from deepforecast.data.panel import fill_missing
from deepforecast.kernels import ces, levenberg_marquardt

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "theta_ces.json").read_text())
FORMS = ("none", "simple", "partial", "full")
PERIOD = 12
SOME = {"none": (1.4, 0.9, 0, 0), "simple": (0, 0, 1.3, 1.02), "partial": (1.5, 0.98, 0.4, 0), "full": (1.2, 1, 1.5, 1.1)}


def passengers():
    return datasets.load("air_passengers")["y"].to_numpy(float)


def first_index(y, period=PERIOD):
    """Additive seasonal indices, the first row's first."""
    index, _ = seasonality.decompose(y, np.array([len(y)]), period, additive=True)
    return np.roll(index, len(y) % period, axis=1)


def plain(y, form, parameters, period=PERIOD, steps=0):
    """Forth, back and forth, with whole tables of states as Svetunkov et al. (2022) have them; errors and forecasts."""
    a0, a1, b0, b1 = parameters
    lag = 1 if form == "none" else period

    def moved(real, imaginary, p0, p1, e):
        return real - (1 - p1) * imaginary + (p0 - p1) * e, real + (1 - p0) * imaginary + (p0 + p1) * e

    def run(values, level, season):
        """Over values (None: none is seen); level a pair, season the pairs of the last `lag` rows."""
        errors, expected = [], []
        for value in values:
            old = season.pop(0)
            expected.append(level[0] + old[0])
            e = 0.0 if value is None or np.isnan(value) else value - expected[-1]
            errors.append(e)
            if form == "partial":
                season.append((old[0] + b0 * e, 0.0))
            else:
                season.append(moved(*old, b0, b1, e) if form in ("simple", "full") else (0.0, 0.0))
            level = moved(*level, a0, a1, e) if form != "simple" else (0.0, 0.0)
        return np.array(errors), np.array(expected), level, season

    seen = y[~np.isnan(y)]
    mean = seen[: max(10, period)].mean() if form == "none" else seen[:period].mean()
    level = (mean, mean / 1.1) if form != "simple" else (0.0, 0.0)
    index = first_index(y)[0] if form in ("partial", "full") else np.zeros(lag)
    season = [(one, one / 1.1 if form == "full" else 0.0) for one in index]
    if form == "simple":
        season = [(one, one / 1.1) for one in y[:period]]
    for values in (y, y[::-1]):
        _, _, level, season = run(values, level, season)
        level = moved(*level, a0, a1, 0.0) if form != "simple" else level
        _, _, _, season = run([None] * lag, (0.0, 0.0) if form != "simple" else level, season)
        season = season[::-1]
    errors, fitted, level, season = run(y, level, season)
    return errors, fitted, run([None] * steps, level, season)[1]


def by_kernels(y, form, parameters, steps=1):
    indptr, forms, given = np.array([0, len(y)]), np.array([FORMS.index(form)]), np.array([parameters], float)
    level, season = ces.backcast_states(y, indptr, forms, given, first_index(fill_missing(y, indptr, "interpolate")))
    fitted, level, season = ces.filter_series(y, indptr, forms, given, level, season)
    levels, seasons = ces.forecast_components(forms, given, level, season, steps)
    response = ces.impulse_response(forms, given, season.shape[1], steps)
    return fitted, (levels + seasons)[0], response[0]


def searched(y, form, period=PERIOD):
    indptr, wanted = np.array([0, len(y)]), np.zeros((1, 4), bool)
    wanted[0, [FORMS.index(form)] + ([2] if form == "full" else [])] = True
    parameters, squares = levenberg_marquardt.estimate(y, indptr, first_index(y, period), wanted)
    return parameters[0, FORMS.index(form)], squares[0, FORMS.index(form)]


@pytest.mark.parametrize("form", FORMS)
def test_the_recursion_is_the_published_one(form):
    y = passengers()
    fitted, forecast, _ = by_kernels(y, form, SOME[form], 30)
    _, wanted, ahead = plain(y, form, SOME[form], steps=30)
    np.testing.assert_allclose(fitted, wanted, rtol=1e-10)
    np.testing.assert_allclose(forecast, ahead, rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_r_smooth(form):
    known = GOLDEN["ces_r"][form]
    _, forecast, _ = by_kernels(passengers(), form, known["parameters"], 13)
    np.testing.assert_allclose(forecast, known["forecast"], atol=0.005)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_found_is_no_worse_than_rs_and_a_plain_search(form):
    y = passengers() / 1024
    found, squares = searched(y, form)
    ours = plain(y, form, found)[0]
    assert np.sum(ours**2) == pytest.approx(squares, rel=1e-9)
    theirs = plain(y, form, GOLDEN["ces_r"][form]["parameters"])[0]
    assert squares <= np.sum(theirs**2) * (1 + 1e-9)
    used = [number for number in range(4) if found[number]]

    def objective(some):
        parameters = np.zeros(4)
        parameters[used] = some
        trial = parameters.copy()
        inside = all(outside_of_the_circles(*pair) for pair in pairs(form, trial))
        errors = plain(y, form, parameters)[0] if inside and 0 <= trial[2] < 3 else np.array([1e3])
        return float(np.sum(errors**2))

    options = {"maxfev": 60, "initial_simplex": np.vstack([found[used], found[used] + 2e-3 * np.eye(len(used))])}
    best = minimize(objective, found[used], method="Nelder-Mead", options=options)
    assert squares <= best.fun * (1 + 1e-3)  # along an edge of the region little is gained, slowly


def pairs(form, parameters):
    return [p for p, used in ((parameters[:2], form != "simple"), (parameters[2:], form in ("simple", "full"))) if used]


def outside_of_the_circles(p0, p1):
    """Whether the discount matrix of a pair has its eigenvalues inside the unit circle."""
    matrix = np.array([[1 - p0 + p1, -(1 - p1)], [1 - p0 - p1, 1 - p0]])
    return np.abs(np.linalg.eigvals(matrix)).max() < 1


def test_the_region_is_that_of_stable_eigenvalues():
    rng = np.random.default_rng(0)
    for p0, p1 in rng.uniform(-1, 4, (2000, 2)):
        distances = np.hypot(p0 - levenberg_marquardt.STABILITY_CIRCLES[:, 0], p1 - levenberg_marquardt.STABILITY_CIRCLES[:, 1])
        inside = (
            (distances - np.abs(levenberg_marquardt.STABILITY_CIRCLES[:, 2]))
            * np.sign(levenberg_marquardt.STABILITY_CIRCLES[:, 2])
            < 0
        ).all()
        assert inside == outside_of_the_circles(p0, p1)


def test_what_is_found_is_stable():
    rng = np.random.default_rng(3)
    for number in range(12):
        y = np.cumsum(rng.normal(0.1, 1, 80)) + rng.normal(0, number / 3, 80) + 3 * np.tile(rng.normal(size=4), 20)
        for form in FORMS:
            parameters, squares = searched(y, form, 4)
            assert np.isfinite(squares)
            assert all(outside_of_the_circles(*pair) for pair in pairs(form, parameters))
            assert (
                form != "partial" or levenberg_marquardt.MIN_SEASON_GAIN <= parameters[2] <= levenberg_marquardt.MAX_SEASON_GAIN
            )


@pytest.mark.parametrize("form", FORMS)
def test_the_derivatives_are_those_of_small_steps(form):
    """By the kernel's own steps: at what is found, steps to either side along each free parameter are no better."""
    y = passengers() / 1024
    found, squares = searched(y, form)
    for number in np.flatnonzero(found):
        for step in (-1e-3, 1e-3):
            parameters = found.copy()
            parameters[number] += step
            if all(outside_of_the_circles(*pair) for pair in pairs(form, parameters)):
                assert np.sum(plain(y, form, parameters)[0] ** 2) > squares * (1 - 1e-5)


def test_a_full_season_fits_no_worse_than_a_partial_one():
    rng = np.random.default_rng(8)
    for _ in range(8):
        y = np.cumsum(rng.normal(size=60)) + np.tile(rng.normal(size=4), 15) + 20
        assert searched(y, "full", 4)[1] <= searched(y, "partial", 4)[1] * (1 + 1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_missing_values_are_stepped_over_without_error(form):
    y = passengers().copy()
    y[[0, 30, 31, 32, 100, 143]] = np.nan
    fitted, forecast, _ = by_kernels(y, form, SOME[form], 12)
    assert np.isfinite(np.append(fitted, forecast)).all()
    indptr, wanted = np.array([0, len(y)]), np.ones((1, 4), bool)
    index = first_index(fill_missing(y, indptr, "interpolate"))
    given, squares = levenberg_marquardt.estimate(y, indptr, index, wanted)
    number = FORMS.index(form)
    fitted, _, _ = by_kernels(y, form, given[0, number])
    wanted = np.nansum((y - fitted) ** 2)
    assert squares[0, number] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_the_answer_to_a_shock_is_the_change_that_a_value_makes(form):
    y, parameters = passengers(), searched(passengers() / 1024, form)[0]
    _, _, response = by_kernels(y, form, parameters, 20)
    indptr, forms, given = np.array([0, 144]), np.array([FORMS.index(form)]), parameters[None]
    level, season = ces.backcast_states(y, indptr, forms, given, first_index(y))
    ends = []
    for value in (y[-1], y[-1] + 1):
        _, *state = ces.filter_series(np.append(y[:-1], value), indptr, forms, given, level, season)
        levels, seasons = ces.forecast_components(forms, given, *state, 19)
        ends.append((levels + seasons)[0])
    np.testing.assert_allclose(response[1:], ends[1] - ends[0], atol=1e-9)
    assert response[0] == 1


def test_a_series_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(2)
    parts = [np.cumsum(rng.normal(size=size)) + 30 for size in (30, 41, 23, 90, *range(24, 44))]
    lengths = np.array([len(part) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    index = np.concatenate([first_index(part, 4) for part in parts])
    together = levenberg_marquardt.estimate(np.concatenate(parts), indptr, index, np.ones((len(parts), 4), bool))
    for number, part in enumerate(parts):
        alone = levenberg_marquardt.estimate(part, np.array([0, len(part)]), index[[number]], np.ones((1, 4), bool))
        np.testing.assert_array_equal(together[0][number], alone[0][0])
        np.testing.assert_array_equal(together[1][number], alone[1][0])


def test_a_series_that_overflows_leaves_the_next_ones_alone():
    generator = np.random.default_rng(0)
    tame = 20.0 + generator.normal(size=(20, 60)) + np.tile([3.0, 0.0, -3.0], 20)
    wild = np.full((16, 61), 1.7e308)  # longer, so that each lane begins with one; their sums are infinite
    lengths = np.array([61] * 16 + [60] * 20)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    forms = np.ones((36, 4), bool)
    together = levenberg_marquardt.estimate(np.concatenate([wild.ravel(), tame.ravel()]), indptr, np.zeros((36, 3)), forms)
    alone = levenberg_marquardt.estimate(tame.ravel(), np.arange(21) * 60, np.zeros((20, 3)), forms[16:])
    assert not np.isfinite(together[1][:16, 0]).any()
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found[16:], expected)
