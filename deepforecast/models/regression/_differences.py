"""Choice of differences: suggested by tests, confirmed by rolling-origin forecasts.

Unit-root tests consider one-step changes. Over a horizon the errors of forecast changes accumulate,
so differencing can increase the error even if a test suggests it.
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
from deepforecast.models.regression import _parameter_resolution, _rescaling
from deepforecast.models.regression._samples import SampleBuilder

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

MAX_TESTED_SERIES = 100  # series that are tested for unit roots and seasons
MAX_TESTED_VALUES = 400  # last values of each series that are tested
MAX_ZERO_SHARE = 0.2  # share of zeros of an intermittent series
N_SERIES = 100  # maximum number of series in the confirmation
N_OBSERVATIONS = 20_000  # and of their observations
N_WINDOWS = 6  # maximum number of windows per fit
TRAIN_SHARES = (1 / 2, 2 / 3, 5 / 6)  # shares of the history used for training
MANY_SERIES = 20  # number of series from which one fit suffices
MIN_GAIN = 0.3  # required error reduction, divided by the square root of the number of series
MIN_HORIZON = 6  # steps, where the model has no horizon of its own and the data no season

TOO_SHORT = "The series are too short to compare differences of the target."

Differences = tuple[int, ...]


def choose_differences(model: RegressionForecaster, panel: Panel) -> Differences:
    """The given differences, or with "auto" those that tests suggest and forecasts confirm."""
    if model.differences is None:
        return ()
    if model.differences != "auto":
        return tuple(int(lag) for lag in model.differences)
    if model.detrend or model.per_series:  # a series with a regressor of its own must not depend on the others
        return ()
    seasons = _parameter_resolution.resolve_seasons(model, panel)
    suggested = suggest_differences(panel, seasons, max(int(panel.observed.min()) // 2 - 1, 0))
    return suggested if suggested and _is_confirmed(model, panel, suggested, seasons) else ()


def _is_confirmed(model: RegressionForecaster, panel: Panel, suggested: Differences, seasons: tuple[int, ...]) -> bool:
    """Whether differencing clearly reduces the forecast error at the horizon.

    The required reduction is larger for fewer series. With few series, most of several fits must
    improve and none may get worse.
    """
    horizon = model.default_horizon or max(min((season for season in seasons if season > 1), default=1), MIN_HORIZON)
    sample = _sample_panel(panel)
    train_shares = TRAIN_SHARES if len(sample) < MANY_SERIES else TRAIN_SHARES[:1]
    reductions: list[float] = []
    try:
        with suppress_warnings():
            for train_share in train_shares:
                reductions.append(_error_reduction(model, sample, suggested, horizon, train_share))
                if reductions[-1] <= 0:
                    return False
    except DataError:  # too short for these differences
        return False
    return bool(np.median(reductions) > MIN_GAIN / np.sqrt(len(sample)))


def _sample_panel(panel: Panel) -> Panel:
    """Last observations of some series, without leading gaps and the shortest quarter."""
    sampled = panel.take(np.unique(np.linspace(0, len(panel) - 1, min(N_SERIES, len(panel))).astype(int)))
    recent = sampled.between(np.maximum(sampled.lengths - N_OBSERVATIONS // len(sampled), 0), sampled.lengths)
    first = np.minimum(splits.rows_until_observed(recent, 1) - 1, recent.lengths)
    n_left = recent.lengths - first
    long_series = np.flatnonzero(n_left >= np.quantile(n_left, 0.25, method="lower"))
    return recent.take(long_series).between(first[long_series], recent.lengths[long_series])


def _error_reduction(
    model: RegressionForecaster, panel: Panel, differences: Differences, horizon: int, train_share: float
) -> float:
    """Relative reduction of the error by differencing, in three of four windows.

    Models are trained on the given share of the history. Errors are scaled by the mean absolute
    one-step change of their series.
    """
    length = int(panel.lengths.min())
    n_train = int(length * train_share)
    if not n_train:
        raise DataError(TOO_SHORT)
    horizon = min(horizon, length - n_train)
    compute = _direct_errors if model.strategy == "direct" else _rolling_errors
    candidates = (model.clone(differences=lags, horizon=horizon, intervals=None) for lags in (None, list(differences)))
    baseline_errors, errors = (compute(candidate, panel, horizon, length - n_train) for candidate in candidates)
    steps = np.abs(np.diff(panel.y, prepend=np.nan))
    steps[panel.indptr[:-1]] = np.nan
    mean_change = _group_means(steps, panel.row_series, len(panel))
    is_measured = np.isfinite(baseline_errors - errors) & (mean_change > 0)
    weights = np.divide(1, mean_change, out=np.zeros(len(mean_change)), where=mean_change > 0)
    baseline_error, differenced_error = (
        np.where(is_measured, candidate, 0) @ weights for candidate in (baseline_errors, errors)
    )
    return (
        float(np.quantile(1 - differenced_error[baseline_error > 0] / baseline_error[baseline_error > 0], 0.25))
        if baseline_error.any()
        else 0.0
    )


def _rolling_errors(model: RegressionForecaster, panel: Panel, horizon: int, rows: int) -> Floats:
    """Mean absolute errors (windows, series) of a model fitted before the first window."""
    n_spare = rows - horizon
    n_windows = min(N_WINDOWS, n_spare // max(horizon // 2, 1) + 1)
    plan = splits.BacktestPlan(horizon, n_windows, max(n_spare // max(n_windows - 1, 1), 1))
    errors = np.stack(
        [
            np.abs(fold.actual - fold.forecast.point(model.point_kind))
            for fold in rolling_folds(model, panel, plan, refit_interval=0)
        ]
    )
    owner = np.repeat(np.arange(n_windows * len(panel)), horizon)
    return _group_means(errors.reshape(-1), owner, n_windows * len(panel)).reshape(n_windows, len(panel))


@one_thread_if_forked()
def _direct_errors(model: RegressionForecaster, panel: Panel, horizon: int, rows: int) -> Floats:
    """`_rolling_errors` for direct forecasts: middle and last step, all origins in the windows."""
    plan = _parameter_resolution.make_plan(model, panel, choose_differences(model, panel))
    _, scales = plan.target.fit(panel, model.name)
    units = _rescaling.fit_scales({**model._drop_weight_column(panel).covariates, **panel.static})
    sampling = SampleBuilder(plan, model._feature_panel(panel, units), scales, model.feature_dtype, model.accepts_missing)
    sampling.weight = model._sample_weights(panel)
    n_windows = min(N_WINDOWS, rows // horizon)
    errors, owner = [], []
    for step in sorted({horizon // 2, horizon - 1}):
        training, validation = sampling.build(step).split(rows)
        if len(training) < 2 or not len(validation):  # as many rows as a fit needs
            raise DataError(TOO_SHORT)
        error = np.abs(validation.target - model._predict_rows(model._train(training, None), validation.rows))
        errors.append(error * scales["scale"][validation.series_index])
        owner.append(validation.n_following * n_windows // rows * len(panel) + validation.series_index)
    mean_errors = _group_means(np.concatenate(errors), np.concatenate(owner), n_windows * len(panel))
    return mean_errors.reshape(n_windows, len(panel))


def _group_means(values: Floats, owner: Ints, count: int) -> Floats:
    """Mean of each group without missing values; NaN for empty groups."""
    observed = np.isfinite(values)
    total = np.bincount(owner[observed], values[observed], count)
    number = np.bincount(owner[observed], minlength=count)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def suggest_differences(panel: Panel, seasons: tuple[int, ...], max_total: int) -> tuple[int, ...]:
    """Suggest differences that make most series of a sample stationary.

    A seasonal difference if seasonality is strong, then a first difference by the KPSS test, at
    most `max_total` rows in total. None for intermittent series.
    """
    tested = np.unique(np.linspace(0, len(panel) - 1, min(MAX_TESTED_SERIES, len(panel))).astype(int))
    if np.median([np.mean(panel.y[panel.indptr[one] : panel.indptr[one + 1]] == 0) for one in tested]) > MAX_ZERO_SHARE:
        return ()
    series = [_fill_and_scale(panel.y[panel.indptr[one] : panel.indptr[one + 1]][-MAX_TESTED_VALUES:]) for one in tested]
    differences: list[int] = []
    for season in sorted((one for one in seasons if 1 < one <= max_total), reverse=True):
        if np.mean([_has_strong_season(one, season) for one in series]) > 0.5:
            differences, series = [season], [one[season:] - one[:-season] if len(one) > season else one for one in series]
            break
    needs_first = np.mean([unit_roots.needs_difference(one, "kpss") for one in series]) > 0.5
    return (*differences, 1) if needs_first and sum(differences) < max_total else tuple(differences)


def _fill_and_scale(values: Floats) -> Floats:
    """Forward-fill missing values and scale to about 1."""
    is_observed = ~np.isnan(values)
    last_position = np.maximum.accumulate(np.where(is_observed, np.arange(len(values)), 0))
    filled = values[last_position]
    filled = filled[~np.isnan(filled)]
    largest = float(np.abs(filled).max(initial=0.0))
    return filled / largest if largest > 0 else filled  # near 1, so that squares neither overflow nor vanish


def _has_strong_season(values: Floats, season: int) -> bool:
    """Whether seasonality explains most of the variance left by a moving average."""
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
