"""Validation of integer arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.errors import ParameterError, ParameterTypeError, format_value


def validate_integer(value: Any, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int if it is an integer from `minimum` to `maximum`.

    Bools and floats raise.

    Examples
    --------
    >>> validate_integer(np.int64(3), "gap", minimum=0)
    3
    """
    bounds = f"at least {minimum}" if maximum is None else f"at least {minimum} and at most {maximum:,}"
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise ParameterTypeError(
            f"{name} must be an integer, {bounds}; got {format_value(value)} "
            f"({type(value).__name__})."
        )
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise ParameterError(f"{name} must be {bounds}; got {format_value(f'{number:,}')}.")
    return number
