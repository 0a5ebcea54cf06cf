"""Files to frames: what is written is what is read, or it is refused by name."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pandas as pd
import pytest

from deepforecast.cli.arguments import TextFormat
from deepforecast.cli.data_files import read_data, read_static
from deepforecast.data.columns import Columns
from deepforecast.errors import DataError, DataWarning

PLAIN = TextFormat()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str | bytes, name: str = "data.csv") -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def test_ids_stay_as_written() -> None:
    ids = ["007", "7", "7.0", " a", "NA", "null", "=1+1", '"', "日本", "a\nb", "1e5", "true", "nan"]
    quoted = "".join(f'"{name.replace(chr(34), chr(34) * 2)}",2024-01-01,1\n' for name in ids)
    frame = read_data(written(f"unique_id,ds,y\n{quoted}"), {}, PLAIN).frame
    assert frame["unique_id"].tolist() == ids


def test_unquoted_empty_ids_are_missing_and_quoted_ones_are_not() -> None:
    frame = read_data(written('unique_id,ds,y\n"",2024-01-01,1\n,2024-01-01,1\n'), {}, PLAIN).frame
    assert frame["unique_id"].isna().tolist() == [False, True]


def test_roles_and_names() -> None:
    text = "shop,day,sold,promo,region\nA,2024-01-01,1,0,north\nA,2024-01-02,2,1,north\n"
    said = {"id": "shop", "time": "day", "target": "sold", "future": ["promo"], "static": ["region"]}
    data = read_data(written(text), said, PLAIN)
    assert data.roles == {
        "id": "shop", "time": "day", "target": "sold", "future": ("promo",), "past": (), "static": ("region",),
        "weight": None,
    }  # fmt: skip
    assert data.frame.dtypes.astype(str).to_dict()["region"] == "category"
    assert data.frame["promo"].tolist() == [0, 1]


def test_columns_without_a_role_are_left_out_aloud() -> None:
    with pytest.warns(DataWarning, match="left out: note. Declare them with --future"):
        data = read_data(written("ds,y,note\n2024-01-01,1,x\n"), {}, PLAIN)
    assert data.frame.columns.tolist() == ["ds", "y"]
    assert data.columns.id is None


def test_the_other_dialect_is_recognised() -> None:
    assert read_data(written("item_id,timestamp,target\nA,2024-01-01,1\n"), {}, PLAIN).columns.time == "timestamp"


@pytest.mark.parametrize(
    "text", ["\ufeffds,y\n2024-01-01,1\n", "\n\nds,y\r\n2024-01-01,1\r\n\r\n", '"ds","y"\n"2024-01-01","1"']
)
def test_forms_of_the_same_csv(text: str) -> None:
    frame = read_data(written(text), {}, PLAIN).frame
    assert (frame["ds"].tolist(), frame["y"].tolist()) == ([pd.Timestamp("2024-01-01")], [1])


def test_other_separators_and_decimals() -> None:
    european = read_data(written("ds;y\n2024-01-01;1,5\n"), {}, TextFormat(separator=";", decimal=",")).frame
    tabs = read_data(written("ds\ty\n2024-01-01\t1.5\n", "data.tsv"), {}, PLAIN).frame
    assert european["y"].tolist() == tabs["y"].tolist() == [1.5]


def test_parquet_with_its_types() -> None:
    stamps = pd.date_range("2024-01-01", periods=2, tz="Europe/Berlin")
    frame = pd.DataFrame({"unique_id": [30, 4], "ds": stamps, "y": [1.5, 2.5]})
    frame.to_parquet("data.parquet")
    assert read_data("data.parquet", {}, PLAIN).frame.dtypes.equals(frame.dtypes)


def test_parquet_of_pandas_with_an_index() -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=3), "y": [1.0, 2.0, 3.0]})
    frame.iloc[1:].to_parquet("odd.parquet")
    frame.set_index("ds").to_parquet("index.parquet")
    assert read_data("odd.parquet", {}, PLAIN).frame.columns.tolist() == ["ds", "y"]
    assert sorted(read_data("index.parquet", {}, PLAIN).frame.columns) == ["ds", "y"]


def test_text_times_in_parquet_are_held_to_the_same_rules() -> None:
    pd.DataFrame({"ds": ["05/01/2024"], "y": [1.0]}).to_parquet("text.parquet")
    with pytest.raises(DataError, match=r"Column ds must contain ISO-8601 timestamps.*--date-format %d/%m/%Y"):
        read_data("text.parquet", {}, PLAIN)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ds,y\n2024-01-01,1\n")))
    assert len(read_data("-", {}, PLAIN).frame) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this system")
def test_a_pipe_is_read_as_csv() -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_text("ds,y\n2024-01-01,1\n"))
    writer.start()
    assert len(read_data("pipe", {}, PLAIN).frame) == 1
    writer.join()


def test_static_data() -> None:
    columns = Columns(id="shop", static=("size", "region"))
    path = written("shop,size,region,note\nA,3,north,x\nB,4,south,y\n")
    with pytest.warns(DataWarning, match=r"of data.csv without a role are left out: note\. Declare them with --static\."):
        frame = read_static(path, columns, PLAIN)
    assert frame.columns.tolist() == ["shop", "size", "region"]
    assert frame["size"].tolist() == [3, 4]


WRONG = [
    ("", "data.csv is empty"),
    ("\n\n", "data.csv is empty"),
    ("ds,y\n2024-01-01\n", "Expected 2 columns, got 1"),
    ("ds,y\n2024-01-01,1,5\n", "Row #2: Expected 2 columns, got 3"),
    ("ds,y,y\n2024-01-01,1,1\n", "unique; repeated names: y"),
    ("ds;y\n2024-01-01;1\n", "has only one column, 'ds;y'. Pass --separator ';'"),
    ("ds\ty\n2024-01-01\t1\n", "Pass --separator tab"),
    (
        "date,value\n2024-01-01,1\n",
        "file data.csv must have the columns unique_id, ds, y, but it lacks ds, y and has date, value. Pass the names of your columns",
    ),
    ("ds,north,south\n2024-01-01,1,2\n", "lacks y and has ds, north, south. Pass the names of your columns with"),
    ("ds,north,south\n2024-01-01,1,2\n", "A file with one column per series must be melted first."),
    (b"ds,y\n2024-01-01,\xff\n", "must be text in UTF-8"),
    ("ds,y\n2024-01-01,1\n".encode("utf-16"), "null bytes"),
    (b"\x89PNG\r\n\x1a\n\0\0\0", "null bytes"),
    ('ds,y\n"2024-01-01,1\n', "must be a complete, valid file"),
    ("x" * 200_000 + "\n", "must begin with a header row of column names"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_files_that_are_no_table_are_refused(text: str | bytes, said: str) -> None:
    with pytest.raises(DataError) as refused:
        read_data(written(text), {}, PLAIN)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere.csv", "nowhere.csv cannot be read: No such file"),
        (".", "must be a file"),
        ("/dev/zero", "must be a file"),
        ("data.xlsx", "must end in .csv, .tsv or .parquet"),
        ("broken.parquet", "broken.parquet must be a complete, valid file"),
        ("a\x1b[2J.csv", r"a\x1b[2J.csv cannot be read"),
        ("a" * 300 + ".csv", "cannot be read: File name too long"),
        ("a\0b.csv", "cannot be read"),
    ],
)
def test_paths_that_are_no_data_are_refused(path: str, said: str) -> None:
    written(b"PK\x03\x04", "data.xlsx")
    written(b"PAR1 no more", "broken.parquet")
    with pytest.raises(DataError) as refused:
        read_data(path, {}, PLAIN)
    assert said in str(refused.value)


def test_separators_are_one_sign() -> None:
    with pytest.raises(DataError, match="--separator must be one ASCII character"):
        read_data(written("ds,y\n"), {}, TextFormat(separator="::"))
