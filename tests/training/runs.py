"""Small fits, whole or cut short, and what is compared of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deepforecast import LSTM
from deepforecast.core.monitor import Monitor
from deepforecast.data.panel import Panel
from deepforecast.datasets import generate

FRAME = generate(3, 90, seed=1)
DROPOUT = {"horizon": 4, "input_size": 12, "hidden_size": 4, "decoder_size": 4, "n_layers": 2, "dropout": 0.3, "batch_size": 8}


class Killed(BaseException):
    """What ends a run at once, as a signal would."""


def lstm(**given: Any) -> LSTM:
    """A small network with dropout, trained in one part unless `intervals` says otherwise."""
    intervals = None if given.get("head") == "point" else "uncalibrated"
    return LSTM(**{**DROPOUT, "max_steps": 30, "learning_rate": 1e-2, "intervals": intervals, **given})


def cut(model: Any, at: int, frame: Any = FRAME) -> None:
    """A fit that is killed after so many steps, counted from where it begins."""
    asked = iter(range(1, 10**6))

    def stop() -> bool:
        if next(asked) >= at:
            raise Killed
        return False

    try:
        watched(model, Monitor(stop_when=stop), frame)
    except Killed:
        return
    raise AssertionError(f"the run ended before step {at}")


def break_losses(monkeypatch: Any, steps: Any) -> Callable[[], int]:
    """Make the loss of these steps NaN, counted from 1 over all fits; the count of steps."""
    from deepforecast.nn.network import ForecastNetwork

    plain, counter = ForecastNetwork.loss, [0]

    def loss(self: Any, *given: Any) -> Any:
        value = plain(self, *given)
        if not self.training:
            return value
        counter[0] += 1
        return value * float("nan") if counter[0] in steps else value

    monkeypatch.setattr(ForecastNetwork, "loss", loss)
    return lambda: counter[0]


def watched(model: Any, monitor: Monitor, frame: Any = FRAME) -> Any:
    """A fit with somebody who listens."""
    model.__dict__["state_"] = model._fit_panel(Panel.from_frame(frame), monitor)
    return model


def weights(model: Any) -> dict[str, np.ndarray]:
    """Of a fitted model, copied."""
    return {name: value.numpy().copy() for name, value in model.network_.state_dict().items()}


def same(one: Any, other: Any) -> bool:
    """Whether two fitted models have the same bits."""
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(left[name].tobytes() == right[name].tobytes() for name in left)


def nearly(one: Any, other: Any) -> float:
    """The largest difference of weights."""
    left, right = weights(one), weights(other)
    return max(float(np.abs(left[name] - right[name]).max()) for name in left)


def stopping(after: int) -> Callable[[], bool]:
    """Asked that often, it says stop."""
    asked = iter(range(1, 10**6))
    return lambda: next(asked) >= after
