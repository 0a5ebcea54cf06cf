"""Where a network looked: the weights of its attention along the greedy path, for `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.explaining import Weights, refuse_large
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.neural._ahead import Ahead
from deepforecast.models.neural._forecast import HeadForecast, limits
from deepforecast.nn.batch import Batch
from deepforecast.nn.body import Attended
from deepforecast.nn.decoding import begin as first_value
from deepforecast.nn.decoding import median

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

FEW = 32  # windows of a pass: of each there are many weights


def attended(
    model: NeuralForecaster, learned: Learned, steps: int, future: Mapping[str, Covariate]
) -> list[Weights]:
    """All weights of the next `steps`: each step is told the median of the one before, and beyond the horizon learned the
    network looks anew, at a window that ends in its own forecast."""
    ahead, found = Ahead(model.name, learned, steps, future, limits(model)), list[Weights]()
    tail, start = ahead.tail, _first(ahead.tail)
    for begin in range(0, steps, ahead.horizon):
        parts = list[list[Attended]]()
        said = HeadForecast(ahead.network.head, *ahead._passes(tail, begin, _looking(ahead, parts, start), FEW), ahead.name)
        for layer in zip(*parts, strict=True):
            found.append(_weights(layer, begin, steps, start))
        tail = np.concatenate([tail, said.point("median")], axis=1)[:, -tail.shape[1] :]
    return found


def _looking(ahead: Ahead, parts: list[list[Attended]], start: Ints) -> Any:
    """A pass that keeps the weights of its windows in `parts`; after the first one it is known how many there will be."""
    def act(batch: Batch, rows: slice) -> tuple[Any, Any]:
        inputs, scale = ahead.network.inputs(batch)
        raw, count = ahead.network.features(inputs), rows.stop - rows.start
        told = torch.cat([first_value(inputs).unsqueeze(1), median(ahead.network, raw)[:, :-1].float()], dim=1)
        looked = ahead.network.body.attended(inputs, told)
        parts.append([replace(one, weights=one.weights[:count]) for one in looked])
        if len(parts) == 1:
            there = sum(_weights((one,), 0, ahead.steps, start[rows]).count() for one in parts[0])
            refuse_large(there * ahead.blocks * len(start) // count, ahead.name, len(start))
        return raw, scale

    return act


def _weights(parts: tuple[Attended, ...], begin: int, steps: int, start: Ints) -> Weights:
    """One layer's, of all series, with rows counted from the last one known; none of steps that are not asked for."""
    one, weights = parts[0], np.concatenate([part.weights.numpy() for part in parts])
    queries, keys = one.queries.numpy() + begin, one.keys.numpy() + begin
    weights, queries = weights[:, :, queries <= steps], queries[queries <= steps]
    used = (keys <= steps) | weights.any(axis=(0, 1, 2))
    weights, keys = weights[..., used], keys[used]
    before = keys[None] < start[:, None]
    lost = (weights.sum(axis=(1, 2)) * before).sum(axis=1) > 0  # of a body that looks at the padding, too
    first = min(int(queries.min()), int(keys.min()))
    return Weights(one.kind, one.layer, begin, weights, queries, keys, np.where(lost, first, start))


def _first(tail: Floats) -> Ints:
    """The row of each series' first value in the window, 0 the last."""
    return np.asarray(np.isfinite(tail).argmax(axis=1) - tail.shape[1] + 1)
