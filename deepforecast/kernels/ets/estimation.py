"""Maximum likelihood estimation of one or several ETS models for many series.

`fit` scales the series, plans the forms (those requested and smaller ones that searches start from),
runs the searches of groups of forms that share a recursion, and converts the estimates to the units of
the series.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice
from deepforecast.kernels.ets.coordinates import LEVEL, N_RATES, PHI, SEASON_STATES, TREND_STATE
from deepforecast.kernels.ets.forms import Form
from deepforecast.kernels.ets.initial_states import guess_initial_states
from deepforecast.kernels.ets.optimization import STEPS, fit_group
from deepforecast.kernels.ets.recursion import LANES
from deepforecast.kernels.ets.workspace import (
    ALWAYS_BARRIER,
    BARRIER_IF_OUTSIDE,
    BOLD,
    CALM,
    CONTINUE_FREE,
    ERROR,
    EVALUATIONS_COLUMN,
    FADING,
    FIRM,
    GUESS,
    LOOSE,
    MAX_STARTS,
    NO_BARRIER,
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
    new_workspace,
    trace_width,
)
from deepforecast.kernels.quasi_newton import Search, new_search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LONGEST_FREE_SEASON = 60
"""Longest season whose initial states are optimized; longer ones keep those of a decomposition."""
PERFECT_ERROR = 1e-10  # relative error below which a fit counts as perfect
MAX_MEMORY = 2**21  # largest number of floats stored for inverse Hessians of a block of series
GRID_BITS = 36  # binary digits that scaled values are rounded to
SLOW_DAMPING = 0.975  # start of phi from an undamped form, in a thorough search
FAST_DAMPING = 0.85  # the same in a model selection
MAX_EVALUATIONS = 600  # largest number of evaluations per search
N_BEST_FORMS = 3  # forms per series that a model selection searches again
FIRST_LIMITS = (8, 10.0)
SECOND_LIMITS = (5, 100.0)
NO_LIMITS = (MAX_EVALUATIONS, 0.0)
"""PATIENCE and GAIN_FACTOR of `fit_group`, which end further searches early: in the first and second
search of a model selection, and in a thorough search."""


class Fits(NamedTuple):
    """Estimates per series and form; NaN and log-likelihood -inf where the fit failed or was skipped."""

    rates: Floats  # (series, forms, 4): alpha, beta, gamma, phi
    states: Floats  # (series, forms, 2 + m): level, slope, seasonal states of the first m time steps
    coefficients: Floats  # (series, forms, regressors)
    log_likelihood: Floats  # (series, forms)
    evaluations: Floats  # (series, forms): number of evaluations of the likelihood


class Settings(NamedTuple):
    """Settings of `fit`.

    bounds: of the rates; "usual", "admissible" or "both", the intersection of the other two; with a
        fixed rate always the usual ones.
    fixed: (4,) or (series, 4): fixed rates, NaN where estimated; the same rates are fixed for all series.
    states: (series, 2, 2 + m): fixed states; row 0 additive, row 1 multiplicative season; None: estimated.
    tolerance: of the log-likelihood.
    thorough: whether to search from several starts.
    penalties: (series, forms): added to -2 log-likelihood in a model selection, whose best forms are
        searched a second time; None: no model selection.
    """

    bounds: str = "both"
    fixed: Floats | tuple[float, ...] = (np.nan, np.nan, np.nan, np.nan)
    states: Floats | None = None
    tolerance: float = 1e-5
    thorough: bool = False
    penalties: Floats | None = None


def fit(
    y: Floats,
    indptr: Ints,
    season_length: int,
    forms: list[Form],
    *,
    design: Floats | None = None,
    settings: Settings | None = None,
) -> Fits:
    """Maximum likelihood estimates of each of `forms` for each series.

    NaN in `y` is a missing value, and so is a time step of which `design` (time steps, regressors) has
    a NaN. Multiplicative forms are skipped for series that are not positive, all forms for constant
    series, and groups of forms of which even the smallest has as many free parameters as a series has
    observed values. If one form has a
    multiplicative trend, all must.
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
    magnitude = np.add.reduceat(np.abs(np.where(np.isnan(scaled), 0.0, scaled)), indptr[:-1]) / scale.n_observed
    floors = PERFECT_ERROR**2 / np.column_stack([np.ones(len(centre)), np.maximum(magnitude, 1.0) ** 2])
    guesses = _start_guesses(scaled, indptr, season_length, design.shape[1], scale, settings, forms[0].trend == 2)
    plan = _new_plan(all_forms, season_length, design.shape[1], settings)
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
    return _unscale_estimates(estimates[:, [all_forms.index(form) for form in forms]], forms, season_length, scale)


def plan_forms(forms: list[Form]) -> list[Form]:
    """Add the smaller forms that searches start from, and sort by group and size: the order of fitting."""
    all_forms = set(forms)
    for form in forms:
        all_forms |= {form._replace(damped=0), form._replace(trend=0, damped=0)}
        if form.trend == 2:
            all_forms |= {form._replace(trend=1), form._replace(trend=1, damped=0)}
    return sorted(all_forms, key=lambda form: (form.season, form.error, form.trend == 2, form.trend, form.damped))


def _fixed_rates(settings: Settings) -> Floats:
    """Fixed rates as an array with one row for all series or one row per series."""
    return np.asarray(settings.fixed, np.float64).reshape(-1, 4)


def _recursion_groups(all_forms: list[Form]) -> list[tuple[int, int]]:
    """Ranges (first index, last + 1) of consecutive forms that share recursion and likelihood."""
    recursions = [(form.season, form.error, form.trend == 2) for form in all_forms]
    group_starts = [index for index, recursion in enumerate(recursions) if index == 0 or recursion != recursions[index - 1]]
    return list(pairwise([*group_starts, len(recursions)]))


def search_starts(form: Form, all_forms: list[Form], thorough: bool, in_selection: bool = False) -> list[int]:
    """Starts of the searches of a form: indices in `all_forms`, whose optima are starts, or constants of `workspace`.

    First comes the optimum of the next smaller form, or a guess if there is none. In a model selection
    (`in_selection`) also the optimum of the form with additive errors; smaller forms are then also
    searched from another season or trend, so that larger ones start at the better maximum. With
    `thorough` several guesses follow.
    """
    smaller_forms = [form._replace(damped=0), form._replace(trend=0, damped=0)]
    if form.trend == 2:
        smaller_forms.insert(0, form._replace(trend=1))
    twin = form._replace(error=0)
    optima = [
        all_forms.index(smaller_form) for smaller_form in smaller_forms if smaller_form != form and smaller_form in all_forms
    ][:1]
    twins = [all_forms.index(twin)] if form.error == 1 and twin in all_forms else []
    if in_selection and not thorough:
        searches_season = form.season > 0 and form.trend == 0
        searches_trend = form.season == 0 and form.damped == 1
        return [*twins, *(optima or [GUESS]), *[OTHER_SEASON] * searches_season, *[OTHER_TREND] * searches_trend]
    optima += twins
    guesses = [BOLD, GUESS, CALM, QUICK] if optima else [GUESS, BOLD, CALM, QUICK]
    for slow_start in (STILL, TIED, LOOSE, FIRM, FADING, STEADY):
        guesses += [slow_start, CONTINUE_FREE]
    return [*optima, *guesses][: MAX_STARTS if thorough else 1]


def _new_plan(all_forms: list[Form], season_length: int, n_regressors: int, settings: Settings) -> Plan:
    """Which parameters each form has and which of them are estimated, its starts, bounds and barrier.

    With a fixed rate the usual bounds are used.
    """
    n_parameters = SEASON_STATES + season_length + n_regressors
    forms = np.full((len(all_forms), STARTS + MAX_STARTS), NO_START, np.int64)
    present, neutral = np.zeros((len(all_forms), n_parameters), np.int64), np.zeros((len(all_forms), n_parameters))
    is_free = np.isnan(_fixed_rates(settings)[0])
    free_bounds = settings.bounds if is_free.all() else "usual"
    wide_bounds = int(free_bounds == "admissible")
    barrier = {"usual": NO_BARRIER, "admissible": ALWAYS_BARRIER, "both": BARRIER_IF_OUTSIDE}[free_bounds]
    for index, form in enumerate(all_forms):
        starts = search_starts(form, all_forms, settings.thorough, settings.penalties is not None)
        forms[index, :STARTS] = (*form, wide_bounds, barrier, index)
        forms[index, STARTS : STARTS + len(starts)] = starts
        present[index, :SEASON_STATES] = (1, form.trend > 0, form.season > 0, form.damped, 1, form.trend > 0)
        present[index, SEASON_STATES : SEASON_STATES + season_length] = form.season > 0
        present[index, SEASON_STATES + season_length :] = 1
        neutral[index, PHI] = 1.0
        neutral[index, TREND_STATE] = form.trend == 2
        neutral[index, SEASON_STATES : SEASON_STATES + season_length] = form.season == 2
    estimated = present.copy()
    estimated[:, :N_RATES] *= is_free
    if settings.states is not None:
        estimated[:, LEVEL : SEASON_STATES + season_length] = 0
    if season_length > LONGEST_FREE_SEASON:
        estimated[:, SEASON_STATES : SEASON_STATES + season_length] = 0
    return Plan(forms, present, estimated, neutral)


class _Scale(NamedTuple):
    """Unit of each series: `deviation` times 2^`power`, so that no scale over- or underflows.

    deviation: standard deviation of the series divided by 2^power; 1 if it is constant.
    """

    deviation: Floats
    power: Ints
    n_observed: Floats  # at least 1
    varies: Bools  # whether it is not constant
    is_positive: Bools  # whether all values are


class _SecondSearch(NamedTuple):
    """Second search of a model selection."""

    plan: Plan
    penalties: Floats  # (series, forms): added to the negative log-likelihood; inf: not requested
    limits: Floats


def _scale_series(y: Floats, indptr: Ints) -> tuple[Floats, Floats, _Scale]:
    """Return scaled series (y / unit, NaN where missing), their means, and the units.

    Scaled and (for additive forms) shifted copies of a series get the same scaled values less the mean,
    so that searches take the same steps.
    """
    starts = indptr[:-1]
    series_index = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    is_observed = ~np.isnan(y)
    n_observed = np.maximum(np.add.reduceat(is_observed.astype(np.float64), starts), 1.0)
    smallest = np.minimum.reduceat(np.where(is_observed, y, np.inf), starts)
    largest = np.maximum.reduceat(np.where(is_observed, y, -np.inf), starts)
    _, power = np.frexp(np.maximum(np.abs(smallest), np.abs(largest)))
    reduced = np.where(is_observed, np.ldexp(y, -power[series_index]), 0.0)
    centre = np.add.reduceat(reduced, starts) / n_observed
    standard_deviation = np.sqrt(
        np.add.reduceat(np.where(is_observed, (reduced - centre[series_index]) ** 2, 0.0), starts) / n_observed
    )
    varies = (largest > smallest) & (standard_deviation > 0)
    deviation = np.where(varies, standard_deviation, 1.0)
    scale = _Scale(deviation, power.astype(np.int64), n_observed, varies, smallest > 0)
    scaled_centre = _round_to_grid(centre / deviation)
    return (
        np.where(
            is_observed,
            _round_to_grid((reduced - centre[series_index]) / deviation[series_index]) + scaled_centre[series_index],
            np.nan,
        ),
        scaled_centre,
        scale,
    )


def _round_to_grid(values: Floats) -> Floats:
    """Round to multiples of 2^-GRID_BITS, which removes the rounding errors of scaling and shifting a series."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, GRID_BITS)), -GRID_BITS))


def _start_guesses(
    scaled: Floats,
    indptr: Ints,
    season_length: int,
    n_regressors: int,
    scale: _Scale,
    settings: Settings,
    multiplicative_trend: bool,
) -> Floats:
    """Guessed parameters (series, 2, parameters) in scaled units; index 1: multiplicative season.

    Fixed rates and states are kept. `multiplicative_trend`: fixed slopes are growth factors, without a
    unit.
    """
    is_observed = ~np.isnan(scaled)
    guesses = np.zeros((len(indptr) - 1, 2, SEASON_STATES + season_length + n_regressors))
    fixed_rates = _fixed_rates(settings)[:, None, :]
    damping = FAST_DAMPING if settings.penalties is not None else START_RATES[0][3]
    start_rates = (*START_RATES[0][:3], SLOW_DAMPING if settings.thorough else damping)
    guesses[:, :, :N_RATES] = np.where(np.isnan(fixed_rates), start_rates, fixed_rates)
    states = np.zeros((len(guesses), 2, 2 + season_length))
    if settings.states is None:
        guess_initial_states(np.where(is_observed, scaled, 0.0), is_observed.astype(np.float64), indptr, season_length, states)
        states = _round_to_grid(states)
    else:
        states[:] = np.ldexp(settings.states, -scale.power[:, None, None]) / scale.deviation[:, None, None]
        states[:, 1, 2:] = settings.states[:, 1, 2:]  # multiplicative states have no unit
        if multiplicative_trend:
            states[:, :, 1] = settings.states[:, :, 1]
    guesses[:, :, LEVEL : SEASON_STATES + season_length] = states
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
    """Fit all groups, in blocks of series that bound the memory for inverse Hessians; longest series first.

    Constant series are skipped, and forms with too many parameters for a series or that need positive
    values. With `second_search` the best forms of each series are searched a second time.
    """
    lengths = np.diff(scaled_series.indptr)
    n_parameters = plan.present.shape[1]
    season_length = n_parameters - scaled_series.design.shape[1] - SEASON_STATES
    series_order = np.flatnonzero(scale.varies)
    series_order = series_order[np.argsort(-lengths[series_order], kind="stable")]
    searches = new_search(LANES, n_parameters)
    block_size = max(LANES * 4, MAX_MEMORY // (len(plan.forms) * n_parameters**2))
    for block in np.array_split(series_order, max(1, math.ceil(len(series_order) / block_size))):
        memory = np.zeros((len(block), len(plan.forms), n_parameters, n_parameters))
        for first_form, end_form in groups:
            is_fitted = scale.n_observed[block] > plan.present[first_form].sum() - (
                season_length > 1 and plan.present[first_form, SEASON_STATES]
            )
            if plan.forms[first_form, ERROR] == 1 or plan.forms[first_form, SEASON] == 2 or plan.forms[first_form, TREND] == 2:
                is_fitted &= scale.is_positive[block]
            block_rows = np.flatnonzero(is_fitted)
            jobs = np.column_stack(
                [block[block_rows], block_rows, np.full_like(block_rows, first_form), np.full_like(block_rows, end_form)]
            )
            _fit_group(scaled_series, plan, jobs, searches, estimates, memory, limits)
        if second_search is not None:
            _search_again(scaled_series, second_search, groups, searches, estimates, memory, block)


def _search_again(
    scaled_series: ScaledSeries,
    second_search: _SecondSearch,
    groups: list[tuple[int, int]],
    searches: Search,
    estimates: Floats,
    memory: Floats,
    block: Ints,
) -> None:
    """Search the N_BEST_FORMS best forms of each series of a block again; keep only improvements.

    Forms are ranked by negative log-likelihood plus penalty.
    """
    scores = estimates[block, :, OBJECTIVE_COLUMN] + second_search.penalties[block]
    ranks = np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1, kind="stable")
    is_best = (ranks < N_BEST_FORMS) & np.isfinite(scores)
    previous = estimates[block]
    for first_form, end_form in groups:
        block_rows, form_offsets = np.nonzero(is_best[:, first_form:end_form])
        jobs = np.column_stack([block[block_rows], block_rows, form_offsets + first_form, form_offsets + first_form + 1])
        _fit_group(scaled_series, second_search.plan, jobs, searches, estimates, memory, second_search.limits)
    is_worse = estimates[block, :, OBJECTIVE_COLUMN] > previous[:, :, OBJECTIVE_COLUMN]
    estimates[block] = np.where(is_worse[:, :, None], previous, estimates[block])


def _fit_group(
    scaled_series: ScaledSeries,
    plan: Plan,
    jobs: Ints,
    searches: Search,
    estimates: Floats,
    memory: Floats,
    limits: Floats,
) -> None:
    """Fit a group in calls of limited work, so that signals are handled in between."""
    if len(jobs) == 0:
        return
    n_parameters, form = plan.present.shape[1], plan.forms[jobs[0, 2]]
    width = trace_width(form)
    n_steps = int(np.diff(scaled_series.indptr)[jobs[:, 0]].max())
    workspace = new_workspace(n_steps, width, n_parameters - scaled_series.design.shape[1], n_parameters, memory)
    progress = np.array([jobs[0, 2], width * LANES, 0, 0])  # GROUP_FORM, TRACE_WIDTH, QUEUE, STEPS
    while True:
        fit_group(scaled_series, plan, workspace, searches, estimates, jobs, progress, limits)
        if progress[STEPS] == 0:
            return


def _second_plan(plan: Plan, all_forms: list[Form]) -> Plan:
    """Plan whose starts change season, trend or level of the best point of a form."""
    forms = plan.forms.copy()
    forms[:, STARTS:] = NO_START
    for index, form in enumerate(all_forms):
        starts = [*[OTHER_SEASON] * (form.season > 0), *[OTHER_TREND] * (form.trend > 0), OTHER_LEVEL]
        forms[index, STARTS : STARTS + len(starts)] = starts
    return plan._replace(forms=forms)


def _unscale_estimates(estimates: Floats, forms: list[Form], season_length: int, scale: _Scale) -> Fits:
    """Parameters and likelihood in the units of the series; `estimates` is overwritten.

    `constant` is what the objective of the searches omits: n/2 (log(2 pi / n) + 1) + n log(unit).
    """
    is_missing = ~np.isfinite(estimates[:, :, OBJECTIVE_COLUMN])
    estimates[is_missing] = np.nan

    def unscale(values: Floats) -> Floats:
        return np.ldexp(values * scale.deviation[:, None, None], scale.power[:, None, None])

    states = estimates[:, :, LEVEL : SEASON_STATES + season_length]
    additive_trend = [form.trend < 2 for form in forms]
    states[:, :, :1] = unscale(states[:, :, :1])
    states[:, additive_trend, 1:2] = unscale(states[:, additive_trend, 1:2])
    additive_season = [form.season < 2 for form in forms]
    states[:, additive_season, 2:] = unscale(states[:, additive_season, 2:])
    coefficients = unscale(estimates[:, :, SEASON_STATES + season_length : -2])
    n_observed = scale.n_observed[:, None]
    log_unit = (np.log(scale.deviation) + scale.power * np.log(2.0))[:, None]
    constant = 0.5 * n_observed * (np.log(2.0 * np.pi / n_observed) + 1.0) + n_observed * log_unit
    log_likelihood = np.where(is_missing, -np.inf, -(estimates[:, :, OBJECTIVE_COLUMN] + constant))
    return Fits(estimates[:, :, :4], states, coefficients, log_likelihood, estimates[:, :, EVALUATIONS_COLUMN])
