"""Fine-tuning: training from the current weights, optionally with frozen modules."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepforecast.core.monitor import SILENT
from deepforecast.core.state import LearnedState
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.models.neural import _fit

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

FINE_TUNE_LR_FACTOR = 0.1  # smaller than in fit, against catastrophic forgetting


def fine_tune(
    model: NeuralForecaster,
    learned: LearnedState,
    panel: Panel,
    freeze: Sequence[str] | None = None,
    max_steps: int | None = None,
    learning_rate: float | None = None,
) -> LearnedState:
    """Train a copy of the learned network further, by default at a tenth of the learning rate.

    The weights and buffers of the modules in `freeze` stay bitwise equal. `learned` is unchanged.
    """
    model = _with_options(model, max_steps, learning_rate)
    lr_factor = FINE_TUNE_LR_FACTOR if learning_rate is None else 1.0
    previous_network = learned.shared["network"]
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
    )
    network = fine_tuned.shared["network"]
    frozen_weights = {name: value for name, value in previous_network.state_dict().items() if name in names}
    # Frozen values change by rounding in the moving average of the weights, and batch normalization
    # updates its statistics.
    network.load_state_dict(frozen_weights, strict=False)
    network.requires_grad_(True)
    return fine_tuned


def _with_options(model: NeuralForecaster, max_steps: int | None, learning_rate: float | None) -> NeuralForecaster:
    """The model, or a copy with the options that are not None; `max_steps` replaces `max_epochs`."""
    changes: dict[str, Any] = {} if max_steps is None else {"max_steps": max_steps, "max_epochs": None}
    changes |= {} if learning_rate is None else {"learning_rate": learning_rate}
    return model.clone(**changes) if changes else model


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
    state_names = list(network.state_dict())
    parameter_names = {name for name, _ in network.named_parameters()}
    frozen_names: set[str] = set()
    for prefix in freeze:
        matches = {name for name in state_names if _is_inside(name, prefix) or _is_inside(name, f"body.{prefix}")}
        if not matches:
            available = sorted({".".join(name.split(".")[:2]) for name in parameter_names})
            raise ParameterError(
                f"`freeze` must contain names of modules, got {format_value(prefix)}.",
                hint="Available: "
                f"{format_list(available, max_shown=20)}.",
                parameter="freeze", value=prefix,
            )
        frozen_names |= matches
    if parameter_names <= frozen_names:
        raise ParameterError(
            "`freeze` must leave at least one module trainable, got all modules with weights.",
            hint="Remove one.",
            parameter="freeze",
        )
    return frozen_names


def _is_inside(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")
