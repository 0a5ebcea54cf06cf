"""What may come beside the likeliest: noise, a trend whose slope goes on changing as it did, parameters not known exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats


@dataclass(frozen=True)
class AdditiveForecast(Forecast):
    """A mean, noise around it (of a deviation), and changes of slope of a mean size (what one at once adds at the step),
    `count` of them expected until then; all (series, steps). student: the noise is Student's t. Nothing lies outside `low` and
    `high`."""

    mean: Floats
    noise: Floats
    change: Floats
    count: Floats
    student_t: bool
    low: Floats
    high: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability, exactly."""
        from deepforecast.kernels.compound_poisson import quantiles

        levels = np.array(probabilities, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            deviations = quantiles(self.noise.reshape(-1), self.change.reshape(-1), self.count.reshape(-1), levels, self.student_t)
            values = self.mean[..., None] + deviations.reshape(*self.mean.shape, len(levels))
        return np.asarray(np.clip(values, self.low[..., None], self.high[..., None]))

    def skip_steps(self, steps: int) -> AdditiveForecast:
        """The same without its first steps."""
        return replace(
            self,
            **{name: getattr(self, name)[:, steps:] for name in ("mean", "noise", "change", "count", "low", "high")},
        )


@dataclass(frozen=True)
class SimulatedForecast(Forecast):
    """A mean, and quantiles of sample paths (series, samples, steps): where a saturating trend bends what may come."""

    mean: Floats
    paths: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability, interpolated between the paths."""
        return np.moveaxis(np.quantile(self.paths, list(probabilities), axis=1), 0, -1)

    def skip_steps(self, steps: int) -> SimulatedForecast:
        """The same without its first steps."""
        return SimulatedForecast(self.mean[:, steps:], self.paths[:, :, steps:])
