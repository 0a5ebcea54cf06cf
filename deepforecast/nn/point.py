"""One number a step: its loss says whether it is a median, a mean, or something between."""

from __future__ import annotations

from typing import Any, ClassVar, final

from torch import Tensor

from deepforecast.core.forecast import no_distribution_error
from deepforecast.errors import ParameterError, format_list, format_value
from deepforecast.nn.head import Head
from deepforecast.nn.losses import LOSSES
from deepforecast.nn.scaling import Scale


@final
class PointHead(Head):
    """A point that makes a loss small: "mae", "mse", "huber", "mase", "smape" or "owa" (of M4)."""

    name: ClassVar[str] = "point"
    has_distribution: ClassVar[bool] = False
    out_features = 1

    def __init__(self, loss: str = "mae") -> None:
        super().__init__()
        if loss not in LOSSES:
            raise ParameterError(f"loss is one of {format_list(LOSSES, max_shown=20)}; got {format_value(loss)}.")
        self.loss_name = loss
        self._loss = LOSSES[loss]

    @property
    def settings(self) -> dict[str, Any]:
        """The name of its loss."""
        return {"loss": self.loss_name}

    @property
    def needs_naive_error(self) -> bool:
        """That of MASE, alone or with sMAPE."""
        return self.loss_name in ("mase", "owa")

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """The loss named."""
        return self._loss(raw.squeeze(-1), target, scaling)

    @property
    def location_slice(self) -> slice:
        """All there is."""
        return slice(0, 1)

    def median(self, raw: Tensor) -> Tensor:
        """The point."""
        return raw.squeeze(-1)

    def _mean(self, raw: Tensor) -> Tensor:
        return raw.squeeze(-1)

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        if bool((p != 0.5).any()):
            raise no_distribution_error("The model")
        return raw.expand_as(p)
