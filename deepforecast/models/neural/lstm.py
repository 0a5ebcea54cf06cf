"""LSTM: recurrent layers with a memory that gates open and close."""

from __future__ import annotations

from typing import ClassVar

from deepforecast.core.registry import register
from deepforecast.models.neural._recurrent import RecurrentForecaster


@register
class LSTM(RecurrentForecaster):
    """A memory cell beside the state: gates decide what is let in, kept and shown, so that what lies far back is remembered.

    Hochreiter, Schmidhuber 1997, "Long Short-Term Memory".

    Measured coverage of 80 % intervals at defaults: M1 monthly 78 %, NN5 daily 75 %, EPF Nord Pool
    hourly 66 % (benchmarks/bench_coverage.py).

    >>> from deepforecast.datasets import generate
    >>> LSTM(horizon=7, hidden_size=8, max_steps=20).fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    cell: ClassVar[str] = "lstm"
