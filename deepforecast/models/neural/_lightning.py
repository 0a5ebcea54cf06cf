"""Training by a Trainer of the user's: the module around a model's network, and the batches of a frame."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepforecast.core.state_updates import prepare_history
from deepforecast.data import windows
from deepforecast.data.frames import Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import NotFittedError, TrainingError
from deepforecast.models.neural import _fit, _series_state
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.imports import quiet_import

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


def lightning_module(model: NeuralForecaster, panel: Panel) -> Any:
    """The LightningModule around a model's network, to be trained on this panel, which the model has prepared."""
    with quiet_import():
        from deepforecast.training.module import ForecastModule

    network, columns = model.network_, _series_state.window_columns(model.fitted_state().learned)
    window_index = windows.training_windows(panel, columns.input_size, columns.horizon, model.validation_size or 0, model.recent_windows)

    @torch_defaults()
    def on_finished() -> None:
        """What paths are made of is learned after the weights are."""
        from deepforecast.models.neural import _residual_correlation

        state = model.fitted_state()
        if state.learned["network"] is not network:  # the model has gone on to something else
            return
        trained = replace(state.learned, shared={**state.learned.shared, "network": deepcopy(network).cpu().eval()})
        ties = _residual_correlation.fit_residual_correlation(model, trained, panel).shared.get("ties")
        shared = {name: value for name, value in state.learned.shared.items() if name != "ties"}
        shared |= {} if ties is None else {"ties": ties}
        model.__dict__["state_"] = replace(state, learned=replace(state.learned, shared=shared))

    def on_diverged(error: TrainingError) -> None:
        """The weights are not finite: nothing can be forecast by them."""
        if "state_" in model.__dict__ and model.state_.learned["network"] is network:
            del model.__dict__["state_"]
            model.__dict__["_failure"] = f"its training diverged. {error}"  # for NotFittedError

    return ForecastModule(network, _fit.training_options(model, len(window_index)), on_finished=on_finished, on_diverged=on_diverged)


def datamodule(model: NeuralForecaster, frame: Frame, static: Frame | None) -> Any:
    """The batches of a frame, its columns and categories read as in the fit."""
    with quiet_import():
        from deepforecast.training.module import ForecastDataModule

    if "state_" not in model.__dict__:
        raise NotFittedError(
            f"datamodule() reads a frame with the columns that {model.name} learned of before; it has learned of none. Call "
            "lightning_module(frame) first, or fit(frame)."
        )
    state = model.fitted_state()
    panel, _ = prepare_history(model, state, frame, static)
    columns = _series_state.window_columns(state.learned)
    scales = _series_state.known_scales(model, state.learned_with_series, panel)
    train, validation = _fit.build_batches(model, model._add_series_columns(panel, state.learned_with_series), columns, scales)
    train.stop_step, train.parts = _fit.training_options(model, len(train.window_index)).max_steps * model.accumulate_grad_batches, 1
    return ForecastDataModule(train, validation)
