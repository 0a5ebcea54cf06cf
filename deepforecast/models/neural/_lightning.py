"""Training with a user's own Lightning Trainer."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepforecast.core.state_updates import prepare_history
from deepforecast.data import windows
from deepforecast.data.frames import Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import NotFittedError, ParameterError, TrainingError, format_value
from deepforecast.models.neural import _fit, _series_state
from deepforecast.training.process import quiet_import, torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


# Parameters without effect on a Trainer of the user, and what to use there.
TRAINER_EQUIVALENTS = {
    "ema_decay": "the callback EMAWeightAveraging",
    "patience": "the callback EarlyStopping(monitor='validation')",
    "time_limit": "max_time= of the Trainer",
    "checkpoint_dir": "the callback ModelCheckpoint",
    "trainer": "the arguments of your Trainer",
}


def refuse_fit_parameters(model: NeuralForecaster) -> None:
    """Raise `ParameterError` for parameters that only `fit` can use."""
    defaults = type(model)().get_params()
    for name, equivalent in TRAINER_EQUIVALENTS.items():
        if getattr(model, name) != defaults[name]:
            raise ParameterError(
                f"`{name}` cannot be used with a Trainer of your own, got {name}={format_value(getattr(model, name))}.",
                hint=f"Use {equivalent}.",
                parameter=name,
                value=getattr(model, name),
            )
    if isinstance(model.learning_rate, str):
        raise ParameterError(
            "`learning_rate` must be a number with a Trainer of your own, got 'find'.",
            hint="Use `fit`, or set a number.",
            parameter="learning_rate",
            value=model.learning_rate,
        )


def lightning_module(model: NeuralForecaster, panel: Panel) -> Any:
    """The LightningModule of the model's network, which updates the model when it has been trained.

    `panel` has the training data after preprocessing.
    """
    with quiet_import():
        from deepforecast.training.module import ForecastModule  # imports Lightning

    network = model.network_
    columns = _series_state.window_columns(model.fitted_state().learned)
    window_index = windows.training_windows(
        panel, columns.input_size, columns.horizon, model.validation_size or 0, model.recent_windows
    )

    @torch_defaults()
    def on_finished() -> None:
        """Store the residual correlation of the trained network ("correlation_factor"), which sample paths use."""
        from deepforecast.models.neural import _residual_correlation  # imports torch

        state = model.fitted_state()
        if state.learned["network"] is not network:  # the model was fitted again
            return
        trained = replace(state.learned, shared={**state.learned.shared, "network": deepcopy(network).eval()})
        trained = _residual_correlation.fit_residual_correlation(model, trained, panel)
        factor = trained.shared.get("correlation_factor")
        shared = {name: value for name, value in state.learned.shared.items() if name != "correlation_factor"}
        shared |= {} if factor is None else {"correlation_factor": factor}
        model.__dict__["state_"] = replace(state, learned=replace(state.learned, shared=shared))

    def on_diverged(error: TrainingError) -> None:
        """Make the model unfitted, as the weights of its network are not finite."""
        if "state_" in model.__dict__ and model.state_.learned["network"] is network:
            del model.__dict__["state_"]
            model.__dict__["_failure"] = f"its training diverged. {error}"  # for NotFittedError

    return ForecastModule(
        network,
        _fit.training_options(model, len(window_index)),
        on_finished=on_finished,
        on_diverged=on_diverged,
    )


def datamodule(model: NeuralForecaster, frame: Frame, static: Frame | None) -> Any:
    """The LightningDataModule of a frame, with the columns and categories seen in fit.

    Raises `NotFittedError` if neither `fit` nor `lightning_module` was called before.
    """
    with quiet_import():
        from deepforecast.training.module import ForecastDataModule  # imports Lightning
        from deepforecast.training.sampler import EvaluationWindows  # imports torch

    if "state_" not in model.__dict__:
        raise NotFittedError(
            f"{model.name} is not fitted; `datamodule` requires the columns and categories seen in fit.",
            hint="Use lightning_module(frame) or fit(frame) first.",
        )
    state = model.fitted_state()
    panel, _ = prepare_history(model, state, frame, static, trains=True)
    columns = _series_state.window_columns(state.learned)
    scales = _series_state.known_scales(model, state.learned_with_series, panel)
    panel = model._add_series_columns(panel, state.learned_with_series)
    sampler, validation, options = _fit.build_batches(model, panel, columns, scales)
    sampler.stop_step = options.max_steps * options.accumulate_grad_batches
    sampler.accumulate_grad_batches = 1
    last_windows = windows.validation_windows(panel, columns.horizon, columns.horizon)
    predict = EvaluationWindows(
        sampler.windows, sampler.rows, last_windows, _fit.VALIDATION_BATCH_SIZE, len(last_windows)
    )
    return ForecastDataModule(sampler, validation, predict)
