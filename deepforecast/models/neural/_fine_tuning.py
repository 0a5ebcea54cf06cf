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
    """Train on from the learned weights, by default at a tenth of the learning rate.

    Frozen modules stay bitwise equal.
    """
    model = _with_options(model, max_steps, learning_rate)
    lr_factor = FINE_TUNE_LR_FACTOR if learning_rate is None else 1.0
    previous_network = learned.shared["network"]
    names = frozen_parameters(previous_network, freeze)
    initial_network = deepcopy(previous_network)
    for name, parameter in initial_network.named_parameters():
        parameter.requires_grad_(name not in names)
    fine_tuned = _fit.fit_network(model, panel, SILENT, replace(learned, shared={**learned.shared, "network": initial_network}), lr_factor)
    network = fine_tuned.shared["network"]
    frozen_weights = {name: value for name, value in previous_network.state_dict().items() if name in names}
    # The moving average of weights rounds, and batch norm statistics follow the data.
    network.load_state_dict(frozen_weights, strict=False)
    network.requires_grad_(True)
    return fine_tuned


def _with_options(model: NeuralForecaster, max_steps: int | None, learning_rate: float | None) -> NeuralForecaster:
    changes: dict[str, Any] = {} if max_steps is None else {"max_steps": max_steps, "max_epochs": None}
    changes |= {} if learning_rate is None else {"learning_rate": learning_rate}
    return model.clone(**changes) if changes else model


def frozen_parameters(network: ForecastNetwork, freeze: Sequence[str] | None) -> set[str]:
    """Names of parameters and buffers in these modules, whose names may omit the prefix "body."."""
    if freeze is None:
        return set()
    if isinstance(freeze, str) or not all(isinstance(text, str) for text in freeze):
        raise ParameterTypeError(
            f"`freeze` must be a list of module names, got {format_value(freeze)}."
        )
    state_names, parameter_names, frozen_names = list(network.state_dict()), {name for name, _ in network.named_parameters()}, set[str]()
    for prefix in freeze:
        matches = {name for name in state_names if _is_inside(name, prefix) or _is_inside(name, f"body.{prefix}")}
        if not matches:
            available = sorted({".".join(name.split(".")[:2]) for name in parameter_names})
            raise ParameterError(
                "`freeze` must name modules of the network "
                f"({format_list(available, max_shown=20)}), got {format_value(prefix)}."
            )
        frozen_names |= matches
    if parameter_names <= frozen_names:
        raise ParameterError(
            "`freeze` must leave a module to train, but contains all of them. Leave one out."
        )
    return frozen_names


def _is_inside(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")
