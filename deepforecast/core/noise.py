"""Seeded noise that belongs to a series: the same whatever other series are forecast beside it, in whatever order."""

from __future__ import annotations

import zlib

import numpy as np

from deepforecast.data.frames import Floats


def standard_normal(seed: int, keys: Floats, shape: tuple[int, ...]) -> Floats:
    """Standard normal draws of `shape` for each row of `keys`; equal rows get equal draws, the caller's generators are untouched."""
    keys = np.ascontiguousarray(keys)
    draws = np.empty((len(keys), *shape))
    for row, key in zip(draws, keys, strict=True):
        generator = np.random.Generator(np.random.Philox(key=[seed & (2**64 - 1), zlib.crc32(key.tobytes())]))
        generator.standard_normal(out=row)
    return draws
