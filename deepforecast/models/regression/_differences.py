"""The differences of the target: suggested by tests, confirmed by the errors of forecasts from earlier origins.

Tests of unit roots look one step ahead. At the horizon the errors of forecast changes have added up, so that differences may
do harm where the tests ask for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.rolling import roll
from deepforecast.core.threads import one_thread_if_forked
from deepforecast.data import cutoffs
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, quietly
from deepforecast.kernels import unit_roots
from deepforecast.models.regression import _planning, _units
from deepforecast.models.regression._samples import Sampling

if TYPE_CHECKING:
    from deepforecast.models.regression._base import Regressive

TESTED = 100  # series that are tested for unit roots and seasons
LATEST = 400  # of each, so many of its last values
SELDOM = 0.2  # of the values are 0 in a series of seldom demand
N_SERIES = 100  # candidates are compared on at most so many series
N_OBSERVATIONS = 20_000  # and on so many observations of them all
N_WINDOWS = 10  # and by at most so many origins, which lie in the last third of these series
SHORTEST_HORIZON = 6  # steps, where the model has no horizon of its own and the data no season
GAIN = 0.05  # share of the error that differences must save
MANY_SERIES = 20  # in which the errors of a few windows average out; in fewer the gain must be significant
T_VALUE = 2.0

Differences = tuple[int, ...]


def differences_of(model: Regressive, panel: Panel) -> Differences:
    """The differences that a model is given, or with "auto" those of least error in rolling forecasts."""
    if model.differences is None:
        return ()
    if model.differences != "auto":
        return tuple(int(lag) for lag in model.differences)
    if model.detrend or model.per_series:  # a series with a regressor of its own must not depend on the others
        return ()
    seasons = _planning.seasons_of(model, panel)
    suggested = suggested_differences(panel, seasons, max(int(panel.observed.min()) // 2 - 1, 0))
    return _confirmed(model, panel, suggested, seasons) if suggested else ()


def _confirmed(model: Regressive, panel: Panel, suggested: Differences, seasons: tuple[int, ...]) -> Differences:
    """The suggested differences, or one of them alone, if rolling forecasts at the horizon have less error than without."""
    horizon = model.own_horizon or max(min((season for season in seasons if season > 1), default=1), SHORTEST_HORIZON)
    sample, horizon, n_windows = _sample(panel, horizon)
    if not horizon:
        return ()
    without = _errors(model, sample, (), horizon, n_windows)
    best: Differences = ()
    largest = GAIN
    for lags in dict.fromkeys([suggested, *((lag,) for lag in suggested)]):
        errors = _errors(model, sample, lags, horizon, n_windows)
        measured = np.isfinite(without - errors)
        whole = without[measured].sum()
        saved = float(1 - errors[measured].sum() / whole) if whole > 0 else 0.0
        if saved > largest and (len(sample) >= MANY_SERIES or _consistent(without, errors)):
            best, largest = lags, saved
    return best


def _consistent(without: Floats, errors: Floats) -> bool:
    """Whether the mean gain (windows, series) exceeds its standard error `T_VALUE` times, over windows and over series: errors
    of a window and errors of a series depend on each other."""
    gain = 2 * (without - errors) / np.maximum(without + errors, np.finfo(float).tiny)
    for axis in (0, 1):
        observed = np.isfinite(gain).any(axis=axis)
        means = np.nanmean(gain.compress(observed, axis=1 - axis), axis=axis)
        if len(means) > 1 and means.mean() < T_VALUE * means.std(ddof=1) / np.sqrt(len(means)):
            return False
    return True


def _sample(panel: Panel, horizon: int) -> tuple[Panel, int, int]:
    """Some of the longer series, and how many steps and windows fit into their last third; 0 steps if they are too short."""
    length = int(np.quantile(panel.lengths, 0.25, method="lower"))
    long = np.flatnonzero(panel.lengths >= length)
    chosen = long[np.unique(np.linspace(0, len(long) - 1, min(N_SERIES, len(long))).astype(int))]
    sample = panel.take(chosen)
    size = N_OBSERVATIONS // len(chosen)
    sample = sample.between(np.maximum(sample.lengths - size, 0), sample.lengths)
    third = min(length, size) // 3
    horizon = min(horizon, third)
    return sample, horizon, min(third // horizon, N_WINDOWS) if horizon else 0


def _errors(model: Regressive, panel: Panel, differences: Differences, horizon: int, n_windows: int) -> Floats:
    """The mean absolute error of each series and window, over the mean absolute change of the series from step to step."""
    candidate = model.clone(differences=list(differences) or None, horizon=horizon, intervals=None)
    compute = _direct_errors if model.strategy == "direct" else _rolling_errors
    try:
        with quietly():
            errors, window, series = compute(candidate, panel, horizon, n_windows)
    except DataError:  # too short for these differences
        return np.full((n_windows, len(panel)), np.nan)
    steps = np.abs(np.diff(panel.y, prepend=np.nan))
    steps[panel.indptr[:-1]] = np.nan
    change = _means(steps, panel.row_series, len(panel))
    change[~(change > 0)] = np.nan
    return _means(errors, window * len(panel) + series, n_windows * len(panel)).reshape(n_windows, len(panel)) / change


def _rolling_errors(model: Regressive, panel: Panel, horizon: int, n_windows: int) -> tuple[Floats, Ints, Ints]:
    """Absolute errors of forecasts by a model that is fitted before the first window; the window and the series of each."""
    plan = cutoffs.Plan(horizon, n_windows, horizon)
    folds = list(roll(model, panel, plan, every=0))
    errors = np.stack([np.abs(fold.actual - fold.forecast.point(model.point_kind)) for fold in folds])
    window, series, _ = np.indices(errors.shape)
    return errors.reshape(-1), window.reshape(-1), series.reshape(-1)


@one_thread_if_forked()
def _direct_errors(model: Regressive, panel: Panel, horizon: int, n_windows: int) -> tuple[Floats, Ints, Ints]:
    """The same where each step has its own regressor: of the middle and the last step, for every origin in the windows."""
    plan = _planning.planned(model, panel, differences_of(model, panel))
    _, scales = plan.target.learn(panel, model.name)
    units = _units.of({**model._without_weights(panel).covariates, **panel.static})
    sampling = Sampling(plan, model._seen(panel, units), scales, model.number, model.takes_missing)
    sampling.weight = model._weights(panel)
    errors, window, series = [], [], []
    for step in sorted({horizon // 2, horizon - 1}):
        before, late = sampling.of(step).parted(n_windows * horizon)
        if not len(before) or not len(late):
            raise DataError("The series are too short to compare differences of the target.")
        error = np.abs(late.target - model._values(model._train(before, None), late.rows))
        errors.append(error * scales["scale"][late.series])
        window.append(late.ends // horizon)
        series.append(late.series)
    return np.concatenate(errors), np.concatenate(window), np.concatenate(series)


def _means(values: Floats, owner: Ints, count: int) -> Floats:
    """The mean of the values of each owner, missing ones left out; NaN where there are none."""
    observed = np.isfinite(values)
    total = np.bincount(owner[observed], values[observed], count)
    number = np.bincount(owner[observed], minlength=count)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def suggested_differences(panel: Panel, seasons: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Differences that make most series of a sample steady: over a strong season, then over one step by KPSS; in all no more
    than `most` rows long. None for series that are often 0, whose changes tell less than their level."""
    chosen = np.unique(np.linspace(0, len(panel) - 1, min(TESTED, len(panel))).astype(int))
    if np.median([np.mean(panel.y[panel.indptr[one] : panel.indptr[one + 1]] == 0) for one in chosen]) > SELDOM:
        return ()
    series = [_steady(panel.y[panel.indptr[one] : panel.indptr[one + 1]][-LATEST:]) for one in chosen]
    found: list[int] = []
    for season in sorted((one for one in seasons if 1 < one <= most), reverse=True):
        if np.mean([_strong(one, season) for one in series]) > 0.5:
            found, series = [season], [one[season:] - one[:-season] if len(one) > season else one for one in series]
            break
    once = np.mean([unit_roots.needs_difference(one, "kpss") for one in series]) > 0.5
    return (*found, 1) if once and sum(found) < most else tuple(found)


def _steady(values: Floats) -> Floats:
    """Without missing values: the last one before goes on."""
    seen = ~np.isnan(values)
    place = np.maximum.accumulate(np.where(seen, np.arange(len(values)), 0))
    found = values[place]
    found = found[~np.isnan(found)]
    largest = float(np.abs(found).max(initial=0.0))
    return found / largest if largest > 0 else found  # near 1, so that squares neither overflow nor vanish


def _strong(values: Floats, season: int) -> bool:
    """Whether the season is most of what moving averages over it leave."""
    if len(values) < 3 * season or not np.ptp(values) > 0:
        return False
    kernel = np.full(season + 1 - season % 2, 1 / season)
    if season % 2 == 0:
        kernel[[0, -1]] /= 2
    trend = np.convolve(values, kernel, "valid")
    rest = values[len(kernel) // 2 :][: len(trend)] - trend
    places = np.arange(len(rest)) % season
    means = np.bincount(places, rest) / np.bincount(places)
    return unit_roots.strength(means[places], rest - means[places]) >= unit_roots.STRONG
