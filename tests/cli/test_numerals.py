"""Numbers from text."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from deepforecast.cli.numerals import parse_numbers
from deepforecast.errors import DataError


def read(*text: str | None, decimal: str = ".") -> list[float | None]:
    return parse_numbers(pa.chunked_array([pa.array(text, pa.string())]), "y", decimal).to_pylist()


def test_numbers_are_read_exactly() -> None:
    assert read("0.1", "1e-3", "+.5", "-2.", " 7 ") == [0.1, 0.001, 0.5, -2.0, 7.0]
    assert read("9007199254740992", "-3") == [2**53, -3]
    assert read("inf", "-Infinity") == [math.inf, -math.inf]


@pytest.mark.parametrize("text", ["", " ", "NA", "n/a", "NaN", "null", "None", None])
def test_words_for_nothing_are_missing(text: str | None) -> None:
    assert read(text, "1.5") == [None, 1.5]


def test_all_missing_is_still_a_column_of_numbers() -> None:
    assert parse_numbers(pa.chunked_array([pa.array(["", None], pa.string())]), "y").type == pa.float64()


def test_a_decimal_comma_when_said() -> None:
    assert read("1,5", decimal=",") == [1.5]


@pytest.mark.parametrize("text", ["1,5", "abc", "1 000", "1_000", "0x10", "$5", "5%", "١", "--1", "1e", "true", "."])
def test_other_text_is_refused_by_row(text: str) -> None:
    with pytest.raises(DataError, match="Column y must be numeric; data row 2 holds "):
        read("1", text)


def test_a_comma_brings_its_own_hint() -> None:
    with pytest.raises(DataError, match="Pass --decimal , if that is the decimal separator"):
        read("1,5")


@pytest.mark.parametrize("text", ["9007199254740993", "-9007199254740993", "99999999999999999999"])
def test_integers_that_a_float_would_round_are_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"Column y cannot contain integers beyond 2\^53"):
        read("1", text, None)
