"""Detection of implausible forecasts of multiplicative forms of exponential smoothing.

Multiplicative forms divide by states near 0, compound growth, and can turn an outlier into a factor
of millions.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from deepforecast.core.arrays import segment_reduce
from deepforecast.core.forecast import seeded_normal
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical import _form_selection as ets

MAX_ERROR = 1.0
"""Standard deviation of relative errors at which a sixth of the values would be negative."""
MIN_FACTOR = 1e-3  # seasonal index relative to the mean; errors are divided by it
MAX_GROWTH = 100.0  # of forecasts relative to the largest value, or to it times past growth
STEP_RANGE = (12, 48)  # bounds of the examined horizon, two seasons
N_PATHS = 64
MAX_PATH_RATIO = 100.0  # sample paths may be larger by this factor
RANGE_FACTOR, LEVEL_FACTOR = 2.0, 0.5
"""A forecast of two seasons may leave the range of the last two seasons by these multiples of its
width and midpoint; by more if the values grow steadily or are fewer than the steps."""
RECENT = (12, 24)  # minimum numbers of steps ahead and of recent values in this comparison


def find_implausible(learned: LearnedState, panel: Panel, without_regressors: Floats) -> Ints:
    """Sorted indices of the series whose multiplicative form is implausible.

    That is: no finite likelihood, errors as large as the mean, a seasonal index near or below 0, a
    forecast (or the 95 % quantile of its absolute sample paths) far above the history, or a forecast
    of two seasons far outside the range of the last two. Constant series are never implausible.
    `without_regressors`: the values without covariate effects.
    """
    form, likelihood = learned["form"], learned["criteria"][:, 0]
    is_relative = form[:, ets.ERROR] == ets.MULTIPLICATIVE_ERROR
    has_factors = form[:, ets.SEASON] == ets.MULTIPLICATIVE
    is_multiplicative = is_relative | has_factors | (form[:, ets.TREND] == ets.MULTIPLICATIVE)
    candidates = np.flatnonzero(is_multiplicative & ~np.isnan(likelihood))
    is_implausible = np.isneginf(likelihood[candidates]) | (
        is_relative[candidates] & (learned["sigma"][candidates] >= MAX_ERROR)
    )
    factors = learned["state"][candidates, 2:]
    is_implausible |= has_factors[candidates] & ~(factors.min(axis=1) > MIN_FACTOR * factors.mean(axis=1))
    remaining = candidates[~is_implausible]
    largest_forecast = _largest_forecast(learned.take(remaining))
    begin, end = panel.indptr[remaining], panel.indptr[remaining + 1]
    largest = segment_reduce(np.abs(np.where(np.isnan(panel.y), 0.0, panel.y)), begin, end, np.maximum)
    with np.errstate(over="ignore"):
        exceeding = np.flatnonzero(~(largest_forecast <= MAX_GROWTH * largest))
        growth = np.array([_growth_factor(panel, series_index) for series_index in remaining[exceeding]])
        exceeding = exceeding[~(largest_forecast[exceeding] <= MAX_GROWTH * largest[exceeding] * growth)]
    outside_range = _outside_recent_range(learned.take(remaining), without_regressors, begin, end)
    outside_range = np.setdiff1d(outside_range, exceeding)
    return np.sort(np.concatenate([candidates[is_implausible], remaining[exceeding], remaining[outside_range]]))


def _largest_forecast(learned: LearnedState) -> Floats:
    """Largest absolute forecast of each series over two seasons.

    For forms without a variance formula at least the 95 % quantile of absolute sample paths / `MAX_PATH_RATIO`.
    """
    from deepforecast.kernels.ets.forecasts import forecast_means, has_formula, simulate_paths

    steps = int(np.clip(2 * (learned["state"].shape[1] - 2), *STEP_RANGE))
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(forecast_means(ets.kernel_model(learned.by_series, "state"), steps)[0]).max(axis=1, initial=0.0)
        sampled = np.flatnonzero(~has_formula(learned["form"], False) & ~np.isnan(learned["sigma"]))
        if len(sampled):
            selected = learned.take(sampled)
            draws = seeded_normal(0, np.zeros((1, 1)), (int(selected["age"].max()) + steps, N_PATHS))
            draws = draws * selected["sigma"][:, None, None]
            no_effects = np.zeros((len(sampled), steps))
            paths = simulate_paths(ets.kernel_model(selected.by_series, "state"), draws, no_effects)
            upper_bound = np.sort(np.where(np.isnan(paths), np.inf, np.abs(paths)), axis=1)[:, int(0.95 * N_PATHS)]
            largest[sampled] = np.maximum(largest[sampled], upper_bound.max(axis=1) / MAX_PATH_RATIO)
    return np.asarray(largest)


def _outside_recent_range(learned: LearnedState, y: Floats, begin: Ints, end: Ints) -> Ints:
    """Indices of series whose forecast is outside the range of recent values by more than a margin.

    After a level shift the maximum likelihood fit may explain the shift by a seasonal index or a slope.
    `y`: values of all series; `begin`, `end`: rows of the series in `learned`. Indices refer to these series.
    """
    from deepforecast.kernels.ets.forecasts import forecast_means

    steps, window = (max(2 * (learned["state"].shape[1] - 2), lowest) for lowest in RECENT)
    with np.errstate(over="ignore", invalid="ignore"):
        # Bounded at 0, as the point forecasts of multiplicative forms are.
        point_forecasts = np.maximum(forecast_means(ets.kernel_model(learned.by_series, "state"), steps)[0], 0.0)
    n_observed = np.concatenate([[0], np.cumsum(~np.isnan(y))])
    y, begin, end = y[~np.isnan(y)], n_observed[begin], n_observed[end]
    begin = np.maximum(begin, end - window)
    lowest, highest = segment_reduce(y, begin, end, np.minimum), segment_reduce(y, begin, end, np.maximum)
    quarter = np.maximum((end - begin) // 4, 1)
    with np.errstate(all="ignore"):
        quarter_sums = [segment_reduce(y, np.maximum(end - (n + 1) * quarter, begin), end - n * quarter) for n in (3, 2, 1, 0)]
        # The minimum, because a level shift is not steady growth.
        growth = np.min([later / earlier for earlier, later in pairwise(quarter_sums)], axis=0)
        growth = np.where(growth > 1.0, growth, 1.0) ** (steps / quarter)
        relative_horizon = np.maximum(steps / np.maximum(end - begin, 1), 1.0)
        margin = growth * (
            RANGE_FACTOR * relative_horizon * (highest - lowest) + LEVEL_FACTOR * np.abs(0.5 * lowest + 0.5 * highest)
        )
        is_inside = (point_forecasts.max(axis=1) <= highest + margin) & (point_forecasts.min(axis=1) >= lowest - margin)
        return np.flatnonzero(~is_inside)


def _growth_factor(panel: Panel, series_index: int) -> float:
    """Ratio of the medians of the last and the first third of a series, at least 1."""
    y = panel.y[panel.indptr[series_index] : panel.indptr[series_index + 1]]
    y = y[~np.isnan(y)]
    third = max(len(y) // 3, 1)
    first_median, last_median = float(np.median(y[:third])), float(np.median(y[-third:]))
    return max(last_median / first_median, 1.0) if first_median > 0.0 else 1.0
