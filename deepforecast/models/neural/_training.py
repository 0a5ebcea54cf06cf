"""Training of a network, in two parts if its quantiles are calibrated on observations that it has not seen; fine-tuning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import identify_param
from deepforecast.core.state import LearnedState, fingerprint
from deepforecast.data import windows
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.models.neural import _calibration, _fit, _residual_correlation, _series_state
from deepforecast.nn.batch import WindowStore
from deepforecast.training.callbacks import TrainingRecord
from deepforecast.training.options import TrainingOptions
from deepforecast.training.sampler import EvaluationWindows, WindowSampler
from deepforecast.training.trainer import train

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

SECOND_RATE = 1 / 3  # learning rate of the second part of the training, relative to the first
SECOND_SEED = 1 << 40  # changes the seed of the second part, which would draw the windows of the first again
# Arguments of the Trainer that must be the same when a run is resumed.
ARITHMETIC_OPTIONS = ("precision", "accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm")
# Reasons to stop after which there is no second part.
STOPPED = ("interrupted", "stopped by the caller", "stopped by the Trainer or a callback")
FINE_TUNE_LR_FACTOR = 0.1  # smaller than in fit, against catastrophic forgetting


def train_network(
    model: NeuralForecaster, panel: Panel, learned: LearnedState, monitor: Monitor, previous: LearnedState | None,
    lr_factor: float, frozen_steps: Mapping[str, int],
) -> dict[str, Any]:
    """Train the network of `learned` in place; return the entries "training_record" and "calibration" of the state.

    Quantiles are calibrated on the rows held out for validation. Without these, the tail of the series is held out for
    the first part of the steps, and the second part has all windows. A network that is fine-tuned keeps its factors,
    unless it was only pretrained before.
    With a user's own Trainer the network is not trained. Instead of "calibration" there is "not_calibrated", the reason,
    if it is not possible.
    """
    if isinstance(monitor, _fit.UserTraining):
        return {"training_record": record_arrays(TrainingRecord(stop_reason="trained by a user's own Trainer"))}
    network = learned.shared["network"]
    columns = network.sizes.window_columns
    scales = (learned.by_series["loc"], learned.by_series["scale"])
    sampler, validation, options = _fit.build_batches(model, panel, columns, scales)
    options = replace(
        options, learning_rate=options.learning_rate * lr_factor, lr_factor=lr_factor, frozen_steps=frozen_steps
    )
    is_first = previous is None or "pretraining" in previous.shared
    entries = {} if previous is None or is_first else _calibration.continued(previous, panel)
    tail = np.zeros(len(panel), dtype=np.int64)
    if is_first and _calibration.calibrates(model):
        tail = _calibration.held_out_rows(panel, columns.horizon, model.validation_size)
        reason = _calibration.reason_not_calibrated(model, network, panel, tail, options.max_steps)
        if not reason and validation is None and panel.weight is not None:
            index = windows.training_windows(panel, columns.input_size, columns.horizon, tail, model.recent_windows)
            if not np.any(_fit.training_targets(panel, index).weight):
                reason = "all observations before the last tenth have weight 0"
        if reason:
            tail, entries = np.zeros_like(tail), {"not_calibrated": reason}
    is_scaled_by_series = model.scaler_scope != "window" and tail.any()
    tail_sampler = _scaled_without_tail(model, panel, sampler, tail) if is_scaled_by_series else sampler
    if validation is None and tail.any():
        record, entries = _train_twice(model, panel, learned, monitor, sampler, tail_sampler, options, tail)
    else:
        record = run_training(model, panel, learned, monitor, sampler, options, validation)
        if tail.any():
            entries = _calibration.calibrate(model, network, tail_sampler.windows, tail_sampler.rows, panel, tail)
    return {"training_record": record_arrays(record), **entries}


def _train_twice(
    model: NeuralForecaster, panel: Panel, learned: LearnedState, monitor: Monitor, sampler: WindowSampler,
    tail_sampler: WindowSampler, options: TrainingOptions, tail: Ints,
) -> tuple[TrainingRecord, dict[str, Any]]:
    """Train without the tail of each series, calibrate on it, and train on all windows.

    `tail_sampler` has scales without the tail. Returns the record of both parts and the entry of the calibration.
    """
    network, n_steps = learned.shared["network"], options.max_steps // 2
    columns = network.sizes.window_columns
    time_limit = None if options.time_limit is None else options.time_limit / 2
    window_index = windows.training_windows(panel, columns.input_size, columns.horizon, tail, model.recent_windows)
    first_sampler = replace(tail_sampler, window_index=window_index)
    first_options = replace(options, max_steps=n_steps, steps_after=options.max_steps - n_steps, time_limit=time_limit)
    first = run_training(model, panel, learned, monitor, first_sampler, first_options, folder="held_out")
    entries = _calibration.calibrate(model, network, first_sampler.windows, first_sampler.rows, panel, tail)
    if first.stop_reason in STOPPED:
        return first, entries
    network.cpu()  # where a checkpoint of the second part is restored
    second_sampler = replace(sampler, seed=sampler.seed ^ SECOND_SEED)
    second_options = replace(
        options, max_steps=options.max_steps - n_steps, steps_before=n_steps, time_limit=time_limit,
        seed=options.seed ^ SECOND_SEED,
        learning_rate=(options.learning_rate or max(first.learning_rate)) * (1.0 if options.lr_schedule == "constant" else SECOND_RATE),
    )
    second = run_training(model, panel, learned, monitor, second_sampler, second_options, folder="all")
    return join_records(first, second), entries


def _scaled_without_tail(
    model: NeuralForecaster, panel: Panel, sampler: WindowSampler, tail: Ints
) -> WindowSampler:
    """The sampler with location and scale of the series estimated from the rows before the tail."""
    loc, scale = _series_state.series_scales(panel.between(np.zeros_like(tail), panel.lengths - tail), model)
    rows = replace(sampler.rows, loc=loc[:, None], scale=scale[:, None])
    return replace(sampler, rows=rows, windows=WindowStore.from_arrays(rows))


def run_training(
    model: NeuralForecaster, panel: Panel, learned: LearnedState, monitor: Monitor, sampler: WindowSampler, options: TrainingOptions,
    validation: EvaluationWindows | None = None, folder: str = "",
) -> TrainingRecord:
    """Train the network of `learned` in place; checkpoints identify the run by parameters, data and initial weights.

    The checkpoints of a part of the training are in a `folder` of their own. The fits of a backtest write no checkpoints;
    those of a second part do not depend on when the first part stopped.
    """
    network = learned.shared["network"]
    sampler.stop_step = options.max_steps
    run: dict[str, str] = {}
    if not monitor.is_outermost:
        options = replace(options, checkpoint_dir=None)
    elif options.checkpoint_dir is not None:
        options = replace(options, checkpoint_dir=str(Path(options.checkpoint_dir) / folder))
        params = model.get_params(deep=False).items()
        run = {name: value if isinstance(value, str) else identify_param(value) for name, value in params}
        run |= {name: str(getattr(options, name)) for name in ARITHMETIC_OPTIONS}
        run |= {"model": type(model).__name__, "data": fingerprint(panel)}
        run |= {} if options.steps_before else {"weights": _weights_hash(network)}
    return train(network, sampler, validation, options, monitor, run)


def join_records(first: TrainingRecord, second: TrainingRecord) -> TrainingRecord:
    """The record of two parts of a training, neither of which was validated."""
    before = first.seconds[-1]
    return TrainingRecord(
        loss=first.loss + second.loss,
        learning_rate=first.learning_rate + second.learning_rate,
        gradient_norm=first.gradient_norm + second.gradient_norm,
        seconds=first.seconds + [before + seconds for seconds in second.seconds],
        best_step=len(first.loss) + second.best_step,
        stop_reason=second.stop_reason,
    )


def record_arrays(record: TrainingRecord) -> dict[str, Any]:
    """The training record as it is stored in the state: arrays by name, and scalars."""
    return {
        "loss": np.array(record.loss), "learning_rate": np.array(record.learning_rate),
        "gradient_norm": np.array(record.gradient_norm),
        "seconds": np.array(record.seconds), "validation_steps": np.array(list(record.validation_loss), dtype=np.int64),
        "validation_loss": np.array(list(record.validation_loss.values())), "best_step": record.best_step,
        "stop_reason": record.stop_reason,
    }  # fmt: skip


def _weights_hash(network: ForecastNetwork) -> str:
    """Hash of the initial weights, which identifies the run in its checkpoints."""
    return sha256(
        b"".join(
            tensor.detach().cpu().numpy().tobytes() for tensor in network.state_dict().values()
        )
    ).hexdigest()[:16]


def fine_tune(
    model: NeuralForecaster,
    learned: LearnedState,
    panel: Panel,
    freeze: Sequence[str] | Mapping[str, int] | None = None,
    max_steps: int | None = None,
    learning_rate: float | None = None,
) -> LearnedState:
    """Train a copy of the learned network further, by default at a tenth of the learning rate (a pretrained one at all of it).

    The residual correlation is estimated again. The weights and buffers of the modules in `freeze`
    stay bitwise equal; those of a dict are trained after that number of steps. `learned` is unchanged.
    """
    model = with_options(model, max_steps, learning_rate)
    is_trained = "pretraining" not in learned.shared  # otherwise the output of forecasts is new
    lr_factor = FINE_TUNE_LR_FACTOR if learning_rate is None and is_trained else 1.0
    previous_network = learned.shared["network"]
    names: set[str] = set()
    frozen_steps: dict[str, int] = {}
    if isinstance(freeze, Mapping):
        frozen_steps = steps_until_trained(previous_network, freeze)
    else:
        names = frozen_parameters(previous_network, freeze)
    initial_network = deepcopy(previous_network)
    for name, parameter in initial_network.named_parameters():
        parameter.requires_grad_(name not in names)
    fine_tuned = _fit.fit_network(
        model,
        panel,
        SILENT,
        replace(learned, shared={**learned.shared, "network": initial_network}),
        lr_factor,
        frozen_steps,
    )
    network = fine_tuned.shared["network"]
    frozen_weights = {name: value for name, value in previous_network.state_dict().items() if name in names}
    # Frozen values change by rounding in the moving average of the weights, and batch normalization
    # updates its statistics.
    network.load_state_dict(frozen_weights, strict=False)
    network.requires_grad_(True)
    return _residual_correlation.fit_residual_correlation(model, replace(fine_tuned, history=panel), panel)


def with_options(model: NeuralForecaster, max_steps: int | None, learning_rate: float | None) -> NeuralForecaster:
    """The model, or a copy with the options that are not None; `max_steps` replaces `max_epochs`."""
    changes: dict[str, Any] = {} if max_steps is None else {"max_steps": max_steps, "max_epochs": None}
    changes |= {} if learning_rate is None else {"learning_rate": learning_rate}
    return model.clone(**changes) if changes else model


def steps_until_trained(network: ForecastNetwork, freeze: Mapping[str, int]) -> dict[str, int]:
    """Number of steps for which a parameter is frozen, by name, from those of modules (gradual unfreezing).

    Howard and Ruder (2018), arXiv:1801.06146.
    """
    steps_by_name: dict[str, int] = {}
    for module, steps in freeze.items():
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
            raise ParameterError(
                f"The values of `freeze` must be numbers of training steps, got {format_value(steps)} for {format_value(module)}.",
                hint="Pass e.g. freeze={'window_encoder': 100}, or a list of modules that stay frozen.",
                parameter="freeze", value=steps,
            )
        for name in matching_names(network, module):
            steps_by_name[name] = max(steps, steps_by_name.get(name, 0))
    _require_trainable(network, steps_by_name)
    return steps_by_name


def frozen_parameters(network: ForecastNetwork, freeze: Sequence[str] | None) -> set[str]:
    """Names of all weights and buffers in the modules `freeze`, whose names may omit the prefix "body.".

    Raises `ParameterError` for an unknown module, and if no weight is left to train.
    """
    if freeze is None:
        return set()
    if isinstance(freeze, str) or not all(isinstance(text, str) for text in freeze):
        raise ParameterTypeError(
            f"`freeze` must be a list of module names, got {format_value(freeze)}.",
            hint="Pass e.g. freeze=['encoder'].",
            parameter="freeze", value=freeze,
        )
    names = {name for module in freeze for name in matching_names(network, module)}
    _require_trainable(network, names)
    return names


def matching_names(network: ForecastNetwork, module: str) -> list[str]:
    """Names of the weights and buffers of a module; raise `ParameterError` if the network does not have it."""
    names = [name for name in network.state_dict() if _is_inside(name, module) or _is_inside(name, f"body.{module}")]
    if not names:
        available = sorted({".".join(name.split(".")[:2]) for name, _ in network.named_parameters()})
        raise ParameterError(
            f"`freeze` must contain names of modules, got {format_value(module)}.",
            hint=f"Available: {format_list(available, max_shown=20)}.",
            parameter="freeze", value=module,
        )
    return names


def _require_trainable(network: ForecastNetwork, frozen: Collection[str]) -> None:
    """Raise `ParameterError` if all parameters are frozen."""
    if {name for name, _ in network.named_parameters()} <= set(frozen):
        raise ParameterError(
            "`freeze` must leave at least one module trainable, got all modules with weights.",
            hint="Remove one.",
            parameter="freeze",
        )


def _is_inside(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")
