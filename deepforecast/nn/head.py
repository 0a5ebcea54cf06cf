"""What a network ends in: only the head knows the loss and the distribution of what is forecast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.scaling import Scale

Support = Literal["real", "nonnegative", "positive"]

FLOOR = 1e-6
"""The least deviation, rate or dispersion a head gives, in scaled units: about what float32 tells apart beside 1."""


class Head(nn.Module, ABC):
    """Reads `width` numbers a step. All in scaled units z, where y = place + spread * z; `raw` in float32 or float64.

    A head whose `support` is not real is given windows scaled without shift (place 0, so y = spread * z), and if it `counts`,
    y is whole. One without a `distribution` gives its point alone. `HEADS[one.name](**one.settings)` is a head like it.
    """

    name: ClassVar[str]
    support: ClassVar[Support] = "real"
    counts: ClassVar[bool] = False
    distribution: ClassVar[bool] = True
    width: int

    @property
    def beside_naive(self) -> bool:
        """Whether its loss is in units of a naive forecast's."""
        return False

    @property
    def settings(self) -> dict[str, Any]:
        """What it was constructed with, as JSON can hold it."""
        return {}

    @property
    def location(self) -> slice | None:
        """Which of the numbers read are places on the scale of z: adding to them alone moves the whole distribution."""
        return None

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the largest probability it has a quantile for, (0, 1) where it has one for each between."""
        return (0.0, 1.0)

    @abstractmethod
    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Of each step, (B, H), from raw (B, H, width) and target (B, H); finite where a missing target was set to 0."""

    def mean(self, raw: Tensor, spread: Tensor | None = None) -> Tensor:
        """Shape (...) from raw (..., width), float64. For a head with points alone: the point."""
        return self._mean(exact(raw))

    @abstractmethod
    def median(self, raw: Tensor) -> Tensor:
        """What a stepwise body is fed of its own: (...) of raw's dtype, by torch alone. The median, or, where 0 is likely
        ("nonnegative"), the mean."""

    def quantiles(self, raw: Tensor, p: Tensor, spread: Tensor | None = None) -> Tensor:
        """Shape (..., Q) from raw (..., width) and p (Q,) or (..., Q), float64, rising in p. Of uniform draws: samples.

        Each p lies between 0 and 1, both excluded; `p` may have axes before those of raw: (S, B, H, 1) beside (B, H, width)
        gives (S, B, H, 1). `spread` (...): of the windows, for heads that count.
        """
        raw, p = exact(raw), exact(p).to(raw.device)
        more = max(p.ndim - raw.ndim, 0)
        lead = torch.broadcast_shapes(raw.shape[:-1], p.shape[more:-1])  # type: ignore[no-untyped-call]
        p = p.expand(*p.shape[:more], *lead, p.shape[-1])
        last = tuple(range(-1 - more, -1))
        moved = p.movedim(tuple(range(more)), last)  # (lead, more, Q): every head sees p (lead, N) beside raw (lead, width)
        spread = p.new_ones(()) if spread is None else exact(spread).to(p.device)
        found = self._quantiles(raw.expand(*lead, -1), moved.reshape(*lead, -1), spread.expand(lead).unsqueeze(-1))
        return found.reshape(moved.shape).movedim(last, tuple(range(more)))

    def drawn(self, raw: Tensor, uniform: Tensor, spread: Tensor | None = None) -> Tensor:
        """A value for each draw between 0 and 1: (..., N) from raw (..., width), uniform (..., N) and spread (...)."""
        return self.quantiles(raw, uniform, spread)

    @abstractmethod
    def _mean(self, raw: Tensor) -> Tensor:
        """Shape (...) from raw (..., width) in float64."""

    @abstractmethod
    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        """Shape (..., N) from raw (..., width), p (..., N) and spread (..., 1), all in float64."""

    def extra_repr(self) -> str:
        """What `repr` shows of it."""
        return ", ".join(f"{name}={value!r}" for name, value in self.settings.items())


def positive(raw: Tensor) -> Tensor:
    """Any number made positive, not below FLOOR: its logarithm for numbers far below 0, itself far above."""
    return functional.softplus(raw) + FLOOR


def exact(values: Tensor) -> Tensor:
    """In float64, on the CPU where the device has none."""
    return values.cpu().double() if values.device.type == "mps" else values.double()
