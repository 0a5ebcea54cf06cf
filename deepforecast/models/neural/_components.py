"""Components of the forecast of an additive network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.models.neural._forecast import to_array
from deepforecast.models.neural._horizon_forecaster import HorizonForecaster, move_windows
from deepforecast.nn.batch import Batch, place

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


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
