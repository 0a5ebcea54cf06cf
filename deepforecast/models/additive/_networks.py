"""From declared components and a panel to what an additive network consists of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.components import REGRESSOR, SEASON, ComponentSpec
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.time_features import TimeFeatures
from deepforecast.data.timestamps import timestamps_at
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import DataError, ParameterError, format_list, format_value, warn
from deepforecast.models.additive._changepoints import check_changepoints, read_changepoints, refuse_outside
from deepforecast.models.additive._scaling import is_active, is_flag
from deepforecast.models.additive._specification import build_components
from deepforecast.models.additive._time import place_changepoints, scale_time
from deepforecast.models.neural._series_state import series_index

if TYPE_CHECKING:
    from deepforecast.models.additive.neural_prophet import NeuralProphet
    from deepforecast.nn.neural_prophet import AdditiveSpec, Component

EXAMPLE = TimeFeatures((ComponentSpec("weekly", SEASON, 2, 10.0, True, 7.0, 1),), None, 0, 1, (0.5,), 1)
"""Of no panel, to try a network with."""

ROUNDING = 1e-5  # of the size of a forecast: what float32 leaves between it and its components
KINDS = {SEASON: "seasons", REGRESSOR: "regressors"}
SINGLE_SERIES = "series"  # how series are called where there is but one, without a name


def fit_moments(model: NeuralProphet, panel: Panel) -> TimeFeatures:
    """What follows from time, for all series together: the parts that their stamps tell of, and when the slope may change."""
    _check_local(model)
    observed = ~np.isnan(panel.y)
    timestamps = timestamps_at(panel.calendar, panel.row_positions[observed])
    clock = np.unique(timestamps.local_time[np.unique(timestamps.index)])
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    if span <= 0:
        raise DataError(f"{model.name} needs values at 2 stamps at least, to tell how long a history is. Give longer series.")
    components = tuple(_resolve_standardize(component, panel) for component in build_components(model, panel) if is_active(component, clock, timestamps.per_day))
    n_validation = len(panel) * (model.validation_size or 0)
    changepoints = _changepoint_times(model, panel, clock, timestamps.per_day)
    return TimeFeatures(components, model.country, start, span, tuple(map(float, changepoints)), max(int(observed.sum()) - n_validation, 1))


def _changepoint_times(model: NeuralProphet, panel: Panel, clock: Ints, per_day: int) -> Floats:
    if model.growth == "flat":
        return np.empty(0)
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    if model.changepoints is None:
        return place_changepoints(scale_time(clock, start, span), model.n_changepoints, model.changepoint_range)
    check_changepoints(model.changepoints, not panel.calendar.frequency.base)
    refuse_outside(model.changepoints, panel, clock[:1], clock[-1:], per_day)
    return scale_time(read_changepoints(model.changepoints, per_day), start, span)


def _check_local(model: NeuralProphet) -> None:
    from deepforecast.models.additive.neural_prophet import LOCAL_COMPONENTS

    unknown = [name for name in model.local if name not in LOCAL_COMPONENTS]
    if unknown:
        raise ParameterError(f"local is a list of {format_list(LOCAL_COMPONENTS)}; {format_value(unknown[0])} is none of them. Say local=['trend'].")


def add_series_codes(model: NeuralProphet, panel: Panel, learned: LearnedState | None) -> Panel:
    """A panel that says which series each is, where components are their own: one not seen in fit is of an unknown kind."""
    if not model.local:
        return panel
    name = panel.series.columns.id or SINGLE_SERIES
    if learned is None:
        codes, labels = np.arange(len(panel), dtype=np.float64), tuple(panel.series.label(index) for index in range(len(panel)))
    else:
        series_number, labels = series_index(learned, panel), None
        fit_codes = learned.by_series[f"static:{name}"]
        codes = np.where(series_number >= 0, fit_codes[np.maximum(series_number, 0)], -1.0)
        unseen = np.flatnonzero(codes < 0)
        if len(unseen):
            warn(
                f"{model.name} has learned a {' and '.join(model.local)} of each series; series {panel.series.labels(unseen)} was "
                "not there in fit and has the mean of theirs."
            )
        labels = tuple(map(str, range(int(learned.shared["channels"]["counts"][name]))))
    return replace(panel, static={**panel.static, name: Covariate(codes, labels)})


def network_spec(model: NeuralProphet, columns: WindowColumns | None) -> AdditiveSpec:
    """The plan of the network of these channels."""
    from deepforecast.models.additive.neural_prophet import LAGS_NAME
    from deepforecast.nn.neural_prophet import AdditiveSpec

    if columns is None or columns.time_features is None:
        raise DataError(f"{model.name} follows time, and its channels hold none of it.")
    moments, n_calendar, count = columns.time_features, columns.calendar_width, len(columns.numeric)
    codes = _embedding_slices(columns, columns.categorical[: columns.n_future_codes])
    n_future_embedded = sum(embedding_columns.stop - embedding_columns.start for embedding_columns in codes.values())
    future_columns = (*range(columns.n_future), *range(count, count + n_calendar + n_future_embedded))
    lagged = [(name, slice(index, index + 1)) for index, name in enumerate(columns.numeric) if index >= columns.n_future]
    past_embeddings = _embedding_slices(columns, columns.categorical[columns.n_future_codes :])
    first = count + n_calendar + n_future_embedded
    lagged += [(name, slice(first + embedding.start, first + embedding.stop)) for name, embedding in past_embeddings.items()]
    series = sum(columns.counts[name] for name in columns.static_codes[:1]) if model.local else 0
    return AdditiveSpec(
        future_columns, columns.n_future, None if model.growth == "flat" else moments.changepoints,
        tuple(_network_components(model, columns, moments, codes)), model.input_size != 0, tuple(lagged), tuple(model.hidden_sizes), series,
        "trend" in model.local, moments.n_values, float(model.changepoint_prior_scale), model.lag_prior_scale, LAGS_NAME,
    )  # fmt: skip


def _network_components(
    model: NeuralProphet, columns: WindowColumns, moments: TimeFeatures, codes: Mapping[str, slice]
) -> Iterator[Component]:
    """A term for each part, and for columns known ahead of which no part is known."""
    from deepforecast.nn.neural_prophet import Component

    start = columns.n_future + 1
    for component in moments.time_components:
        component_slice, start = slice(start, start + component.columns), start + component.columns
        gate = None
        if component.condition:
            index = columns.numeric.index(component.condition)
            gate = (index, float(columns.scale[component.condition]), float(columns.loc[component.condition]))
        yield Component(component.name, component_slice, component.prior_scale, component.multiplicative, _is_per_series(model, component), gate=gate)
    places = {name: slice(number, number + 1) for number, name in enumerate(columns.numeric[: columns.n_future])}
    first = columns.n_future + columns.calendar_width
    places |= {name: slice(first + component.start, first + component.stop) for name, component in codes.items()}
    declared = {component.name: component for component in moments.components if component.kind == REGRESSOR}
    taken = {component.condition for component in moments.components}
    for name, component_slice in places.items():
        component = declared.get(name) or ComponentSpec(name, REGRESSOR, 1, 10.0, False, standardize="yes")
        if name in declared or name not in taken:
            yield Component(name, component_slice, component.prior_scale, component.multiplicative, _is_per_series(model, component), _zero_shift(columns, component))


def _is_per_series(model: NeuralProphet, component: ComponentSpec) -> bool:
    return KINDS.get(component.kind, "events") in model.local


def _zero_shift(columns: WindowColumns, component: ComponentSpec) -> float:
    """What brings 0 back to where it was, of what is not to be standardised; columns come around 0."""
    return columns.loc[component.name] / columns.scale[component.name] if component.standardize == "no" and not component.names else 0.0


def _resolve_standardize(component: ComponentSpec, panel: Panel) -> ComponentSpec:
    """A column that is standardised or not: flags are not, if nothing is said."""
    if component.kind != REGRESSOR or component.standardize != "auto":
        return component
    values = panel.covariates[component.name].values
    observed = values[~np.isnan(values)]
    return replace(component, standardize="no" if len(observed) and is_flag(observed) else "yes")


def _embedding_slices(columns: WindowColumns, names: tuple[str, ...]) -> dict[str, slice]:
    """Where the vectors of categories stand, side by side."""
    from deepforecast.nn.embeddings import embedding_width

    slices, first = {}, 0
    for name in names:
        width = embedding_width(columns.counts[name])
        slices[name] = slice(first, first + width)
        first += width
    return slices


def merge_level(components: dict[str, Floats]) -> dict[str, Floats]:
    """Components with the level in the trend, and without a rest that is but rounding."""
    merged = dict(components)
    level, remainder = merged.pop("level"), merged.pop("rest")
    forecast = level + remainder + np.asarray(sum(merged.values()))
    merged["trend"] = level + merged["trend"]
    size = np.abs(forecast).max(axis=1, keepdims=True) + np.abs(forecast - level).max(axis=1, keepdims=True)
    if (np.abs(remainder) <= ROUNDING * size).all():
        largest = max(merged, key=lambda name: float(np.ptp(merged[name], axis=1).max()))  # where it is not seen
        return {**merged, largest: merged[largest] + remainder}
    return {**merged, "rest": remainder}
