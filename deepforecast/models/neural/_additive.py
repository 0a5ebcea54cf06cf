"""NeuralProphet: time features, specification of the network, and initial weights from a linear model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.core.additive import build_components
from deepforecast.core.arrays import warn_constant_in_fit
from deepforecast.core.component_options import check_changepoints, read_changepoints, refuse_outside
from deepforecast.core.state import LearnedState, State
from deepforecast.data.calendar import timestamps_at
from deepforecast.data.components import REGRESSOR, SEASON, ComponentSpec, TimeFeatures, is_active, is_flag
from deepforecast.data.covariates import Covariate
from deepforecast.data.features import hinges, place_changepoints, scale_time
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import DataError, ParameterError, format_list, warn
from deepforecast.models.neural._series_state import series_index, window_columns
from deepforecast.nn.heads.quantiles import QuantileHead
from deepforecast.nn.layers import embedding_width
from deepforecast.nn.neural_prophet import TREND_PRIOR_SCALE, AdditiveSpec, Component

if TYPE_CHECKING:
    from deepforecast.models.neural.neural_prophet import NeuralProphet
    from deepforecast.nn.heads.base import Head
    from deepforecast.nn.network import ForecastNetwork

EXAMPLE = TimeFeatures(
    (ComponentSpec("weekly", SEASON, columns=2, prior_scale=10.0, multiplicative=True, period=7.0, order=1),),
    None, 0, 1, (0.5,), 1,
)  # fmt: skip
"""Time features for a network without a panel, for device checks."""

LAGS_NAME = "ar"  # of the component of the lags
LOCAL_COMPONENTS = ("trend", "seasons", "events", "regressors")  # choices of `local`
ROUNDING = 1e-5  # relative rounding error of the sum of components in float32
LOCAL_KINDS = {SEASON: "seasons", REGRESSOR: "regressors"}  # kind of a component: its name in `local`; others: "events"
SINGLE_SERIES = "series"  # name of the static column if the panel has no id column
MAX_TIMESTAMPS = 50_000  # maximum number of timestamps in the fit; more are sampled
MIN_DEVIATION = 1e-3  # smallest standard deviation of the errors, in units of the scaled values


def fit_time_features(model: NeuralProphet, panel: Panel) -> TimeFeatures:
    """Time components and changepoints for the timestamps of all series together.

    Raises for invalid `local` or changepoints, and if all values have the same timestamp.
    """
    _check_local_names(model)
    observed = ~np.isnan(panel.y)
    timestamps = timestamps_at(panel.calendar, panel.row_positions[observed])
    clock = np.unique(timestamps.local_time[np.unique(timestamps.index)])
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    if span <= 0:
        raise DataError(
            f"{model.name} requires values at 2 or more different timestamps, got 1.",
            hint="Pass longer series."
        )
    components = tuple(
        _resolve_standardize(component, panel)
        for component in build_components(model, panel)
        if is_active(component, clock, timestamps.per_day)
    )
    n_validation = len(panel) * (model.validation_size or 0)
    changepoints = _changepoint_times(model, panel, clock, timestamps.per_day)
    return TimeFeatures(
        components,
        country=model.country,
        start=start,
        span=span,
        changepoints=tuple(map(float, changepoints)),
        n_values=max(int(observed.sum()) - n_validation, 1),
    )


def _changepoint_times(model: NeuralProphet, panel: Panel, clock: Ints, per_day: int) -> Floats:
    """Potential changepoints on the scale from 0 to 1 over the sorted times `clock` of all series."""
    if model.growth == "flat":
        return np.empty(0)
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    if model.changepoints is None:
        return place_changepoints(scale_time(clock, start, span), model.n_changepoints, model.changepoint_range)
    check_changepoints(model.changepoints, not panel.calendar.frequency.base)
    refuse_outside(model.changepoints, panel, clock[:1], clock[-1:], per_day)
    return scale_time(read_changepoints(model.changepoints, per_day), start, span)


def _check_local_names(model: NeuralProphet) -> None:
    """Raise `ParameterError` if `local` has unknown components."""
    unknown = [name for name in model.local if name not in LOCAL_COMPONENTS]
    if unknown:
        raise ParameterError(
            f"Unknown component {unknown[0]!r} in `local`.",
            hint=f"Available: {format_list(LOCAL_COMPONENTS)}. Set for example "
            "local=['trend'].",
            parameter="local",
        )


def add_series_codes(model: NeuralProphet, panel: Panel, learned: LearnedState | None) -> Panel:
    """The panel with the index of each series in fit as a static category, if some components are per series.

    `learned` is None in fit. Series not seen in fit have the code -1; a warning names them.
    """
    if not model.local:
        return panel
    name = panel.series.columns.id or SINGLE_SERIES
    if learned is None:
        codes = np.arange(len(panel), dtype=np.float64)
        labels = tuple(panel.series.label(index) for index in range(len(panel)))
    else:
        fit_index = series_index(learned, panel)
        fit_codes = learned.by_series[f"static:{name}"]
        codes = np.where(fit_index >= 0, fit_codes[np.maximum(fit_index, 0)], -1.0)
        unseen = np.flatnonzero(codes < 0)
        if len(unseen):
            warn(
                f"{model.name} has {' and '.join(model.local)} coefficients per series; the mean over all series is used for "
                f"series not seen in fit: {panel.series.labels(unseen)}. Fit again with these series for coefficients of "
                "their own.", subject=model.name
            )
        labels = tuple(map(str, range(window_columns(learned).counts[name])))
    return replace(panel, static={**panel.static, name: Covariate(codes, labels)})


def network_spec(model: NeuralProphet, columns: WindowColumns | None) -> AdditiveSpec:
    """The specification of the network for the columns of its windows.

    The columns of the past window are numeric covariates (future ones first), calendar features, and embeddings of
    categorical covariates (future ones first).
    """
    if columns is None or columns.time_features is None:
        raise DataError(f"{model.name} requires time features, but the window columns have none.")
    time_features, n_numeric = columns.time_features, len(columns.numeric)
    future_embeddings = _embedding_slices(columns, columns.categorical[: columns.n_future_codes])
    past_embeddings = _embedding_slices(columns, columns.categorical[columns.n_future_codes :])
    n_future_embedded = sum(embedding.stop - embedding.start for embedding in future_embeddings.values())
    past_start = n_numeric + columns.calendar_width + n_future_embedded
    lagged = {name: slice(index, index + 1) for index, name in enumerate(columns.numeric) if index >= columns.n_future}
    lagged |= _shift_slices(past_embeddings, past_start)
    return AdditiveSpec(
        future_columns=(*range(columns.n_future), *range(n_numeric, past_start)),
        time_column=columns.n_future,
        changepoints=None if model.growth == "flat" else time_features.changepoints,
        components=tuple(_network_components(model, columns, time_features, future_embeddings)),
        uses_lags=model.input_size != 0,
        lagged_covariates=tuple(lagged.items()),
        hidden_sizes=tuple(model.hidden_sizes),
        n_series=sum(columns.counts[name] for name in columns.static_codes[:1]) if model.local else 0,
        per_series_trend="trend" in model.local,
        n_values=time_features.n_values,
        changepoint_prior_scale=float(model.changepoint_prior_scale),
        lag_prior_scale=model.lag_prior_scale,
        lags_name=LAGS_NAME,
    )


def _network_components(
    model: NeuralProphet, columns: WindowColumns, time_features: TimeFeatures, future_embeddings: Mapping[str, slice]
) -> Iterator[Component]:
    """Yield a component per time component and per future covariate, unless the covariate is only a condition."""
    start = columns.n_future + 1
    for component in time_features.time_components:
        component_slice, start = slice(start, start + component.columns), start + component.columns
        gate = None  # column, scale and location of the condition
        if component.condition:
            index = columns.numeric.index(component.condition)
            gate = (index, float(columns.scale[component.condition]), float(columns.loc[component.condition]))
        yield Component(
            component.name, component_slice, component.prior_scale, component.multiplicative,
            _is_per_series(model, component), gate=gate,
        )  # fmt: skip
    future_slices = {name: slice(index, index + 1) for index, name in enumerate(columns.numeric[: columns.n_future])}
    future_slices |= _shift_slices(future_embeddings, columns.n_future + columns.calendar_width)
    declared = {component.name: component for component in time_features.components if component.kind == REGRESSOR}
    conditions = {component.condition for component in time_features.components}
    for name, component_slice in future_slices.items():
        component = declared.get(name) or ComponentSpec(name, REGRESSOR, 1, 10.0, False, standardize="yes")
        if name in declared or name not in conditions:
            yield Component(
                name, component_slice, component.prior_scale, component.multiplicative,
                _is_per_series(model, component), _zero_shift(columns, component),
            )  # fmt: skip


def _is_per_series(model: NeuralProphet, component: ComponentSpec) -> bool:
    return LOCAL_KINDS.get(component.kind, "events") in model.local


def _zero_shift(columns: WindowColumns, component: ComponentSpec) -> float:
    """Shift that undoes the centring of a numeric column that must not be standardized; 0 for other columns."""
    if component.standardize == "no" and component.name in columns.loc:
        return columns.loc[component.name] / columns.scale[component.name]
    return 0.0


def _resolve_standardize(component: ComponentSpec, panel: Panel) -> ComponentSpec:
    """The component with standardize="auto" of a regressor resolved: "no" for 0/1 indicators, else "yes"."""
    if component.kind != REGRESSOR or component.standardize != "auto":
        return component
    values = panel.covariates[component.name].values
    observed = values[~np.isnan(values)]
    return replace(component, standardize="no" if len(observed) and is_flag(observed) else "yes")


def _embedding_slices(columns: WindowColumns, names: tuple[str, ...]) -> dict[str, slice]:
    """Columns of each embedding if those of the categorical columns `names` are concatenated."""
    slices, start = {}, 0
    for name in names:
        width = embedding_width(columns.counts[name])
        slices[name] = slice(start, start + width)
        start += width
    return slices


def _shift_slices(slices: Mapping[str, slice], offset: int) -> dict[str, slice]:
    return {name: slice(columns.start + offset, columns.stop + offset) for name, columns in slices.items()}


def merge_level(components: dict[str, Floats]) -> dict[str, Floats]:
    """Components with the level added to the trend.

    A rest that consists of rounding errors is added to the component with the largest range.
    """
    merged = dict(components)
    level, remainder = merged.pop("level"), merged.pop("rest")
    forecast = level + remainder + np.asarray(sum(merged.values()))
    merged["trend"] = level + merged["trend"]
    magnitude = np.abs(forecast).max(axis=1, keepdims=True) + np.abs(forecast - level).max(axis=1, keepdims=True)
    if (np.abs(remainder) <= ROUNDING * magnitude).all():
        largest = max(merged, key=lambda name: float(np.ptp(merged[name], axis=1).max()))
        return {**merged, largest: merged[largest] + remainder}
    return {**merged, "rest": remainder}


def warn_unlearned(name: str, state: State, future: Mapping[str, Covariate]) -> None:
    """Warn of numeric regressors of NeuralProphet that were constant in fit and have other values in `future`.

    These are the ones whose weights are all zero. `name` is that of the model in the message.
    """
    loc = window_columns(state.learned).loc
    body = state.learned["network"].body
    fit_values = np.full((len(state.series), len(future)), np.nan)  # NaN: no warning
    for component, coefficient_slice in body.spec.coefficient_slices:
        has_zero_weights = not body.weight[coefficient_slice].any()
        if component.name in future and future[component.name].categories is None and has_zero_weights:
            fit_values[:, list(future).index(component.name)] = loc[component.name]
    warn_constant_in_fit(name, fit_values, future, state.series)


def initialize(
    model: NeuralProphet, network: ForecastNetwork, panel: Panel, window_columns: WindowColumns, scales: tuple[Floats, Floats]
) -> None:
    """Set the weights of trend and time components without a condition, and the scale parameters of the head.

    The weights are the maximum a posteriori estimates for the mean of the scaled series. `scales` are location and scale of
    each series. Validation rows are not used; nothing is set if fewer than 2 timestamps have a value.
    """
    from deepforecast.kernels.additive import Prior, fit_linear  # imports numba

    time_features = window_columns.time_features
    panel_mean = _PanelMean.from_panel(panel, scales, n_held_out=model.validation_size or 0)
    if time_features is None or len(panel_mean.positions) < 2:
        return
    sample = panel_mean.sample_timestamps(model.seed)
    columns = time_features.evaluate(panel.calendar, panel_mean.positions).astype(np.float64)
    design_matrix, precision, slices = _design_matrix(model, time_features, columns)
    prior = Prior(precision, 1.0 / model.changepoint_prior_scale)
    n_trend = 1 if model.growth == "flat" else 2  # number of trend columns, the last of which is constant
    root_weights = np.sqrt(panel_mean.weights[sample] / panel_mean.weights[sample].mean())  # weighted least squares
    weighted_means = (panel_mean.means[sample] * root_weights)[None]
    x = fit_linear(weighted_means, design_matrix[sample] * root_weights[:, None], prior, n_trend - 1).x[0]
    coefficients = {name: x[columns_slice] for name, columns_slice in slices.items()}
    initial_scales = _initial_scales(network.head, panel_mean.deviation(design_matrix @ x))
    body: Any = network.body
    body.initialize(x[:n_trend][::-1].copy(), x[len(precision) :], coefficients, initial_scales)


def _design_matrix(
    model: NeuralProphet, time_features: TimeFeatures, columns: Floats
) -> tuple[Floats, Floats, dict[str, slice]]:
    """Columns of trend, components without condition and hinges; prior precisions; and columns of each component.

    There are no precisions of the hinges, which have a Laplace prior. `columns` are the time features: time first, then
    the components.
    """
    time, ones = columns[:, :1], np.ones((len(columns), 1))
    trend = [ones] if model.growth == "flat" else [time, ones]
    blocks = [*trend]
    precision = [TREND_PRIOR_SCALE**-2.0] * len(trend)
    slices: dict[str, slice] = {}
    start = 1
    for component in time_features.time_components:
        if not component.condition:
            slices[component.name] = slice(len(precision), len(precision) + component.columns)
            precision += [component.prior_scale**-2.0] * component.columns
            blocks.append(columns[:, start : start + component.columns])
        start += component.columns
    blocks.append(hinges(time[:, 0], time_features.changepoints))
    return np.concatenate(blocks, axis=1), np.array(precision), slices


def _initial_scales(head: Head, deviation: float) -> dict[int, float]:
    """Raw outputs of the head, by index, for errors with about this standard deviation.

    All outputs but the median for quantiles, else the parameter after the location; none for point
    forecasts.
    """
    scale = max(deviation, MIN_DEVIATION)
    if isinstance(head, QuantileHead):
        raw_output = _inverse_softplus(scale * math.log(2.0))
        return {index: raw_output for index in range(head.out_features) if index != head.median_index}
    return {1: _inverse_softplus(scale)} if head.has_distribution else {}


def _inverse_softplus(value: float) -> float:
    """Solve softplus(x) = log(1 + e^x) = value for x."""
    return value + math.log(-math.expm1(-value))


class _PanelMean(NamedTuple):
    """Mean of the scaled series at each timestamp.

    positions: of the timestamps. means: over the series. weights: number of values. squares: sum of squares of all values.
    All of them are weighted by the observation weights, if there are any.
    """

    positions: Ints
    means: Floats
    weights: Floats
    squares: float

    @classmethod
    def from_panel(cls, panel: Panel, scales: tuple[Floats, Floats], n_held_out: int) -> _PanelMean:
        """The mean of all series with a positive scale, without their last `n_held_out` rows."""
        loc, scale = scales
        series = panel.row_series
        n_left = panel.indptr[1:][series] - np.arange(len(panel.y))
        row_weights = np.ones(len(panel.y)) if panel.weight is None else panel.weight / (panel.weight.max() or 1.0)
        used = ~np.isnan(panel.y) & (n_left > n_held_out) & (scale[series] > 0) & (row_weights > 0)
        z = (panel.y[used] - loc[series[used]]) / scale[series[used]]
        positions, timestamp_index = np.unique(panel.row_positions[used], return_inverse=True)
        weight = row_weights[used]
        weights = np.bincount(timestamp_index, weight, minlength=len(positions)).astype(np.float64)
        means = np.bincount(timestamp_index, weight * z, minlength=len(positions)) / weights
        return cls(positions, means, weights, squares=float((weight * np.square(z)).sum()))

    def sample_timestamps(self, seed: int) -> Ints:
        """Sorted indices of at most `MAX_TIMESTAMPS` timestamps; random, because a stride could alias seasonality."""
        n_timestamps = len(self.positions)
        if n_timestamps <= MAX_TIMESTAMPS:
            return np.arange(n_timestamps)
        return np.sort(np.random.default_rng(seed).choice(n_timestamps, MAX_TIMESTAMPS, replace=False))

    def deviation(self, fitted: Floats) -> float:
        """Standard deviation of the scaled values of all series around the fitted values (timestamps,)."""
        squared_error = self.squares - float((self.weights * fitted * (2.0 * self.means - fitted)).sum())
        return math.sqrt(max(squared_error, 0.0) / float(self.weights.sum()))
