"""Base class of heads, which define the loss and the predictive distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.core.forecast import no_distribution_error
from deepforecast.core.object_identity import constructor_arguments
from deepforecast.nn import names
from deepforecast.nn.batch import as_float64
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

SOFTPLUS_FLOOR = 1e-6
"""Smallest deviation, rate or dispersion in units of z: about the precision of float32."""


class Head(nn.Module, names.Head, ABC):
    """Base class of heads, which compute loss, mean, quantiles and samples from the output of a body.

    A subclass sets `out_features`, the number of outputs per step, and implements `loss`, `median`,
    `_mean` and `_quantiles`; an instance can be passed to networks as `head`. The output `raw` (...,
    out_features) is float32 or float64. Everything is in scaled units z, with y = loc + scale * z. A
    head whose `support` is not "real" gets windows scaled without shift (loc = 0); if `is_count`, y is
    an integer. A head without `has_distribution` gives points only and needs no `_quantiles`. Store
    each constructor argument as it is in an attribute of its name: `type(head)(**head.settings)` must
    construct an equal head, as it does when a file is loaded.

    Examples
    --------
    The Laplace distribution with median 0 and mean absolute deviation `raw`:

    >>> class CenteredLaplace(Head):
    ...     out_features = 1
    ...     def loss(self, raw, target, scaling):
    ...         deviation = softplus_floor(raw[..., 0])
    ...         return target.abs() / deviation + deviation.log()
    ...     def median(self, raw):
    ...         return 0 * raw[..., 0]
    ...     def _mean(self, raw):
    ...         return self.median(raw)
    ...     def _quantiles(self, raw, p, scale):
    ...         return -softplus_floor(raw) * (p - 0.5).sign() * torch.log1p(-2 * (p - 0.5).abs())
    >>> CenteredLaplace().quantiles(torch.ones(1), torch.tensor([0.1, 0.9])).round(decimals=2)
    tensor([-2.1100,  2.1100], dtype=torch.float64)
    """

    name: ClassVar[str]
    out_features: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take the facts of a named head from `nn.names`; other heads have the name of their class."""
        super().__init_subclass__(**kwargs)
        cls.name = vars(cls).get("name", cls.__name__)
        if facts := names.HEAD_FACTS.get(cls.name):
            cls.support, cls.is_count, cls.has_distribution = facts.support, facts.is_count, facts.has_distribution

    @property
    def needs_naive_error(self) -> bool:
        """Whether the loss is relative to the error of a naive forecast."""
        return False

    @property
    def settings(self) -> dict[str, Any]:
        """Constructor arguments: the attributes with their names."""
        return constructor_arguments(self)

    @property
    def location_slice(self) -> slice | None:
        """Features that are locations on the scale of z: adding a constant to them shifts the
        distribution.
        """
        return None

    @abstractmethod
    def loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the loss of each step.

        It must be finite where a missing target was set to 0.
        """

    def mean_loss(
        self,
        raw: Float[Tensor, "batch horizon out_features"],
        target: Float[Tensor, "batch horizon"],
        weight: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, ""]:
        """Compute the weighted mean loss; `weight` is 0 where the target is missing.

        It is 0 if all weights are.
        """
        losses = self.loss(raw, target, scaling)
        # The least divisor is below any sum of positive weights.
        return (losses * weight).sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)

    def mean(
        self,
        raw: Float[Tensor, "*shape out_features"],
        scale: Float[Tensor, "*#shape"] | None = None,
    ) -> Float64[Tensor, "*shape"]:
        """Return the mean (or point) in float64."""
        return self._mean(as_float64(raw))

    @abstractmethod
    def median(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Return the next input of an autoregressive body, in the dtype of `raw`.

        It is the median, or the mean if `support` is "nonnegative", where the median is often 0.
        """

    def quantiles(
        self,
        raw: Float[Tensor, "*#shape out_features"],
        p: Float[Tensor, "*#shape levels"],
        scale: Float[Tensor, "*_"] | None = None,
    ) -> Float64[Tensor, "*shape levels"]:
        """Return quantiles in float64, nondecreasing in p.

        Parameters
        ----------
        raw : Tensor
        p : Tensor
            Probabilities in (0, 1); uniform draws give samples. `p` may have leading axes before
            those of `raw`: (S, batch, horizon, 1) with raw (batch, horizon, out_features) gives (S,
            batch, horizon, 1).
        scale : Tensor, optional
            Scale of the windows, for count distributions; None: 1.
        """
        raw = as_float64(raw)
        p = as_float64(p).to(raw.device)
        n_extra = max(p.ndim - raw.ndim, 0)  # leading axes of p before those of raw
        batch_shape = raw.shape[:-1]
        if p.ndim > 1:  # for one series `broadcast_shapes` takes longer than the expansion
            batch_shape = torch.broadcast_shapes(batch_shape, p.shape[n_extra:-1])  # type: ignore[no-untyped-call]
        p = p.expand(*p.shape[:n_extra], *batch_shape, p.shape[-1])
        last_axes = tuple(range(-1 - n_extra, -1))
        # To (batch_shape, extra, Q); `_quantiles` gets p (batch_shape, N) with N = extra * Q.
        aligned = p.movedim(tuple(range(n_extra)), last_axes)
        scale = p.new_ones(()) if scale is None else as_float64(scale).to(p.device)
        values = self._quantiles(
            raw.expand(*batch_shape, -1),
            aligned.reshape(*batch_shape, -1),
            scale.expand(batch_shape).unsqueeze(-1),
        )
        return values.reshape(aligned.shape).movedim(last_axes, tuple(range(n_extra)))

    def sample(
        self,
        raw: Float[Tensor, "*#shape out_features"],
        uniform: Float[Tensor, "*#shape samples"],
        scale: Float[Tensor, "*_"] | None = None,
    ) -> Float[Tensor, "*shape samples"]:
        """Draw samples by the inverse CDF of uniform draws; `scale` as in `quantiles`."""
        return self.quantiles(raw, uniform, scale)

    @abstractmethod
    def _mean(self, raw: Float[Tensor, "*shape out_features"]) -> Float[Tensor, "*shape"]:
        """Compute the mean in float64."""

    def _quantiles(
        self,
        raw: Float[Tensor, "*shape out_features"],
        p: Float[Tensor, "*shape levels"],
        scale: Float[Tensor, "*#shape 1"],
    ) -> Float[Tensor, "*shape levels"]:
        """Compute quantiles, with all arguments in float64.

        Heads with a distribution must implement it. Without `has_distribution` the point is the
        quantile of p = 0.5, and any other p raises `CapabilityError`.
        """
        if self.has_distribution:
            raise NotImplementedError(f"{type(self).__name__} must implement `_quantiles`, or set has_distribution = False")
        if bool((p != 0.5).any()):
            raise no_distribution_error("The model")
        return self._mean(raw).unsqueeze(-1).expand_as(p)

    def extra_repr(self) -> str:
        """Show the settings."""
        return ", ".join(f"{name}={value!r}" for name, value in self.settings.items())


def softplus_floor(raw: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Compute softplus(raw) + SOFTPLUS_FLOOR, which is positive."""
    return F.softplus(raw) + SOFTPLUS_FLOOR


def make_monotone(
    values: Float[Tensor, "*shape levels"], p: Float[Tensor, "*shape levels"]
) -> Float[Tensor, "*shape levels"]:
    """Remove rounding errors from values that should be nondecreasing in p."""
    if values.shape[-1] < 2:
        return values
    order = p.argsort(-1)
    sorted_values = values.gather(-1, order).cummax(-1).values
    return torch.empty_like(values).scatter_(-1, order, sorted_values)
