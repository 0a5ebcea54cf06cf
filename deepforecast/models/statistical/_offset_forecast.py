"""A forecast plus known values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats


@dataclass(frozen=True)
class ShiftedForecast(Forecast):
    """The forecast `inner` plus `offset`, (series, steps)."""

    inner: Forecast
    offset: Floats

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """Shifted mean of the inner forecast."""
        return np.asarray(self.inner.mean + self.offset)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Shifted quantiles of the inner forecast."""
        return np.asarray(self.inner.quantiles(probabilities) + self.offset[..., None])

    def skip_steps(self, steps: int) -> ShiftedForecast:
        """The forecast without its first steps."""
        return ShiftedForecast(self.inner.skip_steps(steps), self.offset[:, steps:])
