from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from pandas.tseries.frequencies import to_offset

from deepforecast import datasets
from deepforecast.datasets import local_files
from deepforecast.datasets.benchmark_cards import CARDS, GROUPS
from deepforecast.errors import DataError, ParameterError

FOLDER_CARDS = [*CARDS, *(card for _, _, card in GROUPS)]
LARGE = {"m4", "m4_monthly", "m4_daily", "m4_quarterly"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a few made-up series of m1, and no other place to look in."""
    monkeypatch.setattr(local_files, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    monkeypatch.setenv("DEEPFORECAST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DEEPFORECAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DEEPFORECAST_OFFLINE", "1")
    (tmp_path / "data" / "m1").mkdir(parents=True)
    train = pd.DataFrame({"unique_id": ["YB", "YB", "QA", "QA", "MC"], "ds": [1, 2, 1, 2, 1], "y": [1.0, 2.0, 3.0, 4.0, 5.0]})
    test = pd.DataFrame({"unique_id": ["YB", "QA", "MC"], "ds": [3, 3, 2], "y": [6.0, 7.0, 8.0]})
    for name, frame in {"train": train, "test": test, "info": train}.items():
        frame.astype({"unique_id": "category"}).to_parquet(tmp_path / "data" / "m1" / f"{name}.parquet")
    return tmp_path / "data"


def test_train_and_test_are_joined_series_by_series(folder: Path) -> None:
    frame = datasets.load("m1")
    assert frame["unique_id"].astype(str).tolist() == frame.sort_values(["unique_id", "ds"])["unique_id"].astype(str).tolist()
    assert frame.query("unique_id == 'YB'")["y"].tolist() == [1.0, 2.0, 6.0]
    assert frame.query("unique_id == 'MC'")["ds"].tolist() == [1, 2]
    assert len(datasets.load("m1", split="train")) == 5
    assert datasets.load("m1", split="test")["y"].tolist() == [6.0, 7.0, 8.0]


def test_a_group_has_only_its_ids(folder: Path) -> None:
    frame = datasets.load("m1_quarterly")
    assert frame["y"].tolist() == [3.0, 4.0, 7.0]
    assert frame["unique_id"].cat.categories.tolist() == ["QA"]
    assert datasets.table("m1_yearly", "info")["y"].tolist() == [1.0, 2.0]
    assert len(datasets.table("m1", "info")) == 5


def test_a_group_is_found_in_whichever_part_of_a_file(folder: Path) -> None:
    path = folder / "m1" / "train.parquet"
    pd.read_parquet(path).astype({"unique_id": "category"}).to_parquet(path, row_group_size=2)
    for name, y in {"yearly": [1.0, 2.0, 6.0], "quarterly": [3.0, 4.0, 7.0], "monthly": [5.0, 8.0]}.items():
        assert datasets.load(f"m1_{name}")["y"].tolist() == y


def test_ids_as_plain_text_are_read_as_well(folder: Path) -> None:
    for name in ("train", "test"):
        path = folder / "m1" / f"{name}.parquet"
        pd.read_parquet(path).astype({"unique_id": str}).to_parquet(path)
    assert datasets.load("m1_yearly")["y"].tolist() == [1.0, 2.0, 6.0]


def test_where_and_available(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = (str(folder.parent / "cache" / "data"), False)
    assert datasets.where() == [(str(folder), True), cache]
    available = datasets.names(available=True)
    assert {"m1", "m1_yearly", "nile", "generated"} <= set(available)
    assert not {"m4", "epf_np"} & set(available)
    monkeypatch.setenv("DEEPFORECAST_DATA", str(folder / "absent"))
    assert datasets.where() == [(str(folder / "absent"), False), cache]
    assert "m1" not in datasets.names(available=True)


def test_a_checkout_looks_beside_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = folder.parent / "checkout"
    (checkout / "deepforecast" / "datasets").mkdir(parents=True)
    (checkout / "pyproject.toml").touch()
    monkeypatch.setattr(local_files, "__file__", str(checkout / "deepforecast" / "datasets" / "found.py"))
    beside = folder.parent / "shared" / "data"
    assert datasets.where()[:2] == [(str(folder), True), (str(beside), False)]
    beside.parent.mkdir()
    folder.rename(beside)
    assert datasets.load("m1")["y"].sum() == 36.0
    monkeypatch.delenv("DEEPFORECAST_DATA")
    assert datasets.where()[0] == (str(beside), True)


def test_not_found_says_where_was_looked_and_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"m4/train.parquet .*data \(has no folder m4\).*\. Set .* DEEPFORECAST_DATA"):
        datasets.load("m4_hourly", download=False)
    (folder / "m1" / "test.parquet").unlink()
    with pytest.raises(DataError, match=r"data \(has no m1/test.parquet\)"):
        datasets.load("m1")
    monkeypatch.setenv("DEEPFORECAST_DATA", str(folder / "absent"))
    with pytest.raises(DataError, match=r"absent \(does not exist\)"):
        datasets.load("m1", download=False)
    with pytest.raises(DataError, match=r"m1 is not on this machine and cannot be downloaded while .* DEEPFORECAST_OFFLINE"):
        datasets.load("m1")
    monkeypatch.setenv("DEEPFORECAST_DATA", "")
    with pytest.raises(DataError, match=r"Searched: .*cache.data \(does not exist\)"):
        datasets.load("m1", download=False)


def test_damaged_files_are_named(folder: Path) -> None:
    path = folder / "m1" / "train.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"train.parquet must be a parquet file with the columns unique_id, ds, y"):
        datasets.load("m1")
    pd.DataFrame({"y": [1.0]}).to_parquet(path)
    with pytest.raises(DataError, match=r"train.parquet must be a parquet file with the column"):
        datasets.load("m1", split="train")


@pytest.mark.parametrize("part", ["../m4/train", "", "a/b", 3])
def test_a_table_is_a_plain_name(folder: Path, part: str) -> None:
    with pytest.raises(ParameterError, match="must consist of lower-case letters"):
        datasets.table("m1", part)


@pytest.mark.data
@pytest.mark.parametrize(
    "card",
    [pytest.param(card, id=card.name, marks=[pytest.mark.slow] if card.name in LARGE else []) for card in FOLDER_CARDS],
)
def test_folder_is_what_the_cards_say(data_folder: Path, card: datasets.Card) -> None:
    frame = datasets.load(card.name)
    assert list(frame) == ["unique_id", "ds", "y", *card.future, *card.past, *card.static]
    assert len(frame) == card.rows
    assert frame["unique_id"].nunique() == len(frame["unique_id"].cat.categories) == card.series
    keys = frame["unique_id"].cat.codes.diff().to_numpy()[1:]
    assert ((keys == 0) | (keys == 1)).all()
    steps = frame["ds"].diff()[1:][keys == 0]
    if isinstance(card.frequency, int):
        assert (steps == card.frequency).all()
    elif card.frequency != "MS":
        # gaps are allowed (rossmann), but every step is a multiple of the frequency
        assert (steps % pd.Timedelta(to_offset(card.frequency) if card.frequency != "D" else "1D") == pd.Timedelta(0)).all()
        assert (steps > pd.Timedelta(0)).all()
    if card.borders:
        train, test = datasets.load(card.name, split="train"), datasets.load(card.name, split="test")
        assert len(train) == card.borders[1] * card.series
        assert len(train) + len(test) == card.borders[2] * card.series
    for name in card.static:
        assert (frame.groupby("unique_id", observed=True)[name].nunique(dropna=False) == 1).all()


@pytest.mark.data
@pytest.mark.parametrize("name", ["etth1", "m1_monthly", "retail_sales_us", "epf_np"])
def test_the_test_set_follows_the_train_set(data_folder: Path, name: str) -> None:
    card, train, test = datasets.card(name), datasets.load(name, split="train"), datasets.load(name, split="test")
    assert len(train) + len(test) == card.rows
    last, first = train.groupby("unique_id", observed=True)["ds"].max(), test.groupby("unique_id", observed=True)["ds"].min()
    assert (last < first).all()
    if name in ("m1_monthly", "retail_sales_us"):
        assert (test.groupby("unique_id", observed=True).size() == card.horizon).all()


@pytest.mark.data
def test_rest_of_ett(data_folder: Path) -> None:
    assert len(datasets.load("etth1", split="rest")) == 21140


@pytest.mark.data
def test_air_passengers_equals_the_copy_of_the_folder(data_folder: Path) -> None:
    copy = pd.concat([pd.read_parquet(data_folder / "air_passengers" / f"{split}.parquet") for split in ("train", "test")])
    ours = datasets.load("air_passengers")
    assert ours["y"].tolist() == copy["y"].tolist()
    assert (pd.DatetimeIndex(ours["ds"]) == pd.DatetimeIndex(copy["ds"])).all()
    test = pd.read_parquet(data_folder / "air_passengers" / "test.parquet")
    assert datasets.load("air_passengers", split="test")["y"].tolist() == test["y"].tolist()


@pytest.mark.data
def test_static_values_of_rossmann_are_those_of_the_store(data_folder: Path) -> None:
    stores = datasets.table("rossmann", "stores").set_index("unique_id")
    frame = datasets.load("rossmann", split="test").groupby("unique_id", observed=True).first()
    for store in ("S1", "S25", "S1115"):
        assert frame.loc[store, "store_type"] == stores.loc[store, "store_type"]
        assert frame.loc[store, "competition_distance"] == stores.loc[store, "competition_distance"]
