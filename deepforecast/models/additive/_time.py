"""Time as an additive model counts it: from 0 to 1 over a history, and where on it slopes may change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints


def scale_time(clock: Ints, start: Any, span: Any) -> Floats:
    """0 at the first value of a history, 1 at its last."""
    return np.asarray((clock - start) / span)


def place_changepoints(time: Floats, count: int, fraction: float) -> Floats:
    """Where slopes may change: evenly among the values of the first `fraction` of a history, fewer where it has few values."""
    rows = int(np.floor(len(time) * fraction))
    count = min(count, rows - 1)
    if count < 1:
        return np.empty(0)
    return np.asarray(time[np.linspace(0, rows - 1, count + 1).round().astype(int)[1:]])


def hinges(time: Floats, changes: Sequence[float] | Floats) -> Floats:
    """How far each row is past each change, (rows, changes)."""
    return np.asarray(np.maximum(time[:, None] - np.asarray(changes)[None, :], 0.0))
