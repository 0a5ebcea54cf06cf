"""The differences of the target: suggested by tests, confirmed by the errors of forecasts from earlier origins.

Tests of unit roots look one step ahead. At the horizon the errors of forecast changes have added up, so that differences may
do harm where the tests ask for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.backtest import rolling_folds
from deepforecast.core.threads import one_thread_if_forked
from deepforecast.data import splits
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, suppress_warnings
from deepforecast.kernels import unit_roots
from deepforecast.models.regression import _planning, _units
from deepforecast.models.regression._samples import Sampling

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

TESTED = 100  # series that are tested for unit roots and seasons
LATEST = 400  # of each, so many of its last values
SELDOM = 0.2  # of the values are 0 in a series of seldom demand
N_SERIES = 100  # the suggestion is tried on at most so many series
N_OBSERVATIONS = 20_000  # and on so many observations of them all
N_WINDOWS = 6  # after each fit, at most
LEARNED = (1 / 2, 2 / 3, 5 / 6)  # shares of the history that fits learn from
MANY_SERIES = 20  # from so many on the first fit is enough
GAIN = 0.3  # share of the error that differences must save; divided by the root of the number of series
SHORTEST_HORIZON = 6  # steps, where the model has no horizon of its own and the data no season

TOO_SHORT = "The series are too short to compare differences of the target."

Differences = tuple[int, ...]


def differences_of(model: RegressionForecaster, panel: Panel) -> Differences:
    """The differences that a model is given, or with "auto" those that tests suggest and rolling forecasts confirm."""
    if model.differences is None:
        return ()
    if model.differences != "auto":
        return tuple(int(lag) for lag in model.differences)
    if model.detrend or model.per_series:  # a series with a regressor of its own must not depend on the others
        return ()
    seasons = _planning.seasons_of(model, panel)
    suggested = suggested_differences(panel, seasons, max(int(panel.observed.min()) // 2 - 1, 0))
    return suggested if suggested and _confirmed(model, panel, suggested, seasons) else ()


def _confirmed(model: RegressionForecaster, panel: Panel, suggested: Differences, seasons: tuple[int, ...]) -> bool:
    """Whether forecasts at the horizon have clearly less error with these differences: the more clearly the fewer series there
    are, and of few after most of several fits and more error after none, for what suits one stretch of a series often does not
    suit the next."""
    horizon = model.default_horizon or max(min((season for season in seasons if season > 1), default=1), SHORTEST_HORIZON)
    sample = _sample(panel)
    learned = LEARNED if len(sample) < MANY_SERIES else LEARNED[:1]
    saved: list[float] = []
    try:
        with suppress_warnings():
            for share in learned:
                saved.append(_saved(model, sample, suggested, horizon, share))
                if saved[-1] <= 0:
                    return False
    except DataError:  # too short for these differences
        return False
    return bool(np.median(saved) > GAIN / np.sqrt(len(sample)))


def _sample(panel: Panel) -> Panel:
    """The last observations of some of the series, from their first value on; without the shortest quarter."""
    chosen = panel.take(np.unique(np.linspace(0, len(panel) - 1, min(N_SERIES, len(panel))).astype(int)))
    late = chosen.between(np.maximum(chosen.lengths - N_OBSERVATIONS // len(chosen), 0), chosen.lengths)
    first = np.minimum(splits.rows_until_observed(late, 1) - 1, late.lengths)
    left = late.lengths - first
    long = np.flatnonzero(left >= np.quantile(left, 0.25, method="lower"))
    return late.take(long).between(first[long], late.lengths[long])


def _saved(model: RegressionForecaster, panel: Panel, differences: Differences, horizon: int, learned: float) -> float:
    """The share of the error that differences save in three of four windows after this share of the history, which the models
    learn from; errors of a series are counted in its mean absolute change from step to step."""
    length = int(panel.lengths.min())
    before = int(length * learned)
    if not before:
        raise DataError(TOO_SHORT)
    horizon = min(horizon, length - before)
    compute = _direct_errors if model.strategy == "direct" else _rolling_errors
    candidates = (model.clone(differences=lags, horizon=horizon, intervals=None) for lags in (None, list(differences)))
    without, errors = (compute(one, panel, horizon, length - before) for one in candidates)
    steps = np.abs(np.diff(panel.y, prepend=np.nan))
    steps[panel.indptr[:-1]] = np.nan
    change = _means(steps, panel.row_series, len(panel))
    measured = np.isfinite(without - errors) & (change > 0)
    shares = np.divide(1, change, out=np.zeros(len(change)), where=change > 0)
    whole, left = (np.where(measured, one, 0) @ shares for one in (without, errors))
    return float(np.quantile(1 - left[whole > 0] / whole[whole > 0], 0.25)) if whole.any() else 0.0


def _rolling_errors(model: RegressionForecaster, panel: Panel, horizon: int, rows: int) -> Floats:
    """Mean absolute errors (windows, series) over the last rows, of a model that is fitted before the first window."""
    spare = rows - horizon
    n_windows = min(N_WINDOWS, spare // max(horizon // 2, 1) + 1)
    plan = splits.BacktestPlan(horizon, n_windows, max(spare // max(n_windows - 1, 1), 1))
    errors = np.stack([np.abs(one.actual - one.forecast.point(model.point_kind)) for one in rolling_folds(model, panel, plan, refit_interval=0)])
    owner = np.repeat(np.arange(n_windows * len(panel)), horizon)
    return _means(errors.reshape(-1), owner, n_windows * len(panel)).reshape(n_windows, len(panel))


@one_thread_if_forked()
def _direct_errors(model: RegressionForecaster, panel: Panel, horizon: int, rows: int) -> Floats:
    """The same where each step has its own regressor: of the middle and the last step, for every origin in the windows."""
    plan = _planning.planned(model, panel, differences_of(model, panel))
    _, scales = plan.target.learn(panel, model.name)
    units = _units.of({**model._without_weights(panel).covariates, **panel.static})
    sampling = Sampling(plan, model._seen(panel, units), scales, model.number, model.takes_missing)
    sampling.weight = model._weights(panel)
    n_windows = min(N_WINDOWS, rows // horizon)
    errors, owner = [], []
    for step in sorted({horizon // 2, horizon - 1}):
        before, late = sampling.of(step).parted(rows)
        if len(before) < 2 or not len(late):  # as many as a fit needs
            raise DataError(TOO_SHORT)
        error = np.abs(late.target - model._values(model._train(before, None), late.rows))
        errors.append(error * scales["scale"][late.series])
        owner.append(late.ends * n_windows // rows * len(panel) + late.series)
    found = _means(np.concatenate(errors), np.concatenate(owner), n_windows * len(panel))
    return found.reshape(n_windows, len(panel))


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
    return unit_roots.seasonal_strength(means[places], rest - means[places]) >= unit_roots.STRONG_SEASON
