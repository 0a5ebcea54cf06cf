"""Panels to compare on, and models that fail in every way a model can. Not registered."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError


def seasonal(n: int = 12, length: int = 48) -> pd.DataFrame:
    """Monthly series s0, s1 ... of a yearly season and noise, the season of each larger than that of the one before."""
    random = np.random.default_rng(0)
    t = np.arange(length)
    ds = pd.date_range("2015-01-01", periods=length, freq="MS")
    parts = [
        pd.DataFrame({"unique_id": f"s{i}", "ds": ds, "y": 100 + i * np.sin(t / 6 * np.pi) + random.standard_normal(length)})
        for i in range(n)
    ]
    return pd.concat(parts, ignore_index=True)


class Wordless(Exception):
    """Cannot be told, nor rebuilt in another process."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first)

    def __str__(self) -> str:
        raise RuntimeError("no words")


class LastValue(Forecaster):
    """Points only, from the last value; or an end of another kind, as `how` says."""

    capabilities = Capabilities(missing=True)

    how: str = param(default="well", help="how it ends")
    pause: float = param(default=0.0, help="seconds a series takes to fit")

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        time.sleep(self.pause * len(panel))
        if self.how == "fit":
            raise ValueError("no <b>fit</b> \x1b[31m today")
        if self.how == "data":
            raise DataError("A rule of mine is broken.")
        if self.how == "memory":
            raise MemoryError
        if self.how == "wordless":
            raise Wordless(1, 2)
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "exit":
            os._exit(3)  # as a kernel's segmentation fault or the system's out-of-memory killer ends a process
        return LearnedState({"last": panel.padded(1)[:, 0]})

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return LearnedState({"last": panel.padded(1)[:, 0]})

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        if self.how == "predict":
            raise RuntimeError("no forecast")
        values = np.repeat(learned["last"][:, None], steps, axis=1)
        if self.how == "missing":
            values = values * np.nan
        if self.how == "huge":
            values = values * 0 + 1e305
        return PointForecast(values, self.name)


FAILURES = ("fit", "predict", "data", "memory", "wordless", "missing", "huge")


class Trainer(LastValue):
    """One fit for all series, of `steps` steps, that reports and can be told to stop."""

    capabilities = Capabilities(missing=True, local=False)

    steps: int = param(default=1, help="steps of a fit, a hundredth of a second each")

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        for step in range(self.steps):
            time.sleep(0.01)
            monitor.report(1.0, step + 1, n_steps=self.steps)
            if monitor.should_stop:
                break
        return super()._fit(panel, monitor)
