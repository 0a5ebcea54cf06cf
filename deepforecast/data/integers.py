"""Validation of integer arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.errors import ParameterError, ParameterTypeError, format_value


def validate_integer(value: Any, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int if it is an integer from `minimum` to `maximum`; raise otherwise, also for bools and floats.

    Examples
    --------
    >>> validate_integer(np.int64(3), "gap", minimum=0)
    3
    """
    bounds = f"at least {minimum}" if maximum is None else f"at least {minimum} and at most {maximum:,}"
    subject = f"`{name}`" if name.isidentifier() else name
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise ParameterTypeError(
            f"{subject} must be an integer of {bounds}, got {format_value(value)} ({type(value).__name__})."
        )
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise ParameterError(f"{subject} must be {bounds}, got {format_value(f'{number:,}')}.")
    return number
