"""Estimation: starting values by Hannan & Rissanen (1982, Biometrika 69), then quasi-Newton steps with the exact gradient."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.exact import exact
from deepforecast.kernels.arima.holes import with_holes
from deepforecast.kernels.arima.layout import BETA, FACTORS, FOUND, Arrays, Form, arrays_for
from deepforecast.kernels.arima.polynomials import expand, pull_back
from deepforecast.kernels.arima.reverse import reverse
from deepforecast.kernels.compiling import announced, lean
from deepforecast.kernels.search import GO_ON, Search, advance, begin, new_search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pair = tuple[Floats, Floats]  # a point, and the gradient there
Work = tuple[Floats, Floats, Floats]  # and the value with the number of evaluations


COMPARE, SEARCH, LOOK = range(3)
ALONE: Any = np.int64(0)
"""The lane of a single search; no literal: kernels are compiled once more for each literal they are called with."""


class Problem(NamedTuple):
    """What is estimated from. `data` is complete and differenced, or neither: then `delta` says how to difference."""

    data: Floats  # (1 + unknown + regressors, rows), C-contiguous
    delta: Floats  # 1 - delta_1 B - ..., by lag; [1] for differenced data
    unknown: int  # columns for values missing among the first len(delta) - 1 rows
    whole: bool  # nothing is missing
    floor: float  # variance below which a fit counts as perfect


class Estimate(NamedTuple):
    """A fitted model. `value`: minus the log likelihood, less the constant n (log(2 pi) + 1) / 2."""

    point: Floats
    factors: Floats
    beta: Floats
    gradient: Floats
    value: float
    squares: float
    determinant: float
    seen: int
    evaluations: int


def estimate(
    problem: Problem, form: Form, starts: Floats, *, conditional: bool = False, tolerance: float = 1e-6, most: int = 300
) -> Estimate:
    """Maximum likelihood, searched from the best of `starts` (places, coordinates); with `most` 0, just evaluated there."""
    columns, rows = problem.data.shape
    arrays = arrays_for(form, rows, columns, len(problem.delta) - 1, problem.whole)
    point, gradient = starts[0].copy(), np.zeros(form.size)
    with announced("ARIMA"):
        if problem.whole:
            found = np.zeros(2)
            settings = np.array([problem.floor, conditional, tolerance, most], np.float64)
            work = (point, gradient, found)
            _search_whole(form.form, form.lags, problem.data, settings, starts, new_search(1, form.size), arrays, work)
            value, evaluations = float(found[0]), int(found[1])
        else:
            value, evaluations = _search_with_holes(problem, form, starts, tolerance, most, arrays, point, gradient)
    factors, beta = arrays.vectors[FACTORS, : form.size].copy(), arrays.vectors[BETA, : columns - 1].copy()
    squares, determinant, seen = arrays.vectors[FOUND, :3].tolist()
    return Estimate(point, factors, beta, gradient, value, squares, determinant, int(seen), evaluations)


@lean
def _search_whole(
    form: Ints, lags: Ints, data: Floats, settings: Floats, starts: Floats, search: Search, arrays: Arrays, work: Work
) -> None:
    """settings: floor, whether conditional, tolerance, most evaluations."""
    vectors, _, dense, _, _, _, _, _ = arrays
    point, gradient, found = work
    floor, conditional, tolerance, most = settings[0], settings[1] > 0.0, settings[2], int(settings[3])
    size, evaluations, place, best, least, stage = len(point), 0, 0, 0, np.inf, COMPARE
    while True:  # one call for all that is evaluated: a second place would be compiled a second time
        for i in range(size):
            point[i] = starts[place, i] if stage == COMPARE else search.trial[0, i] if stage == SEARCH else search.point[0, i]
        steep, now = stage != COMPARE, np.inf
        if expand(form, lags, point, vectors):
            now = exact(form, lags, data, floor, conditional, steep, arrays)
            if steep and math.isfinite(now):
                pull_back(form, lags, point, vectors, dense, gradient)
        evaluations += 1
        if stage == COMPARE:
            best, least = (place, now) if now < least else (best, least)
            place += 1
            if place < len(starts):
                continue
            stage = SEARCH if most > 0 else LOOK
            for i in range(size):
                point[i], gradient[i] = starts[best, i], 1.0 / data.shape[1]
            begin(search, ALONE, point, gradient)
        elif stage == LOOK:
            found[0], found[1] = now, evaluations
            return
        elif size == 0 or advance(search, ALONE, now, gradient, tolerance, most) != GO_ON:
            stage = LOOK


def _search_with_holes(
    problem: Problem, form: Form, starts: Floats, tolerance: float, most: int, arrays: Arrays, point: Floats, gradient: Floats
) -> tuple[float, int]:
    """The same in steps, as an evaluation is long here: so that it is compiled only where something is missing."""

    given = (form.form, form.lags, problem.data, problem.delta, np.array([problem.unknown, problem.floor]), arrays)

    def value(at: Floats, steep: bool) -> float:
        point[:] = at
        return float(_with_holes(*given, (point, gradient), steep))

    best = min(starts, key=lambda one: value(one, False)) if len(starts) > 1 else starts[0]
    evaluations, search = len(starts), new_search(1, form.size)
    begin(search, 0, best.copy(), np.full(form.size, 1.0 / problem.data.shape[1]))
    while most > 0 and form.size > 0:
        evaluations += 1
        if advance(search, 0, value(search.trial[0], True), gradient, tolerance, most) != GO_ON:
            break
    return value(search.point[0], True), evaluations + 1


@lean
def _with_holes(
    form: Ints, lags: Ints, data: Floats, delta: Floats, settings: Floats, arrays: Arrays, work: Pair, steep: bool
) -> float:
    """settings: how many columns are unknowns, and the floor."""
    vectors, _, dense, _, _, _, _, _ = arrays
    point, gradient = work
    unknown, floor = int(settings[0]), settings[1]
    if not expand(form, lags, point, vectors):
        return np.inf
    value = with_holes(form, data, delta, unknown, floor, arrays)
    if steep and math.isfinite(value):
        reverse(form, data, delta, unknown, floor, arrays)
        pull_back(form, lags, point, vectors, dense, gradient)
    return value
