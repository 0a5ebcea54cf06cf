"""Resolution of parameters against a panel: "auto" values, and checks of combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data import features as featuress
from deepforecast.data.features import MAX_LAG, LagFeature, lag_features, parse_lag_feature
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, format_list, format_value
from deepforecast.models.regression._design import Design, shift_lags
from deepforecast.models.regression._plan import Plan, default_lags, default_windows
from deepforecast.models.regression._target_transform import TargetTransform

ASSUMED_LENGTH = 10_000  # series length assumed for "auto" lags with per_series=True

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster


def make_plan(model: RegressionForecaster, panel: Panel, differences: tuple[int, ...]) -> Plan:
    """Resolve all "auto" parameters for a panel and these differences; raises if parameters cannot be combined.

    "auto" lags and windows depend on the median length of the series, but not with `per_series`, where all
    regressors have the same features whatever the other series.
    """
    _refuse_combinations(model, panel)
    periods = resolve_seasons(model, panel)
    length = ASSUMED_LENGTH if model.per_series else int(np.median(panel.lengths))
    block_size = _block_size(model)
    n_left = max(length - sum(differences), 1)
    target_features = _target_features(model, periods, n_left)
    _refuse_long_lookback(model, panel, target_features, sum(differences) + block_size - 1)
    target = TargetTransform(
        power_method=model.transform, detrend=model.detrend, differences=differences, scale=model.scale
    )
    design = Design(
        target_features=target_features,
        covariate_lags=_covariate_lags(model, panel),
        future_lags=_resolve_future_lags(model, panel),
        calendar=featuress.validate_features(model.calendar, panel.calendar),
        holidays=featuress.validate_country(model.holidays, panel.calendar),
        fourier=tuple((season, min(model.fourier, season // 2)) for season in periods if season > 1 and model.fourier),
        time_index=model.time_index,
        series_id=model.series_id,
        encoded=model.needs_encoding,
        time_origin=0 if model.per_series else int(panel.start.min()) // panel.calendar.step,
    )
    season = min((season for season in periods if season > 1), default=1)
    return Plan(design, target, block_size, multioutput=model.strategy == "direct_multioutput", season=season)


def _refuse_combinations(model: RegressionForecaster, panel: Panel) -> None:
    """Raise `ParameterError` for parameters that cannot be combined with each other, the regressor or the panel."""
    name, columns = model.name, panel.series.columns
    if model.strategy in ("direct", "direct_multioutput") and model.default_horizon is None:
        raise ParameterError(
            f"`horizon` must be set with strategy={model.strategy!r}, because the steps are fixed when {name} is fitted.",
            hint="Set "
            f"{type(model).__name__}(horizon=...).",
            parameter="horizon",
        )
    if columns.past and model.default_horizon is None:
        raise ParameterError(
            f"`horizon` must be set with past covariates ({format_list(columns.past)}), because {name} uses them with lags "
            "counted from the last observation.",
            hint=f"Set {type(model).__name__}(horizon=...).",
            parameter="horizon",
        )
    if model.strategy == "direct_multioutput" and not model.supports_multioutput:
        raise ParameterError(
            f"strategy='direct_multioutput' requires a regressor with several outputs, but that of {name} has only one.",
            hint="Use "
            "strategy='direct'.",
            parameter="strategy",
        )
    if model.quantiles and not model.supports_quantiles:
        raise ParameterError(
            f"`quantiles` requires a regressor that can be trained for quantiles, but that of {name} cannot.",
            hint="Use "
            "intervals='conformal' instead.",
            parameter="quantiles",
        )
    if model.quantiles and model.strategy != "direct":
        raise ParameterError(
            f"`quantiles` requires strategy='direct', got {model.strategy!r}: with recursive forecasts the intervals would not "
            "widen with the horizon.",
            hint="Use strategy='direct', or intervals='conformal' instead of `quantiles`.",
            parameter="quantiles", value=model.quantiles,
        )
    if model.series_id and model.needs_encoding:
        raise ParameterError(
            f"series_id=True requires a tree-based regressor, because the id is passed as an integer code, whose size has no "
            f"meaning to {name}.",
            hint="Use per_series=True, or pass a categorical static covariate, which is one-hot encoded.",
            parameter="series_id",
        )


def _block_size(model: RegressionForecaster) -> int:
    """Number of steps that are forecast from the same lags: the horizon for direct strategies, 1 if recursive."""
    if model.strategy in ("direct", "direct_multioutput"):
        return int(model.default_horizon or 1)
    return model.block_size if model.strategy == "blocks" else 1


def resolve_seasons(model: RegressionForecaster, panel: Panel) -> tuple[int, ...]:
    """Seasonal periods in time steps: those of `season_length`, sorted, or with "auto" those of the frequency."""
    if model.season_length == "auto":
        if not panel.calendar.frequency.base:
            raise ParameterError(
                f"{model.name}: season_length='auto' cannot be inferred from integer time.",
                hint="Set "
                f"{type(model).__name__}(season_length=...); 1: non-seasonal.",
                parameter="season_length",
            )
        return seasons(panel.calendar.frequency)
    season_lengths = model.season_length if isinstance(model.season_length, list) else [model.season_length]
    return tuple(sorted({int(season) for season in season_lengths}))


def _target_features(model: RegressionForecaster, periods: tuple[int, ...], length: int) -> tuple[LagFeature, ...]:
    """Lags and windows of the target; `ParameterError` if a feature is repeated or looks back too far."""
    lags: Any = default_lags(periods, length) if model.lags == "auto" else model.lags or []
    windows = default_windows(periods, length) if model.lag_transforms == "auto" else model.lag_transforms or []
    features = (*(lag_features(lags) if lags else ()), *(parse_lag_feature(feature) for feature in windows))
    if len(set(features)) < len(features):
        duplicates = format_list([str(feature) for position, feature in enumerate(features) if feature in features[:position]])
        raise ParameterError(
            f"`lags` and `lag_transforms` must not repeat a feature, but contain at least twice: {duplicates}.",
            hint="Remove the "
            "duplicates.",
            parameter="lags",
        )
    too_far = [str(feature) for feature in features if feature.n_rows_needed > MAX_LAG]
    if too_far:
        raise ParameterError(
            f"`lags` and `lag_transforms` cannot look back more than {MAX_LAG:,} rows, got {format_list(too_far)}.",
            hint="Use shorter "
            "lags and windows.",
            parameter="lags",
        )
    return features


def _refuse_long_lookback(model: RegressionForecaster, panel: Panel, features: tuple[LagFeature, ...], n_further: int) -> None:
    """Raise `DataError` if a feature set by the user looks back further than the series.

    These are the longest series or, with `per_series`, the shortest. `n_further`: number of rows that the first samples
    lose in addition to the rows of the feature.
    """
    n_observations = int(panel.lengths.min() if model.per_series else panel.lengths.max())
    requested_kinds = {"lag"} if model.lags != "auto" else set()
    requested_kinds |= {feature.kind for feature in features} - {"lag"} if model.lag_transforms != "auto" else set()
    too_far = [
        feature
        for feature in features
        if feature.kind in requested_kinds and feature.n_rows_needed + n_further >= n_observations
    ]
    if too_far:
        which = "shortest" if model.per_series else "longest"
        requirements = [f"{feature} (requires {feature.n_rows_needed + n_further + 1} rows)" for feature in too_far]
        raise DataError(
            f"`lags` and `lag_transforms` cannot look back further than the {which} series, which has {n_observations} rows, "
            f"got {format_list(requirements)}.",
            hint="Use smaller ones, or pass longer series.",
            parameter="lags",
        )


def _resolve_future_lags(model: RegressionForecaster, panel: Panel) -> tuple[int, ...]:
    """Offsets relative to the forecast step at which future covariates are read; `ParameterError` if they are invalid."""
    if model.future_lags is None:
        return (0,)
    lags, max_lag = tuple(model.future_lags), int(panel.lengths.max()) - 1
    if not lags or len(set(lags)) < len(lags) or max(map(abs, lags)) > max_lag:
        raise ParameterError(
            f"`future_lags` must be one or more distinct integers from -{max_lag} to {max_lag} (the longest series has "
            f"{max_lag + 1} rows), got {format_value(list(lags))}.",
            hint="Pass a list such as [-1, 0, 1]; 0 is the forecast step.",
            parameter="future_lags",
        )
    return lags


def _covariate_lags(model: RegressionForecaster, panel: Panel) -> dict[str, tuple[LagFeature, ...]]:
    """Lags of past covariates, by name; for recursive forecasts increased by the horizon - 1.

    With these lags all steps of the horizon only require values before the first step.
    """
    lags = lag_features(model.past_lags)
    n_further = 0 if model.strategy in ("direct", "direct_multioutput") else int(model.default_horizon or 1) - 1
    return {name: shift_lags(lags, n_further) for name in panel.series.columns.past}
