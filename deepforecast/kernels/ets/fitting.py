"""Estimation of exponential smoothing from arrays: many series, one form or several."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced
from deepforecast.kernels.ets.coordinates import FACTORS
from deepforecast.kernels.ets.desk import (
    AGAIN,
    BOLD,
    CALM,
    ERROR,
    FADING,
    FIRM,
    GUESS,
    LOOSE,
    MOST_STARTS,
    NOWHERE,
    OTHER_LEVEL,
    OTHER_SEASON,
    OTHER_TREND,
    QUICK,
    RATES_AT,
    ROUNDS_OF,
    SEASON,
    STARTS,
    STEADY,
    STILL,
    TIED,
    TREND,
    VALUE_OF,
    Data,
    Desk,
    Plan,
)
from deepforecast.kernels.ets.estimating import STEPS, fit_group
from deepforecast.kernels.ets.forms import Form
from deepforecast.kernels.ets.lanes import LANES, PRODUCT, SUM, SUM_ADDITIVE, VALUE
from deepforecast.kernels.ets.starting import guess_all
from deepforecast.kernels.search import Search, new_search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LONGEST_FREE_SEASON = 60
"""The factors a longer season begins with are those of a decomposition: a search for more of them takes too long."""
PERFECT = 1e-10  # an error this small beside the spread is none
MEMORY = 2**21  # numbers kept of the curvatures of a block of series
LINE = 8  # numbers in a cache line
PIECE = 2**22  # numbers set to 0 at a time
GRID = 36  # binary places of a spread that are looked at
SLOW_DAMPING = 0.975  # at which a thorough search goes on from a form without damping
FAST_DAMPING = 0.85  # the same of a choice between forms
MOST = 600  # evaluations of a search
BEST = 3  # forms of a series that a choice searches for again
FIRST, SECOND, NEVER = (8, 10.0), (5, 100.0), (MOST, 0.0)
"""When a further search for a form ends early, see `limits` of `fit_group`; SECOND where a choice searches again."""


class Fits(NamedTuple):
    """What was found, for each series and form: NaN, and a log-likelihood of minus infinity, where nothing was."""

    rates: Floats  # (series, forms, 4): alpha, beta, gamma, phi
    states: Floats  # (series, forms, 2 + season): level, slope, factors of the first steps
    coefficients: Floats  # (series, forms, regressors)
    log_likelihood: Floats  # (series, forms)
    evaluations: Floats  # (series, forms)


class Settings(NamedTuple):
    """`bounds`: "usual", "admissible" or "both", which means "usual" where rates are given. `fixed` (4,) or (series, 4): rates
    that are given, NaN where they are sought, of all series alike. `states` (series, 2, 2 + season): given ones, factors to be
    added or multiplied. `tolerance`: of the log-likelihood. `thorough`: from more starts than one.
    `penalties` (series, forms): what a choice adds to -2 log-likelihood; its best forms are then searched for again."""

    bounds: str = "both"
    fixed: Floats | tuple[float, ...] = (np.nan, np.nan, np.nan, np.nan)
    states: Floats | None = None
    tolerance: float = 1e-5
    thorough: bool = False
    penalties: Floats | None = None


def fit(
    y: Floats, indptr: Ints, season: int, forms: list[Form], *, design: Floats | None = None, settings: Settings | None = None
) -> Fits:
    """Maximum likelihood of each of `forms` for each series. NaN in `y` is a missing value, and so counts a row of `design`
    with one. A form with a product is left out for series that are not positive, and any form for constant ones."""
    settings = settings or Settings()
    y = np.ascontiguousarray(y, np.float64)
    indptr = np.ascontiguousarray(indptr, np.int64)
    design = np.empty((len(y), 0)) if design is None else np.ascontiguousarray(design, np.float64)
    if design.shape[1]:
        lost = np.asarray(np.isnan(design).any(axis=1))
        y, design = np.where(lost, np.nan, y), np.where(lost[:, None], 0.0, design)
    every = planned(forms)
    scaled, centre, units = _scaled(y, indptr)
    magnitude = np.add.reduceat(np.abs(np.where(np.isnan(scaled), 0.0, scaled)), indptr[:-1]) / units.counts
    floors = PERFECT**2 / np.column_stack([np.ones(len(centre)), np.maximum(magnitude, 1.0) ** 2])
    guesses = _guesses(scaled, indptr, season, design.shape[1], units, settings, forms[0].trend == 2)
    plan = _plan(every, season, design.shape[1], settings)
    found = np.full((len(indptr) - 1, len(every), guesses.shape[2] + 2), np.inf)
    found[:, :, ROUNDS_OF] = 0.0
    early = NEVER if settings.thorough else FIRST
    limits = np.array([settings.tolerance, MOST, *early], np.float64)
    with announced("exponential smoothing"):
        data = Data(scaled, indptr, centre, floors, design, guesses)
        again = None
        if settings.penalties is not None:
            penalties = np.full(found.shape[:2], np.inf)
            penalties[:, [every.index(form) for form in forms]] = 0.5 * settings.penalties
            again = _Again(_again(plan, every), penalties, np.array([settings.tolerance, MOST, *SECOND], np.float64))
        _run(data, plan, _groups(every), units, found, limits, again)
    return _unscaled(found[:, [every.index(form) for form in forms]], forms, season, units)


def planned(forms: list[Form]) -> list[Form]:
    """The forms and the smaller ones their searches begin at, in the order in which they are fitted."""
    every = set(forms)
    for form in forms:
        every |= {form._replace(damped=0), form._replace(trend=0, damped=0)}
        if form.trend == 2:
            every |= {form._replace(trend=1), form._replace(trend=1, damped=0)}
    return sorted(every, key=lambda form: (form.season, form.error, form.trend == 2, form.trend, form.damped))


def _given(settings: Settings) -> Floats:
    """The rates that are given, a row for all series or for each."""
    return np.asarray(settings.fixed, np.float64).reshape(-1, 4)


def _groups(every: list[Form]) -> list[tuple[int, int]]:
    """Forms that share a recursion, as first and last + 1."""
    kinds = [(form.season, form.error, form.trend == 2) for form in every]
    firsts = [number for number, kind in enumerate(kinds) if number == 0 or kind != kinds[number - 1]]
    return list(pairwise([*firsts, len(kinds)]))


def starts_of(form: Form, every: list[Form], thorough: bool, choice: bool = False) -> list[int]:
    """Where the searches of a form begin: the optimum of the next smaller form, or a guess, first. Of a choice between forms
    also that of the form with additive errors; the smaller forms are searched from a changed season or trend, too, so that the
    larger ones begin at the better of two maxima."""
    smaller = [form._replace(damped=0), form._replace(trend=0, damped=0)]
    if form.trend == 2:
        smaller.insert(0, form._replace(trend=1))
    twin = form._replace(error=0)
    near = [every.index(one) for one in smaller if one != form and one in every][:1]
    twins = [every.index(twin)] if form.error == 1 and twin in every else []
    if choice and not thorough:
        season, trend = form.season > 0 and form.trend == 0, form.season == 0 and form.damped == 1
        return [*twins, *(near or [GUESS]), *[OTHER_SEASON] * season, *[OTHER_TREND] * trend]
    near += twins
    guesses = [BOLD, GUESS, CALM, QUICK] if near else [GUESS, BOLD, CALM, QUICK]
    for slow in (STILL, TIED, LOOSE, FIRM, FADING, STEADY):
        guesses += [slow, AGAIN]
    return [*near, *guesses][: MOST_STARTS if thorough else 1]


def _plan(every: list[Form], season: int, regressors: int, settings: Settings) -> Plan:
    width = FACTORS + season + regressors
    forms = np.full((len(every), STARTS + MOST_STARTS), NOWHERE, np.int64)
    has, neutral = np.zeros((len(every), width), np.int64), np.zeros((len(every), width))
    sought = np.isnan(_given(settings)[0])
    free_bounds = settings.bounds if sought.all() else "usual"
    wide, fence = int(free_bounds == "admissible"), {"usual": 0, "admissible": 1, "both": 2}[free_bounds]
    for number, form in enumerate(every):
        starts = starts_of(form, every, settings.thorough, settings.penalties is not None)
        forms[number, :STARTS] = (*form, wide, fence, number)
        forms[number, STARTS : STARTS + len(starts)] = starts
        has[number, :FACTORS] = (1, form.trend > 0, form.season > 0, form.damped, 1, form.trend > 0)
        has[number, FACTORS : FACTORS + season] = form.season > 0
        has[number, FACTORS + season :] = 1
        neutral[number, 3] = 1.0
        neutral[number, 5] = form.trend == 2
        neutral[number, FACTORS : FACTORS + season] = form.season == 2
    free = has.copy()
    free[:, :4] *= sought
    if settings.states is not None:
        free[:, 4 : FACTORS + season] = 0
    if season > LONGEST_FREE_SEASON:
        free[:, FACTORS : FACTORS + season] = 0
    return Plan(forms, has, free, neutral)


class _Units(NamedTuple):
    """A series in units of its spread: size 2^power, two numbers so that no series is too large or too small."""

    size: Floats
    power: Ints
    counts: Floats
    varies: Bools  # it is not constant
    positive: Bools


class _Again(NamedTuple):
    """How a choice between forms searches again."""

    plan: Plan
    penalties: Floats  # (series, forms): what is added to minus the log-likelihood
    limits: Floats


def _scaled(y: Floats, indptr: Ints) -> tuple[Floats, Floats, _Units]:
    """The series in units of their spread, their centres in these units, and the units. The same series at another scale
    or (if everything adds up) height looks the same, so that searches take the same way."""
    begin, rows = indptr[:-1], np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    seen = ~np.isnan(y)
    counts = np.maximum(np.add.reduceat(seen.astype(np.float64), begin), 1.0)
    least = np.minimum.reduceat(np.where(seen, y, np.inf), begin)
    most = np.maximum.reduceat(np.where(seen, y, -np.inf), begin)
    _, power = np.frexp(np.maximum(np.abs(least), np.abs(most)))
    small = np.where(seen, np.ldexp(y, -power[rows]), 0.0)
    centre = np.add.reduceat(small, begin) / counts
    spread = np.sqrt(np.add.reduceat(np.where(seen, (small - centre[rows]) ** 2, 0.0), begin) / counts)
    varies = (most > least) & (spread > 0)
    size = np.where(varies, spread, 1.0)
    units = _Units(size, power.astype(np.int64), counts, varies, least > 0)
    middle = _rounded(centre / size)
    return np.where(seen, _rounded((small - centre[rows]) / size[rows]) + middle[rows], np.nan), middle, units


def _rounded(values: Floats) -> Floats:
    """To a grid that is finer than any error that counts and coarser than what another scale or shift changes."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, GRID)), -GRID))


def _guesses(
    scaled: Floats, indptr: Ints, season: int, regressors: int, units: _Units, settings: Settings, growth: bool
) -> Floats:
    """Where searches begin unless another form tells; what is given stays. `growth`: a given slope multiplies."""
    seen = ~np.isnan(scaled)
    guesses = np.zeros((len(indptr) - 1, 2, FACTORS + season + regressors))
    given = _given(settings)[:, None, :]
    chosen = FAST_DAMPING if settings.penalties is not None else RATES_AT[0][3]
    usual = (*RATES_AT[0][:3], SLOW_DAMPING if settings.thorough else chosen)
    guesses[:, :, :4] = np.where(np.isnan(given), usual, given)
    states = np.zeros((len(guesses), 2, 2 + season))
    if settings.states is None:
        guess_all(np.where(seen, scaled, 0.0), seen.astype(np.float64), indptr, season, states)
        states = _rounded(states)
    else:
        states[:] = np.ldexp(settings.states, -units.power[:, None, None]) / units.size[:, None, None]
        states[:, 1, 2:] = settings.states[:, 1, 2:]  # what multiplies has no unit
        if growth:
            states[:, :, 1] = settings.states[:, :, 1]
    guesses[:, :, 4 : FACTORS + season] = states
    return guesses


def _run(
    data: Data,
    plan: Plan,
    groups: list[tuple[int, int]],
    units: _Units,
    found: Floats,
    limits: Floats,
    again: _Again | None,
) -> None:
    """Fit group after group, a block of series at a time so that what is remembered of them stays within bounds. `again`: of a
    choice between forms, with the penalties; the best forms of each series are then searched for once more."""
    lengths, parameters, season = np.diff(data.indptr), plan.has.shape[1], plan.has.shape[1] - data.design.shape[1] - FACTORS
    order = np.flatnonzero(units.varies)
    order = order[np.argsort(-lengths[order], kind="stable")]
    search, block = new_search(LANES, parameters), max(LANES * 4, MEMORY // (len(plan.forms) * parameters**2))
    for some in np.array_split(order, max(1, math.ceil(len(order) / block))):
        memory = np.zeros((len(some), len(plan.forms), parameters, parameters))
        for first, last in groups:
            fits = units.counts[some] > plan.has[first].sum() - (season > 1 and plan.has[first, FACTORS])
            if plan.forms[first, ERROR] == 1 or plan.forms[first, SEASON] == 2 or plan.forms[first, TREND] == 2:
                fits &= units.positive[some]
            places = np.flatnonzero(fits)
            jobs = np.column_stack([some[places], places, np.full_like(places, first), np.full_like(places, last)])
            _fit_group(data, plan, jobs, search, found, memory, limits)
        if again is not None:
            _run_again(data, again, groups, search, found, memory, some)


def _run_again(
    data: Data,
    again: _Again,
    groups: list[tuple[int, int]],
    search: Search,
    found: Floats,
    memory: Floats,
    some: Ints,
) -> None:
    """Search again for the best forms of each series; what is not better than before does not count."""
    scores = found[some, :, VALUE_OF] + again.penalties[some]
    ranks = np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1, kind="stable")
    best, before = (ranks < BEST) & np.isfinite(scores), found[some]
    for first, last in groups:
        places, forms = np.nonzero(best[:, first:last])
        jobs = np.column_stack([some[places], places, forms + first, forms + first + 1])
        _fit_group(data, again.plan, jobs, search, found, memory, again.limits)
    worse = found[some, :, VALUE_OF] > before[:, :, VALUE_OF]
    found[some] = np.where(worse[:, :, None], before, found[some])


def _fit_group(data: Data, plan: Plan, jobs: Ints, search: Search, found: Floats, memory: Floats, limits: Floats) -> None:
    """Fit a group of forms in calls of limited work: a signal is handled between calls."""
    if len(jobs) == 0:
        return
    parameters, form = plan.has.shape[1], plan.forms[jobs[0, 2]]
    slots, steps = _slots(form), int(np.diff(data.indptr)[jobs[:, 0]].max())
    desk = _desk(steps, slots, parameters - data.design.shape[1], parameters, memory)
    progress = np.array([jobs[0, 2], slots * LANES, 0, 0])
    while True:
        fit_group(data, plan, desk, search, found, jobs, progress, limits)
        if progress[STEPS] == 0:
            return


def _again(plan: Plan, every: list[Form]) -> Plan:
    """The plan of further searches, from the best point of a form with another season, trend or level."""
    forms = plan.forms.copy()
    forms[:, STARTS:] = NOWHERE
    for number, form in enumerate(every):
        starts = [*[OTHER_SEASON] * (form.season > 0), *[OTHER_TREND] * (form.trend > 0), OTHER_LEVEL]
        forms[number, STARTS : STARTS + len(starts)] = starts
    return plan._replace(forms=forms)


def _slots(form: Ints) -> int:
    if form[SEASON] == 2 or form[TREND] == 2:
        return PRODUCT
    return SUM if form[ERROR] == 1 else SUM_ADDITIVE


def _desk(steps: int, slots: int, held: int, parameters: int, memory: Floats) -> Desk:
    trail = _aligned(steps * slots * LANES)
    if slots > VALUE:
        trail.reshape(steps, slots, LANES)[:, VALUE] = 1.0
    now, anchor, pulls, sums = (_aligned(number * LANES) for number in (held, held, held, 7))
    sums[:] = 1.0
    crew, work = np.zeros((7, LANES), np.int64), np.zeros((4, parameters + 2))
    return Desk(trail, now, anchor, pulls, sums, crew, np.zeros(LANES), work, memory)


def _aligned(size: int) -> Floats:
    """Zeros that begin with a cache line: vector instructions on parts of two lines take up to half as long again."""
    room = np.empty(size + LINE)
    for begin in range(0, len(room), PIECE):  # memory is taken at its first use: here, where Ctrl-C is handled, not in a kernel
        room[begin : begin + PIECE] = 0.0
    first = -(room.ctypes.data // room.itemsize) % LINE
    return room[first : first + size]


def _unscaled(found: Floats, forms: list[Form], season: int, units: _Units) -> Fits:
    """Parameters and likelihood in the units of the series."""
    lost = ~np.isfinite(found[:, :, VALUE_OF])
    found[lost] = np.nan

    def whole(values: Floats) -> Floats:
        return np.ldexp(values * units.size[:, None, None], units.power[:, None, None])

    states, growing = found[:, :, 4 : FACTORS + season], [form.trend < 2 for form in forms]
    states[:, :, :1] = whole(states[:, :, :1])
    states[:, growing, 1:2] = whole(states[:, growing, 1:2])
    added = [form.season < 2 for form in forms]
    states[:, added, 2:] = whole(states[:, added, 2:])
    coefficients = whole(found[:, :, FACTORS + season : -2])
    counts = units.counts[:, None]
    logarithm = (np.log(units.size) + units.power * np.log(2.0))[:, None]
    constant = 0.5 * counts * (np.log(2.0 * np.pi / counts) + 1.0) + counts * logarithm
    log_likelihood = np.where(lost, -np.inf, -(found[:, :, VALUE_OF] + constant))
    return Fits(found[:, :, :4], states, coefficients, log_likelihood, found[:, :, ROUNDS_OF])
