"""Forecast distributions of Prophet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats


@dataclass(frozen=True)
class AdditiveForecast(Forecast):
    """Mean plus noise plus the effect of random changes of the slope; all arrays are (series, steps).

    noise: standard deviation of normal errors, or scale of Student's t errors.
    count: expected number of slope changes up to a step, of a compound Poisson process.
    change: mean absolute effect on the step of a change at the end of the history; the sizes of
    changes are Laplace distributed.
    low, high: bounds to which values are clipped.
    """

    mean: Floats
    noise: Floats
    change: Floats
    count: Floats
    student_t: bool
    low: Floats
    high: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles (series, steps, probabilities), by numerical inversion of the distribution function."""
        from deepforecast.kernels.compound_poisson import quantiles

        levels = np.array(probabilities, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # non-finite values are reported later
            deviations = quantiles(
                self.noise.reshape(-1),
                self.change.reshape(-1),
                self.count.reshape(-1),
                levels,
                self.student_t,
            )
            values = self.mean[..., None] + deviations.reshape(*self.mean.shape, len(levels))
        return np.asarray(np.clip(values, self.low[..., None], self.high[..., None]))

    def skip_steps(self, steps: int) -> AdditiveForecast:
        """The forecast without its first `steps`."""
        return replace(
            self,
            **{name: getattr(self, name)[:, steps:] for name in ("mean", "noise", "change", "count", "low", "high")},
        )


@dataclass(frozen=True)
class SimulatedForecast(Forecast):
    """Mean, and quantiles of sample paths (series, samples, steps), for a logistic trend."""

    mean: Floats
    paths: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Empirical quantiles of the paths, (series, steps, probabilities)."""
        return np.moveaxis(np.quantile(self.paths, list(probabilities), axis=1), 0, -1)

    def skip_steps(self, steps: int) -> SimulatedForecast:
        """The forecast without its first `steps`."""
        return SimulatedForecast(self.mean[:, steps:], self.paths[:, :, steps:])
