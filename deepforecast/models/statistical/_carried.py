"""Seasons beside what the model of the rest has learned: packed together, carried on over new rows, laid out ahead."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._known import Known
from deepforecast.models.statistical._seasons import CYCLES

INNER = "rest."
"""Before the names of what the model of the rest has learned."""


def together(inner: Learned, seasons: Mapping[str, Floats], known: Known, history: Panel | None) -> Learned:
    """What a model with seasons has learned."""
    held = {INNER + name: values for name, values in inner.by_series.items()}
    shared = {INNER + name: value for name, value in inner.shared.items()}
    return Learned({**held, **seasons, **known.arrays()}, shared, history)


def carried_on(learned: Learned, panel: Panel) -> tuple[Floats, dict[str, Floats]]:
    """The rows that follow without their seasons, and the seasons after them."""
    y, moved = panel.y, {}
    into = np.arange(len(y)) - np.repeat(panel.indptr[:-1], panel.lengths)
    for name, season in _seasons(learned).items():
        length = season.shape[1]
        y = y - season[panel.row_series, into % length]
        moved[name] = np.take_along_axis(season, (np.arange(length) + panel.lengths[:, None]) % length, axis=1)
    return y, moved


def last_cycles(panel: Panel, lengths: tuple[int, ...], seasons: Floats) -> dict[str, Floats]:
    """The last cycle of each season, place 0 that of the first step ahead; 0 where a series has no such season."""
    found = {}
    for length, season in zip(lengths, seasons, strict=True):
        place = panel.indptr[1:, None] - length + np.arange(length)
        there = (panel.lengths >= CYCLES * length)[:, None]
        found[f"season_{length}"] = np.where(there, season[np.where(there, place, 0)], 0.0)
    return found


def seasons_ahead(learned: Learned, steps: int) -> dict[str, Floats]:
    """Each season at the steps ahead."""
    every = np.arange(steps)
    return {name: held[:, every % held.shape[1]] for name, held in _seasons(learned).items()}


def season_ahead(learned: Learned, steps: int) -> Floats:
    """All of them together."""
    return sum(seasons_ahead(learned, steps).values(), np.zeros((len(learned["known"]), steps)))


def unpacked(learned: Learned) -> Learned:
    """What the model of the rest has learned."""
    by_series, shared = (
        {name.removeprefix(INNER): held for name, held in part.items() if name.startswith(INNER)}
        for part in (learned.by_series, learned.shared)
    )
    return Learned(by_series, shared)


def _seasons(learned: Learned) -> dict[str, Floats]:
    return {name: held for name, held in learned.by_series.items() if name.startswith("season_")}
