"""Head of point forecasts."""

from __future__ import annotations

from typing import Any, ClassVar, final

from torch import Tensor

from deepforecast.errors import ParameterError, format_list, format_value
from deepforecast.nn.heads.base import Head
from deepforecast.nn.losses import CustomLoss
from deepforecast.nn.names import LOSS_FACTS, implementation
from deepforecast.nn.scaling import Scale


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

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Compute the loss of each step; a callable that returns a mean gives this mean at each step."""
        point = raw.squeeze(-1)
        if self.loss_facts is not None:
            losses: Tensor = self.loss_function(point, target, scaling)
            return losses
        losses = self.loss_function(point.flatten(), target.flatten())
        return losses.expand(point.numel()).reshape(point.shape)

    def mean_loss(self, raw: Tensor, target: Tensor, weight: Tensor, scaling: Scale) -> Tensor:
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

    def median(self, raw: Tensor) -> Tensor:
        """Return the point."""
        return raw.squeeze(-1)

    def _mean(self, raw: Tensor) -> Tensor:
        return raw.squeeze(-1)
