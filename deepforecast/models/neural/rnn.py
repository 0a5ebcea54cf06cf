"""RNN: plain recurrent layers."""

from __future__ import annotations

from typing import ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._recurrent import RecurrentForecaster


@register
class RNN(RecurrentForecaster):
    """The plain recurrent layer: its state is a bent sum of the row and of the state before. It forgets fast: the baseline.
    Elman 1990, "Finding Structure in Time".

    Measured coverage of 80 % intervals at defaults: M1 monthly 79 %, NN5 daily 72 %, EPF Nord Pool
    hourly 68 % (benchmarks/bench_coverage.py).

    >>> from deepforecast.datasets import generate
    >>> RNN(horizon=7, hidden_size=8, max_steps=20).fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    cell: ClassVar[str] = "rnn"

    activation: Literal["tanh", "relu"] = param(default="tanh", help="what bends the sum")
