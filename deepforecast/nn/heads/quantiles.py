"""Heads of quantiles: a fixed set that cannot cross, and an implicit network with the probability as an input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.core.forecast import QuantileForecast, validate_quantiles
from deepforecast.errors import validate_integer
from deepforecast.nn.heads.base import Head
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from jaxtyping import Float

DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

N_TRAINING_PROBABILITIES = 4  # per step in training, one from each quarter of (0, 1)
N_KNOTS = 201  # grid from 0 to 1 in forecasts, linearly interpolated


@final
class QuantileHead(Head):
    """Quantiles at given probabilities and at 0.5, trained with the pinball loss.

    The feature of the median is a location. The other quantiles are at distances from it that are
    sums of softplus(raw), so that they cannot cross. With raw = 0 they are the quantiles of the
    standard normal distribution. Between the trained quantiles others are interpolated linearly;
    beyond them there are none, and `quantiles` raises.

    Parameters
    ----------
    probabilities : sequence of float, default DECILES
        Probabilities of the trained quantiles; 0.5 is added.
    """

    name: ClassVar[str] = "quantiles"
    step_matrix: Tensor
    tilt: Tensor

    def __init__(self, probabilities: Sequence[float] = DECILES) -> None:
        super().__init__()
        self.probabilities = tuple(validate_quantiles([*probabilities, 0.5]))
        self.out_features = len(self.probabilities)
        self.median_index = self.probabilities.index(0.5)
        levels = torch.tensor(self.probabilities, dtype=torch.float64)
        self.register_buffer(
            "step_matrix", _step_matrix(levels, self.median_index).float(), persistent=False
        )
        self.register_buffer("tilt", (2 * levels - 1).float(), persistent=False)

    @property
    def settings(self) -> dict[str, Any]:
        """The probabilities."""
        return {"probabilities": list(self.probabilities)}

    @property
    def probability_range(self) -> tuple[float, float]:
        """Smallest and largest probability of a trained quantile."""
        return self.probabilities[0], self.probabilities[-1]

    @property
    def location_slice(self) -> slice:
        """The median."""
        return slice(self.median_index, self.median_index + 1)

    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return the median."""
        return raw[..., self.median_index]

    def values(
        self, raw: Float[Tensor, "*shape out_features"]
    ) -> Float[Tensor, "*shape out_features"]:
        """Return the quantiles, nondecreasing."""
        deviations = F.softplus(raw) @ self.step_matrix.to(raw)
        return deviations + raw[..., self.location_slice]

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute twice the pinball loss, averaged over the quantiles."""
        return pinball(self.values(raw), target, self.tilt)

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Compute the mean of the piecewise linear quantile function, constant in the tails."""
        levels = np.array([0.0, *self.probabilities, 1.0])
        half_gaps = np.diff(levels) / 2
        half_gaps[[0, -1]] *= 2  # the quantile function is constant in the tails
        weights = half_gaps[:-1] + half_gaps[1:]
        return self._monotone_values(raw) @ raw.new_tensor(weights)

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
        """Interpolate between the trained quantiles; raise for probabilities outside their range."""
        if bool(((p < self.probability_range[0]) | (p > self.probability_range[1])).any()):
            self._raise_outside_range(float(p.min()), float(p.max()))
        return interpolate_quantiles(
            self._monotone_values(raw), p.new_tensor(self.probabilities), p
        )

    def _monotone_values(
        self, raw: Float[Tensor, "*shape out_features"]
    ) -> Float[Tensor, "*shape out_features"]:
        return self.values(raw).cummax(-1).values  # sums may decrease by rounding

    def _raise_outside_range(self, *probabilities: float) -> None:
        """Raise the error of `QuantileForecast` for probabilities outside the range."""
        empty = np.empty((0, 0, self.out_features))
        QuantileForecast(empty[..., 0], self.probabilities, empty).quantiles(sorted(set(probabilities)))


def _step_matrix(
    levels: Float[Tensor, "levels"], median_index: int
) -> Float[Tensor, "levels levels"]:
    """Return the matrix (levels, levels) from softplus(raw) to signed distances from the median.

    Feature i is multiplied by the distance of normal quantile i to its neighbour towards the median,
    and counts in the distances of quantile i and of all farther from the median.
    """
    spacing = torch.special.ndtri(levels).diff() / np.log(2)  # softplus(0) = log 2
    index = torch.arange(len(levels))
    above = (index[:, None] > median_index) & (index[None, :] >= index[:, None])
    below = (index[:, None] < median_index) & (index[None, :] <= index[:, None])
    row_spacing = torch.cat([spacing[:median_index], spacing.new_zeros(1), spacing[median_index:]])
    return above * row_spacing[:, None] - below * row_spacing[:, None]


@final
class ImplicitQuantileHead(Head):
    """Implicit quantile network: cosine features of the probability p modulate the features of the
    body.

    q(p) = raw_0 + out(silu(raw_1.. * (1 + relu(W cos(pi k p) + b)))), k = 0, 1, ... In training the
    probabilities are drawn at random, otherwise they are evenly spaced. Quantiles are sorted, so
    that they do not cross.

    Parameters
    ----------
    features : int, default 32
        Number of features per step besides the location.
    cosines : int, default 64
        Number of cosine features of p.

    References
    ----------
    Dabney, Ostrovski, Silver, Munos (2018), arXiv:1806.06923; Gouttes, Rasul, Koren, Stephan,
    Naghibi (2021), arXiv:2107.03743.
    """

    name: ClassVar[str] = "implicit_quantile"

    def __init__(self, features: int = 32, cosines: int = 64) -> None:
        super().__init__()
        self.out_features = 1 + validate_integer(features, "features", maximum=10_000)
        self.cosines = validate_integer(cosines, "cosines", maximum=10_000)
        self.embed = nn.Linear(self.cosines, features)
        self.out = nn.Linear(features, 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Number of features and of cosines."""
        return {"features": self.out_features - 1, "cosines": self.cosines}

    @property
    def location_slice(self) -> slice:
        """The first feature."""
        return slice(0, 1)

    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return the median of the sorted quantiles."""
        return self._sorted_values(raw)[..., N_KNOTS // 2]

    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute twice the pinball loss, averaged over `N_TRAINING_PROBABILITIES` probabilities."""
        offset: Tensor | float = 0.5  # within each of the N equal parts of (0, 1)
        if self.training:
            offset = torch.rand(*target.shape, N_TRAINING_PROBABILITIES, dtype=raw.dtype, device=raw.device)
        index = torch.arange(N_TRAINING_PROBABILITIES, dtype=raw.dtype, device=raw.device)
        p = (index + offset) / N_TRAINING_PROBABILITIES  # (batch, horizon, N) or (N,)
        return pinball(self.values(raw, p), target, 2 * p - 1)

    def values(
        self, raw: Float[Tensor, "*#shape out_features"], p: Float[Tensor, "*#shape levels"]
    ) -> Float[Tensor, "*shape levels"]:
        """Return the quantiles at `p` without sorting: they may cross."""
        frequency = torch.arange(self.cosines, dtype=raw.dtype, device=raw.device)
        embedded = F.linear(
            torch.cos(math.pi * p.unsqueeze(-1) * frequency), *_weights_as(self.embed, raw)
        )
        # (..., N, features)
        modulated = raw[..., 1:].unsqueeze(-2) * (1 + F.relu(embedded))
        deviations = F.linear(
            F.silu(modulated), *_weights_as(self.out, raw)
        ).squeeze(-1)
        return raw[..., :1] + deviations

    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        quantiles = self._sorted_values(raw)
        return torch.trapezoid(quantiles, dim=-1) / (N_KNOTS - 1)

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
        return interpolate_quantiles(self._sorted_values(raw), _knots(raw), p)

    def _sorted_values(
        self, raw: Float[Tensor, "*shape out_features"]
    ) -> Float[Tensor, "*shape knots"]:
        """Return sorted quantiles on a fixed grid, so that a quantile does not depend on which
        others are requested.
        """
        return self.values(raw, _knots(raw)).sort(-1).values


def _knots(raw: Float[Tensor, "*shape"]) -> Float[Tensor, "knots"]:
    """Return the probabilities of the grid, (N_KNOTS,)."""
    return torch.linspace(0, 1, N_KNOTS, dtype=raw.dtype, device=raw.device)


def _weights_as(layer: nn.Linear, raw: Tensor) -> tuple[Tensor, Tensor]:
    """Return weight and bias of the layer in the dtype and on the device of `raw`."""
    return layer.weight.to(raw), layer.bias.to(raw)


def pinball(
    values: Float[Tensor, "*shape levels"],
    target: Float[Tensor, "*shape"],
    tilt: Float[Tensor, "*#shape levels"],
) -> Float[Tensor, "*shape"]:
    """Compute twice the pinball loss, averaged over the last axis.

    2 max(p d, (p - 1) d) = |d| + (2 p - 1) d with d = target - value; for the median it is the
    absolute error.

    Parameters
    ----------
    values : Tensor
    target : Tensor
    tilt : Tensor
        2 p - 1.
    """
    errors = target.unsqueeze(-1) - values
    return torch.addcmul(errors.abs(), errors, tilt).mean(-1)


def interpolate_quantiles(
    values: Float[Tensor, "*#shape knots"],
    knots: Float[Tensor, "knots"],
    p: Float[Tensor, "*#shape levels"],
) -> Float[Tensor, "*shape levels"]:
    """Interpolate linearly through (knots, values), constant beyond the ends.

    Parameters
    ----------
    values : Tensor
        Nondecreasing in the last axis.
    knots : Tensor
        Increasing probabilities.
    p : Tensor
    """
    if len(knots) == 1:
        return values.expand_as(p)
    right = torch.searchsorted(knots, p.contiguous()).clamp(1, len(knots) - 1)
    left = right - 1
    fraction = ((p - knots[left]) / (knots[right] - knots[left])).clamp(0, 1)
    low, high = values.gather(-1, left), values.gather(-1, right)
    return torch.minimum(low + fraction * (high - low), high)
