"""Seeded random numbers per series, independent of the other series and their order."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.data.integers import validate_integer


def standard_normal(seed: int, keys: Floats, shape: tuple[int, ...]) -> Floats:
    """Draw standard normal numbers, shape (len(keys), *shape); each row of `keys` identifies a series by its values.

    Equal rows get equal draws, others independent ones. Draws with a longer first axis extend those
    with a shorter one. Global random generators are not used.

    Examples
    --------
    >>> standard_normal(0, np.array([[1.0], [2.0], [1.0]]), (1,)).round(2)
    array([[0.17],
           [0.68],
           [0.17]])
    """
    seed_value = validate_integer(seed, "seed", minimum=0, maximum=2**64 - 1)
    keys = np.ascontiguousarray(keys + 0.0)  # -0.0 is 0.0
    draws = np.empty((len(keys), *shape))
    for row, key in zip(draws, keys, strict=True):
        digest = int.from_bytes(blake2b(key.tobytes(), digest_size=8).digest(), "little")
        np.random.Generator(np.random.Philox(key=[seed_value, digest])).standard_normal(out=row)
    return draws
