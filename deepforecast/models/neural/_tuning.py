"""Going on learning: from the weights there are, some parts of the network frozen."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepforecast.core.monitor import SILENT
from deepforecast.core.state import Learned
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, ParameterTypeError, shown, some
from deepforecast.models.neural import _making

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

SHARE = 0.1  # of the fit's rate: what is known is not to be forgotten

def refined(
    model: NeuralForecaster,
    learned: Learned,
    panel: Panel,
    freeze: Sequence[str] | None = None,
    max_steps: int | None = None,
    learning_rate: float | None = None,
) -> Learned:
    """Learned on from these weights, at a tenth of the rate if none is said; the frozen parts stay as they are, to the bit."""
    model = _told(model, max_steps, learning_rate)
    share = SHARE if learning_rate is None else 1.0
    before = learned.shared["network"]
    names = frozen(before, freeze)
    begin = deepcopy(before)
    for name, one in begin.named_parameters():
        one.requires_grad_(name not in names)
    found = _making.learned(model, panel, SILENT, replace(learned, shared={**learned.shared, "network": begin}), share)
    network = found.shared["network"]
    held = {name: value for name, value in before.state_dict().items() if name in names}
    network.load_state_dict(held, strict=False)  # an average of the weights rounds, and running means follow the data
    network.requires_grad_(True)
    return found


def _told(model: NeuralForecaster, max_steps: int | None, learning_rate: float | None) -> NeuralForecaster:
    """The model, or one like it with other steps and another rate, each held to the range of its parameter."""
    said: dict[str, Any] = {} if max_steps is None else {"max_steps": max_steps, "max_epochs": None}
    said |= {} if learning_rate is None else {"learning_rate": learning_rate}
    return model.clone(**said) if said else model


def frozen(network: ForecastNetwork, freeze: Sequence[str] | None) -> set[str]:
    """The weights and running means of these parts, named as in `network_.named_parameters()`; "body." may be left out."""
    if freeze is None:
        return set()
    if isinstance(freeze, str) or not all(isinstance(one, str) for one in freeze):
        raise ParameterTypeError(f"freeze is a list of names of parts of the network; got {shown(freeze)}.")
    there, learned, found = list(network.state_dict()), {name for name, _ in network.named_parameters()}, set[str]()
    for part in freeze:
        mine = {name for name in there if _inside(name, part) or _inside(name, f"body.{part}")}
        if not mine:
            parts = sorted({".".join(name.split(".")[:2]) for name in learned})
            raise ParameterError(f"freeze names parts of the network: {some(parts, most=20)}; {shown(part)} is none of them.")
        found |= mine
    if learned <= found:
        raise ParameterError("freeze leaves nothing to learn: all parts are named. Leave one out.")
    return found


def _inside(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")
