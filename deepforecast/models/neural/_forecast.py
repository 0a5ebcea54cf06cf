"""What a network says, as a forecast: the head's numbers, and the scale to bring them back by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats
from deepforecast.errors import ParameterError, shown
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

LEAST = 4  # what is computed at once is a multiple of it: of fewer rows, many processors sum products in another order


@dataclass(frozen=True)
class Decoding:
    """How paths are made of what a network says of a step: see `StepwiseForecaster`. `sharpness`: temperature and top-p."""

    kind: str = "sample"
    sharpness: tuple[float, float] = (1.0, 1.0)
    width: int = 10


PLAIN = Decoding()


def filled(values: Any, rows: int) -> Any:
    """Values with the first again behind them, up to so many rows."""
    return values if len(values) == rows else np.concatenate([values, np.repeat(values[:1], rows - len(values), axis=0)])


def limits(model: NeuralForecaster) -> tuple[float, float]:
    """The least and the largest value of a forecast."""
    if model.bounds is None:
        return -inf, inf
    low, high = model.bounds
    low, high = -inf if low is None else low, inf if high is None else high
    if low < high:
        return low, high
    raise ParameterError(f"bounds are a least value and a larger one, None for none; got {shown(model.bounds)}.")


@dataclass(frozen=True)
class HeadForecast(Forecast):
    """`raw` (series, steps, width) as `head` reads it; y = place + spread * z, both (series, 1), held within `limits`."""

    head: Any
    raw: Floats
    place: Floats
    spread: Floats
    name: str = "The network"
    limits: tuple[float, float] = (-inf, inf)

    @cached_property
    def mean(self) -> Floats:  # type: ignore[override]
        """The mean of the distribution, or the point."""
        import torch

        with torch_defaults(), torch.inference_mode():
            found = self.head.mean(*self._padded()).numpy()[: len(self.raw)]
        return self._within(self.place + self.spread * found)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Those the head has."""
        import torch

        from deepforecast.nn.quantiles import Quantiles

        if not self.head.distribution:
            from deepforecast.core.forecast import PointForecast

            return PointForecast(self.mean, self.name).quantiles(probabilities)
        if list(probabilities) == [0.5] and isinstance(self.head, Quantiles):  # as it is learned
            return self._within(self.place + self.spread * self.raw[..., self.head.middle])[..., None]
        with torch_defaults(), torch.inference_mode():
            asked = torch.tensor(list(probabilities), dtype=torch.float64)
            raw, spread = self._padded()
            found = self.head.quantiles(raw, asked, spread).numpy()[: len(self.raw)]
        return self._within(self.place[..., None] + self.spread[..., None] * found)

    def drawn(self, uniform: Floats) -> Floats:
        """Values at these probabilities, (series, samples, steps)."""
        import torch

        with torch_defaults(), torch.inference_mode():
            raw, spread = self._padded()
            asked = torch.from_numpy(filled(np.moveaxis(uniform, 1, -1), len(raw)))
            low, high = self.head.reach
            found = self.head.quantiles(raw, asked.clamp(low, high), spread).numpy()[: len(self.raw)]
        place, wide = (one[..., None] for one in (self.place, self.spread))
        return self._within(np.moveaxis(place + wide * found, -1, 1))

    def _within(self, values: Floats) -> Floats:
        return values if self.limits == (-inf, inf) else np.clip(values, *self.limits)

    def _padded(self) -> tuple[Any, Any]:
        """What the head reads, of a multiple of LEAST series: the last bits of a product hang on the rows left over."""
        import torch

        count = -(-len(self.raw) // LEAST) * LEAST
        raw = filled(self.raw, count)
        spread = np.array(np.broadcast_to(filled(self.spread, count), raw.shape[:2]))
        return torch.from_numpy(raw), torch.from_numpy(spread)

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
