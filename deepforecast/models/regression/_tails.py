"""What each series keeps of its past for forecasts: the last values of its columns, and what growing windows have seen."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.lags import FEATURE_KINDS
from deepforecast.kernels import features as kernel
from deepforecast.models.regression._design import Design, coded

GROWING = FEATURE_KINDS.index("expanding_mean")


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


def growing(design: Design) -> list[int]:
    """The places of windows that grow with the series among its features of the past."""
    return [place for place, one in enumerate(design.past) if FEATURE_KINDS.index(one.kind) >= GROWING]


def seen(design: Design, z: Floats, indptr: Ints) -> Floats:
    """What growing windows have seen for the row after each series: (series, windows, SUMMARY).

    All steps of a block see the same: each looks as much further back as it lies further ahead.
    """
    features = [design.past[place] for place in growing(design)]
    found = np.zeros((len(indptr) - 1, len(features), kernel.SUMMARY))
    if features:
        kernel.begin_expanding(z, indptr, *coded(features), found)
    return found


def seen_on(design: Design, before: Floats, z: Floats, indptr: Ints, known: int) -> Floats:
    """The same after further values: each series of `z` starts with `known` values that were there before."""
    found = before.copy()
    kernel.extend_expanding(z, indptr, known, *coded([design.past[place] for place in growing(design)]), found)
    return found


def whole(design: Design, before: Floats) -> Floats:
    """What windows have seen, one place for each feature, as the kernel takes it."""
    places = growing(design)
    found = np.zeros((len(before), len(design.past), kernel.SUMMARY if places else 0))
    if places:
        found[:, places] = before
    return found
