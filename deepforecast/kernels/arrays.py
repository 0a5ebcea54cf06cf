"""Arrays as kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_read_only(values: Any) -> NDArray[np.float64]:
    """Numbers that a kernel does not write to, without a copy: a view that cannot be written to, whatever it came from.

    Kernels are compiled anew for arrays that can be written to; so histories, which often cannot, come like this always.
    """
    view = np.require(values, np.float64, ["C"]).view()
    view.flags.writeable = False
    return view
