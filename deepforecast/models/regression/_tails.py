"""What each series keeps of its past for forecasts: the last values of its columns, and what growing windows have seen."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.lags import KINDS, Lagged
from deepforecast.kernels import features as kernel
from deepforecast.models.regression._design import Design, coded

GROWING = KINDS.index("expanding_mean")


def tail(values: Floats, indptr: Ints, rows: int) -> Floats:
    """The last `rows` values of each series, (series, rows); NaN on the left of shorter ones."""
    index = indptr[1:, None] - rows + np.arange(rows)
    inside = index >= indptr[:-1, None]
    return np.where(inside, values[np.where(inside, index, 0)], np.nan)


def gone_on(before: Floats, values: Floats, indptr: Ints) -> Floats:
    """The tails after further values of each series."""
    rows, new = before.shape[1], np.diff(indptr)
    place = np.arange(rows) + new[:, None]  # in (tail, further values)
    old = np.take_along_axis(before, np.minimum(place, rows - 1), axis=1)
    index = np.clip(indptr[:-1, None] + place - rows, 0, max(len(values) - 1, 0))
    return np.where(place < rows, old, values[index])


def growing(design: Design, block: int) -> list[tuple[Lagged, ...]]:
    """The growing windows among the features, as each step of a block sees them."""
    return [
        tuple(one for one in design.shifted(step).past if KINDS.index(one.kind) >= GROWING) for step in range(block)
    ]


def seen(design: Design, block: int, z: Floats, indptr: Ints) -> Floats:
    """What growing windows have seen at the end of each series: (series, block, windows, SUMMARY)."""
    steps = growing(design, block)
    found = np.zeros((len(indptr) - 1, block, len(steps[0]), kernel.SUMMARY))
    for step, features in enumerate(steps):
        if features:
            part = np.zeros((len(found), len(features), kernel.SUMMARY))
            kernel.begin_watch(z, indptr, *coded(features), part)
            found[:, step] = part
    return found


def seen_on(design: Design, before: Floats, z: Floats, indptr: Ints, known: int) -> Floats:
    """The same after further values: each series of `z` starts with `known` values that were there before."""
    found = before.copy()
    for step, features in enumerate(growing(design, before.shape[1])):
        if features:
            part = np.ascontiguousarray(found[:, step])
            kernel.watch_on(z, indptr, known, *coded(features), part)
            found[:, step] = part
    return found


def whole(design: Design, step: int, before: Floats) -> Floats:
    """What windows have seen, one place for each feature, as the kernel takes it."""
    places = [place for place, one in enumerate(design.past) if KINDS.index(one.kind) >= GROWING]
    found = np.zeros((len(before), len(design.past), kernel.SUMMARY if places else 0))
    if places:
        found[:, places] = before[:, step]
    return found
