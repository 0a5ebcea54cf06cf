"""Models that are not registered: a keeper of the contract to break, and capabilities that no model of the library has yet."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from deepforecast.core.forecast import Forecast, NormalForecast, PointForecast, SampledForecast, seeded_normal
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.preprocessing import refuse_out_of_domain
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError
from deepforecast.models.baselines.naive import Naive


class Last(Naive):
    """Naive under another name."""

    capabilities = replace(Naive.capabilities, new_values="followed")


class Line(Forecaster):
    """A straight line by least squares: what it learned in fit, and time, make its forecast."""

    capabilities = Capabilities(scale_equivariant=True, shift_equivariant=True, new_values="ignored")

    def _min_observations(self, panel: Panel) -> int:
        return 2

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        rows = [panel.y[begin:end] for begin, end in itertools.pairwise(panel.indptr)]
        fits = [np.polyfit(np.arange(len(y)) - (len(y) - 1) / 2, y - y[0], 1) for y in rows]
        middle = [y[0] + fit[1] for y, fit in zip(rows, fits, strict=True)]
        centre = (panel.start + panel.series.last) / 2 / panel.calendar.step
        slope = np.array([fit[0] for fit in fits])
        return self._advance(LearnedState({"slope": slope, "middle": np.array(middle), "centre": centre}), panel, True)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return LearnedState({**learned.by_series, "last": panel.series.last / panel.calendar.step})

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        away = (learned["last"] - learned["centre"])[:, None] + np.arange(1, steps + 1)
        return PointForecast(learned["middle"][:, None] + learned["slope"][:, None] * away, self.name)


class Ratio(Naive):
    """The last value, with a band of a share of it: of positive values alone."""

    capabilities = Capabilities(missing=True, distribution="analytic", domain="positive", scale_equivariant=True)

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        refuse_out_of_domain(self, panel)
        return super()._fit(panel.with_target(np.log(panel.y)), monitor)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return super()._advance(learned, panel.with_target(np.log(panel.y)), fresh)

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        mean = np.repeat(np.exp(learned["last"])[:, None], steps, axis=1)
        return NormalForecast(mean, mean * self._deviation_factor(learned, steps) * learned["deviation"][:, None])


class Sampled(Naive):
    """Naive whose distribution is that of seeded paths."""

    capabilities = Capabilities(missing=True, distribution="samples", simulates=True, learns_distribution=True)

    seed: int = param(default=0, at_least=0, help="of the paths")

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        mean = np.repeat(learned["last"][:, None], steps, axis=1)
        noise = seeded_normal(self.seed, np.stack([learned["last"], learned["deviation"]], axis=1), (2000, steps))
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

        from deepforecast.models.neural._device_check import simulated_device

        with simulated_device(float64=device != "mps") as target:
            weights = torch.ones(3, 1, device=target if self.moves else "cpu", requires_grad=True)
            (torch.ones(4, 3, device=target) @ weights).sum().backward()


class Needy(Naive):
    """Naive with a parameter that nobody can guess."""

    capabilities = Capabilities(distribution="analytic", simulates=True)

    table: dict[str, int] = param(help="a table")

    def explain(self, *args: Any, **given: Any) -> Frame:
        raise CapabilityError("Needy shows nothing.")
