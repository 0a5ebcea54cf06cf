from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pytest
from pandas.tseries.frequencies import to_offset

from deepforecast import datasets
from deepforecast.datasets.bundled import READERS
from deepforecast.datasets.bundled_cards import CARDS
from deepforecast.errors import DependencyError

# sum of y, number of missing values, first and last stamp: known from the sources
KNOWN = {
    "air_passengers": (40363, 0, "1949-01-01", "1960-12-01"),
    "co2": (756816.5, 59, "1958-03-29", "2001-12-29"),
    "copper": (135840.8, 0, "1951-01-01", "1975-01-01"),
    "danish_data": (646.4923775, 0, "1974-01-01", "1987-07-01"),
    "elec_equip": (25847.67, 0, "1995-01-01", "2016-05-01"),
    "elnino": (16903.8, 0, "1950-01-01", "2010-12-01"),
    "fertility": (42863.04, 54, "1960-01-01", "2011-01-01"),
    "grunfeld": (29328.618, 0, "1935-01-01", "1954-01-01"),
    "interest_inflation": (0.89851216, 0, "1972-04-01", "1998-10-01"),
    "longley": (1045072, 0, "1947-01-01", "1962-01-01"),
    "macrodata": (1465897.896, 0, "1959-01-01", "2009-07-01"),
    "macrodata_panel": (None, 0, "1959-01-01", "2009-07-01"),
    "nile": (91935, 0, "1871-01-01", "1970-01-01"),
    "sunspots": (15373.4, 0, "1700-01-01", "2008-01-01"),
}


def test_each_card_has_a_reader_and_known_values() -> None:
    assert [card.name for card in CARDS] == sorted(READERS) == sorted(KNOWN)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_frame_is_what_its_card_says(card: datasets.Card) -> None:
    frame = datasets.load(card.name)
    assert list(frame) == ["unique_id", "ds", "y", *card.future, *card.past, *card.static]
    assert len(frame) == card.rows
    assert frame["unique_id"].nunique() == card.series
    assert (frame.drop(columns=["unique_id", "ds"]).dtypes == np.float64).all()
    assert not frame.drop(columns="y").isna().any().any()
    total, missing, first, last = KNOWN[card.name]
    assert frame["y"].isna().sum() == missing
    assert (frame["ds"].min(), frame["ds"].max()) == (pd.Timestamp(first), pd.Timestamp(last))
    if total is not None:
        assert frame["y"].sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_every_series_is_regular(card: datasets.Card) -> None:
    for _, ds in datasets.load(card.name).groupby("unique_id", sort=False)["ds"]:
        stamps = pd.DatetimeIndex(ds)
        assert (stamps == pd.date_range(stamps[0], periods=len(stamps), freq=to_offset(card.frequency))).all()


def test_values_by_hand() -> None:
    air = datasets.load("air_passengers")
    assert air["y"].head(3).tolist() == [112, 118, 132]
    assert air["y"].tail(2).tolist() == [390, 432]
    el = datasets.load("elnino").set_index("ds")["y"]
    assert el["1950-01-01"] == 23.11
    assert el["2010-12-01"] == 22.07
    macro = datasets.load("macrodata").iloc[0]
    assert (macro["y"], macro["realcons"], macro["unemp"]) == (2710.349, 1707.4, 5.8)
    general_motors = datasets.load("grunfeld").query("unique_id == 'General Motors'").iloc[1]
    assert (general_motors["y"], general_motors["value"], general_motors["capital"]) == (391.8, 4661.7, 52.6)
    assert datasets.load("longley").iloc[0, 2:].tolist() == [60323.0, 83.0, 234289.0, 2356.0, 1590.0, 107608.0]


def test_panel_of_macrodata_holds_the_columns_of_macrodata() -> None:
    wide = datasets.load("macrodata").rename(columns={"y": "realgdp"})
    panel = datasets.load("macrodata_panel")
    for name, series in panel.groupby("unique_id", sort=False):
        assert series["y"].tolist() == wide[str(name)].tolist()


def test_fertility_keeps_gaps_inside_and_cuts_the_ends() -> None:
    frame = datasets.load("fertility")
    ends = frame.groupby("unique_id")["y"].agg([lambda y: y.iloc[0], lambda y: y.iloc[-1], "count"])
    assert not ends.isna().any().any()
    assert ends["count"].min() >= 10
    assert frame.query("unique_id == 'Aruba'")["y"].head(2).tolist() == [4.82, 4.655]


@pytest.mark.parametrize("name", ["co2", "nile", "sunspots", "elec_equip", "danish_data"])
def test_equal_to_what_statsmodels_loads(name: str) -> None:
    module = pytest.importorskip(f"statsmodels.datasets.{name}")
    data = module.load_pandas().data
    column = {"co2": "co2", "nile": "volume", "sunspots": "SUNACTIVITY", "danish_data": "lrm"}.get(name, data.columns[0])
    frame = datasets.load(name)
    np.testing.assert_allclose(frame["y"], data[column])
    if isinstance(data.index, pd.DatetimeIndex):
        assert (pd.DatetimeIndex(frame["ds"]) == data.index).all()


def test_without_statsmodels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DependencyError, match=r"co2/co2.csv requires the package statsmodels.*pip install statsmodels"):
        datasets.load("co2")
    assert len(datasets.load("air_passengers")) == 144
