from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

from deepforecast import datasets
from deepforecast.data.columns import Columns
from deepforecast.data.frequency import parse_frequency
from deepforecast.errors import ParameterError, ParameterTypeError


def test_names_are_sorted_and_unique_and_have_cards() -> None:
    names = datasets.names()
    assert names == sorted(set(names))
    assert {"air_passengers", "co2", "generated", "m4", "m4_hourly", "epf_np"} <= set(names)
    assert all(datasets.card(name).name == name for name in names)


def test_every_set_of_the_data_folder_has_a_card() -> None:
    folder = {
        "air_passengers", "epf_np", "epf_pjm", "etth1", "ettm2", "exchange_rate", "m1", "m4", "m5_ca_1", "nn5_daily",
        "retail_sales_us", "rossmann", "vic_elec", "yosemite_temps",
    }  # fmt: skip
    assert folder <= set(datasets.names())


@pytest.mark.parametrize("name", datasets.names())
def test_a_card_is_complete(name: str) -> None:
    card = datasets.card(name)
    assert card.description
    assert card.licence
    assert card.reference
    assert card.source
    assert card.to_dict()["name"] == name
    assert card.series >= 1
    assert card.rows > card.series
    Columns(**card.columns)
    frequency = parse_frequency(card.frequency)
    if card.groups:
        assert card.season_length is None
        assert card.horizon is None
        members = [datasets.card(group) for group in card.groups]
        assert sum(member.rows for member in members) == card.rows
        assert sum(member.series for member in members) == card.series
    else:
        assert isinstance(card.season_length, int)
        assert isinstance(card.horizon, int)
        assert str(frequency) == str(card.frequency) or str(frequency).startswith(f"{card.frequency}-")


def test_a_card_is_frozen_and_reads_well() -> None:
    card = datasets.card("rossmann")
    with pytest.raises(FrozenInstanceError):
        card.rows = 1  # type: ignore[misc]
    text = str(card)
    assert text.startswith("rossmann\n")
    assert "past customers" in text
    assert "1,115 series" in text
    assert "by group" in str(datasets.card("m4"))


def test_unknown_name_tells_what_is_known_and_what_is_near() -> None:
    with pytest.raises(
        ParameterError, match=r"Unknown dataset 'AirPassenger'.*mean 'air_passengers'.*Available: .*yosemite_temps"
    ):
        datasets.load("AirPassenger")
    with pytest.raises(ParameterError, match=r"Unknown dataset 'qqqqq'\. Available"):
        datasets.card("qqqqq")
    with pytest.raises(ParameterTypeError, match="must be a string, got 3"):
        datasets.load(3)  # type: ignore[arg-type]


def test_unknown_split() -> None:
    with pytest.raises(ParameterError, match=r"one of 'train', 'test', or None .*, got 'rest'"):
        datasets.load("nile", split="rest")
    with pytest.raises(ParameterError, match=r"'train', 'test', 'rest', or None"):
        datasets.load("etth1", split="validation")


@pytest.mark.parametrize("name", ["nile", "fertility", "generated"])
def test_splits_cut_the_last_horizon_of_each_series(name: str) -> None:
    whole, train, test = (datasets.load(name, split=split) for split in (None, "train", "test"))
    assert len(train) + len(test) == len(whole)
    assert (test.groupby("unique_id").size() == datasets.card(name).horizon).all()
    last, first = train.groupby("unique_id")["ds"].max(), test.groupby("unique_id")["ds"].min()
    assert (last < first.loc[last.index]).all()
    joined = pd.concat([train, test]).sort_values(["unique_id", "ds"], ignore_index=True)
    pd.testing.assert_frame_equal(joined, whole.sort_values(["unique_id", "ds"], ignore_index=True))


def test_a_loaded_frame_belongs_to_the_caller() -> None:
    first = datasets.load("nile")
    first["y"] = np.nan
    assert datasets.load("nile")["y"].notna().all()


def test_one_frame_has_no_other_tables() -> None:
    with pytest.raises(ParameterError, match=r"Dataset 'nile' has no tables"):
        datasets.table("nile", "info")


def test_importing_the_room_loads_no_heavy_library() -> None:
    heavy = "('pandas', 'pyarrow', 'statsmodels', 'scipy')"
    code = f"import sys, deepforecast.datasets; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
