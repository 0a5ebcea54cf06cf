"""Pretraining of a network on windows of a panel, without forecasting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from deepforecast.core.monitor import SILENT
from deepforecast.core.state import State
from deepforecast.data.columns import warn_undeclared
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.models.neural import _fit, _training
from deepforecast.models.neural._residual_correlation import fit_residual_correlation
from deepforecast.nn.layers import SeededInit
from deepforecast.training.pretraining import OBJECTIVES, Objective, PretrainingNetwork
from deepforecast.training.process import TRAINING_LOCK, torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

NOT_CALIBRATED = "the network is only pretrained. Fine-tune it on the series"


def pretrain(
    model: NeuralForecaster, panel: Panel, objective: Any, max_steps: int | None, learning_rate: float | None
) -> State:
    """The state of a new network that is trained by objectives; its entry "pretraining" has their names."""
    import torch

    if panel.undeclared:
        warn_undeclared(panel.undeclared)
    state = model._fit_panel(panel, _fit.UserTraining())
    untrained, panel = state.learned, cast(Panel, state.learned.history)
    model = _training.with_options(model, max_steps, learning_rate)
    with TRAINING_LOCK, torch_defaults(), torch.inference_mode(False):
        network = untrained.shared["network"]
        objectives, weights = resolve_objectives(objective, network)
        with SeededInit(model.seed):
            pretraining_network = PretrainingNetwork(network, objectives, weights)
        scales = (untrained.by_series["loc"], untrained.by_series["scale"])
        sampler, _, options = _fit.build_batches(model, panel, network.sizes.window_columns, scales)
        # The trainer needs the loss, the sizes and the weights of a network, which this one has.
        learned = replace(untrained, shared={**untrained.shared, "network": pretraining_network})
        record = _training.run_training(model, panel, learned, SILENT, sampler, options)
        network.cpu()
    entries: dict[str, Any] = {
        "training_record": _training.record_arrays(record),
        "pretraining": {
            "objectives": [objective.name for objective in objectives],
            "trains_forecast": any(objective.trains_forecast for objective in objectives),
        },
        "not_calibrated": NOT_CALIBRATED,
    }
    learned = replace(untrained, shared={**untrained.shared, **entries})
    if entries["pretraining"]["trains_forecast"]:
        learned = fit_residual_correlation(model, learned, panel)
    return replace(state, learned=learned)


def resolve_objectives(objective: Any, network: ForecastNetwork) -> tuple[list[Objective], list[float]]:
    """The objectives, as copies, and their weights.

    `objective` is a name, an `Objective`, a list of these, or a dict from these to weights; "auto" is "next_patch" for
    a network that is causal itself, otherwise "masked_patches".
    """
    if isinstance(objective, Mapping):
        names, weights = list(objective), list(objective.values())
    else:
        names = list(objective) if isinstance(objective, Sequence) and not isinstance(objective, str) else [objective]
        weights = [1.0] * len(names)
    if not names:
        raise ParameterError("`objective` must have at least one objective, got none.", parameter="objective")
    for weight in weights:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not (isfinite(weight) and weight > 0):
            raise ParameterError(
                f"The weights of objectives must be positive numbers, got {format_value(weight)}.",
                parameter="objective", value=weight,
            )
    causal = getattr(network.body, "predicts_window", False)
    return [_make_objective(("next_patch" if causal else "masked_patches") if name == "auto" else name) for name in names], weights


def _make_objective(objective: Any) -> Objective:
    """A new objective of this name, or a copy of an instance."""
    if isinstance(objective, Objective):
        return deepcopy(objective)
    if isinstance(objective, type) and issubclass(objective, Objective):
        raise ParameterTypeError(
            f"`objective` must be an instance, got the class {objective.__name__}.",
            hint=f"Pass {objective.__name__}(...).", parameter="objective",
        )
    if objective not in OBJECTIVES:
        names = format_list(["auto", *OBJECTIVES], max_shown=len(OBJECTIVES) + 1)
        raise ParameterError(
            f"`objective` must be one of {names}, an Objective, a list of these or a dict from these to weights, got "
            f"{format_value(objective)}.",
            parameter="objective", value=objective,
        )
    return OBJECTIVES[objective]()
