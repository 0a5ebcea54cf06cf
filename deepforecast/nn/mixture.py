"""Head of a Gaussian mixture."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from torch.special import ndtr, ndtri

from deepforecast.errors import validate_integer
from deepforecast.nn.distributions import HALF_LOG_TWO_PI
from deepforecast.nn.head import Head, softplus_floor
from deepforecast.nn.inverse_cdf import bisect, make_monotone
from deepforecast.nn.scaling import Scale


@final
class MixtureHead(Head):
    """Mixture of `n` normal distributions, for multimodal and skewed distributions.

    Parameters
    ----------
    n : int, default 3
        Number of components. Their initial means are normal quantiles at evenly spaced probabilities,
        so that the components differ from the start.

    References
    ----------
    Bishop (1994), "Mixture Density Networks".
    """

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
        """Number of components."""
        return {"n": self.n}

    @property
    def location_slice(self) -> slice:
        """The means."""
        return slice(self.n, 2 * self.n)

    def median(self, raw: Tensor) -> Tensor:
        """Return the median by bisection, in the precision of `raw`."""
        log_weights, means, deviations = self.components(raw)
        cdf = partial(mixture_cdf, weights=log_weights.exp(), means=means, deviations=deviations)
        return bisect(cdf, raw.new_tensor(0.5), means.amin(-1), means.amax(-1), halvings=26)

    def components(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-weights, means and deviations, (..., n) each."""
        log_weights, means, deviations = raw.chunk(3, dim=-1)
        return log_weights.log_softmax(-1), means + self.initial_means.to(means.device), softplus_floor(deviations)

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Compute the negative log-density."""
        log_weights, means, deviations = self.components(raw)
        squared_errors = 0.5 * ((target.unsqueeze(-1) - means) / deviations).square()
        return HALF_LOG_TWO_PI - (log_weights - squared_errors - deviations.log()).logsumexp(-1)

    def _mean(self, raw: Tensor) -> Tensor:
        log_weights, means, _ = self.components(raw)
        return (log_weights.exp() * means).sum(-1)

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        """Compute quantiles by bisection between the smallest and the largest quantile of a component.

        For p > 0.5 the distribution is mirrored (z to -z), as small probabilities are more precise
        than those near 1.
        """
        log_weights, means, deviations = (
            parameter.unsqueeze(-2) for parameter in self.components(raw)
        )  # (..., 1, n)
        sign = torch.where(p < 0.5, 1.0, -1.0).to(p)
        tail_probability = torch.minimum(p, 1 - p)
        mirrored_means = sign.unsqueeze(-1) * means
        component_quantiles = ndtri(tail_probability).unsqueeze(-1) * deviations + mirrored_means
        cdf = partial(mixture_cdf, weights=log_weights.exp(), means=mirrored_means, deviations=deviations)
        quantiles = bisect(cdf, tail_probability, component_quantiles.amin(-1), component_quantiles.amax(-1))
        return make_monotone(sign * quantiles, p)


def mixture_cdf(value: Tensor, weights: Tensor, means: Tensor, deviations: Tensor) -> Tensor:
    """Compute the distribution function at `value` (...) from weights, means and deviations (...,
    n).
    """
    component_cdf: Tensor = ndtr((value.unsqueeze(-1) - means) / deviations)
    return (weights * component_cdf).sum(-1)
