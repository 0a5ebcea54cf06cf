"""The way of the data is short: own functions entered by one fit and one predict of a baseline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Forecaster
from tests.frames import P

MOST = 25


def entered(call: Callable[[], object]) -> list[str]:
    """The library's own functions that run, by name."""
    found: dict[str, None] = {}

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("deepforecast"):
            found[f"{module}.{frame.f_code.co_qualname}"] = None

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(found)


@pytest.mark.skipif(pd.__version__ < "3", reason="counted with the newest pandas; older ones go through a function or two more")
def test_own_functions_on_the_way(model: Forecaster) -> None:
    frame = P(3, 200).assign(y=lambda one: one.y + np.random.default_rng(0).normal(size=600))
    model.fit(frame).predict(7)  # imports and caches are not the way of the data
    for call in (lambda: model.fit(frame), lambda: model.predict(7)):
        assert len(entered(call)) <= MOST, entered(call)
