"""Times from text: ISO-8601 or as said; never guessed."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from deepforecast.cli.arguments import TextFormat
from deepforecast.cli.timestamps import parse_timestamps
from deepforecast.errors import DataError, ParameterError


def read(*text: str | None, **reading: str) -> pd.Series:
    return parse_timestamps(pa.chunked_array([pa.array(text, pa.string())]), "ds", TextFormat(**reading))


@pytest.mark.parametrize(
    "text", ["2024-01-05", " 2024-01-05 ", "2024-01-05T00:00", "2024-01-05 00:00:00", "2024-01-05 00:00:00.000000"]
)
def test_iso_text(text: str) -> None:
    assert read(text).tolist() == [pd.Timestamp("2024-01-05")]


def test_offsets_are_kept() -> None:
    assert read("2024-01-05T00:00Z").tolist() == [pd.Timestamp("2024-01-05", tz="UTC")]
    assert str(read("2024-01-05T00:00+02:00").tolist()[0]) == "2024-01-05 00:00:00+02:00"


def test_zones() -> None:
    local = read("2024-01-05", "2024-07-05", time_zone="Europe/Berlin")
    both = read("2024-01-05T00:00+01:00", "2024-07-05T00:00+02:00", time_zone="Europe/Berlin")
    assert str(local.dtype.tz) == "Europe/Berlin"
    assert local.tolist() == both.tolist()


@pytest.mark.parametrize(
    ("form", "text", "day"),
    [("%d/%m/%Y", "05/01/2024", "2024-01-05"), ("%m/%d/%Y", "05/01/2024", "2024-05-01"), ("%Y%m%d", "20240501", "2024-05-01")],
)
def test_the_format_said_is_the_format_read(form: str, text: str, day: str) -> None:
    assert read(text, date_format=form).tolist() == [pd.Timestamp(day)]


def test_years_at_the_end_are_no_offsets() -> None:
    found = read("05-01-2023", "05-01-2024", date_format="%d-%m-%Y", time_zone="Europe/Berlin")
    assert [str(stamp) for stamp in found] == ["2023-01-05 00:00:00+01:00", "2024-01-05 00:00:00+01:00"]


def test_whole_numbers() -> None:
    assert read("1", "-2", "30").tolist() == [1, -2, 30]
    assert read("2023", "2024").tolist() == [2023, 2024]
    assert read("20240101", "20240131", date_format="integer").tolist() == [20240101, 20240131]
    assert read("20240101", "20240199").tolist() == [20240101, 20240199]  # no dates: counted


@pytest.mark.parametrize(
    ("text", "reading", "said"),
    [
        (
            ["05/01/2024"],
            {},
            "data row 1 holds '05/01/2024'. Pass the format of the column: --date-format %d/%m/%Y for day first",
        ),
        (["2024-01-05", "05.01.2024"], {}, "data row 2 holds '05.01.2024'"),
        (["yesterday"], {}, "Column ds must contain ISO-8601 timestamps"),
        (["2024-02-30"], {}, "cannot be parsed as ISO-8601"),
        (["2024-01-05", None], {}, "Column ds must have a timestamp in every row; data row 2 is empty"),
        (["2024-01-05", ""], {}, "must have a timestamp in every row"),
        (["20240105", "20240106"], {}, "look like dates, e.g. '20240105'. Pass --date-format %Y%m%d"),
        (["202401", "202402"], {}, "--date-format %Y%m for dates"),
        (["1", "2024-01-05"], {}, "data row 1 holds '1'"),
        (["1.5"], {}, "data row 1 holds '1.5'"),
        (["99999999999999999999"], {}, "must contain 64-bit integers"),
        (["1", "x"], {"date_format": "integer"}, "Column ds must contain integers; data row 2 holds 'x'"),
        (["2024-01-05"], {"date_format": "%d/%m/%Y"}, "cannot be parsed with --date-format %d/%m/%Y"),
        (["2024-01-05T00:00+01:00", "2024-07-05T00:00+02:00"], {}, "cannot mix UTC offsets without a time zone. Pass one"),
        (["2024-01-05T00:00+01:00", "2024-07-05"], {}, "cannot mix UTC offsets"),
        (["2024-03-31T02:30"], {"time_zone": "Europe/Berlin"}, "do not exist or occur twice in Europe/Berlin"),
        (["2024-10-27T01:30", "2024-10-27T02:30"], {"time_zone": "Europe/Berlin"}, "data row 2 contains 2024-10-27 02:30:00"),
        (["05-01-2024 +0100", "05-07-2024 +0200"], {"date_format": "%d-%m-%Y %z"}, "cannot mix UTC offsets"),
    ],
)
def test_what_has_not_one_reading_is_refused(text: list[str | None], reading: dict[str, str], said: str) -> None:
    with pytest.raises(DataError) as refused:
        read(*text, **reading)
    assert said in str(refused.value)


@pytest.mark.parametrize("zone", ["Berlin", "../etc/passwd", "", "Europe/Berlin\0"])
def test_zones_that_are_none_are_refused(zone: str) -> None:
    with pytest.raises(ParameterError, match="--time-zone must be a name"):
        read("2024-01-05", time_zone=zone)
