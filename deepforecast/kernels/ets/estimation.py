"""Maximum likelihood estimation of one or several ETS models for many series."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice
from deepforecast.kernels.ets.coordinates import SEASON_STATES
from deepforecast.kernels.ets.forms import Form
from deepforecast.kernels.ets.initial_states import guess_initial_states
from deepforecast.kernels.ets.optimization import STEPS, fit_group
from deepforecast.kernels.ets.recursion import LANES, VALUE, WIDTH_ADDITIVE, WIDTH_ADDITIVE_MEAN, WIDTH_MULTIPLICATIVE
from deepforecast.kernels.ets.workspace import (
    BOLD,
    CALM,
    CONTINUE_FREE,
    ERROR,
    EVALUATIONS_COLUMN,
    FADING,
    FIRM,
    GUESS,
    LOOSE,
    MOST_STARTS,
    NO_START,
    OBJECTIVE_COLUMN,
    OTHER_LEVEL,
    OTHER_SEASON,
    OTHER_TREND,
    QUICK,
    SEASON,
    START_RATES,
    STARTS,
    STEADY,
    STILL,
    TIED,
    TREND,
    Plan,
    ScaledSeries,
    Workspace,
)
from deepforecast.kernels.quasi_newton import Search, new_search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LONGEST_FREE_SEASON = 60
"""Longest season whose initial states are optimized; longer ones keep those of a decomposition."""
PERFECT_ERROR = 1e-10  # relative error below which a fit counts as perfect
MAX_MEMORY = 2**21  # numbers stored for inverse Hessians of a block of series
CACHE_LINE = 8  # numbers in a cache line
ZEROING_BLOCK = 2**22  # numbers set to 0 at a time
GRID_BITS = 36  # binary digits that scaled values are rounded to
SLOW_DAMPING = 0.975  # start of phi from an undamped form, in a thorough search
FAST_DAMPING = 0.85  # the same in a model selection
MAX_EVALUATIONS = 600  # per search
N_BEST_FORMS = 3  # forms per series that a model selection searches again
FIRST_LIMITS, SECOND_LIMITS, NO_LIMITS = (8, 10.0), (5, 100.0), (MAX_EVALUATIONS, 0.0)
"""Early end of further searches, see `limits` of `fit_group`; SECOND in the second search."""


class Fits(NamedTuple):
    """Estimates per series and form; NaN and log-likelihood -inf where the fit failed."""

    rates: Floats  # (series, forms, 4): alpha, beta, gamma, phi
    states: Floats  # (series, forms, 2 + season): level, slope, factors of the first steps
    coefficients: Floats  # (series, forms, regressors)
    log_likelihood: Floats  # (series, forms)
    evaluations: Floats  # (series, forms)


class Settings(NamedTuple):
    """Settings of `fit`.

    bounds: "usual", "admissible" or "both" (the same as "usual" if rates are fixed). fixed, (4,) or
    (series, 4): fixed rates, NaN where estimated, the same ones for all series. states, (series, 2,
    2 + m): fixed states; row 0 additive, row 1 multiplicative. tolerance: of the log-likelihood.
    thorough: whether to use several starts. penalties, (series, forms): added to -2 log-likelihood
    in a model selection, whose best forms are searched a second time.
    """

    bounds: str = "both"
    fixed: Floats | tuple[float, ...] = (np.nan, np.nan, np.nan, np.nan)
    states: Floats | None = None
    tolerance: float = 1e-5
    thorough: bool = False
    penalties: Floats | None = None


def fit(
    y: Floats, indptr: Ints, season: int, forms: list[Form], *, design: Floats | None = None, settings: Settings | None = None
) -> Fits:
    """Maximum likelihood estimates of each of `forms` for each series.

    NaN in `y` is a missing value, and so is a row of `design` with NaN. Multiplicative forms are
    skipped for series that are not positive, and all forms for constant series.
    """
    settings = settings or Settings()
    y = np.ascontiguousarray(y, np.float64)
    indptr = np.ascontiguousarray(indptr, np.int64)
    design = np.empty((len(y), 0)) if design is None else np.ascontiguousarray(design, np.float64)
    if design.shape[1]:
        has_missing = np.asarray(np.isnan(design).any(axis=1))
        y, design = np.where(has_missing, np.nan, y), np.where(has_missing[:, None], 0.0, design)
    all_forms = plan_forms(forms)
    scaled, centre, scale = _scale_series(y, indptr)
    magnitude = np.add.reduceat(np.abs(np.where(np.isnan(scaled), 0.0, scaled)), indptr[:-1]) / scale.counts
    floors = PERFECT_ERROR**2 / np.column_stack([np.ones(len(centre)), np.maximum(magnitude, 1.0) ** 2])
    guesses = _start_guesses(scaled, indptr, season, design.shape[1], scale, settings, forms[0].trend == 2)
    plan = _new_plan(all_forms, season, design.shape[1], settings)
    estimates = np.full((len(indptr) - 1, len(all_forms), guesses.shape[2] + 2), np.inf)
    estimates[:, :, EVALUATIONS_COLUMN] = 0.0
    early_limits = NO_LIMITS if settings.thorough else FIRST_LIMITS
    limits = np.array([settings.tolerance, MAX_EVALUATIONS, *early_limits], np.float64)
    with compile_notice("exponential smoothing"):
        scaled_series = ScaledSeries(scaled, indptr, centre, floors, design, guesses)
        second_search = None
        if settings.penalties is not None:
            penalties = np.full(estimates.shape[:2], np.inf)
            penalties[:, [all_forms.index(form) for form in forms]] = 0.5 * settings.penalties
            second_search = _SecondSearch(
                _second_plan(plan, all_forms),
                penalties,
                np.array([settings.tolerance, MAX_EVALUATIONS, *SECOND_LIMITS], np.float64),
            )
        _fit_groups(scaled_series, plan, _recursion_groups(all_forms), scale, estimates, limits, second_search)
    return _unscale_estimates(estimates[:, [all_forms.index(form) for form in forms]], forms, season, scale)


def plan_forms(forms: list[Form]) -> list[Form]:
    """Add the smaller forms that searches start from; in the order of fitting."""
    all_forms = set(forms)
    for form in forms:
        all_forms |= {form._replace(damped=0), form._replace(trend=0, damped=0)}
        if form.trend == 2:
            all_forms |= {form._replace(trend=1), form._replace(trend=1, damped=0)}
    return sorted(all_forms, key=lambda form: (form.season, form.error, form.trend == 2, form.trend, form.damped))


def _fixed_rates(settings: Settings) -> Floats:
    """Fixed rates as an array with one row for all series or one per series."""
    return np.asarray(settings.fixed, np.float64).reshape(-1, 4)


def _recursion_groups(all_forms: list[Form]) -> list[tuple[int, int]]:
    """Ranges (first, last + 1) of forms that share a recursion."""
    recursions = [(form.season, form.error, form.trend == 2) for form in all_forms]
    firsts = [number for number, recursion in enumerate(recursions) if number == 0 or recursion != recursions[number - 1]]
    return list(pairwise([*firsts, len(recursions)]))


def search_starts(form: Form, all_forms: list[Form], thorough: bool, choice: bool = False) -> list[int]:
    """Starts of the searches of a form: first the optimum of the next smaller form, or a guess.

    In a model selection (`choice`) also the optimum of the form with additive errors; smaller forms
    are then also searched from another season or trend, so that larger ones start at the better
    maximum.
    """
    smaller = [form._replace(damped=0), form._replace(trend=0, damped=0)]
    if form.trend == 2:
        smaller.insert(0, form._replace(trend=1))
    twin = form._replace(error=0)
    nearby = [all_forms.index(smaller_form) for smaller_form in smaller if smaller_form != form and smaller_form in all_forms][
        :1
    ]
    twins = [all_forms.index(twin)] if form.error == 1 and twin in all_forms else []
    if choice and not thorough:
        season, trend = form.season > 0 and form.trend == 0, form.season == 0 and form.damped == 1
        return [*twins, *(nearby or [GUESS]), *[OTHER_SEASON] * season, *[OTHER_TREND] * trend]
    nearby += twins
    guesses = [BOLD, GUESS, CALM, QUICK] if nearby else [GUESS, BOLD, CALM, QUICK]
    for slow in (STILL, TIED, LOOSE, FIRM, FADING, STEADY):
        guesses += [slow, CONTINUE_FREE]
    return [*nearby, *guesses][: MOST_STARTS if thorough else 1]


def _new_plan(all_forms: list[Form], season: int, regressors: int, settings: Settings) -> Plan:
    width = SEASON_STATES + season + regressors
    forms = np.full((len(all_forms), STARTS + MOST_STARTS), NO_START, np.int64)
    present, neutral = np.zeros((len(all_forms), width), np.int64), np.zeros((len(all_forms), width))
    is_free = np.isnan(_fixed_rates(settings)[0])
    free_bounds = settings.bounds if is_free.all() else "usual"
    wide_bounds, barrier = int(free_bounds == "admissible"), {"usual": 0, "admissible": 1, "both": 2}[free_bounds]
    for number, form in enumerate(all_forms):
        starts = search_starts(form, all_forms, settings.thorough, settings.penalties is not None)
        forms[number, :STARTS] = (*form, wide_bounds, barrier, number)
        forms[number, STARTS : STARTS + len(starts)] = starts
        present[number, :SEASON_STATES] = (1, form.trend > 0, form.season > 0, form.damped, 1, form.trend > 0)
        present[number, SEASON_STATES : SEASON_STATES + season] = form.season > 0
        present[number, SEASON_STATES + season :] = 1
        neutral[number, 3] = 1.0
        neutral[number, 5] = form.trend == 2
        neutral[number, SEASON_STATES : SEASON_STATES + season] = form.season == 2
    estimated = present.copy()
    estimated[:, :4] *= is_free
    if settings.states is not None:
        estimated[:, 4 : SEASON_STATES + season] = 0
    if season > LONGEST_FREE_SEASON:
        estimated[:, SEASON_STATES : SEASON_STATES + season] = 0
    return Plan(forms, present, estimated, neutral)


class _Scale(NamedTuple):
    """Unit of each series, 2^power times a mantissa so that no scale over- or underflows."""

    size: Floats
    power: Ints
    counts: Floats
    varies: Bools  # it is not constant
    positive: Bools


class _SecondSearch(NamedTuple):
    """Second search of a model selection."""

    plan: Plan
    penalties: Floats  # (series, forms): what is added to minus the log-likelihood
    limits: Floats


def _scale_series(y: Floats, indptr: Ints) -> tuple[Floats, Floats, _Scale]:
    """Return scaled series, their centres, and the units.

    Scaled and (for additive forms) shifted copies of a series get the same scaled values, so that
    searches take the same steps.
    """
    begin, rows = indptr[:-1], np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    is_observed = ~np.isnan(y)
    counts = np.maximum(np.add.reduceat(is_observed.astype(np.float64), begin), 1.0)
    least = np.minimum.reduceat(np.where(is_observed, y, np.inf), begin)
    most = np.maximum.reduceat(np.where(is_observed, y, -np.inf), begin)
    _, power = np.frexp(np.maximum(np.abs(least), np.abs(most)))
    small = np.where(is_observed, np.ldexp(y, -power[rows]), 0.0)
    centre = np.add.reduceat(small, begin) / counts
    standard_deviation = np.sqrt(np.add.reduceat(np.where(is_observed, (small - centre[rows]) ** 2, 0.0), begin) / counts)
    varies = (most > least) & (standard_deviation > 0)
    size = np.where(varies, standard_deviation, 1.0)
    scale = _Scale(size, power.astype(np.int64), counts, varies, least > 0)
    scaled_centre = _round_to_grid(centre / size)
    return (
        np.where(is_observed, _round_to_grid((small - centre[rows]) / size[rows]) + scaled_centre[rows], np.nan),
        scaled_centre,
        scale,
    )


def _round_to_grid(values: Floats) -> Floats:
    """Round off what differs between scaled or shifted copies of a series."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, GRID_BITS)), -GRID_BITS))


def _start_guesses(
    scaled: Floats, indptr: Ints, season: int, regressors: int, scale: _Scale, settings: Settings, multiplicative_trend: bool
) -> Floats:
    """Guessed parameters; fixed ones are kept. `multiplicative_trend`: fixed slopes are growth
    factors.
    """
    is_observed = ~np.isnan(scaled)
    guesses = np.zeros((len(indptr) - 1, 2, SEASON_STATES + season + regressors))
    fixed = _fixed_rates(settings)[:, None, :]
    damping = FAST_DAMPING if settings.penalties is not None else START_RATES[0][3]
    usual = (*START_RATES[0][:3], SLOW_DAMPING if settings.thorough else damping)
    guesses[:, :, :4] = np.where(np.isnan(fixed), usual, fixed)
    states = np.zeros((len(guesses), 2, 2 + season))
    if settings.states is None:
        guess_initial_states(np.where(is_observed, scaled, 0.0), is_observed.astype(np.float64), indptr, season, states)
        states = _round_to_grid(states)
    else:
        states[:] = np.ldexp(settings.states, -scale.power[:, None, None]) / scale.size[:, None, None]
        states[:, 1, 2:] = settings.states[:, 1, 2:]  # multiplicative states have no unit
        if multiplicative_trend:
            states[:, :, 1] = settings.states[:, :, 1]
    guesses[:, :, 4 : SEASON_STATES + season] = states
    return guesses


def _fit_groups(
    scaled_series: ScaledSeries,
    plan: Plan,
    groups: list[tuple[int, int]],
    scale: _Scale,
    estimates: Floats,
    limits: Floats,
    second_search: _SecondSearch | None,
) -> None:
    """Fit all groups, in blocks of series that bound the memory for inverse Hessians.

    With `second_search` the best forms of each series are searched a second time.
    """
    lengths, parameters, season = (
        np.diff(scaled_series.indptr),
        plan.present.shape[1],
        plan.present.shape[1] - scaled_series.design.shape[1] - SEASON_STATES,
    )
    order = np.flatnonzero(scale.varies)
    order = order[np.argsort(-lengths[order], kind="stable")]
    search, block_size = new_search(LANES, parameters), max(LANES * 4, MAX_MEMORY // (len(plan.forms) * parameters**2))
    for block in np.array_split(order, max(1, math.ceil(len(order) / block_size))):
        memory = np.zeros((len(block), len(plan.forms), parameters, parameters))
        for first, last in groups:
            fits = scale.counts[block] > plan.present[first].sum() - (season > 1 and plan.present[first, SEASON_STATES])
            if plan.forms[first, ERROR] == 1 or plan.forms[first, SEASON] == 2 or plan.forms[first, TREND] == 2:
                fits &= scale.positive[block]
            rows = np.flatnonzero(fits)
            jobs = np.column_stack([block[rows], rows, np.full_like(rows, first), np.full_like(rows, last)])
            _fit_group(scaled_series, plan, jobs, search, estimates, memory, limits)
        if second_search is not None:
            _search_again(scaled_series, second_search, groups, search, estimates, memory, block)


def _search_again(
    scaled_series: ScaledSeries,
    second_search: _SecondSearch,
    groups: list[tuple[int, int]],
    search: Search,
    estimates: Floats,
    memory: Floats,
    block: Ints,
) -> None:
    """Search the best forms of each series again; keep only improvements."""
    scores = estimates[block, :, OBJECTIVE_COLUMN] + second_search.penalties[block]
    ranks = np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1, kind="stable")
    best, previous = (ranks < N_BEST_FORMS) & np.isfinite(scores), estimates[block]
    for first, last in groups:
        rows, forms = np.nonzero(best[:, first:last])
        jobs = np.column_stack([block[rows], rows, forms + first, forms + first + 1])
        _fit_group(scaled_series, second_search.plan, jobs, search, estimates, memory, second_search.limits)
    is_worse = estimates[block, :, OBJECTIVE_COLUMN] > previous[:, :, OBJECTIVE_COLUMN]
    estimates[block] = np.where(is_worse[:, :, None], previous, estimates[block])


def _fit_group(
    scaled_series: ScaledSeries,
    plan: Plan,
    jobs: Ints,
    search: Search,
    estimates: Floats,
    memory: Floats,
    limits: Floats,
) -> None:
    """Fit a group in calls of limited work, so that signals are handled in between."""
    if len(jobs) == 0:
        return
    parameters, form = plan.present.shape[1], plan.forms[jobs[0, 2]]
    width, steps = _trace_width(form), int(np.diff(scaled_series.indptr)[jobs[:, 0]].max())
    workspace = _new_workspace(steps, width, parameters - scaled_series.design.shape[1], parameters, memory)
    progress = np.array([jobs[0, 2], width * LANES, 0, 0])
    while True:
        fit_group(scaled_series, plan, workspace, search, estimates, jobs, progress, limits)
        if progress[STEPS] == 0:
            return


def _second_plan(plan: Plan, all_forms: list[Form]) -> Plan:
    """Plan whose starts change season, trend or level of the best point of a form."""
    forms = plan.forms.copy()
    forms[:, STARTS:] = NO_START
    for number, form in enumerate(all_forms):
        starts = [*[OTHER_SEASON] * (form.season > 0), *[OTHER_TREND] * (form.trend > 0), OTHER_LEVEL]
        forms[number, STARTS : STARTS + len(starts)] = starts
    return plan._replace(forms=forms)


def _trace_width(form: Ints) -> int:
    if form[SEASON] == 2 or form[TREND] == 2:
        return WIDTH_MULTIPLICATIVE
    return WIDTH_ADDITIVE_MEAN if form[ERROR] == 1 else WIDTH_ADDITIVE


def _new_workspace(steps: int, width: int, n_state: int, parameters: int, memory: Floats) -> Workspace:
    trace = _aligned_zeros(steps * width * LANES)
    if width > VALUE:
        trace.reshape(steps, width, LANES)[:, VALUE] = 1.0
    state, anchor, state_gradient, sums = (_aligned_zeros(number * LANES) for number in (n_state, n_state, n_state, 7))
    sums[:] = 1.0
    lanes, work = np.zeros((7, LANES), np.int64), np.zeros((4, parameters + 2))
    return Workspace(trace, state, anchor, state_gradient, sums, lanes, np.zeros(LANES), work, memory)


def _aligned_zeros(size: int) -> Floats:
    """Zeros aligned to a cache line, without which vector code takes up to 50 % longer."""
    buffer = np.empty(size + CACHE_LINE)
    for begin in range(0, len(buffer), ZEROING_BLOCK):  # touch the pages here, where Ctrl-C is handled, not in a kernel
        buffer[begin : begin + ZEROING_BLOCK] = 0.0
    first = -(buffer.ctypes.data // buffer.itemsize) % CACHE_LINE
    return buffer[first : first + size]


def _unscale_estimates(estimates: Floats, forms: list[Form], season: int, scale: _Scale) -> Fits:
    """Parameters and likelihood in the units of the series."""
    is_missing = ~np.isfinite(estimates[:, :, OBJECTIVE_COLUMN])
    estimates[is_missing] = np.nan

    def unscale(values: Floats) -> Floats:
        return np.ldexp(values * scale.size[:, None, None], scale.power[:, None, None])

    states, additive_trend = estimates[:, :, 4 : SEASON_STATES + season], [form.trend < 2 for form in forms]
    states[:, :, :1] = unscale(states[:, :, :1])
    states[:, additive_trend, 1:2] = unscale(states[:, additive_trend, 1:2])
    additive_season = [form.season < 2 for form in forms]
    states[:, additive_season, 2:] = unscale(states[:, additive_season, 2:])
    coefficients = unscale(estimates[:, :, SEASON_STATES + season : -2])
    counts = scale.counts[:, None]
    logarithm = (np.log(scale.size) + scale.power * np.log(2.0))[:, None]
    constant = 0.5 * counts * (np.log(2.0 * np.pi / counts) + 1.0) + counts * logarithm
    log_likelihood = np.where(is_missing, -np.inf, -(estimates[:, :, OBJECTIVE_COLUMN] + constant))
    return Fits(estimates[:, :, :4], states, coefficients, log_likelihood, estimates[:, :, EVALUATIONS_COLUMN])
