"""Where forms that multiply go wrong: states near 0 divide, growth is raised to powers, an outlier is a factor of millions.

unsound     the series whose forecast by such a form is none
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
"""Of errors that multiply, one standard deviation: beyond it every sixth value of the model would be negative."""
MIN_FACTOR = 1e-3  # of their mean; errors are divided by it
MAX_GROWTH = 100.0  # times the largest value, and times what the series has grown by
STEP_RANGE = (12, 48)  # ahead that are looked at: two seasons, within these bounds
N_PATHS = 64
MAX_PATH_RATIO = 100.0  # times as far may sample paths go
RANGE_FACTOR, LEVEL_FACTOR = 2.0, 0.5
"""A forecast of two seasons may leave the range of the last two by so many of its widths and so much of its middle, more where
the values grow all along or are fewer than the steps: a level that has shifted says what old values do not."""
RECENT = (12, 24)  # steps ahead, and values back, of a forecast beside its last two seasons, at least


def find_implausible(learned: LearnedState, panel: Panel, without_regressors: Floats) -> Ints:
    """The series, of those with a form that multiplies, for which no parameters were found, errors are as large as the mean,
    a factor of the season is about 0 or less, the forecast or the middle 95 % of its sample paths leave what the series
    suggests far behind, or the forecast of two seasons the last two. `without_regressors`: the values without their regressors."""
    form, likelihood = learned["form"], learned["criteria"][:, 0]
    multiplies = (form[:, 0] == 1) | (form[:, 1] == 2) | (form[:, 3] == 2)
    candidates = np.flatnonzero(multiplies & ~np.isnan(likelihood))
    is_implausible = np.isneginf(likelihood[candidates]) | ((form[candidates, 0] == 1) & (learned["sigma"][candidates] >= MAX_ERROR))
    factors = learned["state"][candidates, 2:]
    is_implausible |= (form[candidates, 3] == 2) & ~(factors.min(axis=1) > MIN_FACTOR * factors.mean(axis=1))
    remaining = candidates[~is_implausible]
    largest_forecast = _largest_forecast(learned.take(remaining))
    largest = segment_reduce(np.abs(np.where(np.isnan(panel.y), 0.0, panel.y)), panel.indptr[remaining], panel.indptr[remaining + 1], np.maximum)
    with np.errstate(over="ignore"):
        exceeding = np.flatnonzero(~(largest_forecast <= MAX_GROWTH * largest))
        exceeding = exceeding[~(largest_forecast[exceeding] <= MAX_GROWTH * largest[exceeding] * np.array([_growth_factor(panel, number) for number in remaining[exceeding]]))]
    outside_range = np.setdiff1d(_outside_recent_range(learned.take(remaining), without_regressors, panel.indptr[remaining], panel.indptr[remaining + 1]), exceeding)
    return np.sort(np.concatenate([candidates[is_implausible], remaining[exceeding], remaining[outside_range]]))


def _largest_forecast(learned: LearnedState) -> Floats:
    """The largest size the forecast of each series comes to, its sample paths counting less."""
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
    """The series whose forecast leaves the range of recent values: after a shift of the level a factor of the season or a
    slope may have been the likeliest way up, and old values say nothing of where the series is."""
    from deepforecast.kernels.ets.forecasts import forecast_means

    steps, window = (max(2 * (learned["state"].shape[1] - 2), lowest) for lowest in RECENT)
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.maximum(forecast_means(ets.kernel_model(learned.by_series, "state"), steps)[0], 0.0)  # as forecasts of products are
    n_observed = np.concatenate([[0], np.cumsum(~np.isnan(y))])
    y, begin, end = y[~np.isnan(y)], n_observed[begin], n_observed[end]
    begin = np.maximum(begin, end - window)
    lowest, highest = segment_reduce(y, begin, end, np.minimum), segment_reduce(y, begin, end, np.maximum)
    quarter = np.maximum((end - begin) // 4, 1)
    with np.errstate(all="ignore"):
        sizes = [segment_reduce(y, np.maximum(end - (n + 1) * quarter, begin), end - n * quarter) for n in (3, 2, 1, 0)]
        growth = np.min([later / earlier for earlier, later in pairwise(sizes)], axis=0)  # a step up is not growth all along
        growth = np.where(growth > 1.0, growth, 1.0) ** (steps / quarter)
        relative_horizon = np.maximum(steps / np.maximum(end - begin, 1), 1.0)
        margin = growth * (RANGE_FACTOR * relative_horizon * (highest - lowest) + LEVEL_FACTOR * np.abs(0.5 * lowest + 0.5 * highest))
        return np.flatnonzero(~((points.max(axis=1) <= highest + margin) & (points.min(axis=1) >= lowest - margin)))


def _growth_factor(panel: Panel, number: int) -> float:
    """By what a series has grown from the median of its first third to that of the last; 1 if it has not."""
    y = panel.y[panel.indptr[number] : panel.indptr[number + 1]]
    y = y[~np.isnan(y)]
    third = max(len(y) // 3, 1)
    first, last = float(np.median(y[:third])), float(np.median(y[-third:]))
    return max(last / first, 1.0) if first > 0.0 else 1.0
