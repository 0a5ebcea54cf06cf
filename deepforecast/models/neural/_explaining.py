"""A forecast of a network that adds parts up, taken apart: the level it started from and what each part brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.models.neural._ahead import Ahead
from deepforecast.nn.batch import Batch

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


def components(
    model: NeuralForecaster, learned: Learned, steps: int, future: Mapping[str, Covariate]
) -> dict[str, Floats]:
    """`level`, where the window's scale has its place; the parts of the body; and the `rest`, which rounding and bounds leave
    and, beyond the horizon learned, that the forecast is one of many paths. Each (series, steps)."""
    ahead, network = Ahead(model.name, learned, steps, future), learned["network"]
    whole, names, found = model._forecast(learned, steps, future).point(model.point_kind), list[str](), []

    def act(batch: Batch, _: slice) -> tuple[Any, Any]:
        inputs, scale = network.inputs(batch)
        parts = network.body.parts(inputs)
        names[:] = list(parts)
        return torch.stack([part[..., network.head.location].squeeze(-1) for part in parts.values()], dim=-1), scale

    for begin in range(0, steps, ahead.horizon):
        tail = np.concatenate([ahead.tail, whole[:, :begin]], axis=1)[:, -ahead.tail.shape[1] :]
        z, place, spread = ahead._passes(tail, begin, act)
        level = np.repeat(place, ahead.horizon, axis=1)
        found.append(np.concatenate([level[..., None], spread[..., None] * z], axis=2))
    each = np.concatenate(found, axis=1)[:, :steps]
    parts = dict(zip(["level", *names], np.moveaxis(each, 2, 0), strict=True))
    return {**parts, "rest": whole - each.sum(axis=2)}
