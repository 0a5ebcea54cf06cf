"""Head of point forecasts."""

from __future__ import annotations

from typing import Any, ClassVar, final

from torch import Tensor

from deepforecast.core.forecast import no_distribution_error
from deepforecast.errors import ParameterError, format_list, format_value
from deepforecast.nn.heads.base import Head
from deepforecast.nn.losses import LOSSES
from deepforecast.nn.scaling import Scale


@final
class PointHead(Head):
    """Point forecast: one number per step.

    Parameters
    ----------
    loss : {"mae", "mse", "huber", "mase", "smape", "owa"}, default "mae"
        Training loss. With "mse" the point is a mean, with "mae" and "mase" a median, with "huber"
        between them.
    """

    name: ClassVar[str] = "point"
    out_features = 1

    def __init__(self, loss: str = "mae") -> None:
        super().__init__()
        if loss not in LOSSES:
            raise ParameterError(
                f"`loss` must be one of {format_list(LOSSES, max_shown=20)}, got {format_value(loss)}.", parameter="loss",
                value=loss
            )
        self.loss_name = loss
        self._loss = LOSSES[loss]

    @property
    def settings(self) -> dict[str, Any]:
        """Name of the loss."""
        return {"loss": self.loss_name}

    @property
    def needs_naive_error(self) -> bool:
        """Whether the loss is MASE or contains it."""
        return self.loss_name in ("mase", "owa")

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Compute the loss of each step."""
        return self._loss(raw.squeeze(-1), target, scaling)

    @property
    def location_slice(self) -> slice:
        """The point."""
        return slice(0, 1)

    def median(self, raw: Tensor) -> Tensor:
        """Return the point."""
        return raw.squeeze(-1)

    def _mean(self, raw: Tensor) -> Tensor:
        return raw.squeeze(-1)

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        if bool((p != 0.5).any()):
            raise no_distribution_error("The model")
        return raw.expand_as(p)
