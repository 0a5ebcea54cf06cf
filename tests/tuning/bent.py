"""A model whose error is known, fitted in no time, and whatever can go wrong with it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np

from deepforecast import Forecaster, param
from deepforecast.core.forecast import PointForecast
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.errors import ParameterError


class Bent(Forecaster):
    """The last value plus `away`: the nearer to 0, the better on a random walk. `fault`: what happens in a fit."""

    capabilities = Capabilities()

    away: float = param(default=1.0, low=-4.0, high=4.0, help="how far off it is")
    width: int = param(default=8, at_least=1, low=1, high=64, log=True, expensive=True, help="of nothing")
    kind: Literal["a", "b"] = param(default="a", search=("a", "b"), help="of nothing")
    inner: float = param(default=0.5, low=0.0, high=1.0, when=lambda drawn: drawn["kind"] == "b", help="of nothing, for b")
    shape: tuple[int, ...] = param(default=(1, 2), search=((1, 2), (3,)), help="of nothing")
    seed: int = param(default=0, at_least=0, help="of nothing")
    fault: str = param(default="", help="what happens in a fit")
    mark: str | None = param(default=None, help="file that a fit leaves a line in")

    def _min_observations(self, panel: Any) -> int:
        return 1

    def _fit(self, panel: Any, monitor: Any) -> LearnedState:
        if self.mark is not None:
            with open(self.mark, "a") as file:
                file.write(f"{os.getpid()} {self.away}\n")
        happen(self.fault, self.away)
        return self._advance(None, panel, True)

    def _advance(self, learned: Any, panel: Any, fresh: bool) -> LearnedState:
        return LearnedState({"last": panel.y[panel.indptr[1:] - 1]})

    def _forecast(self, learned: Any, steps: int, future: Any) -> PointForecast:
        off = self.seed / 10 + self.away
        return PointForecast(np.repeat(learned["last"][:, None] + off, steps, axis=1), self.name)


def happen(fault: str, away: float) -> None:
    """`what` or `what:argument`, of all trials; `some-what` of those with away < 0."""
    what, _, said = fault.partition(":")
    if what.startswith("some-"):
        if away >= 0:
            return
        what = what.removeprefix("some-")
    match what:
        case "raise":
            raise RuntimeError(f"it broke at {away:.3f}")
        case "memory":
            raise MemoryError
        case "device":
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        case "refuse":
            raise ParameterError(f"away is not to be {away:.3f}.")
        case "sleep":
            time.sleep(float(said))
        case "interrupt":
            signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        case "slow-once":
            if not Path(said).exists():
                Path(said).touch()
                time.sleep(1.0)
        case "kill":
            left = Path(said)
            if not left.exists():
                left.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        case "always-kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "mute":
            raise Broken
        case _:
            return


class Broken(Exception):
    """An error without words."""

    def __str__(self) -> str:
        raise ValueError("no words")
