"""Explanations of a forecast: components of additive networks, integrated gradients of all others, and attention weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.core.forecast import AttentionMap, refuse_large_frame, resolve_bounds, unused_name
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.windows import WindowColumns
from deepforecast.models.neural._forecast import HeadForecast, to_array
from deepforecast.models.neural._horizon_forecaster import MAX_WINDOWS, HorizonForecaster, move_windows
from deepforecast.nn.batch import Batch, Inputs, place
from deepforecast.nn.decoding import DEFAULT_SAMPLING, apply_temperature
from deepforecast.nn.network import AttentionWeights, decode_greedy, first_input
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

# Of integrated gradients, an even number. The error is about 1 % of the largest contribution with ReLU units (MLP, NBEATS),
# 0.1 % with LSTM and GRU.
N_SEGMENTS = 128
MAX_ATTENTION_WINDOWS = 32  # windows per batch; each has layers x heads x queries x keys weights


def components(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]
) -> dict[str, Floats]:
    """The additive components of the forecast, each (series, steps).

    `level` is the location of the scaled window, followed by the components of the body. `rest` is
    the forecast minus the sum of the others. It has causes such as rounding and bounds and, beyond
    the trained horizon, the sampling of paths, of which the forecast is the median or mean.
    """
    forecaster = HorizonForecaster(model.name, learned, steps, future)
    network = learned["network"]
    forecast = model._forecast(learned, steps, future).point(model.point_kind)
    names: list[str] = []
    blocks = []

    def run_batch(batch: Batch, _: slice) -> tuple[Any, Any]:
        """Components (series, horizon, components) in units of z; also sets `names`."""
        inputs, scaling = network.inputs(batch)
        components = network.body.components(inputs)
        names[:] = list(components)
        return torch.stack(
            [
                component[..., network.head.location_slice].squeeze(-1)
                for component in components.values()
            ],
            dim=-1,
        ), scaling

    for begin in range(0, steps, forecaster.horizon):
        recent_values = move_windows(place(forecaster.recent_values, forecaster.device), forecast[:, :begin])
        z, loc, scale = map(to_array, forecaster._run_batches(recent_values, begin, run_batch))
        level = np.repeat(loc, forecaster.horizon, axis=1)
        blocks.append(np.concatenate([level[..., None], scale[..., None] * z], axis=2))
    values = np.concatenate(blocks, axis=1)[:, :steps]
    components = dict(zip(["level", *names], np.moveaxis(values, 2, 0), strict=True))
    return {**components, "rest": forecast - values.sum(axis=2)}


def integrated_gradients(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]
) -> dict[str, Floats]:
    """The point forecast as a sum of "baseline", the contributions of the input columns, and "rest", each (series, steps).

    With F the point forecast of a step, x the scaled inputs and b those of the baseline, the contribution of a column is
    the sum over its elements i (time steps, calendar features or embedding dimensions)

        sum_i (x_i - b_i)  int_0^1  dF/dx_i (b + a (x - b))  da

    and the contributions add up to F(x) - F(b) (Sundararajan, Taly, Yan 2017, eq. 1; arXiv:1703.01365). The baseline is,
    as recommended there, an input without information: a window that is constant at its location, and covariates at their
    means. The sum over i is a derivative in the direction of the column, and its integral a sum of differences of F, see
    `sum_changes`.

    Autoregressive networks are explained along the greedy path. Beyond the trained horizon the window moves on by a block
    at a time, and the forecasts in it count as the target's history. "rest" is the forecast minus the sum of the others:
    rounding, and where the forecast is the median or mean of sample paths (autoregressive networks with another decoding
    than "greedy", and steps beyond the horizon), its distance from the path that is explained.
    """
    low, high = resolve_bounds(model.bounds)
    forecaster = HorizonForecaster(model.name, learned, steps, future, sampling=model._decoding_options().sampling)
    forecast = model._forecast(learned, steps, future).point(model.point_kind)
    columns = ColumnIndex.from_network(forecaster.network, forecaster.window_columns)

    def run_batch(batch: Batch, windows: slice) -> tuple[Tensor, Scale]:
        """Baseline and contributions (windows, horizon, components) in units of the data."""
        inputs, scaling = forecaster.network.inputs(batch)
        baseline, _ = forecaster.network.inputs(_baseline_batch(batch, scaling))
        points = torch.split(place(path_points(columns.n_components), forecaster.device), MAX_WINDOWS)
        contributions = []
        for window in range(windows.stop - windows.start):  # one at a time: the same numbers alone as among others
            forecasts = np.concatenate([
                _point_forecast(forecaster, _interpolate(baseline, inputs, window, chunk, columns), scaling, window, model.point_kind)
                for chunk in points
            ])
            contributions.append(np.concatenate([forecasts[:1], sum_changes(forecasts, columns.n_components)]).T)
        return torch.from_numpy(np.stack(contributions)), scaling

    blocks = [
        to_array(forecaster._run_batches(move_windows(forecaster.windows, forecast[:, :begin]), begin, run_batch)[0])
        for begin in range(0, steps, forecaster.horizon)
    ]
    values = np.concatenate(blocks, axis=1)[:, :steps]
    total = values.sum(axis=2)
    # Where the forecast is at a bound, the effect of clipping is not in "rest": `explain` returns it as "bounds".
    rest = forecast - np.where((forecast > low) & (forecast < high), total, np.clip(total, low, high))
    names = _component_names(learned, forecaster.window_columns)
    return dict(zip(names, np.moveaxis(np.concatenate([values, rest[..., None]], axis=2), 2, 0), strict=True))


def path_points(n_components: int) -> Any:
    """Points of a staircase around the straight line from baseline (0) to inputs (1), (points, components) float32.

    In each of N_SEGMENTS segments of the line the components move to its end one after the other, in order and in
    reverse order by turns, which cancels the errors of either order.
    """
    moved = np.tri(n_components)  # row j: the first j + 1 components are at the end of the segment
    segment = np.arange(N_SEGMENTS)[:, None, None]
    steps = (segment + np.where(segment % 2 == 0, moved, moved[:, ::-1])) / N_SEGMENTS
    return np.concatenate([np.zeros((1, n_components)), steps.reshape(-1, n_components)]).astype(np.float32)


def sum_changes(forecasts: Floats, n_components: int) -> Floats:
    """Sum the changes of the forecasts (points, horizon) along `path_points` by component, (components, horizon).

    The changes add up to the whole, so the contributions are complete for any number of segments; a quadrature of the
    gradient misses the sum where ReLU units have kinks. They need no gradient, and as many forward passes as columns
    instead of as many backward passes as steps.

    Examples
    --------
    >>> points = path_points(2).astype(float)
    >>> x, y = points.T  # f(x, y) = x y^2 from (0, 0) to (1, 1): the integrals are 1/3 and 2/3
    >>> sum_changes((x * y**2)[:, None], 2).round(3).tolist()
    [[0.333], [0.667]]
    """
    changes = np.diff(forecasts, axis=0).reshape(N_SEGMENTS, n_components, -1)
    changes[1::2] = changes[1::2, ::-1]
    return np.asarray(changes.sum(axis=0))


@dataclass(frozen=True)
class ColumnIndex:
    """The component that each column of `Inputs` belongs to: 0 is the target, embeddings have several columns."""

    past: Tensor
    future: Tensor
    static: Tensor
    n_components: int

    @classmethod
    def from_network(cls, network: ForecastNetwork, columns: WindowColumns) -> ColumnIndex:
        """For each input column, the number of the component it belongs to, in the order of `_component_names`.

        0 is the target, whose values are in `Inputs.y`. An embedded categorical repeats its number over its width, and
        the calendar over its features.
        """
        sizes = [len(names) for names in (columns.numeric, columns.categorical, columns.static, columns.static_codes)]
        first, n_covariates = 1, sum(sizes)  # after the target; the number after all covariates is the calendar's
        numbers = np.arange(first, first + n_covariates + 1)
        numeric, categorical, statics, static_codes, calendar = np.split(numbers, np.cumsum(sizes))
        calendar = np.repeat(calendar, columns.calendar_width)
        temporal_widths, static_widths = (
            () if embedding is None else embedding.widths for embedding in (network.temporal_embedding, network.static_embedding)
        )
        n_codes = columns.n_future_codes
        fields = (
            [numeric, calendar, np.repeat(categorical, temporal_widths)],
            [numeric[: columns.n_future], calendar, np.repeat(categorical[:n_codes], temporal_widths[:n_codes])],
            [statics, np.repeat(static_codes, static_widths)],
        )
        past, future, static = (torch.from_numpy(np.concatenate(parts).astype(np.int64)) for parts in fields)
        return cls(past, future, static, first + n_covariates + columns.uses_time)


def _component_names(learned: LearnedState, columns: WindowColumns) -> list[str]:
    """"baseline", the target, the covariates, "calendar" if it is used, and "rest"."""
    target = "y" if learned.series is None else learned.series.columns.target
    names = [target, *columns.numeric, *columns.categorical, *columns.static, *columns.static_codes]
    baseline, calendar, rest = (unused_name(name, names) for name in ("baseline", "calendar", "rest"))
    return [baseline, *names, *([calendar] if columns.uses_time else []), rest]


def _baseline_batch(batch: Batch, scaling: Scale) -> Batch:
    """The batch with constant windows at their location (z = 0) and covariates at their means.

    Missing values stay missing. Categories are unknown (0), whose embedding is the mean of all.
    """
    means = {
        name: torch.zeros_like(getattr(batch, name))
        for name in ("past", "future", "static", "past_codes", "future_codes", "static_codes")
    }
    return replace(batch, y=torch.where(batch.y.isnan(), batch.y, scaling.loc), **means)


def _interpolate(baseline: Inputs, inputs: Inputs, window: int, points: Tensor, columns: ColumnIndex) -> Inputs:
    """Inputs at the points (points, components) of the path of one window."""
    n_points = len(points)

    def between(name: str, weight: Tensor) -> Tensor:
        return torch.lerp(getattr(baseline, name)[window], getattr(inputs, name)[window], weight)

    def repeat(values: Tensor | None) -> Tensor | None:
        return None if values is None else values[window].expand(n_points, -1)

    return Inputs(
        y=between("y", points[:, :1]),
        observed=inputs.observed[window].expand(n_points, -1),
        past=between("past", points[:, None, columns.past]),
        future=between("future", points[:, None, columns.future]),
        static=between("static", points[:, columns.static]),
        static_codes=repeat(inputs.static_codes),
        level=repeat(inputs.level),
    )


def _point_forecast(forecaster: HorizonForecaster, inputs: Inputs, scaling: Scale, window: int, point_kind: str) -> Floats:
    """Point forecasts (points, horizon) of the inputs, with location and scale of one window."""
    network = forecaster.network
    if forecaster.autoregressive:
        raw = decode_greedy(network, inputs, point_kind == "mean")
    else:
        raw = network.features(inputs)
        if forecaster.sampling != DEFAULT_SAMPLING:
            raw = apply_temperature(raw, *forecaster.sampling)
    loc, scale = (values[window].expand(len(raw), 1) for values in (scaling.loc, scaling.scale))
    return HeadForecast(network.head, raw, loc, scale, forecaster.name).point(point_kind)


def attention_maps(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]
) -> list[AttentionMap]:
    """The attention weights of the next `steps`, one map per layer and block of `horizon` steps.

    Each step receives the median of the previous one. Beyond the trained horizon the window moves
    on and ends with the medians forecast before.
    """
    forecaster = HorizonForecaster(model.name, learned, steps, future, resolve_bounds(model.bounds))
    maps: list[AttentionMap] = []
    recent_values = place(forecaster.recent_values, forecaster.device)
    first_observed = _first_observed(forecaster.recent_values)
    for begin in range(0, steps, forecaster.horizon):
        batch_maps: list[list[AttentionWeights]] = []  # batches of layers
        run_batch = _recording_pass(forecaster, batch_maps, first_observed)
        raw_loc_scale = forecaster._run_batches(recent_values, begin, run_batch, MAX_ATTENTION_WINDOWS)
        block_forecast = HeadForecast(forecaster.network.head, *raw_loc_scale, forecaster.name)
        layers = zip(*batch_maps, strict=True)
        maps += [_layer_weights(layer, begin, steps, first_observed) for layer in layers]
        recent_values = move_windows(recent_values, block_forecast.point("median"))
    return maps


def _recording_pass(
    forecaster: HorizonForecaster, batch_maps: list[list[AttentionWeights]], first_observed: Ints
) -> Callable[[Batch, slice], Any]:
    """Return a forward pass for `_run_batches` that appends the weights of each batch to `batch_maps`.

    The first batch determines the number of weights of all batches; the pass raises if they are too
    many for a frame.
    """
    def run_batch(batch: Batch, windows: slice) -> tuple[Any, Any]:
        """Return raw output and scale of the batch, after recording its attention weights."""
        inputs, scaling = forecaster.network.inputs(batch)
        raw = forecaster.network.features(inputs)
        n_windows = windows.stop - windows.start  # without the padding of the batch
        # The decoder gets the medians of the previous steps.
        previous_values = torch.cat([first_input(inputs).unsqueeze(1), forecaster.network.head.median(raw)[:, :-1].float()], dim=1)
        layers = forecaster.network.body.attention_maps(inputs, previous_values)
        batch_maps.append([replace(layer, weights=layer.weights[:n_windows]) for layer in layers])
        if len(batch_maps) == 1:
            n_batch_weights = sum(
                _layer_weights((layer,), 0, forecaster.steps, first_observed[windows]).n_rows()
                for layer in batch_maps[0]
            )
            refuse_large_frame(
                n_batch_weights * forecaster.blocks * len(first_observed) // n_windows,
                forecaster.name,
                len(first_observed),
            )
        return raw, scaling

    return run_batch


def _layer_weights(batches: tuple[AttentionWeights, ...], begin: int, steps: int, first_observed: Ints) -> AttentionMap:
    """Join the batches of one layer to a map of the steps up to `steps`.

    Positions are counted from the last observation (0), so that those of a block start at `begin`.
    Keys after `steps` are dropped unless they have weight.
    """
    first_batch = batches[0]
    weights = to_array(torch.cat([batch.weights for batch in batches]))  # (series, heads, queries, keys)
    queries = to_array(first_batch.queries) + begin
    keys = to_array(first_batch.keys) + begin
    weights = weights[:, :, queries <= steps]
    queries = queries[queries <= steps]
    if first_batch.variables:
        return AttentionMap(
            first_batch.kind, first_batch.layer, begin, weights, queries, queries, first_observed, first_batch.variables
        )
    has_weight = (keys <= steps) | weights.any(axis=(0, 1, 2))
    weights = weights[..., has_weight]
    keys = keys[has_weight]
    unobserved = keys[None] < first_observed[:, None]
    # Some bodies also attend to the padding before the first observation.
    attends_padding = (weights.sum(axis=(1, 2)) * unobserved).sum(axis=1) > 0
    first_position = min(int(queries.min()), int(keys.min()))
    return AttentionMap(
        first_batch.kind,
        first_batch.layer,
        begin,
        weights,
        queries,
        keys,
        np.where(attends_padding, first_position, first_observed),
    )


def _first_observed(recent_values: Floats) -> Ints:
    """Position of the first observation of each series in the window; the last position is 0."""
    return np.asarray(np.isfinite(recent_values).argmax(axis=1) - recent_values.shape[1] + 1)
