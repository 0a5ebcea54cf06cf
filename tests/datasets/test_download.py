from __future__ import annotations

import gzip
import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deepforecast import datasets
from deepforecast.datasets import conversion, download, local_files, sources
from deepforecast.datasets.benchmark_cards import CARDS
from deepforecast.datasets.content_hash import content_hash
from deepforecast.datasets.sources import Source
from deepforecast.errors import DataError, DataWarning

RETAIL = "ds,y\n" + "".join(f"{month:%Y-%m-%d},{100 + number}\n" for number, month in
                            enumerate(pd.date_range("1992-01-01", periods=40, freq="MS")))  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no other place to look in."""
    monkeypatch.setattr(local_files, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    monkeypatch.delenv("DEEPFORECAST_DATA", raising=False)
    monkeypatch.delenv("DEEPFORECAST_OFFLINE", raising=False)
    monkeypatch.setenv("DEEPFORECAST_CACHE", str(tmp_path))
    return tmp_path / "data"


def _serve(
    monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes], pinned: dict[str, str] | None = None
) -> list[str]:
    """Put these files in the place of the set's own; what was asked for is returned. Rows are pinned as they come out."""
    asked: list[str] = []

    def fetched(remote: sources.Remote, path: Path, label: str = "") -> Path:
        asked.append(label)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[remote.name])
        return path

    monkeypatch.setattr(download, "fetch", fetched)
    home = sources.SOURCES[name]
    if pinned is None:
        raw = {remote.name: fetched(remote, download.cache_folder() / "once" / remote.name) for remote in home.files}
        pinned = {part: content_hash(frame) for part, frame in home.make(raw).items()}
        asked.clear()
    monkeypatch.setitem(sources.SOURCES, name, Source(home.files, home.make, pinned))
    return asked


def test_a_set_is_downloaded_once_and_then_lies_in_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _serve(monkeypatch, "retail_sales_us", {"example_retail_sales.csv": RETAIL.encode()})
    assert "retail_sales_us" not in datasets.names(available=True)
    frame = datasets.load("retail_sales_us", split="test")
    assert frame["y"].tolist() == list(range(116, 140))
    assert len(datasets.load("retail_sales_us")) == 40
    assert asked == ["retail_sales_us: example_retail_sales.csv"]
    assert {path.name for path in (cache / "retail_sales_us").iterdir()} == {"train.parquet", "test.parquet"}
    assert "retail_sales_us" in datasets.names(available=True)


def test_rows_that_are_not_the_catalogues_are_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = RETAIL.replace("1992-02-01,101", "1992-02-01,102")
    wanted = sources.SOURCES["retail_sales_us"].hashes
    _serve(monkeypatch, "retail_sales_us", {"example_retail_sales.csv": changed.encode()}, dict(wanted))
    with pytest.raises(
        DataError, match=rf"table 'train', must have the hash {wanted['train']}, but those of .*sales.csv have"
    ):
        datasets.load("retail_sales_us")
    assert not list(cache.rglob("*.parquet"))


def test_files_of_another_form_are_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _serve(monkeypatch, "etth1", {"ETTh1.csv": b"<html>not found</html>"}, dict(sources.SOURCES["etth1"].hashes))
    with pytest.warns(DataWarning), pytest.raises(DataError, match=r"files of etth1 must have .*ETTh1.csv could not be read"):
        datasets.load("etth1")


def test_a_licence_that_binds_is_said(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = "date,a,b,price\n" + "".join(f"2013-01-0{day} 00:00:00,1.5,2,{day}\n" for day in range(1, 4))
    _serve(monkeypatch, "epf_np", {"NP.csv": prices.encode()})
    with pytest.warns(DataWarning, match=r"Downloading epf_np from raw.githubusercontent.com. Licence: none stated"):
        frame = datasets.load("epf_np", split="train")
    assert frame["grid_load_forecast"].tolist() == [1.5] * 3


def test_the_cache_is_the_systems_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DEEPFORECAST_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert download.cache_folder() == tmp_path / "deepforecast" / "data"
    monkeypatch.setenv("DEEPFORECAST_CACHE", str(tmp_path / "own"))
    assert download.cache_folder() == tmp_path / "own" / "data"


def test_every_set_of_the_folder_has_a_home_whose_rows_are_pinned() -> None:
    assert set(sources.SOURCES) == {card.name for card in CARDS}
    for home in sources.SOURCES.values():
        assert {"train", "test"} <= set(home.hashes)
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in home.hashes.values())
        assert all(remote.address.startswith("https://") for remote in home.files)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "m4" else []) for name in sources.SOURCES]
)
def test_the_pinned_rows_are_those_of_the_folder(data_folder: Path, name: str) -> None:
    for part, digest in sources.SOURCES[name].hashes.items():
        frame = pd.read_parquet(data_folder / name / f"{part}.parquet")
        if name == "m5_ca_1":
            local_files.align_event_numbers(frame)
        assert content_hash(frame) == digest


def test_content_hangs_on_values_names_and_places_only() -> None:
    frame = pd.DataFrame({"unique_id": ["a", "b", None], "ds": pd.date_range("2020", periods=3), "y": [1.0, np.nan, 3.0]})
    same = frame.astype({"unique_id": "category", "ds": "datetime64[ms]", "y": "float32"}).set_axis([5, 6, 7])
    assert content_hash(same) == content_hash(frame)
    for other in (
        frame.rename(columns={"y": "z"}), frame[::-1], frame[["ds", "unique_id", "y"]], frame.assign(y=[1.0, 2.0, 3.0]),
        frame.assign(unique_id=["a", "c", None]), frame[:2],
    ):  # fmt: skip
        assert content_hash(other) != content_hash(frame)


def test_m4_is_read_from_its_wide_files(tmp_path: Path) -> None:
    files = {}
    for period in conversion.M4_PERIODS:
        wide = '"V1","V2","V3","V4"\n' + f'"{period[0]}1","1.5","2","3"\n"{period[0]}2","7","",""\n'
        files[f"{period}-train.csv"] = wide.encode()
        files[f"{period}-test.csv"] = f'"V1","V2"\n"{period[0]}1","4"\n"{period[0]}2","8"\n'.encode()
    files["M4-info.csv"] = b"M4id,category,Frequency,Horizon,SP,StartingDate\nY1,Macro,1,6,Yearly,01-01-79 12:00\n"
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    parts = conversion.m4({name: tmp_path / name for name in files})
    weekly = parts["train"][parts["train"]["unique_id"].isin(["W1", "W2"])]
    assert weekly[["ds", "y"]].values.tolist() == [[1, 1.5], [2, 2.0], [3, 3.0], [1, 7.0]]
    assert parts["test"]["ds"].tolist() == [4, 2] * 6
    assert parts["info"].iloc[0].tolist() == ["Y1", "Macro", "Yearly", 1, 6, "01-01-79 12:00"]


def test_channels_rates_and_cash_machines(tmp_path: Path) -> None:
    stamps = pd.date_range("2016-07-01", periods=5, freq="h")
    pd.DataFrame({name: np.arange(5) + 10.0 * place for place, name in enumerate(conversion.ETT_COLUMNS)}).assign(
        date=stamps
    ).to_csv(tmp_path / "ett.csv", index=False)
    parts = conversion.channels(tmp_path / "ett.csv", (2, 4))
    assert parts["test"].query("unique_id == 'HULL'")["y"].tolist() == [12.0, 13.0]
    assert [len(parts[part]) for part in ("train", "test", "rest")] == [14, 14, 7]
    with gzip.open(tmp_path / "rates.gz", "wt") as file:
        file.write("1,2,3,4,5,6,7,8\n" * 3)
    parts = conversion.rates(tmp_path / "rates.gz", 2)
    assert parts["test"]["unique_id"].tolist()[-1] == "OT"
    assert parts["test"]["ds"].unique().tolist() == [pd.Timestamp("1990-01-03")]
    raw = np.arange(21.0)
    raw[7] = np.nan
    parts = conversion.cash_machines([raw], 7)
    assert parts["train"]["y"].tolist()[7] == 7.0  # between 0 and 14, the same weekday
    assert parts["train"]["observed"].tolist() == [True] * 7 + [False] + [True] * 6


def test_walmart_keeps_the_store_and_cuts_zeros_before_the_first_sale(tmp_path: Path) -> None:
    days = pd.date_range("2011-01-29", periods=1941)
    calendar = pd.DataFrame({"date": days.strftime("%Y-%m-%d"), "event_name_1": None, "event_type_1": None, "snap_CA": 0})
    calendar.loc[1938, ["event_name_1", "event_type_1", "snap_CA"]] = ["Mother's day", "Cultural", 1]
    sales = pd.DataFrame(0, index=range(4), columns=[f"d_{day}" for day in range(1, 1942)])
    sales.insert(0, "store_id", ["CA_1", "CA_1", "CA_1", "TX_1"])
    sales.insert(0, "item_id", ["HOBBIES_2", "FOODS_1", "FOODS_3", "FOODS_1"])
    sales.loc[0, "d_1495":] = 1
    sales.loc[1, "d_1913":] = 5
    sales.loc[2, "d_1914":] = 2  # no sale in train: left out
    with zipfile.ZipFile(tmp_path / "m5.zip", "w") as archive:
        for name, frame in {"datasets/sales_train_evaluation.csv": sales, "calendar.csv": calendar}.items():
            archive.writestr(name, frame.to_csv(index=False))
    parts = conversion.walmart(tmp_path / "m5.zip")
    assert parts["train"].groupby("unique_id", observed=True).size().to_dict() == {"FOODS_1_CA_1": 1, "HOBBIES_2_CA_1": 419}
    assert parts["test"].groupby("unique_id", observed=True).size().tolist() == [28, 28]
    day = parts["test"][parts["test"]["ds"] == pd.Timestamp("2016-05-20")].iloc[0]
    assert day[["event", "event_type", "snap"]].tolist() == ["11", "2", 1]


def test_stores_are_sorted_by_number_and_day(tmp_path: Path) -> None:
    days = pd.date_range("2015-01-01", periods=50).strftime("%Y-%m-%d")[::-1]
    rows = pd.DataFrame({"Store": np.tile([2, 10, 1], 50), "Date": np.repeat(days, 3), "Sales": 7, "Customers": 3, "Open": 1})
    rows.assign(Promo=0, StateHoliday="0", SchoolHoliday="1").to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "store.csv").write_text("Store,StoreType,Promo2SinceWeek\n1,c,\n2,a,13\n10,b,\n")
    parts = conversion.stores({name: tmp_path / name for name in ("train.csv", "store.csv")}, 42)
    assert parts["train"]["unique_id"].unique().tolist() == ["S1", "S2", "S10"]
    assert len(parts["test"]) == 3 * 42
    assert list(parts["stores"]) == ["unique_id", "store_type", "promo2_since_week"]


def test_buffers_are_left_alone() -> None:
    frame = pd.DataFrame({"y": np.array([1.0, np.nan])})
    before = frame.to_csv(io.StringIO())
    content_hash(frame)
    assert frame.to_csv(io.StringIO()) == before
