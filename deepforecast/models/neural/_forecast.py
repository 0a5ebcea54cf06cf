"""What a network says, as a forecast: the head's numbers, and the scale to bring them back by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats


@dataclass(frozen=True)
class HeadForecast(Forecast):
    """`raw` (series, steps, width) as `head` reads it; y = place + spread * z, both (series, 1)."""

    head: Any
    raw: Floats
    place: Floats
    spread: Floats
    name: str = "The network"

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The mean of the distribution, or the point."""
        import torch

        with torch.inference_mode():
            found = self.head.mean(torch.from_numpy(self.raw), torch.from_numpy(self._spreads)).numpy()
        return np.asarray(self.place + self.spread * found)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Those the head has."""
        import torch

        if not self.head.distribution:
            from deepforecast.core.forecast import PointForecast

            return PointForecast(self.mean, self.name).quantiles(probabilities)
        with torch.inference_mode():
            asked = torch.tensor(list(probabilities), dtype=torch.float64)
            found = self.head.quantiles(torch.from_numpy(self.raw), asked, torch.from_numpy(self._spreads)).numpy()
        return np.asarray(self.place[..., None] + self.spread[..., None] * found)

    def drawn(self, uniform: Floats) -> Floats:
        """Values at these probabilities, (series, samples, steps)."""
        import torch

        with torch.inference_mode():
            asked = torch.from_numpy(np.moveaxis(uniform, 1, -1))
            low, high = self.head.reach
            found = self.head.quantiles(torch.from_numpy(self.raw), asked.clamp(low, high), torch.from_numpy(self._spreads))
        return np.asarray(self.place[..., None] + self.spread[..., None] * np.moveaxis(found.numpy(), -1, 1))

    @property
    def _spreads(self) -> Floats:
        return np.array(np.broadcast_to(self.spread, self.raw.shape[:2]))

    def after(self, steps: int) -> HeadForecast:
        """The same without its first steps."""
        return replace(self, raw=self.raw[:, steps:])


@dataclass(frozen=True)
class Joined(Forecast):
    """One forecast's steps after another's."""

    parts: tuple[Forecast, ...]

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """Of each part."""
        return np.concatenate([one.mean for one in self.parts], axis=1)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Of each part."""
        return np.concatenate([one.quantiles(probabilities) for one in self.parts], axis=1)

    def after(self, steps: int) -> Joined:
        """The same without its first steps."""
        parts, left = [], steps
        for one in self.parts:
            length = one.mean.shape[1]
            if left < length:
                parts.append(one.after(left) if left else one)
            left = max(left - length, 0)
        return Joined(tuple(parts))
