"""A forecast of a network that adds parts up, taken apart: the level it started from and what each part brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.models.neural._predict import HorizonForecaster
from deepforecast.nn.batch import Batch

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


def components(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]
) -> dict[str, Floats]:
    """`level`, where the window's scale has its place; the parts of the body; and the `rest`, which rounding and bounds leave
    and, beyond the horizon learned, that the forecast is one of many paths. Each (series, steps)."""
    forecaster, network = HorizonForecaster(model.name, learned, steps, future), learned["network"]
    forecast, names, blocks = model._forecast(learned, steps, future).point(model.point_kind), list[str](), []

    def run_batch(batch: Batch, _: slice) -> tuple[Any, Any]:
        inputs, scaling = network.inputs(batch)
        components = network.body.components(inputs)
        names[:] = list(components)
        return torch.stack([component[..., network.head.location_slice].squeeze(-1) for component in components.values()], dim=-1), scaling

    for begin in range(0, steps, forecaster.horizon):
        recent_values = np.concatenate([forecaster.recent_values, forecast[:, :begin]], axis=1)[:, -forecaster.recent_values.shape[1] :]
        z, loc, scale = forecaster._run_batches(recent_values, begin, run_batch)
        level = np.repeat(loc, forecaster.horizon, axis=1)
        blocks.append(np.concatenate([level[..., None], scale[..., None] * z], axis=2))
    values = np.concatenate(blocks, axis=1)[:, :steps]
    components = dict(zip(["level", *names], np.moveaxis(values, 2, 0), strict=True))
    return {**components, "rest": forecast - values.sum(axis=2)}
