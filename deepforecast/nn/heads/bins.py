"""Categorical head over bins of values, trained with cross-entropy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor

from deepforecast.errors import ParameterError, format_value, validate_integer
from deepforecast.nn.heads.base import Head
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ASINH_SCALE = 3.0  # bins are about uniform for |z| < 1 / ASINH_SCALE and grow with |z| beyond


@final
class BinnedHead(Head):
    """Categorical distribution over `n` bins of z from `low` to `high`, uniform within each bin.

    Values outside fall into the outermost bins.

    Parameters
    ----------
    n : int, default 256
        Number of bins.
    low, high : float, default -15.0, 15.0
        Range of z.
    spacing : {"dense", "uniform"}, default "dense"
        "dense": bin edges are uniform in asinh(3 z), so that bins are narrow near 0 and
        proportional to |z| far from it.

    References
    ----------
    Ansari et al. (2024), "Chronos: Learning the Language of Time Series", arXiv:2403.07815.
    """

    name: ClassVar[str] = "bins"
    edges: Tensor

    def __init__(
        self, n: int = 256, low: float = -15.0, high: float = 15.0, spacing: str = "dense"
    ) -> None:
        super().__init__()
        self.n = self.out_features = validate_integer(n, "n", minimum=2, maximum=2**20)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ParameterError(
                f"`low` and `high` must be finite with low < high, got {format_value(low)} and {format_value(high)}.", parameter="low",
                value=low
            )
        if spacing not in ("dense", "uniform"):
            raise ParameterError(
                f"`spacing` must be 'dense' or 'uniform', got {format_value(spacing)}.", parameter="spacing",
                value=spacing
            )
        self.low = float(low)
        self.high = float(high)
        self.spacing = spacing
        self.register_buffer(
            "edges", _bin_edges(self.n, self.low, self.high, spacing), persistent=False
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Number, range and spacing of the bins."""
        return {"n": self.n, "low": self.low, "high": self.high, "spacing": self.spacing}

    def values(self) -> Float[Tensor, "bins"]:
        """Return the bin centers."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    def encode(self, z: Float[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """Return the bin index of each value, int64 in the shape of `z`; an edge belongs to the bin above it."""
        return torch.bucketize(z, self.edges[1:-1].to(z.dtype), right=True)

    def log_probabilities(self, raw: Float[Tensor, "*shape bins"]) -> Float[Tensor, "*shape bins"]:
        """Return the log-probability of each bin."""
        return raw.log_softmax(-1)

    def loss(
        self,
        raw: Float[Tensor, "batch horizon bins"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the cross-entropy -log P(bin of the target) of each step."""
        codes = self.encode(target)
        return F.cross_entropy(
            raw.flatten(0, 1), codes.flatten(), reduction="none"
        ).view_as(target)

    def median(self, raw: Float[Tensor, "*shape bins"]) -> Float[Tensor, "*shape"]:
        """Return the median, interpolated within its bin."""
        return self.quantiles(raw, raw.new_full((1,), 0.5)).squeeze(-1).to(raw)

    def sample(
        self,
        raw: Float[Tensor, "*shape bins"],
        uniform: Float[Tensor, "*shape samples"],
        scale: Float[Tensor, "*_"] | None = None,
    ) -> Float[Tensor, "*shape samples"]:
        """Draw samples by the inverse CDF, in the precision of `raw` (at a third of the cost of
        float64).
        """
        return self._quantiles(raw, uniform.to(raw), raw)

    def _mean(self, raw: Float[Tensor, "*shape bins"]) -> Float[Tensor, "*shape"]:
        return raw.softmax(-1) @ self.values().to(raw)

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape bins"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*_"],
    ) -> Float[Tensor, "*shape levels"]:
        """Invert the piecewise linear CDF; results do not exceed the upper edge of their bin."""
        edges = self.edges.to(raw)
        cdf = raw.softmax(-1).cumsum(-1)  # at the upper edge of each bin
        cdf = cdf / cdf[..., -1:]  # ends at exactly 1 despite rounding, so that every p has a bin
        code = torch.searchsorted(cdf.contiguous(), p.contiguous())
        lower_cdf = torch.where(code > 0, cdf.gather(-1, (code - 1).clamp_min(0)), 0.0)
        fraction = ((p - lower_cdf) / (cdf.gather(-1, code) - lower_cdf)).clamp(0, 1)
        low, high = edges[code], edges[code + 1]
        return torch.minimum(low + fraction * (high - low), high)


def _bin_edges(n: int, low: float, high: float, spacing: str) -> Tensor:
    """Return the n + 1 bin edges (float32), uniform in z, or in asinh(ASINH_SCALE * z) if "dense"."""
    if spacing == "uniform":
        return torch.linspace(low, high, n + 1, dtype=torch.float64).float()
    ends = [math.asinh(ASINH_SCALE * limit) for limit in (low, high)]
    return (
        torch.linspace(ends[0], ends[1], n + 1, dtype=torch.float64).sinh() / ASINH_SCALE
    ).float()
