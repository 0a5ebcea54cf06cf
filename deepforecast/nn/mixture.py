"""A mixture of normal distributions: more than one hump, any skew."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from torch.special import ndtr, ndtri

from deepforecast.data.integers import validate_integer
from deepforecast.nn.distributions import HALF_LOG_TWO_PI
from deepforecast.nn.head import Head, softplus_floor
from deepforecast.nn.inverse_cdf import bisect, make_monotone
from deepforecast.nn.scaling import Scale


@final
class MixtureHead(Head):
    """`n` normal distributions with their shares. For raw numbers of 0 they lie side by side, so that each finds its part."""

    name: ClassVar[str] = "mixture"
    initial_means: Tensor

    def __init__(self, n: int = 3) -> None:
        super().__init__()
        self.n = validate_integer(n, "n", maximum=1000)
        self.out_features = 3 * self.n
        initial_means = ndtri((torch.arange(self.n, dtype=torch.float64) + 0.5) / self.n)
        self.register_buffer("initial_means", initial_means.float(), persistent=False)

    @property
    def settings(self) -> dict[str, Any]:
        """How many."""
        return {"n": self.n}

    @property
    def location_slice(self) -> slice:
        """The means."""
        return slice(self.n, 2 * self.n)

    def median(self, raw: Tensor) -> Tensor:
        """As finely as the type of raw tells values apart near the parts."""
        log_weights, means, deviations = self.components(raw)
        cdf = partial(mixture_cdf, weights=log_weights.exp(), means=means, deviations=deviations)
        return bisect(cdf, raw.new_tensor(0.5), means.amin(-1), means.amax(-1), halvings=26)

    def components(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log shares, means and deviations, (..., n) each."""
        log_weights, means, deviations = raw.chunk(3, dim=-1)
        return log_weights.log_softmax(-1), means + self.initial_means, softplus_floor(deviations)

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Its negative log density."""
        log_weights, means, deviations = self.components(raw)
        squared_errors = 0.5 * ((target.unsqueeze(-1) - means) / deviations).square()
        return HALF_LOG_TWO_PI - (log_weights - squared_errors - deviations.log()).logsumexp(-1)

    def _mean(self, raw: Tensor) -> Tensor:
        log_weights, means, _ = self.components(raw)
        return (log_weights.exp() * means).sum(-1)

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        """Halved in upon between the least and the largest of the parts' own, from the side whose tail is the finer."""
        log_weights, means, deviations = (parameter.unsqueeze(-2) for parameter in self.components(raw))  # (..., 1, n)
        side, tail = torch.where(p < 0.5, 1.0, -1.0).to(p), torch.minimum(p, 1 - p)
        mirrored = side.unsqueeze(-1) * means  # the upper half is the lower one of the mirrored distribution
        component_quantiles = ndtri(tail).unsqueeze(-1) * deviations + mirrored
        cdf = partial(mixture_cdf, weights=log_weights.exp(), means=mirrored, deviations=deviations)
        return make_monotone(side * bisect(cdf, tail, component_quantiles.amin(-1), component_quantiles.amax(-1)), p)


def mixture_cdf(value: Tensor, weights: Tensor, means: Tensor, deviations: Tensor) -> Tensor:
    """The probability of no more than `value` (...), from parts (..., n)."""
    component_cdf: Tensor = ndtr((value.unsqueeze(-1) - means) / deviations)
    return (weights * component_cdf).sum(-1)
