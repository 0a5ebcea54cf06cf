"""Errors for parameters of networks that have no effect, given the values of the others.

`season_length` is exempt: it describes the data and is often passed to many models at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepforecast.core.params import refuse_unused_parameters
from deepforecast.errors import ParameterError

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

WINDOW_SCALERS = ("last", "level", "revin", "difference")
"""Scalers of single windows; fitted on a whole series, they would leak its last value."""


def refuse_unused(model: NeuralForecaster) -> None:
    """Raise `ParameterError` for parameters without effect and for scalers that need windows."""
    refuse_unused_parameters(model, _unused(model))
    refuse_unused_parameters(model, model._idle())
    if model.scaler in WINDOW_SCALERS and model.scaler_scope != "window":
        raise ParameterError(
            f"{model.name}: scaler={model.scaler!r} requires scaler_scope='window', "
            f"got scaler_scope={model.scaler_scope!r}.",
            hint="Set scaler='standard', 'robust', "
            "'min_max' or 'mean_abs', or leave out scaler_scope."
        )


def _unused(model: NeuralForecaster) -> Iterator[tuple[str, str]]:
    """Names of shared parameters that have no effect, and the reason and fix of each."""
    if model.head != "point":
        reason = "which has its own loss. Leave it out, or set head='point'"
        yield "loss", f"with head={model.head!r}, {reason}"
    if model.head != "quantiles":
        reason = "Leave it out (`predict` takes quantiles), or set head='quantiles'"
        yield "quantiles", f"with head={model.head!r}. {reason}"
    if model.max_epochs is not None:
        yield "max_steps", f"with max_epochs={model.max_epochs}. Leave one of the two out"
    if model.validation_size is None:
        yield "validate_every", "without a validation set. Leave it out, or set validation_size"
    if model.checkpoint_dir is None:
        yield "checkpoint_every", "without a checkpoint folder. Leave it out, or set checkpoint_dir"
    if model.scaler == "none":
        yield "scaler_scope", "with scaler='none'. Leave it out, or set another scaler"
