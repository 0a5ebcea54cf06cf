"""Whole numbers that a call is given: one check, one way to say it."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.errors import ParameterError, ParameterTypeError, shown


def whole_number(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """`value` as an int, if it is a whole number of at least `least` and at most `most`; True and 3.0 are none.

    >>> whole_number(np.int64(3), "gap", least=0)
    3
    """
    bounds = f"at least {least}" if most is None else f"at least {least} and at most {most:,}"
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise ParameterTypeError(f"{name} is a whole number, {bounds}; got {shown(value)} ({type(value).__name__}).")
    number = int(value)
    if number < least or (most is not None and number > most):
        raise ParameterError(f"{name} is {bounds}; got {shown(f'{number:,}')}.")
    return number
