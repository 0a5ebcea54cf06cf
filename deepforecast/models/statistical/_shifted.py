"""A forecast with known numbers added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats


@dataclass(frozen=True)
class Shifted(Forecast):
    """`inner` with `by`, an array (series, steps), added."""

    inner: Forecast
    by: Floats

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """Its mean, shifted."""
        return np.asarray(self.inner.mean + self.by)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Its quantiles, shifted."""
        return np.asarray(self.inner.quantiles(probabilities) + self.by[..., None])

    def after(self, steps: int) -> Shifted:
        """The same without its first steps."""
        return Shifted(self.inner.after(steps), self.by[:, steps:])
