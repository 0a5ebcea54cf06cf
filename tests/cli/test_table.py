"""Tables for people."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from deepforecast.cli.table import format_frame, format_number, format_size, format_table


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def test_numbers_of_a_column_have_one_precision() -> None:
    frame = pd.DataFrame({"id": ["a", "bb"], "y": [1234.5, 0.25], "z": [math.nan, 1e-9], "n": [3, 40]})
    assert format_frame(frame).splitlines() == ["id       y      z   n", "a   1234.5      -   3", "bb     0.2  1e-09  40"]


def test_wide_tables_go_on_below_with_their_keys() -> None:
    columns = {"id": ["a"], "day": ["2024"], **{f"column{i}": ["1.0"] for i in range(5)}}
    lines = format_table(columns, keys=2)
    assert max(map(len, lines)) <= 40
    assert lines[0].startswith("id   day  column0")
    assert lines[3].startswith("id   day  column3")


def test_long_tables_show_both_ends() -> None:
    text = format_frame(pd.DataFrame({"n": range(100)}), max_rows=4)
    assert text.splitlines() == [
        "n",
        "0",
        "1",
        "...",
        "98",
        "99",
        "(96 of 100 rows omitted; --output FILE writes all rows)",
    ]


def test_no_text_moves_the_cursor() -> None:
    text = format_frame(pd.DataFrame({"id\x07": ["\x1b[2J\x1b]0;title\x07", "a\nb", "x" * 500], "y": 1.0}))
    assert all(line.isprintable() for line in text.splitlines())
    assert len(text.splitlines()) == 4


def test_wide_letters_keep_the_columns_straight() -> None:
    assert format_table({"id": ["日本", "a\u0301b"], "y": ["1", "2"]}) == ["id    y", "日本  1", "a\u0301b    2"]


def test_an_empty_frame_has_a_head() -> None:
    assert format_frame(pd.DataFrame({"id": [], "y": []})) == "id  y"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (-12345.6, "-12,346"), (1e20, "1e+20"), (0.5, "0.5000"), (math.nan, "-")]
)
def test_short_numbers(value: float, text: str) -> None:
    assert format_number(value) == text


def test_sizes() -> None:
    assert [format_size(0), format_size(999), format_size(1000), format_size(5 * 10**12)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "5000.0 GB",
    ]
