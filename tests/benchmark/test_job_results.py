from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from deepforecast.benchmark.job_results import RESULTS, SERIES, Row, read_file, read_rows, rows_to_frame
from deepforecast.errors import DataError, DataWarning

ROW = Row(suite="s", task="t", dataset="d", model="Naive", seed=0, job="t-Naive-0", settings="abc", metrics={"mae": 0.1})


def write(folder: Path, *lines: bytes) -> Path:
    (folder / RESULTS).write_bytes(b"".join(lines))
    return folder


def test_a_row_comes_back_as_it_was_written(tmp_path: Path) -> None:
    row = replace(ROW, error="ü\n\x1b[31m", cut=("a",), files={"series": "x"}, fit_seconds=1 / 3)
    assert row.to_json().count(b"\n") == 1
    found = read_rows(write(tmp_path, row.to_json()))[0]
    assert found == row


def test_the_last_row_of_a_job_counts_and_stands_last(tmp_path: Path) -> None:
    other = replace(ROW, job="other")
    found = read_rows(write(tmp_path, ROW.to_json(), other.to_json(), replace(ROW, status="failed", error="no").to_json()))
    assert [(row.job, row.status) for row in found] == [("other", "ok"), ("t-Naive-0", "failed")]


def test_an_unfinished_last_line_is_said_and_left_out(tmp_path: Path) -> None:
    write(tmp_path, ROW.to_json(), ROW.to_json()[:50])
    with pytest.warns(DataWarning, match="is incomplete"):
        assert len(read_rows(tmp_path)) == 1


def test_fields_a_newer_run_has_besides_are_ignored(tmp_path: Path) -> None:
    later = json.dumps({**json.loads(ROW.to_json()), "carbon": 1}).encode() + b"\n"
    assert read_rows(write(tmp_path, later)) == [ROW]


@pytest.mark.parametrize("line", [b"{\n", b"[]\n", b'{"suite": "s"}\n', b"3\n", ROW.to_json().replace(b'"ok"', b'"fine"')])
def test_a_line_that_is_no_row_is_refused_by_its_number(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(DataError, match="line 2"):
        read_rows(write(tmp_path, ROW.to_json(), line))


def test_a_folder_without_results_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"results\.jsonl"):
        read_rows(tmp_path)


def test_the_table_has_a_column_a_metric() -> None:
    found = rows_to_frame([ROW, replace(ROW, metrics={"mase": 2.0})])
    assert found["metric:mae"].tolist()[0] == 0.1
    assert found["metric:mae"].isna().tolist() == [False, True]
    assert rows_to_frame([]).empty


def test_the_files_of_a_row_are_read_by_kind(tmp_path: Path) -> None:
    (tmp_path / SERIES).mkdir()
    pd.DataFrame({"unique_id": ["a"], "mae": [1.0]}).to_parquet(tmp_path / SERIES / "x.parquet")
    row = replace(ROW, files={"series": f"{SERIES}/x.parquet"})
    assert read_file(tmp_path, row, "series")["mae"].tolist() == [1.0]
    with pytest.raises(DataError, match="it lists series"):
        read_file(tmp_path, row, "forecasts")
