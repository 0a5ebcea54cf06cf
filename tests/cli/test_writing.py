"""Frames to files and to standard output."""

from __future__ import annotations

import io
import math
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deepforecast.cli.arguments import Reading
from deepforecast.cli.reading import read
from deepforecast.cli.writing import check_frame_target, check_target, csv_bytes, write_bytes, write_frame
from deepforecast.errors import DataWarning, ParameterError, SaveError


def frame() -> pd.DataFrame:
    return pd.DataFrame({"unique_id": ["007", "b"], "ds": pd.date_range("2024-01-01", periods=2), "y": [0.1 + 0.2, math.nan]})


def output(path: str, safe: bool = False) -> Namespace:
    return Namespace(output=path, spreadsheet_safe=safe)


def test_csv_is_exact() -> None:
    assert csv_bytes(frame()) == b"unique_id,ds,y\n007,2024-01-01,0.30000000000000004\nb,2024-01-02,\n"


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_every_library_are_written(library) -> None:
    assert csv_bytes(library(frame())).startswith(b"unique_id,ds,y\n007,2024-01-01")


@pytest.mark.parametrize("stamps", [
    pd.date_range("2024-01-01 05:30", periods=2, freq="h"),
    pd.date_range("2024-03-30 12:00", periods=2, tz="Europe/Berlin"),
    pd.Index([7, 8]),
])  # fmt: skip
def test_what_is_written_can_be_read_again(tmp_path: Path, stamps: pd.Index) -> None:
    ids = ["007", "a\rb", 'say "x"', "a,b", "", "two\nlines"]
    before = pd.DataFrame({"unique_id": np.repeat(ids, 2), "ds": np.tile(stamps, 6), "y": np.arange(12) / 7})
    before["ds"] = list(stamps) * 6
    path = str(tmp_path / "f.csv")
    write_frame(before, output(path))
    zone = getattr(stamps, "tz", None)
    after = read(path, {}, Reading(time_zone=None if zone is None else str(zone))).frame
    assert after["unique_id"].tolist() == before["unique_id"].tolist()
    assert after["ds"].tolist() == before["ds"].tolist()
    assert after["y"].tolist() == before["y"].tolist()


def test_parquet_is_written_without_an_index(tmp_path: Path) -> None:
    path = str(tmp_path / "f.parquet")
    write_frame(frame().iloc[1:], output(path))
    assert pa.parquet.read_table(path).column_names == ["unique_id", "ds", "y"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "f.csv"
    path.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # as on a disk that is full after 1000 bytes
    try:
        with pytest.raises(SaveError, match=r"f\.csv cannot be written: File too large.*still does"):
            write_bytes(str(path), b"after" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.csv"]


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]


def test_s24_formulas_are_written_as_they_are_and_said() -> None:
    risky = pd.DataFrame({"unique_id": FORMULAS, "=y": 1.0})
    with pytest.warns(DataWarning, match=r"Text that a spreadsheet would run as a formula.*--spreadsheet-safe") as said:
        data = csv_bytes(risky)
    assert "=y" in str(said[0].message)
    assert pd.read_csv(io.BytesIO(data))["unique_id"].tolist() == FORMULAS


def test_s24_spreadsheet_safe_puts_a_quote_before_formulas_only() -> None:
    risky = pd.DataFrame({"unique_id": [*FORMULAS, "-5", "a=b", "'"], "=y": -1.5})
    found = pd.read_csv(io.BytesIO(csv_bytes(risky, spreadsheet_safe=True)), dtype=str)
    assert found.columns.tolist() == ["unique_id", "'=y"]
    assert found["unique_id"].tolist() == [*(f"'{text}" for text in FORMULAS), "-5", "a=b", "'"]
    assert found["'=y"].tolist() == ["-1.5"] * 9


def test_places_are_looked_at_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("folder.csv").mkdir()
    check_frame_target("new/deep/f.csv")
    check_frame_target("-")
    check_frame_target(None)
    with pytest.raises(ParameterError, match=r"ends in \.csv, \.parquet or \.pq; got f\.txt"):
        check_frame_target("f.txt")
    with pytest.raises(SaveError, match="is a folder"):
        check_frame_target("folder.csv")
    with pytest.raises(SaveError, match="file is not a folder"):
        check_target("file/f.csv")
    assert not Path("new").exists()
