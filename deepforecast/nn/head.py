"""What a network ends in: only the head knows the loss and the distribution of what is forecast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.scaling import Scale

Support = Literal["real", "nonnegative", "positive"]

SOFTPLUS_FLOOR = 1e-6
"""The least deviation, rate or dispersion a head gives, in scaled units: about what float32 tells apart beside 1."""


class Head(nn.Module, ABC):
    """Reads `out_features` numbers a step. All in scaled units z, where y = place + spread * z; `raw` in float32 or float64.

    A head whose `support` is not real is given windows scaled without shift (place 0, so y = spread * z), and if it `is_count`,
    y is whole. One without a `has_distribution` gives its point alone. `HEADS[one.name](**one.settings)` is a head like it.
    """

    name: ClassVar[str]
    support: ClassVar[Support] = "real"
    is_count: ClassVar[bool] = False
    has_distribution: ClassVar[bool] = True
    out_features: int

    @property
    def needs_naive_error(self) -> bool:
        """Whether its loss is in units of a naive forecast's."""
        return False

    @property
    def settings(self) -> dict[str, Any]:
        """What it was constructed with, as JSON can hold it."""
        return {}

    @property
    def location_slice(self) -> slice | None:
        """Which of the numbers read are places on the scale of z: adding to them alone moves the whole distribution."""
        return None

    @property
    def probability_range(self) -> tuple[float, float]:
        """The least and the largest probability it has a quantile for, (0, 1) where it has one for each between."""
        return (0.0, 1.0)

    @abstractmethod
    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Of each step, (B, H), from raw (B, H, width) and target (B, H); finite where a missing target was set to 0."""

    def mean(self, raw: Tensor, scale: Tensor | None = None) -> Tensor:
        """Shape (...) from raw (..., width), float64. For a head with points alone: the point."""
        return self._mean(as_float64(raw))

    @abstractmethod
    def median(self, raw: Tensor) -> Tensor:
        """What a stepwise body is fed of its own: (...) of raw's dtype, by torch alone. The median, or, where 0 is likely
        ("nonnegative"), the mean."""

    def quantiles(self, raw: Tensor, p: Tensor, scale: Tensor | None = None) -> Tensor:
        """Shape (..., Q) from raw (..., width) and p (Q,) or (..., Q), float64, rising in p. Of uniform draws: samples.

        Each p lies between 0 and 1, both excluded; `p` may have axes before those of raw: (S, B, H, 1) beside (B, H, width)
        gives (S, B, H, 1). `scale` (...): of the windows, for heads that count.
        """
        raw, p = as_float64(raw), as_float64(p).to(raw.device)
        n_extra = max(p.ndim - raw.ndim, 0)
        batch_shape = torch.broadcast_shapes(raw.shape[:-1], p.shape[n_extra:-1])  # type: ignore[no-untyped-call]
        p = p.expand(*p.shape[:n_extra], *batch_shape, p.shape[-1])
        last_axes = tuple(range(-1 - n_extra, -1))
        aligned = p.movedim(tuple(range(n_extra)), last_axes)  # (lead, more, Q): every head sees p (lead, N) beside raw (lead, width)
        scale = p.new_ones(()) if scale is None else as_float64(scale).to(p.device)
        values = self._quantiles(raw.expand(*batch_shape, -1), aligned.reshape(*batch_shape, -1), scale.expand(batch_shape).unsqueeze(-1))
        return values.reshape(aligned.shape).movedim(last_axes, tuple(range(n_extra)))

    def sample(self, raw: Tensor, uniform: Tensor, scale: Tensor | None = None) -> Tensor:
        """A value for each draw between 0 and 1: (..., N) from raw (..., width), uniform (..., N) and spread (...)."""
        return self.quantiles(raw, uniform, scale)

    @abstractmethod
    def _mean(self, raw: Tensor) -> Tensor:
        """Shape (...) from raw (..., width) in float64."""

    @abstractmethod
    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        """Shape (..., N) from raw (..., width), p (..., N) and spread (..., 1), all in float64."""

    def extra_repr(self) -> str:
        """What `repr` shows of it."""
        return ", ".join(f"{name}={value!r}" for name, value in self.settings.items())


def softplus_floor(raw: Tensor) -> Tensor:
    """Any number made positive, not below FLOOR: its logarithm for numbers far below 0, itself far above."""
    return functional.softplus(raw) + SOFTPLUS_FLOOR


def as_float64(values: Tensor) -> Tensor:
    """In float64, on the CPU where the device has none."""
    return values.cpu().double() if values.device.type == "mps" else values.double()
