"""Models that are not registered: a keeper of the contract to break, and capabilities that no model of the library has yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast, SampledForecast
from deepforecast.core.noise import standard_normal
from deepforecast.core.params import param
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame
from deepforecast.errors import CapabilityError
from deepforecast.models.baselines.naive import Naive


class Last(Naive):
    """Naive under another name."""


class Sampled(Naive):
    """Naive whose distribution is that of seeded paths."""

    capabilities = Capabilities(missing=True, distribution="samples", simulates=True, learns_distribution=True)

    seed: int = param(0, at_least=0, help="of the paths")

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        mean = np.repeat(learned["last"][:, None], steps, axis=1)
        noise = standard_normal(self.seed, np.stack([learned["last"], learned["deviation"]], axis=1), (2000, steps))
        return SampledForecast(mean[:, None, :] + learned["deviation"][:, None, None] * noise.cumsum(axis=-1))


class Attentive(Naive):
    """Naive that shows weights in place of components."""

    def explain(self, horizon: int | None = None, **given: Any) -> Frame:
        keys = self.predict(horizon, **given)[["unique_id", "ds"]]
        lags = [keys.assign(lag=lag, weight=weight) for lag, weight in ((1, 0.75), (2, 0.25))]
        return pd.concat(lags, ignore_index=True)


class Devices(Naive):
    """Naive beside a linear layer that stays where it was made."""

    moves: ClassVar[bool] = True

    def device_step(self, device: str) -> None:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode(allow_non_fake_inputs=True):
            weights = torch.ones(3, 1, device=device if self.moves else "cpu", requires_grad=True)
            (torch.ones(4, 3, device=device) @ weights).sum().backward()


class Needy(Naive):
    """Naive with a parameter that nobody can guess."""

    capabilities = Capabilities(distribution="analytic", simulates=True)

    table: dict[str, int] = param(help="a table")

    def explain(self, *args: Any, **given: Any) -> Frame:
        raise CapabilityError("Needy shows nothing.")
