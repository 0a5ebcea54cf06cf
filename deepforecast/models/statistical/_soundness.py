"""Where forms that multiply go wrong: states near 0 divide, growth is raised to powers, an outlier is a factor of millions.

unsound     the series whose forecast by such a form is none
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from deepforecast.core.noise import standard_normal
from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import reduced
from deepforecast.models.statistical import _ets as ets

LARGEST_ERROR = 1.0
"""Of errors that multiply, one standard deviation: beyond it every sixth value of the model would be negative."""
SMALLEST_FACTOR = 1e-3  # of their mean; errors are divided by it
BEYOND = 100.0  # times the largest value, and times what the series has grown by
STEPS = (12, 48)  # ahead that are looked at: two seasons, within these bounds
PATHS = 64
FAR = 100.0  # times as far may sample paths go
WIDTHS, LEVELS = 2.0, 0.5
"""A forecast of two seasons may leave the range of the last two by so many of its widths and so much of its middle, more where
the values grow all along or are fewer than the steps: a level that has shifted says what old values do not."""
RECENT = (12, 24)  # steps ahead, and values back, of a forecast beside its last two seasons, at least


def unsound(learned: Learned, panel: Panel, alone: Floats) -> Ints:
    """The series, of those with a form that multiplies, for which no parameters were found, errors are as large as the mean,
    a factor of the season is about 0 or less, the forecast or the middle 95 % of its sample paths leave what the series
    suggests far behind, or the forecast of two seasons the last two. `alone`: the values without their regressors."""
    form, likelihood = learned["form"], learned["criteria"][:, 0]
    multiplies = (form[:, 0] == 1) | (form[:, 1] == 2) | (form[:, 3] == 2)
    some = np.flatnonzero(multiplies & ~np.isnan(likelihood))
    bad = np.isneginf(likelihood[some]) | ((form[some, 0] == 1) & (learned["sigma"][some] >= LARGEST_ERROR))
    factors = learned["state"][some, 2:]
    bad |= (form[some, 3] == 2) & ~(factors.min(axis=1) > SMALLEST_FACTOR * factors.mean(axis=1))
    left = some[~bad]
    reach = _reach(learned.take(left))
    largest = reduced(np.abs(np.where(np.isnan(panel.y), 0.0, panel.y)), panel.indptr[left], panel.indptr[left + 1], np.maximum)
    with np.errstate(over="ignore"):
        far = np.flatnonzero(~(reach <= BEYOND * largest))
        far = far[~(reach[far] <= BEYOND * largest[far] * np.array([_growth(panel, number) for number in left[far]]))]
    astray = np.setdiff1d(_astray(learned.take(left), alone, panel.indptr[left], panel.indptr[left + 1]), far)
    return np.sort(np.concatenate([some[bad], left[far], left[astray]]))


def _reach(learned: Learned) -> Floats:
    """The largest size the forecast of each series comes to, its sample paths counting less."""
    from deepforecast.kernels.ets.forecasting import has_formula, means, paths

    steps = int(np.clip(2 * (learned["state"].shape[1] - 2), *STEPS))
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.abs(means(ets.model(learned.by_series, "state"), steps)[0]).max(axis=1, initial=0.0)
        sampled = np.flatnonzero(~has_formula(learned["form"], False) & ~np.isnan(learned["sigma"]))
        if len(sampled):
            mine = learned.take(sampled)
            draws = standard_normal(0, np.zeros((1, 1)), (int(mine["age"].max()) + steps, PATHS))
            draws = draws * mine["sigma"][:, None, None]
            sizes = paths(ets.model(mine.by_series, "state"), draws, np.zeros((len(sampled), steps)))
            band = np.sort(np.where(np.isnan(sizes), np.inf, np.abs(sizes)), axis=1)[:, int(0.95 * PATHS)]
            found[sampled] = np.maximum(found[sampled], band.max(axis=1) / FAR)
    return np.asarray(found)


def _astray(learned: Learned, y: Floats, begin: Ints, end: Ints) -> Ints:
    """The series whose forecast leaves the range of recent values: after a shift of the level a factor of the season or a
    slope may have been the likeliest way up, and old values say nothing of where the series is."""
    from deepforecast.kernels.ets.forecasting import means

    steps, window = (max(2 * (learned["state"].shape[1] - 2), least) for least in RECENT)
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.maximum(means(ets.model(learned.by_series, "state"), steps)[0], 0.0)  # as forecasts of products are
    seen = np.concatenate([[0], np.cumsum(~np.isnan(y))])
    y, begin, end = y[~np.isnan(y)], seen[begin], seen[end]
    begin = np.maximum(begin, end - window)
    least, most = reduced(y, begin, end, np.minimum), reduced(y, begin, end, np.maximum)
    part = np.maximum((end - begin) // 4, 1)
    with np.errstate(all="ignore"):
        sizes = [reduced(y, np.maximum(end - (n + 1) * part, begin), end - n * part) for n in (3, 2, 1, 0)]
        growth = np.min([after / before for before, after in pairwise(sizes)], axis=0)  # a step up is not growth all along
        growth = np.where(growth > 1.0, growth, 1.0) ** (steps / part)
        ahead = np.maximum(steps / np.maximum(end - begin, 1), 1.0)
        room = growth * (WIDTHS * ahead * (most - least) + LEVELS * np.abs(0.5 * least + 0.5 * most))
        return np.flatnonzero(~((points.max(axis=1) <= most + room) & (points.min(axis=1) >= least - room)))


def _growth(panel: Panel, number: int) -> float:
    """By what a series has grown from the median of its first third to that of the last; 1 if it has not."""
    y = panel.y[panel.indptr[number] : panel.indptr[number + 1]]
    y = y[~np.isnan(y)]
    third = max(len(y) // 3, 1)
    first, last = float(np.median(y[:third])), float(np.median(y[-third:]))
    return max(last / first, 1.0) if first > 0.0 else 1.0
