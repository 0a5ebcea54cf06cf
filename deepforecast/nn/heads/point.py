"""Head of point forecasts, and its losses in scaled units z (y = loc + scale * z)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
from torch import Tensor
from torch.nn import functional

from deepforecast.errors import ParameterError, format_list, format_value
from deepforecast.nn.heads.base import Head
from deepforecast.nn.names import LOSS_FACTS, implementation
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from jaxtyping import Float

Loss = Callable[[Tensor, Tensor, Scale], Tensor]
"""Function of point (batch, horizon), target (batch, horizon) and `Scale`, to (batch, horizon); see `names.LOSS_FACTS`."""

CustomLoss = Callable[[Tensor, Tensor], Tensor]
"""Function of a user: predictions (n,) and targets (n,) of n observed time steps in units of z, to (n,) or the mean, ()."""

MIN_NAIVE_ERROR = 1e-4  # smaller naive errors are rounding; such series would dominate the loss

# Added to |y| + |point| in units of z, as the gradient of sMAPE is unbounded at 0.
SMAPE_EPSILON = 1e-4


@final
class PointHead(Head):
    """Point forecast: one number per step.

    Parameters
    ----------
    loss : {"mae", "mse", "huber", "mase", "smape", "owa"} or callable, default "mae"
        Training loss. With "mse" the point is a mean, with "mae" and "mase" a median, with "huber"
        between them. A callable, such as a torch module, receives the predictions and targets of the
        observed time steps in units of z, both of shape (n,), and returns their losses, (n,), or the
        mean loss, ().

    Examples
    --------
    >>> import torch
    >>> PointHead(torch.nn.SmoothL1Loss(beta=0.5))
    PointHead(
      loss=SmoothL1Loss()
      (loss_function): SmoothL1Loss()
    )
    """

    name: ClassVar[str] = "point"
    out_features = 1

    def __init__(self, loss: str | CustomLoss = "mae") -> None:
        super().__init__()
        if isinstance(loss, str) and loss not in LOSS_FACTS:
            raise ParameterError(
                f"`loss` must be one of {format_list(LOSS_FACTS, max_shown=20)}, got {format_value(loss)}.", parameter="loss",
                value=loss
            )
        self.loss_facts = LOSS_FACTS[loss] if isinstance(loss, str) else None
        self.loss_name = loss if isinstance(loss, str) else None
        self.loss_function: Any = loss if self.loss_facts is None else implementation(self.loss_facts.implementation)

    @property
    def settings(self) -> dict[str, Any]:
        """Name of the loss, or the callable."""
        return {"loss": self.loss_name or self.loss_function}

    @property
    def needs_naive_error(self) -> bool:
        """Whether the loss is MASE or contains it."""
        return self.loss_facts is not None and self.loss_facts.needs_naive_error

    def loss(
        self,
        raw: Float[Tensor, "batch horizon 1"],
        target: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, "batch horizon"]:
        """Compute the loss of each step; a callable that returns a mean gives this mean at each step."""
        point = raw.squeeze(-1)
        if self.loss_facts is not None:
            losses: Tensor = self.loss_function(point, target, scaling)
            return losses
        losses = self.loss_function(point.flatten(), target.flatten())
        return losses.expand(point.numel()).reshape(point.shape)

    def mean_loss(
        self,
        raw: Float[Tensor, "batch horizon 1"],
        target: Float[Tensor, "batch horizon"],
        weight: Float[Tensor, "batch horizon"],
        scaling: Scale,
    ) -> Float[Tensor, ""]:
        """Compute the weighted mean loss; a callable receives the observed time steps only."""
        if self.loss_facts is not None:
            return super().mean_loss(raw, target, weight, scaling)
        observed = weight > 0
        if not bool(observed.any()):
            return 0 * raw.sum()
        losses: Tensor = self.loss_function(raw.squeeze(-1)[observed], target[observed])
        if losses.ndim == 0 and bool((weight[observed] != 1).any()):
            raise ParameterError(
                "`loss` must return one number per time step if observations have weights, got a scalar.",
                hint="Return the losses without reduction, or leave `weight` out of columns=.",
                parameter="loss",
            )
        return losses if losses.ndim == 0 else (losses * weight[observed]).sum() / weight[observed].sum()

    @property
    def location_slice(self) -> slice:
        """The point."""
        return slice(0, 1)

    def median(self, raw: Float[Tensor, "*shape 1"]) -> Float[Tensor, "*shape"]:
        """Return the point."""
        return raw.squeeze(-1)

    def _mean(self, raw: Float[Tensor, "*shape 1"]) -> Float[Tensor, "*shape"]:
        return raw.squeeze(-1)


def absolute(
    point: Float[Tensor, "batch horizon"], target: Float[Tensor, "batch horizon"], scaling: Scale
) -> Float[Tensor, "batch horizon"]:
    """Compute |target - point|."""
    return functional.l1_loss(point, target, reduction="none")


def squared(
    point: Float[Tensor, "batch horizon"], target: Float[Tensor, "batch horizon"], scaling: Scale
) -> Float[Tensor, "batch horizon"]:
    """Compute (target - point)^2."""
    return functional.mse_loss(point, target, reduction="none")


def huber(
    point: Float[Tensor, "batch horizon"], target: Float[Tensor, "batch horizon"], scaling: Scale
) -> Float[Tensor, "batch horizon"]:
    """Compute the Huber loss with delta = 1: e^2 / 2 for |e| <= 1, |e| - 1/2 beyond."""
    return functional.huber_loss(point, target, reduction="none")


def mase(
    point: Float[Tensor, "batch horizon"], target: Float[Tensor, "batch horizon"], scaling: Scale
) -> Float[Tensor, "batch horizon"]:
    """Compute |target - point| / (mean absolute error of the naive forecast in the window); the
    divisor is 1 if that error is 0.
    """
    naive = torch.where(scaling.naive > MIN_NAIVE_ERROR, scaling.naive, 1.0)
    return absolute(point, target, scaling) / naive


def smape(
    point: Float[Tensor, "batch horizon"], target: Float[Tensor, "batch horizon"], scaling: Scale
) -> Float[Tensor, "batch horizon"]:
    """Compute 2 |y - point| / (|y| + |point|) in units of y, in [0, 2]; 0 where both are 0.

    Numerator and denominator are divided by the scale, y / scale = loc / scale + z, so that no
    magnitude of y exceeds float32. A constant window has scale 0 and loss 0: its forecast is its
    loc.
    """
    level = torch.where(scaling.scale > 0, scaling.loc / scaling.scale, torch.inf).to(point)
    denominator = (level + target).abs() + (level + point).abs()
    return 2 * absolute(point, target, scaling) / (denominator + SMAPE_EPSILON)


def owa(
    point: Float[Tensor, "batch horizon"], target: Float[Tensor, "batch horizon"], scaling: Scale
) -> Float[Tensor, "batch horizon"]:
    """Compute sMAPE / 13.5 % + MASE / 1.9, twice the overall weighted average (OWA) of the M4
    competition; the divisors are about the errors of Naive2 there.
    """
    return smape(point, target, scaling) * (100 / 13.5) + mase(point, target, scaling) / 1.9
