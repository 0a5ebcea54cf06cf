"""Components of the forecast of an additive network."""

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
    """The additive components of the forecast, each (series, steps).

    `level` is the location of the scaled window, followed by the components of the body. `rest` is
    the difference to the forecast: rounding, bounds and, beyond the trained horizon, that the
    forecast is a statistic of many paths.
    """
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
