"""Heads of counts and of nonnegative data with many zeros.

The likelihood and the quantiles of count distributions are those of the counts y = scale * z. They
are computed in float64, as float32 is not precise enough for the logarithms of large factorials. The
Tweedie distribution has power 1.5.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from deepforecast.nn.batch import as_float64
from deepforecast.nn.heads.base import Head, make_monotone, softplus_floor
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from jaxtyping import Float

Float64Array = NDArray[np.float64]
CountCDF = Callable[..., Float64Array]
"""Distribution function of counts (n,) and parameters (n,) each."""

MIN_RATE = 1e-100  # in units of y, for windows of zeros only, whose scale is 0
MAX_COUNT = 2.0**60  # largest count returned as a quantile

MAX_ITERATIONS = 64  # about six Newton steps are typical, more if steps are replaced by bisections
MAX_DEVIATIONS = 45.0  # upper bound of a root, in standard deviations above its approximate mean


class CountHead(Head):
    """Base class of count distributions; `rate` is the mean of y without zero inflation."""

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the negative log-likelihood of y, with negative targets as 0."""
        scale = as_float64(scaling.scale)
        parameters = as_float64(raw)
        y = as_float64(target).clamp_min(0) * scale
        return self._negative_log_likelihood(parameters, y, _rate(parameters, scale)).to(raw)

    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return the mean, in place of the median, a step function of the parameters and often 0."""
        return self._mean(raw)

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        return softplus_floor(raw[..., 0])

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
        """Compute quantiles of y in numpy, and divide them by the scale; 0 if the scale is 0."""
        rate = _rate(raw, scale.squeeze(-1)).unsqueeze(-1)
        tensors = torch.broadcast_tensors(*self._quantile_parameters(raw, p), rate)  # type: ignore[no-untyped-call]
        probability, *parameters = (tensor.detach().cpu().numpy().reshape(-1) for tensor in tensors)
        counts = self._count_quantiles(probability, *parameters)
        quantiles = torch.as_tensor(counts, dtype=p.dtype, device=p.device).view(p.shape)
        return torch.where(scale > 0, quantiles / scale, 0.0)

    @abstractmethod
    def _negative_log_likelihood(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        """Compute the negative log-likelihood of y, (batch, horizon)."""

    def _quantile_parameters(self, raw: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        """Return the probabilities (..., N) for `_count_quantiles`, and parameters (..., 1) without rate."""
        return (p,)

    @abstractmethod
    def _count_quantiles(self, p: Float64Array, *parameters: Float64Array) -> Float64Array:
        """Compute quantiles of y from flat arrays: those of `_quantile_parameters`, then the rate."""


@final
class PoissonHead(CountHead):
    """Poisson distribution: the variance equals the mean.

    -log P(y) = rate - y log(rate) + log y!.
    """

    name: ClassVar[str] = "poisson"
    out_features = 1

    def _negative_log_likelihood(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        return rate - y * rate.log() + torch.lgamma(y + 1)

    def _count_quantiles(self, p: Float64Array, *parameters: Float64Array) -> Float64Array:
        from scipy.special import pdtr

        (rate,) = parameters
        guess = _approximate_quantiles(p, rate, dispersion=np.zeros_like(rate))
        return count_quantile(pdtr, p, guess, rate)


@final
class NegativeBinomialHead(CountHead):
    """Negative binomial distribution with variance rate + dispersion * rate^2 (NB2).

    P(y) = Gamma(y + r) / (y! Gamma(r)) (1 - q)^r q^y with r = 1 / dispersion and q = rate / (rate + r)
    (Salinas et al. 2020, DeepAR, arXiv:1704.04110, section 3.1).
    """

    name: ClassVar[str] = "negative_binomial"
    out_features = 2

    def _negative_log_likelihood(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        return _negative_binomial_nll(y, rate, softplus_floor(raw[..., 1]))

    def _quantile_parameters(self, raw: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        return p, softplus_floor(raw[..., 1:2])

    def _count_quantiles(self, p: Float64Array, *parameters: Float64Array) -> Float64Array:
        return _negative_binomial_quantiles(p, *parameters)


@final
class ZeroInflatedNegativeBinomialHead(CountHead):
    """Zero-inflated negative binomial distribution, for intermittent demand (Lambert 1992,
    doi:10.2307/1269547, with negative binomial counts).
    """

    name: ClassVar[str] = "zero_inflated"
    out_features = 3

    def _negative_log_likelihood(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        """Compute -log(pi [y = 0] + (1 - pi) P(y)), with pi = sigmoid of the third feature."""
        count_nll = _negative_binomial_nll(y, rate, softplus_floor(raw[..., 1])) - logsigmoid(
            -raw[..., 2]
        )
        return torch.where(y > 0, count_nll, -torch.logaddexp(logsigmoid(raw[..., 2]), -count_nll))

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        return softplus_floor(raw[..., 0]) * torch.sigmoid(-raw[..., 2])

    def _quantile_parameters(self, raw: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        """Return the probabilities conditional on no extra zero, and the dispersion.

        A probability is negative if the quantile is an extra zero.
        """
        upper_tail = (1 - p) / torch.sigmoid(-raw[..., 2:])
        return 1 - upper_tail, softplus_floor(raw[..., 1:2])

    def _count_quantiles(self, p: Float64Array, *parameters: Float64Array) -> Float64Array:
        return _negative_binomial_quantiles(p, *parameters)


def _rate(raw: Tensor, scale: Tensor) -> Tensor:
    """Compute the rate in units of y, (batch, horizon), at least MIN_RATE."""
    return (softplus_floor(raw[..., 0]) * scale).clamp_min(MIN_RATE)


def _negative_binomial_nll(y: Tensor, rate: Tensor, dispersion: Tensor) -> Tensor:
    """Compute the negative log-likelihood of the negative binomial distribution.

    With r = 1 / dispersion and q = dispersion * rate: log Gamma(r) + log y! - log Gamma(y + r)
    + r log(1 + q) + y log(1 + 1 / q).
    """
    r = 1 / dispersion
    log_coefficient = torch.lgamma(r) + torch.lgamma(y + 1) - torch.lgamma(y + r)
    q = dispersion * rate
    return log_coefficient + r * torch.log1p(q) + y * torch.log1p(1 / q)


def _negative_binomial_quantiles(
    p: Float64Array, dispersion: Float64Array, rate: Float64Array
) -> Float64Array:
    """Compute negative binomial quantiles; for p < 0 they are 0. All arrays are (n,)."""
    from scipy.special import betainc

    def cdf(count: Float64Array, r: Float64Array, success_probability: Float64Array) -> Float64Array:
        return np.asarray(betainc(r, count + 1, success_probability))

    return count_quantile(
        cdf,
        p,
        _approximate_quantiles(p, rate, dispersion),
        1 / dispersion,
        1 / (1 + dispersion * rate),
    )


def _approximate_quantiles(
    p: Float64Array, rate: Float64Array, dispersion: Float64Array
) -> Float64Array:
    """Approximate quantiles by a second-order Cornish-Fisher expansion, as starting values."""
    from scipy.special import ndtri

    deviation = np.sqrt(rate * (1 + dispersion * rate))
    skewness = (1 + 2 * dispersion * rate) / deviation
    normal_quantile = np.clip(ndtri(p), -40, 40)
    return np.asarray(rate + deviation * (normal_quantile + skewness * (normal_quantile**2 - 1) / 6))


@final
class TweedieHead(Head):
    """Tweedie distribution with variance dispersion * mean^1.5: a compound Poisson-exponential
    distribution.

    It has a positive probability of 0 and a density elsewhere. For power 1.5 the density is known
    in closed form (with a Bessel function I_1), and 4 y / (dispersion * sqrt(mean)) has a
    noncentral chi-square distribution with 0 degrees of freedom and noncentrality 4 sqrt(mean) /
    dispersion. The family is closed under scaling, so that z can be modelled instead of y.

    References
    ----------
    Tweedie (1984); Dunn and Smyth (2005), doi:10.1007/s11222-005-4070-y; Siegel (1979),
    doi:10.1093/biomet/66.2.381.
    """

    name: ClassVar[str] = "tweedie"
    out_features = 2

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the negative log-density, at 0 the negative log-probability.

        It is computed in float64, the precision that the Bessel function needs.
        """
        parameters, y = as_float64(raw), as_float64(target).clamp_min(0)
        mean, dispersion = _parameters(parameters)
        deviance = 2 * (mean.sqrt() - y.sqrt()).square() / (dispersion * mean.sqrt())
        positive_y = torch.where(y > 0, y, torch.ones_like(y))
        bessel = torch.special.i1e(4 * positive_y.sqrt() / dispersion)
        log_factor = math.log(2) - dispersion.log() - 0.5 * positive_y.log() + bessel.log()
        return (deviance - torch.where(y > 0, log_factor, torch.zeros_like(y))).to(raw)

    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return the mean, as the median is often 0."""
        return softplus_floor(raw[..., 0])

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        return softplus_floor(raw[..., 0])

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
        """Compute quantiles from those x of the chi-square distribution, y = dispersion sqrt(mean) x / 4."""
        mean, dispersion = (tensor.unsqueeze(-1) for tensor in _parameters(raw))
        half_noncentrality = (2 * mean.sqrt() / dispersion).expand_as(p)
        arrays = (tensor.detach().cpu().numpy().reshape(-1) for tensor in (p, 2 * half_noncentrality))
        x = torch.as_tensor(
            _noncentral_chi2_quantiles(*arrays), dtype=p.dtype, device=p.device
        ).view(p.shape)
        return make_monotone(0.25 * dispersion * mean.sqrt() * x, p)


def _parameters(raw: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and dispersion, (...) each."""
    return softplus_floor(raw[..., 0]), softplus_floor(raw[..., 1])


def _noncentral_chi2_quantiles(p: Float64Array, noncentrality: Float64Array) -> Float64Array:
    """Return quantiles of the noncentral chi-square distribution with 0 degrees of freedom, all
    arrays (n,).

    They are 0 up to the probability of 0, exp(-noncentrality / 2). The others are found by Newton's
    method, safeguarded by bisection, for the square root, which for large noncentrality is about
    normal with mean sqrt(noncentrality) and variance 1.
    """
    from scipy.special import ndtri

    quantiles = np.zeros_like(p)
    active = np.flatnonzero(p > np.exp(-0.5 * noncentrality))
    probabilities = p[active]
    centre = np.sqrt(noncentrality[active])
    low = np.zeros_like(probabilities)
    high = centre + MAX_DEVIATIONS
    root = np.clip(centre + ndtri(probabilities), 0.1, high)
    for _ in range(MAX_ITERATIONS):
        if not len(active):
            break
        too_low = _noncentral_chi2_cdf(root, centre) < probabilities
        low, high = np.where(too_low, root, low), np.where(too_low, high, root)
        new_root = _newton_step(root, centre, probabilities)
        new_root = np.where((new_root > low) & (new_root < high), new_root, 0.5 * (low + high))
        converged = np.abs(new_root - root) <= 1e-13 * new_root
        quantiles[active] = new_root**2
        unconverged = ~converged
        active, probabilities, centre, low, high, root = (
            array[unconverged] for array in (active, probabilities, centre, low, high, new_root)
        )
    return quantiles


def _newton_step(
    root: Float64Array, centre: Float64Array, probability: Float64Array
) -> Float64Array:
    """Return the next Newton iterate root - (F(root^2) - p) / F'; it is not finite where F' is 0."""
    from scipy.special import i1e

    density = centre * i1e(centre * root) * np.exp(-0.5 * (root - centre) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(root - (_noncentral_chi2_cdf(root, centre) - probability) / density)


def _noncentral_chi2_cdf(root: Float64Array, centre: Float64Array) -> Float64Array:
    """Return P(X <= root^2) for 0 degrees of freedom and noncentrality centre^2.

    It is the CDF with 2 degrees of freedom plus I_0(root centre) exp(-(root^2 + centre^2) / 2).
    """
    from scipy.special import chndtr, i0e

    cdf_two: Any = chndtr(root**2, 2.0, centre**2)
    return np.asarray(cdf_two + i0e(centre * root) * np.exp(-0.5 * (root - centre) ** 2))


def count_quantile(
    cdf: CountCDF, p: Float64Array, guess: Float64Array, *parameters: Float64Array
) -> Float64Array:
    """Return the smallest count k >= 0 with cdf(k) >= p, all arrays (n,).

    From the guess, steps that double in size find a bracket, which is then bisected. The guess
    affects the speed only.
    """
    guess = np.clip(np.floor(np.nan_to_num(guess)), 0, MAX_COUNT)
    is_upper = cdf(guess, *parameters) >= p
    # Bracket: cdf(low) < p <= cdf(high).
    low = np.where(is_upper, -1.0, guess)
    high = np.where(is_upper, guess, np.inf)
    step = np.ones_like(guess)
    active = np.flatnonzero(np.isinf(high) | (high > 0))  # brackets that are still open at one end
    while len(active):
        # Without an upper end the candidate is above `low`, otherwise below `high`.
        step_size = step[active]
        is_unbounded = np.isinf(high[active])
        candidate = np.where(
            is_unbounded,
            np.minimum(low[active] + step_size, MAX_COUNT),
            np.maximum(high[active] - step_size, 0),
        )
        reached = (
            cdf(candidate, *(parameter[active] for parameter in parameters)) >= p[active]
        ) | (candidate >= MAX_COUNT)
        low[active[~reached]], high[active[reached]] = candidate[~reached], candidate[reached]
        step[active] *= 2
        # Upwards until cdf(candidate) reaches p, downwards until it does not, or at 0.
        is_open = np.where(is_unbounded, ~reached, reached & (candidate > 0))
        active = active[is_open]
    return _bisect_counts(cdf, p, low, high, parameters)


def _bisect_counts(
    cdf: CountCDF,
    p: Float64Array,
    low: Float64Array,
    high: Float64Array,
    parameters: tuple[Float64Array, ...],
) -> Float64Array:
    """Bisect the brackets cdf(low) < p <= cdf(high) in place until `high` is the quantile."""
    active = np.flatnonzero(_has_integer_between(low, high))
    while len(active):
        middle = np.floor((low[active] + high[active]) / 2)
        reached = cdf(middle, *(parameter[active] for parameter in parameters)) >= p[active]
        low[active[~reached]], high[active[reached]] = middle[~reached], middle[reached]
        active = active[_has_integer_between(low[active], high[active])]
    return high


def _has_integer_between(low: Float64Array, high: Float64Array) -> NDArray[np.bool_]:
    """Return whether an integer that float64 represents lies strictly between."""
    middle = np.floor((low + high) / 2)
    return (middle > low) & (middle < high)
