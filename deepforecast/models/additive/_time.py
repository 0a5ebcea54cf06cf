"""Scaled time and changepoints of additive models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints


def scale_time(clock: Ints, start: Any, span: Any) -> Floats:
    """Times on a scale from 0 at the first to 1 at the last value of a history, which starts at `start` and lasts `span`."""
    return np.asarray((clock - start) / span)


def place_changepoints(time: Floats, n_changepoints: int, fraction: float) -> Floats:
    """Changepoints at values evenly spaced over the first `fraction` of the values, as in Prophet.

    There are fewer than `n_changepoints` if there are too few values; none is at the first value.
    """
    n_candidates = int(np.floor(len(time) * fraction))
    n_changepoints = min(n_changepoints, n_candidates - 1)
    if n_changepoints < 1:
        return np.empty(0)
    return np.asarray(time[np.linspace(0, n_candidates - 1, n_changepoints + 1).round().astype(int)[1:]])


def hinges(time: Floats, changes: Sequence[float] | Floats) -> Floats:
    """Hinge functions max(t - s_j, 0), (rows, changepoints)."""
    return np.asarray(np.maximum(time[:, None] - np.asarray(changes)[None, :], 0.0))
