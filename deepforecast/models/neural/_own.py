"""Training by a Trainer of the user's: the module around a model's network, and the batches of a frame."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepforecast.core.histories import looked_at
from deepforecast.data import windows
from deepforecast.data.frames import Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import NotFittedError, TrainingError
from deepforecast.models.neural import _making, _standing
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.importing import unnoticed

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


def module(model: NeuralForecaster, panel: Panel) -> Any:
    """The LightningModule around a model's network, to be trained on this panel, which the model has prepared."""
    with unnoticed():
        from deepforecast.training.lightning import Training

    network, channels = model.network_, _standing.channels_of(model.fitted().learned)
    there = windows.places(panel, channels.input_size, channels.horizon, model.validation_size or 0, model.recent_windows)

    @torch_defaults()
    def ended() -> None:
        """What paths are made of is learned after the weights are."""
        from deepforecast.models.neural import _ties

        state = model.fitted()
        if state.learned["network"] is not network:  # the model has gone on to something else
            return
        trained = replace(state.learned, shared={**state.learned.shared, "network": deepcopy(network).cpu().eval()})
        ties = _ties.tied(model, trained, panel).shared.get("ties")
        shared = {name: value for name, value in state.learned.shared.items() if name != "ties"}
        shared |= {} if ties is None else {"ties": ties}
        model.__dict__["state_"] = replace(state, learned=replace(state.learned, shared=shared))

    def failed(error: TrainingError) -> None:
        """The weights are not finite: nothing can be forecast by them."""
        if "state_" in model.__dict__ and model.state_.learned["network"] is network:
            del model.__dict__["state_"]
            model.__dict__["_failure"] = f"its training diverged. {error}"  # for NotFittedError

    return Training(network, _making.options(model, len(there)), ended=ended, failed=failed)


def datamodule(model: NeuralForecaster, frame: Frame, static: Frame | None) -> Any:
    """The batches of a frame, its columns and categories read as in the fit."""
    with unnoticed():
        from deepforecast.training.lightning import Data

    if "state_" not in model.__dict__:
        raise NotFittedError(
            f"datamodule() reads a frame with the columns that {model.name} learned of before; it has learned of none. Call "
            "lightning_module(frame) first, or fit(frame)."
        )
    state = model.fitted()
    panel, _ = looked_at(model, state, frame, static)
    channels = _standing.channels_of(state.learned)
    scales = _standing.known_scales(model, state.standing, panel)
    train, validation = _making.batches(model, model._beside(panel, state.standing), channels, scales)
    train.end, train.parts = _making.options(model, len(train.places)).max_steps * model.accumulate_grad_batches, 1
    return Data(train, validation)
