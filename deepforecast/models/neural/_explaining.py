"""A forecast of a network that adds parts up, taken apart: the level it started from and what each part brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.errors import CapabilityError
from deepforecast.models.neural._ahead import Ahead
from deepforecast.models.neural._forecast import limits
from deepforecast.nn.batch import Batch

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


def components(
    model: NeuralForecaster, learned: Learned, steps: int, future: Mapping[str, Covariate]
) -> dict[str, Floats]:
    """`level`, where the window's scale has its place, and the parts of the body, each (series, steps)."""
    ahead = Ahead(model.name, learned, steps, future)
    if steps > ahead.horizon:
        raise CapabilityError(
            f"{model.name} takes a forecast apart up to the horizon it learned, {ahead.horizon} steps; {steps} are asked for. "
            f"Say explain({ahead.horizon}), or fit it with horizon={steps}."
        )
    network, names = ahead.network, list[str]()

    def act(batch: Batch, _: slice) -> tuple[Any, Any]:
        inputs, scale = network.inputs(batch)
        parts = network.body.parts(inputs)
        names[:] = list(parts)
        return torch.stack([part[..., network.head.location].squeeze(-1) for part in parts.values()], dim=-1), scale

    z, place, spread = ahead._passes(ahead.tail, 0, act)
    found = {"level": place + 0 * z[:, :steps, 0]}
    found |= {name: spread * z[:, :steps, number] for number, name in enumerate(names)}
    if model.bounds is None:
        return found
    total = np.sum(list(found.values()), axis=0)
    return {**found, "bounds": np.clip(total, *limits(model)) - total}
