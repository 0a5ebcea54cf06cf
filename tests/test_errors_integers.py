"""Whole numbers: what is one, and how a message says what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deepforecast.errors import ParameterError, ParameterTypeError, validate_integer


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_any_integer_becomes_an_int(value: Any) -> None:
    assert type(validate_integer(value, "gap")) is int
    assert validate_integer(value, "gap", minimum=3, maximum=3) == 3


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float64(3), "3", None, [3]])
def test_nothing_else_is_one(value: Any) -> None:
    with pytest.raises(ParameterTypeError, match=r"`gap` must be an integer of at least 1, got .* \("):
        validate_integer(value, "gap")


@pytest.mark.parametrize(
    ("value", "bounds", "said"),
    [
        (0, {}, "`gap` must be at least 1, got 0."),
        (-1, {"minimum": 0}, "`gap` must be at least 0, got -1."),
        (10_001, {"maximum": 10_000}, "`gap` must be at least 1 and at most 10,000, got 10,001."),
        (10**400, {"maximum": 9}, "`gap` must be at least 1 and at most 9, got 10,000,000,000,000"),
    ],
)
def test_bounds_are_named_with_the_value(value: int, bounds: dict[str, int], said: str) -> None:
    with pytest.raises(ParameterError, match="gap") as caught:
        validate_integer(value, "gap", **bounds)
    assert not isinstance(caught.value, ParameterTypeError)
    assert str(caught.value).startswith(said)
    assert len(str(caught.value)) < 200
