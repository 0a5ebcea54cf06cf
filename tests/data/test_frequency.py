from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.frequency import Frequency, parse_frequency, season_length, seasons, tick_frequency
from deepforecast.errors import ParameterError, ParameterTypeError
from tests.frames import FREQUENCIES


@pytest.mark.parametrize("freq", FREQUENCIES)
def test_canonical_aliases_stay_as_they_are(freq: str) -> None:
    assert str(parse_frequency(freq)) == freq
    assert parse_frequency(str(parse_frequency(freq))) == parse_frequency(freq)


@pytest.mark.parametrize("freq", FREQUENCIES)
def test_offset_objects_are_their_aliases(freq: str) -> None:
    assert parse_frequency(pd.tseries.frequencies.to_offset(freq)) == parse_frequency(freq)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("M", "ME"),
        ("Q", "QE-DEC"),
        ("Y", "YE-DEC"),
        ("A", "YE-DEC"),
        ("A-JUN", "YE-JUN"),
        ("Q-NOV", "QE-NOV"),
        ("AS", "YS-JAN"),
        ("AS-APR", "YS-APR"),
        ("BM", "BME"),
        ("BQ", "BQE-DEC"),
        ("BA", "BYE-DEC"),
        ("BAS", "BYS-JAN"),
        ("H", "h"),
        ("T", "min"),
        ("15T", "15min"),
        ("S", "s"),
        ("L", "ms"),
        ("U", "us"),
        ("N", "ns"),
        ("1d", "D"),
        ("W", "W-SUN"),
        ("3M", "3ME"),
        ("QS", "QS-JAN"),
        (" D ", "D"),
        ("w-mon", "W-MON"),
        ("1h30min", "90min"),
        ("1D12h", "36h"),
    ],
)
def test_old_and_other_spellings(old: str, new: str) -> None:
    assert str(parse_frequency(old)) == new


def test_what_polars_says_is_left_to_the_data() -> None:
    assert [parse_frequency(text) for text in ("1mo", "2q", "y", "3w")] == [
        Frequency(1, "mo"),
        Frequency(2, "q"),
        Frequency(1, "y"),
        Frequency(3, "w"),
    ]


@pytest.mark.parametrize(
    ("span", "alias"),
    [
        (pd.Timedelta(days=1), "D"),
        (pd.Timedelta(hours=48), "2D"),
        (datetime.timedelta(minutes=90), "90min"),
        (np.timedelta64(1, "W"), "7D"),
        (np.timedelta64(250, "ms"), "250ms"),
        (pd.offsets.Hour(2), "2h"),
        (pd.offsets.Week(weekday=2), "W-WED"),
        (2 * pd.offsets.QuarterEnd(startingMonth=11), "2QE-NOV"),
        (pd.offsets.Week(3), "3w"),
    ],
)
def test_objects(span: Any, alias: str) -> None:
    assert str(parse_frequency(span)) == alias


def test_integers() -> None:
    assert parse_frequency(5) == parse_frequency(np.int8(5)) == Frequency(5)
    assert str(parse_frequency(1)) == "1"


@pytest.mark.parametrize(
    "freq",
    [
        0,
        -3,
        "",
        "X",
        "-1D",
        "0h",
        "1.5",
        "D-MON",
        "m",
        "5m",
        "bh",
        "SME",
        "WOM-1MON",
        pd.Timedelta(0),
        pd.offsets.BDay(-1),
        pd.offsets.BDay(offset=datetime.timedelta(hours=2)),
        pd.DateOffset(days=1),
        pd.offsets.CustomBusinessDay(offset=datetime.timedelta(hours=2)),
    ],
)
def test_refused_with_a_way_out(freq: Any) -> None:
    with pytest.raises(ParameterError, match=r"(?s)freq.*(Pass|Shift)"):
        parse_frequency(freq)


@pytest.mark.parametrize("freq", [None, True, 1.5, [1], np.bool_(True)])
def test_wrong_types(freq: Any) -> None:
    with pytest.raises(ParameterTypeError, match=r"freq.*Pass"):
        parse_frequency(freq)


def test_custom_calendars_keep_their_holidays() -> None:
    offset = 2 * pd.offsets.CustomBusinessDay(holidays=["2024-05-01"])
    found = parse_frequency(offset)
    assert (found.n, found.base) == (2, "C")
    assert found.offset == pd.offsets.CustomBusinessDay(holidays=["2024-05-01"])
    assert parse_frequency("C") == Frequency(1, "C")
    assert parse_frequency(pd.offsets.CustomBusinessMonthEnd(weekmask="Sun Mon Tue")).offset is not None
    assert hash(found) == hash(parse_frequency(2 * pd.offsets.CustomBusinessDay(holidays=["2024-05-01"])))


def test_season_table() -> None:
    table = {"15min": 96, "30min": 48, "h": 24, "D": 7, "B": 5, "W": 52, "MS": 12, "ME": 12, "QS": 4, "QE": 4, "YS": 1, "YE": 1}
    assert {freq: season_length(parse_frequency(freq)) for freq in table} == table
    assert seasons(parse_frequency("h")) == (24, 168)
    assert seasons(parse_frequency("24h")) == (7,)
    assert {freq: season_length(parse_frequency(freq)) for freq in ("2MS", "6MS", "2QE", "2YE", "12h")} == {
        "2MS": 6,
        "6MS": 2,
        "2QE": 2,
        "2YE": 1,
        "12h": 2,
    }


@pytest.mark.parametrize("freq", ["2D", "7h", "s", 5, "5MS", "2B", "36h"])
def test_no_usual_season(freq: Any) -> None:
    assert seasons(parse_frequency(freq)) == ()
    with pytest.raises(ParameterError, match="season_length"):
        season_length(parse_frequency(freq))


def test_ticks_are_the_largest_that_fit() -> None:
    assert [str(tick_frequency(n)) for n in (1, 1_500, 60_000_000_000, 86_400_000_000_000, 90_000_000_000)] == [
        "ns",
        "1500ns",
        "min",
        "D",
        "90s",
    ]


def test_what_can_mean_minutes_or_months_says_which_to_say() -> None:
    with pytest.raises(ParameterError, match=r"which can mean minutes or months, got '5m'\. Pass '5min', '5MS' or '5ME'\."):
        parse_frequency("5m")
