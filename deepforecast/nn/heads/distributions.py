"""Heads of continuous distributions: negative log-density, mean and quantiles, in units of z.

The quantiles are in closed form, except those of a Gaussian mixture, found by bisection.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
from torch import Tensor
from torch.special import ndtr, ndtri

from deepforecast.errors import validate_integer
from deepforecast.nn.heads.base import Head, make_monotone, softplus_floor
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from jaxtyping import Float

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
MIN_VALUE = 1e-12  # smallest argument of a logarithm
MAX_BISECTIONS = 64  # after these the bracket is smaller than the rounding error


class SymmetricHead(Head):
    """Base class of symmetric distributions: the first feature is the mean and the median."""

    @property
    def location_slice(self) -> slice:
        """The first feature."""
        return slice(0, 1)

    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return the location."""
        return raw[..., 0]

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        return raw[..., 0]


class LocationScaleHead(Head):
    """Base class of heads whose quantiles are a function of those of a standard distribution."""

    @abstractmethod
    def standard_quantile(
        self, p: Float[Tensor, "*shape levels"]
    ) -> Float[Tensor, "*shape levels"]:
        """Return quantiles of the standard distribution."""

    @abstractmethod
    def from_standard_quantile(
        self,
        raw: Float[Tensor, "*shape out_features"],
        standard_quantiles: Float[Tensor, "*shape levels"],
    ) -> Float[Tensor, "*shape levels"]:
        """Transform standard quantiles by the parameters `raw`."""

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
        return self.from_standard_quantile(raw, self.standard_quantile(p))


@final
class NormalHead(SymmetricHead, LocationScaleHead):
    """Normal distribution N(mu, sigma^2), mu = raw_0 and sigma = softplus(raw_1).

    -log p(z) = (z - mu)^2 / (2 sigma^2) + log sigma + log(2 pi) / 2.
    """

    name: ClassVar[str] = "normal"
    out_features = 2

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the negative log-density of each step."""
        loc, deviation = raw[..., 0], softplus_floor(raw[..., 1])
        return 0.5 * ((target - loc) / deviation).square() + deviation.log() + HALF_LOG_TWO_PI

    def standard_quantile(
        self, p: Float[Tensor, "*shape levels"]
    ) -> Float[Tensor, "*shape levels"]:
        """Return quantiles of the standard normal distribution."""
        quantiles: Tensor = ndtri(p)
        return quantiles

    def from_standard_quantile(
        self,
        raw: Float[Tensor, "*shape out_features"],
        standard_quantiles: Float[Tensor, "*shape levels"],
    ) -> Float[Tensor, "*shape levels"]:
        """Compute mean + deviation * quantile."""
        return raw[..., :1] + softplus_floor(raw[..., 1:]) * standard_quantiles


@final
class LaplaceHead(SymmetricHead, LocationScaleHead):
    """Laplace distribution with median mu = raw_0 and mean absolute deviation b = softplus(raw_1).

    -log p(z) = |z - mu| / b + log(2 b). Its tails are heavier than the normal's.
    """

    name: ClassVar[str] = "laplace"
    out_features = 2

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the negative log-density of each step."""
        loc, scale = raw[..., 0], softplus_floor(raw[..., 1])
        return (target - loc).abs() / scale + scale.log() + math.log(2)

    def standard_quantile(
        self, p: Float[Tensor, "*shape levels"]
    ) -> Float[Tensor, "*shape levels"]:
        """Return quantiles of the Laplace distribution with mean absolute deviation 1."""
        tail_probability = torch.minimum(p, 1 - p)  # precise in both tails
        distance = -(2 * tail_probability).log()
        return torch.where(p < 0.5, -distance, distance)

    def from_standard_quantile(
        self,
        raw: Float[Tensor, "*shape out_features"],
        standard_quantiles: Float[Tensor, "*shape levels"],
    ) -> Float[Tensor, "*shape levels"]:
        """Compute median + scale * quantile."""
        return raw[..., :1] + softplus_floor(raw[..., 1:]) * standard_quantiles


@final
class StudentTHead(SymmetricHead):
    """Student's t distribution with location, scale and more than 2 degrees of freedom.

    With mu = raw_0, sigma = softplus(raw_1), nu = 2 + softplus(raw_2) and e = (z - mu) / sigma,
    -log p(z) = (nu + 1) / 2 log(1 + e^2 / nu) + log sigma + log(pi nu) / 2
    - log Gamma((nu + 1) / 2) + log Gamma(nu / 2).
    """

    name: ClassVar[str] = "student_t"
    out_features = 3

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the negative log-density of each step."""
        loc = raw[..., 0]
        scale = softplus_floor(raw[..., 1])
        degrees_of_freedom = 2 + softplus_floor(raw[..., 2])
        log_kernel = (0.5 * (degrees_of_freedom + 1)) * torch.log1p(
            ((target - loc) / scale).square() / degrees_of_freedom
        )
        return (
            log_kernel
            + scale.log()
            + 0.5 * (degrees_of_freedom * math.pi).log()
            - log_gamma_half_step(0.5 * degrees_of_freedom)
        )

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
        standard_quantiles = student_t_quantile(p, 2 + softplus_floor(raw[..., 2:]))
        return make_monotone(raw[..., :1] + softplus_floor(raw[..., 1:2]) * standard_quantiles, p)


@final
class LogNormalHead(LocationScaleHead):
    """Log-normal distribution: log z has the mean mu = raw_0 and the standard deviation sigma.

    -log p(z) = (log z - mu)^2 / (2 sigma^2) + log sigma + log z + log(2 pi) / 2, with sigma =
    softplus(raw_1); the mean is exp(mu + sigma^2 / 2), the median exp(mu). Targets z below MIN_VALUE count as MIN_VALUE.
    """

    name: ClassVar[str] = "lognormal"
    out_features = 2

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the negative log-density of each step."""
        logarithm = target.clamp_min(MIN_VALUE).log()
        deviation = softplus_floor(raw[..., 1])
        log_kernel = 0.5 * ((logarithm - raw[..., 0]) / deviation).square()
        return log_kernel + deviation.log() + logarithm + HALF_LOG_TWO_PI

    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return exp(mu)."""
        return raw[..., 0].exp()

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        return (raw[..., 0] + 0.5 * softplus_floor(raw[..., 1]).square()).exp()

    def standard_quantile(
        self, p: Float[Tensor, "*shape levels"]
    ) -> Float[Tensor, "*shape levels"]:
        """Return quantiles of the standard normal distribution."""
        quantiles: Tensor = ndtri(p)
        return quantiles

    def from_standard_quantile(
        self,
        raw: Float[Tensor, "*shape out_features"],
        standard_quantiles: Float[Tensor, "*shape levels"],
    ) -> Float[Tensor, "*shape levels"]:
        """Compute exp(mean + deviation * quantile)."""
        return (raw[..., :1] + softplus_floor(raw[..., 1:]) * standard_quantiles).exp()


def log_gamma_half_step(a: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Compute log Gamma(a + 1/2) - log Gamma(a) for a >= 1, to 1e-7 in float32.

    The difference of two `lgamma` would cancel. Here the asymptotic (Stirling) series is evaluated
    at a + 5 and carried back to a by five steps of Gamma(x + 1) = x Gamma(x).
    """
    inverse = 1 / (a + 5)
    square = inverse * inverse
    series = -0.5 * inverse.log() - inverse * (
        1 / 8 - square * (1 / 192 - square * (1 / 640 - square * (17 / 14336)))
    )
    product = 1 + 0.5 / a
    for shift in range(1, 5):
        product = product * (1 + 0.5 / (a + shift))
    return series - product.log()


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

    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return the median by bisection, in the precision of `raw`."""
        log_weights, means, deviations = self.components(raw)
        cdf = partial(mixture_cdf, weights=log_weights.exp(), means=means, deviations=deviations)
        return bisect(cdf, raw.new_tensor(0.5), means.amin(-1), means.amax(-1), halvings=26)

    def components(
        self, raw: Float[Tensor, "*shape out_features"]
    ) -> tuple[
        Float[Tensor, "*shape components"],
        Float[Tensor, "*shape components"],
        Float[Tensor, "*shape components"],
    ]:
        """Return log-weights, means and deviations."""
        log_weights, means, deviations = raw.chunk(3, dim=-1)
        return log_weights.log_softmax(-1), means + self.initial_means.to(means.device), softplus_floor(deviations)

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the negative log-density of each step."""
        log_weights, means, deviations = self.components(raw)
        squared_errors = 0.5 * ((target.unsqueeze(-1) - means) / deviations).square()
        return HALF_LOG_TWO_PI - (log_weights - squared_errors - deviations.log()).logsumexp(-1)

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        log_weights, means, _ = self.components(raw)
        return (log_weights.exp() * means).sum(-1)

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
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


def mixture_cdf(
    value: Float[Tensor, "*#shape"],
    weights: Float[Tensor, "*#shape components"],
    means: Float[Tensor, "*#shape components"],
    deviations: Float[Tensor, "*#shape components"],
) -> Float[Tensor, "*shape"]:
    """Compute the distribution function at `value` from weights, means and deviations."""
    component_cdf: Tensor = ndtr((value.unsqueeze(-1) - means) / deviations)
    return (weights * component_cdf).sum(-1)


def student_t_quantile(
    p: Float[Tensor, "*#shape"], degrees_of_freedom: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*shape"]:
    """Compute quantiles of Student's t distribution.

    Those of the upper tail are minus those of the lower tail, where p has the finest resolution.
    """
    from scipy.special import stdtrit

    tail_probability = torch.minimum(p, 1 - p)
    lower_quantile = torch.as_tensor(
        stdtrit(*(values.detach().cpu().numpy() for values in (degrees_of_freedom, tail_probability))),
        dtype=p.dtype,
        device=p.device,
    )
    return torch.where(p < 0.5, lower_quantile, -lower_quantile)


def bisect(
    cdf: Callable[[Tensor], Tensor],
    p: Float[Tensor, "*#shape"],
    low: Float[Tensor, "*#shape"],
    high: Float[Tensor, "*#shape"],
    halvings: int = MAX_BISECTIONS,
) -> Float[Tensor, "*shape"]:
    """Solve cdf(x) = p for a nondecreasing function between `low` and `high` by bisection."""
    width = high - low
    for _ in range(halvings):
        width = width / 2
        middle = low + width
        low = torch.where(cdf(middle) < p, middle, low)
    return low + width
