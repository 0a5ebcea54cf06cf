"""Frames to files and to standard output."""

from __future__ import annotations

import io
import math
import os
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deepforecast.cli.arguments import TextFormat
from deepforecast.cli.data_files import read_data
from deepforecast.cli.output_files import (
    check_frame_target,
    check_model_target,
    check_target,
    csv_bytes,
    save_model,
    write_bytes,
    write_frame,
)
from deepforecast.cli.parser import Parser
from deepforecast.cli.program import COMMANDS
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
    after = read_data(path, {}, TextFormat(time_zone=None if zone is None else str(zone))).frame
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
        with pytest.raises(SaveError, match=r"f\.csv cannot be written: File too large.*was not changed"):
            write_bytes(str(path), b"after" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.csv"]


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]


def test_spreadsheet_formulas_are_written_unchanged_with_a_warning() -> None:
    risky = pd.DataFrame({"unique_id": FORMULAS, "=y": 1.0})
    with pytest.warns(DataWarning, match=r"Text that spreadsheets run as a formula.*--spreadsheet-safe") as said:
        data = csv_bytes(risky)
    assert "=y" in str(said[0].message)
    assert pd.read_csv(io.BytesIO(data))["unique_id"].tolist() == FORMULAS


def test_spreadsheet_safe_quotes_formulas_only() -> None:
    risky = pd.DataFrame({"unique_id": [*FORMULAS, "-5", "a=b", "'"], "=y": -1.5})
    found = pd.read_csv(io.BytesIO(csv_bytes(risky, spreadsheet_safe=True)), dtype=str)
    assert found.columns.tolist() == ["unique_id", "'=y"]
    assert found["unique_id"].tolist() == [*(f"'{text}" for text in FORMULAS), "-5", "a=b", "'"]
    assert found["'=y"].tolist() == ["-1.5"] * 9


def test_places_are_looked_at_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("folder.csv").mkdir()
    check_frame_target("-")
    check_frame_target(None)
    with pytest.raises(ParameterError, match=r"must end in \.csv, \.parquet or \.pq, got f\.txt"):
        check_frame_target("f.txt")
    with pytest.raises(ParameterError, match="cannot be empty, got ''"):
        check_target("")
    with pytest.raises(SaveError, match="is a folder"):
        check_frame_target("folder.csv")
    with pytest.raises(SaveError, match="file is not a writable folder"):
        check_target("file/f.csv")


OVERWRITES = [
    "fit INPUT --model Naive --horizon 2 --save TARGET",
    "predict model.dfc --data INPUT --output TARGET",
    "predict INPUT --output TARGET",
    "predict model.dfc --future-data INPUT --future-template TARGET",
    "predict model.dfc --static-data INPUT --output TARGET",
    "check INPUT --output TARGET",
    "cross-validate INPUT --model Naive --horizon 2 --output TARGET",
    "compare INPUT --models Naive --horizon 2 --output TARGET",
    "compare INPUT --models Naive --horizon 2 --report TARGET",
    "compare INPUT --models Naive --horizon 2 --plot TARGET",
    "tune INPUT --model Naive --horizon 2 --n-trials 1 --output TARGET",
    "tune INPUT --model Naive --horizon 2 --n-trials 1 --plot TARGET",
    "tune INPUT --model Naive --horizon 2 --n-trials 1 --storage TARGET",
    "tune sales.csv --model Naive --horizon 2 --n-trials 1 --space INPUT --storage TARGET",
    "tune sales.csv --model Naive --horizon 2 --n-trials 1 --plot INPUT --output TARGET",
    "benchmark INPUT --report TARGET",
]


@pytest.mark.parametrize("link", ["same", "relative", "hard", "symbolic"])
@pytest.mark.parametrize("line", OVERWRITES)
def test_no_command_writes_to_its_own_input(run, folder: Path, line: str, link: str) -> None:
    source = folder / "input.csv"
    source.write_text("unique_id,ds,y\n")
    target = {"same": "input.csv", "relative": f"../{folder.name}/input.csv"}.get(link, "link")
    if link == "hard":
        (folder / target).hardlink_to(source)
    elif link == "symbolic":
        (folder / target).symlink_to(source)
    words = [{"INPUT": "input.csv", "TARGET": target}.get(word, word) for word in line.split()]
    message = run(*words).refusal()
    identity = "" if target == "input.csv" else ", which is the same file as input.csv"
    assert f"got {target}{identity}. Pass another file name to --" in message
    assert source.read_text() == "unique_id,ds,y\n"


def test_no_command_writes_to_the_file_on_standard_input(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (folder / "sales.csv").read_text()
    line = ["cross-validate", "-", "--model", "Naive", "--horizon", "2", "--output"]
    with open(folder / "sales.csv") as file:
        monkeypatch.setattr("sys.stdin", file)
        message = run(*line, "sales.csv").refusal()
        assert "--output must not be a file" in message
        assert "got sales.csv, which is standard input. Pass" in message
        assert (folder / "sales.csv").read_text() == before
        assert run(*line, "forecasts.csv").status == 0
    assert (folder / "forecasts.csv").exists()


def test_standard_output_is_no_file_even_where_one_is_called_so(run, folder: Path) -> None:
    assert run("fit", "sales.csv", "--model", "Naive", "--horizon", "2", "--save", "./-").status == 0
    ran = run("predict", "./-", "--output", "-")
    assert (ran.status, ran.out[:12]) == (0, "unique_id,ds")


def test_a_path_with_a_zero_byte_is_refused_in_words(run) -> None:
    line = ["cross-validate", "sales.csv", "--model", "Naive", "--horizon", "2", "--output"]
    assert "a path cannot contain a null byte" in run(*line, "x\0.csv").refusal()


def test_two_outputs_are_two_files_also_where_neither_exists(run, folder: Path) -> None:
    (folder / "x.csv").symlink_to("x.html")
    line = ["tune", "sales.csv", "--model", "Naive", "--horizon", "2", "--n-trials", "1"]
    message = run(*line, "--output", "x.csv", "--plot", "x.html").refusal()
    assert "deepforecast tune writes as --plot, got x.csv, which is the same file as x.html" in message


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_names_a_file_is_declared_as_input_or_output(command: str) -> None:
    parser = Parser(command, "", "")
    import_module(f"deepforecast.cli.{command.replace('-', '_')}").add_arguments(parser, [])
    files = {"FILE", "DATA", "SUITE", "STORAGE"} | ({"MODEL"} if command == "predict" else set())
    expected = [action.dest for action in parser._actions if action.metavar in files]
    declared = [action.dest for action in (*parser.inputs, *parser.targets)]
    assert sorted(declared) == sorted(expected)


@pytest.mark.parametrize("content", ["my notes", "unique_id,ds,y\n", "\x89DF"])
def test_a_model_never_replaces_another_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(SaveError, match=r"must be a new file or a model file, got .*notes\.txt, which is another file\."):
        check_model_target(str(path))
    with pytest.raises(SaveError, match="must be a new file or a model file"):
        save_model(None, str(path))  # looked at again after the fit


def test_a_model_is_not_written_to_a_pipe_or_a_stream(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    stream = os.open(pipe, os.O_RDWR)
    os.write(stream, b"\x89DFC\r\n\x1a\n")
    with pytest.raises(SaveError, match="which is another file"):
        check_model_target(str(pipe))  # reads nothing from it: that could wait forever
    os.close(stream)
    with pytest.raises(ParameterError, match=r"--save must be a file name, got '-'"):
        check_model_target("-")


def test_a_model_does_not_replace_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.dfc"
    path.write_bytes(b"\x89DFC\r\n\x1a\n")
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.R_OK)  # as for a user who is not root
    with pytest.raises(SaveError, match=r"got .*model\.dfc, which cannot be read\. It was not replaced"):
        check_model_target(str(path))


@pytest.mark.parametrize("content", [None, b"", b"\x89DFC\r\n\x1a\nof an earlier version"])
def test_a_model_replaces_a_model_and_an_empty_file(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.dfc"
    if content is not None:
        path.write_bytes(content)
    check_model_target(str(path))


def test_folders_of_targets_must_exist(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "deep" / "f.csv")
    with pytest.raises(SaveError, match=r"the folder .*new/deep does not exist\. Create it first, e\.g\. with mkdir -p"):
        check_frame_target(path)
    check_target(path, new_folder=True)
    assert list(tmp_path.iterdir()) == []
