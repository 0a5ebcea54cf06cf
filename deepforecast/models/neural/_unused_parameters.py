"""Parameters of all networks that can have no effect beside the others: refused, as whoever gives one expects something.

All but `season_length`, which says something of the data and not of the network, and is often said to many models at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepforecast.core.unused_parameters import refuse_unused_parameters
from deepforecast.errors import ParameterError

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

WINDOW_SCALERS = ("last", "level", "revin", "difference")
"""Scalers that have no meaning for a series as a whole: where a window stands to the series' end would tell what comes."""


def refuse_unused(model: NeuralForecaster) -> None:
    """What is idle, and scalers that do not go with what they are to scale."""
    refuse_unused_parameters(model, _unused(model))
    refuse_unused_parameters(model, model._idle())
    if model.scaler in WINDOW_SCALERS and model.scaler_scope != "window":
        raise ParameterError(
            f"{model.name}: scaler={model.scaler!r} is of a window, and scaler_scope={model.scaler_scope!r} asks for one of the whole. "
            "Say scaler='standard', 'robust', 'min_max' or 'mean_abs' too, or leave out scale_by."
        )


def _unused(model: NeuralForecaster) -> Iterator[tuple[str, str]]:
    if model.head != "point":
        yield "loss", f"with head={model.head!r}, which has a loss of its own: leave it out, or say head='point'"
    if model.head != "quantiles":
        yield "quantiles", f"with head={model.head!r}: leave it out (predict takes quantiles=), or say head='quantiles'"
    if model.max_epochs is not None:
        yield "max_steps", "beside max_epochs: leave one of the two out"
    if model.validation_size is None:
        yield "validate_every", "without rows held out: leave it out, or say validation_size="
    if model.checkpoint_dir is None:
        yield "checkpoint_every", "without a folder: leave it out, or say checkpoint_dir="
    if model.scaler == "none":
        yield "scaler_scope", "with scaler='none': leave it out, or say another scaler="
