"""Attention weights along the greedy path, for `explain`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.forecast import AttentionMap, refuse_large_frame, resolve_bounds
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.neural._forecast import HeadForecast, to_array
from deepforecast.models.neural._horizon_forecaster import HorizonForecaster, move_windows
from deepforecast.nn.batch import Batch, place
from deepforecast.nn.network import AttentionWeights, first_input

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

MAX_WINDOWS = 32  # windows per batch; each has layers x heads x queries x keys weights


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
        raw_loc_scale = forecaster._run_batches(recent_values, begin, run_batch, MAX_WINDOWS)
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
