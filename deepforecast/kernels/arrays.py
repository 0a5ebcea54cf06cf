"""Conversion of arrays for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_read_only(values: Any) -> NDArray[np.float64]:
    """Return a read-only float64 view in C order (no copy if possible).

    Numba compiles separate versions for writable and read-only arrays; histories are often
    read-only.
    """
    view = np.require(values, np.float64, ["C"]).view()
    view.flags.writeable = False
    return view
