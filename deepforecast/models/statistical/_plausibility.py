"""Detection of implausible forecasts of multiplicative forms of exponential smoothing.

These divide by states near 0, compound growth, and turn an outlier into a factor of millions.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from deepforecast.core.noise import standard_normal
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import segment_reduce
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
    """Indices of series whose multiplicative form is implausible.

    That is: no finite likelihood, errors as large as the mean, a seasonal index near or below 0, a
    forecast (or the central 95 % of its sample paths) far above the history, or a forecast of two
    seasons far outside the last two. `without_regressors`: the values without covariate effects.
    """
    form, likelihood = learned["form"], learned["criteria"][:, 0]
    multiplies = (form[:, 0] == 1) | (form[:, 1] == 2) | (form[:, 3] == 2)
    candidates = np.flatnonzero(multiplies & ~np.isnan(likelihood))
    is_implausible = np.isneginf(likelihood[candidates]) | (
        (form[candidates, 0] == 1) & (learned["sigma"][candidates] >= MAX_ERROR)
    )
    factors = learned["state"][candidates, 2:]
    is_implausible |= (form[candidates, 3] == 2) & ~(factors.min(axis=1) > MIN_FACTOR * factors.mean(axis=1))
    remaining = candidates[~is_implausible]
    largest_forecast = _largest_forecast(learned.take(remaining))
    begin, end = panel.indptr[remaining], panel.indptr[remaining + 1]
    largest = segment_reduce(np.abs(np.where(np.isnan(panel.y), 0.0, panel.y)), begin, end, np.maximum)
    with np.errstate(over="ignore"):
        exceeding = np.flatnonzero(~(largest_forecast <= MAX_GROWTH * largest))
        growth = np.array([_growth_factor(panel, number) for number in remaining[exceeding]])
        exceeding = exceeding[~(largest_forecast[exceeding] <= MAX_GROWTH * largest[exceeding] * growth)]
    outside_range = _outside_recent_range(learned.take(remaining), without_regressors, begin, end)
    outside_range = np.setdiff1d(outside_range, exceeding)
    return np.sort(np.concatenate([candidates[is_implausible], remaining[exceeding], remaining[outside_range]]))


def _largest_forecast(learned: LearnedState) -> Floats:
    """Largest absolute forecast of each series, or of its sample paths / `MAX_PATH_RATIO`."""
    from deepforecast.kernels.ets.forecasts import forecast_means, has_formula, simulate_paths

    steps = int(np.clip(2 * (learned["state"].shape[1] - 2), *STEP_RANGE))
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(forecast_means(ets.kernel_model(learned.by_series, "state"), steps)[0]).max(axis=1, initial=0.0)
        sampled = np.flatnonzero(~has_formula(learned["form"], False) & ~np.isnan(learned["sigma"]))
        if len(sampled):
            selected = learned.take(sampled)
            draws = standard_normal(0, np.zeros((1, 1)), (int(selected["age"].max()) + steps, N_PATHS))
            draws = draws * selected["sigma"][:, None, None]
            sizes = simulate_paths(ets.kernel_model(selected.by_series, "state"), draws, np.zeros((len(sampled), steps)))
            upper_bound = np.sort(np.where(np.isnan(sizes), np.inf, np.abs(sizes)), axis=1)[:, int(0.95 * N_PATHS)]
            largest[sampled] = np.maximum(largest[sampled], upper_bound.max(axis=1) / MAX_PATH_RATIO)
    return np.asarray(largest)


def _outside_recent_range(learned: LearnedState, y: Floats, begin: Ints, end: Ints) -> Ints:
    """Indices of series whose forecast leaves the range of recent values.

    After a level shift the maximum likelihood fit may explain it by a seasonal index or a slope.
    """
    from deepforecast.kernels.ets.forecasts import forecast_means

    steps, window = (max(2 * (learned["state"].shape[1] - 2), lowest) for lowest in RECENT)
    with np.errstate(over="ignore", invalid="ignore"):
        # As forecasts of multiplicative forms.
        points = np.maximum(forecast_means(ets.kernel_model(learned.by_series, "state"), steps)[0], 0.0)
    n_observed = np.concatenate([[0], np.cumsum(~np.isnan(y))])
    y, begin, end = y[~np.isnan(y)], n_observed[begin], n_observed[end]
    begin = np.maximum(begin, end - window)
    lowest, highest = segment_reduce(y, begin, end, np.minimum), segment_reduce(y, begin, end, np.maximum)
    quarter = np.maximum((end - begin) // 4, 1)
    with np.errstate(all="ignore"):
        sizes = [segment_reduce(y, np.maximum(end - (n + 1) * quarter, begin), end - n * quarter) for n in (3, 2, 1, 0)]
        # Minimum: a level shift is not steady growth.
        growth = np.min([later / earlier for earlier, later in pairwise(sizes)], axis=0)
        growth = np.where(growth > 1.0, growth, 1.0) ** (steps / quarter)
        relative_horizon = np.maximum(steps / np.maximum(end - begin, 1), 1.0)
        margin = growth * (
            RANGE_FACTOR * relative_horizon * (highest - lowest) + LEVEL_FACTOR * np.abs(0.5 * lowest + 0.5 * highest)
        )
        return np.flatnonzero(~((points.max(axis=1) <= highest + margin) & (points.min(axis=1) >= lowest - margin)))


def _growth_factor(panel: Panel, number: int) -> float:
    """Ratio of the medians of the last and the first third of a series, at least 1."""
    y = panel.y[panel.indptr[number] : panel.indptr[number + 1]]
    y = y[~np.isnan(y)]
    third = max(len(y) // 3, 1)
    first, last = float(np.median(y[:third])), float(np.median(y[-third:]))
    return max(last / first, 1.0) if first > 0.0 else 1.0
