"""Scaled time and changepoints of additive models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints


def scale_time(clock: Ints, start: Any, span: Any) -> Floats:
    """Time from 0 at the first to 1 at the last value of a history."""
    return np.asarray((clock - start) / span)


def place_changepoints(time: Floats, count: int, fraction: float) -> Floats:
    """Changepoints, evenly spaced over the first `fraction` of the values."""
    rows = int(np.floor(len(time) * fraction))
    count = min(count, rows - 1)
    if count < 1:
        return np.empty(0)
    return np.asarray(time[np.linspace(0, rows - 1, count + 1).round().astype(int)[1:]])


def hinges(time: Floats, changes: Sequence[float] | Floats) -> Floats:
    """Hinge functions max(t - s_j, 0), (rows, changepoints)."""
    return np.asarray(np.maximum(time[:, None] - np.asarray(changes)[None, :], 0.0))
