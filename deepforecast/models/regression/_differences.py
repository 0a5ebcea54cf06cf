"""Choice of differences: suggested by tests, confirmed by rolling-origin forecasts.

Unit-root tests consider one-step changes. Over a horizon the errors of forecast changes accumulate,
so differencing can increase the error even if a test suggests it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.backtest import rolling_folds
from deepforecast.core.threads import one_thread_if_forked
from deepforecast.data import windows
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, suppress_warnings
from deepforecast.kernels import unit_roots
from deepforecast.models.regression import _parameter_resolution, _rescaling
from deepforecast.models.regression._samples import SampleBuilder, sample_weights

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

MAX_TESTED_SERIES = 100  # number of series that are tested for unit roots and seasons
MAX_TESTED_VALUES = 400  # number of last values of each series that are tested
MAX_ZERO_FRACTION = 0.2  # fraction of zeros above which a series is intermittent
MAX_FORECAST_SERIES = 100  # maximum number of series in the rolling forecasts
MAX_FORECAST_OBSERVATIONS = 20_000  # maximum number of observations of all of them
MAX_WINDOWS = 6  # maximum number of forecast windows per fit
TRAIN_FRACTIONS = (1 / 2, 2 / 3, 5 / 6)  # fractions of the history used for training
MANY_SERIES = 20  # number of series from which on a single fit suffices
MIN_REDUCTION = 0.3  # required relative error reduction, divided by the square root of the number of series
MIN_HORIZON = 6  # minimum number of steps if the model has no horizon

TOO_SHORT = "The series are too short to compare differences of the target."

Differences = tuple[int, ...]


def choose_differences(model: RegressionForecaster, panel: Panel) -> Differences:
    """The `differences` of the model, or with "auto" those that tests suggest and rolling forecasts confirm.

    "auto" means none with `detrend` or `per_series`.
    """
    if model.differences is None:
        return ()
    if model.differences != "auto":
        return tuple(int(lag) for lag in model.differences)
    if model.detrend or model.per_series:  # the regressor of a series must not depend on the other series
        return ()
    seasons = _parameter_resolution.resolve_seasons(model, panel)
    suggested = suggest_differences(panel, seasons, max(int(panel.observed.min()) // 2 - 1, 0))
    return suggested if suggested and _is_confirmed(model, panel, suggested, seasons) else ()


def _is_confirmed(model: RegressionForecaster, panel: Panel, suggested: Differences, seasons: tuple[int, ...]) -> bool:
    """Whether differencing clearly reduces the forecast error at the horizon.

    Up to three fits, each on a longer part of the history, with and without differencing: none may
    increase the error, and the median reduction must exceed a bound that is larger for fewer
    series. False if the series are too short. With many series there is one fit.
    """
    shortest_season = min((season for season in seasons if season > 1), default=1)
    horizon = model.default_horizon or max(shortest_season, MIN_HORIZON)
    sample = _sample_panel(panel)
    train_fractions = TRAIN_FRACTIONS if len(sample) < MANY_SERIES else TRAIN_FRACTIONS[:1]
    reductions: list[float] = []
    try:
        with suppress_warnings():
            for train_fraction in train_fractions:
                reductions.append(_error_reduction(model, sample, suggested, horizon, train_fraction))
                if reductions[-1] <= 0:
                    return False
    except DataError:  # too short for these differences
        return False
    return bool(np.median(reductions) > MIN_REDUCTION / np.sqrt(len(sample)))


def _sample_panel(panel: Panel) -> Panel:
    """The last observations of evenly spaced series, without leading missing values.

    The shortest quarter of these series is left out, because the shortest one limits the training data.
    """
    sampled = panel.take(_sample_indices(len(panel), MAX_FORECAST_SERIES))
    n_recent = MAX_FORECAST_OBSERVATIONS // len(sampled)
    recent = sampled.between(np.maximum(sampled.lengths - n_recent, 0), sampled.lengths)
    first_observed = np.minimum(windows.rows_until_observed(recent, 1) - 1, recent.lengths)
    n_left = recent.lengths - first_observed
    long_series = np.flatnonzero(n_left >= np.quantile(n_left, 0.25, method="lower"))
    return recent.take(long_series).between(first_observed[long_series], recent.lengths[long_series])


def _sample_indices(n_series: int, max_series: int) -> Ints:
    """Indices of at most `max_series` evenly spaced series."""
    return np.unique(np.linspace(0, n_series - 1, min(max_series, n_series)).astype(int))


def _error_reduction(
    model: RegressionForecaster, panel: Panel, differences: Differences, horizon: int, train_fraction: float
) -> float:
    """Lower quartile over forecast windows of the relative error reduction by differencing.

    It is 1 - (error with differences) / (error without), negative if differencing increases the
    error, and 0 if there is no error. Models are trained on the first `train_fraction` of the
    history. The error of a window is the sum over series of the mean absolute error, each divided
    by the mean absolute one-step change of its series.
    """
    length = int(panel.lengths.min())
    n_train = int(length * train_fraction)
    if not n_train:
        raise DataError(TOO_SHORT)
    horizon = min(horizon, length - n_train)
    compute_errors = _direct_errors if model.strategy == "direct" else _rolling_errors
    undifferenced, differenced = (
        compute_errors(model.clone(differences=lags, horizon=horizon, intervals=None), panel, horizon, length - n_train)
        for lags in (None, list(differences))
    )
    changes = np.abs(np.diff(panel.y, prepend=np.nan))
    changes[panel.indptr[:-1]] = np.nan
    mean_change = _group_means(changes, panel.row_series, len(panel))
    is_measured = np.isfinite(undifferenced - differenced) & (mean_change > 0)
    weights = np.divide(1, mean_change, out=np.zeros(len(mean_change)), where=mean_change > 0)
    undifferenced_error, differenced_error = (
        np.where(is_measured, errors, 0) @ weights for errors in (undifferenced, differenced)
    )
    has_error = undifferenced_error > 0
    if not undifferenced_error.any():
        return 0.0
    return float(np.quantile(1 - differenced_error[has_error] / undifferenced_error[has_error], 0.25))


def _rolling_errors(model: RegressionForecaster, panel: Panel, horizon: int, n_test: int) -> Floats:
    """Mean absolute errors (windows, series) in the last `n_test` rows; the model is fitted once, before them."""
    n_spare = n_test - horizon
    n_windows = min(MAX_WINDOWS, n_spare // max(horizon // 2, 1) + 1)
    plan = windows.BacktestPlan(horizon, n_windows, max(n_spare // max(n_windows - 1, 1), 1))
    errors = np.stack(
        [
            np.abs(fold.actual - fold.forecast.point(model.point_kind))
            for fold in rolling_folds(model, panel, plan, refit_interval=0)
        ]
    )
    group = np.repeat(np.arange(n_windows * len(panel)), horizon)
    return _group_means(errors.reshape(-1), group, n_windows * len(panel)).reshape(n_windows, len(panel))


@one_thread_if_forked()
def _direct_errors(model: RegressionForecaster, panel: Panel, horizon: int, n_test: int) -> Floats:
    """Mean absolute errors (windows, series) of direct forecasts in the last `n_test` rows.

    For speed, only the regressors of the middle and of the last step of the horizon are trained. They forecast from every
    origin, and the rows are divided into consecutive windows.
    """
    plan = _parameter_resolution.make_plan(model, panel, choose_differences(model, panel))
    _, scales = plan.target.fit(panel, model.name)
    units = _rescaling.fit_scales({**panel.covariates, **panel.static})
    sampling = SampleBuilder(
        plan, _rescaling.rescale_panel(panel, units), scales, model.feature_dtype, model.accepts_missing
    )
    sampling.weight = sample_weights(panel, model.half_life)
    n_windows = min(MAX_WINDOWS, n_test // horizon)
    errors, groups = [], []
    for step in sorted({horizon // 2, horizon - 1}):
        training, validation = sampling.build(step).split(n_test)
        if len(training) < 2 or not len(validation):  # a fit requires 2 rows
            raise DataError(TOO_SHORT)
        error = np.abs(validation.target - model._predict_rows(model._train(training, None), validation.rows))
        errors.append(error * scales["scale"][validation.series_index])
        window = validation.n_following * n_windows // n_test
        groups.append(window * len(panel) + validation.series_index)
    mean_errors = _group_means(np.concatenate(errors), np.concatenate(groups), n_windows * len(panel))
    return mean_errors.reshape(n_windows, len(panel))


def _group_means(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Mean of the finite values of each group; NaN for groups without any."""
    is_finite = np.isfinite(values)
    sums = np.bincount(group[is_finite], values[is_finite], n_groups)
    n_finite = np.bincount(group[is_finite], minlength=n_groups)
    return np.where(n_finite > 0, sums / np.maximum(n_finite, 1), np.nan)


def suggest_differences(panel: Panel, seasons: tuple[int, ...], max_total: int) -> tuple[int, ...]:
    """Suggest differences that make most series of a sample stationary.

    A seasonal difference at the longest season that is strong in most series, then a first
    difference if most KPSS tests reject stationarity. The lags add up to at most `max_total`. An
    empty tuple for intermittent series.
    """
    tested = _sample_indices(len(panel), MAX_TESTED_SERIES)
    histories = [panel.y[panel.indptr[index] : panel.indptr[index + 1]] for index in tested]
    if np.median([np.mean(values == 0) for values in histories]) > MAX_ZERO_FRACTION:
        return ()
    series = [_fill_and_scale(values[-MAX_TESTED_VALUES:]) for values in histories]
    differences: list[int] = []
    for season in sorted((season for season in seasons if 1 < season <= max_total), reverse=True):
        if np.mean([_has_strong_season(values, season) for values in series]) > 0.5:
            differences = [season]
            series = [values[season:] - values[:-season] if len(values) > season else values for values in series]
            break
    needs_first = np.mean([unit_roots.needs_difference(values, "kpss") for values in series]) > 0.5
    return (*differences, 1) if needs_first and sum(differences) < max_total else tuple(differences)


def _fill_and_scale(values: Floats) -> Floats:
    """Values without leading missing ones, others forward-filled, divided by the largest absolute value."""
    is_observed = ~np.isnan(values)
    last_position = np.maximum.accumulate(np.where(is_observed, np.arange(len(values)), 0))
    filled = values[last_position]
    filled = filled[~np.isnan(filled)]
    largest = float(np.abs(filled).max(initial=0.0))
    return filled / largest if largest > 0 else filled  # near 1, so that squares neither overflow nor vanish


def _has_strong_season(values: Floats, season: int) -> bool:
    """Whether seasonality explains most of the variance left by a centred moving average.

    This is the strength of seasonality F_S of Hyndman and Athanasopoulos (2021), section 4.3. False for constant values or
    fewer than three seasons.
    """
    if len(values) < 3 * season or not np.ptp(values) > 0:
        return False
    kernel = np.full(season + 1 - season % 2, 1 / season)
    if season % 2 == 0:
        kernel[[0, -1]] /= 2
    trend = np.convolve(values, kernel, "valid")
    remainder = values[len(kernel) // 2 :][: len(trend)] - trend
    phases = np.arange(len(remainder)) % season
    means = np.bincount(phases, remainder) / np.bincount(phases)
    return unit_roots.seasonal_strength(means[phases], remainder - means[phases]) >= unit_roots.STRONG_SEASON
