from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import pytest

from deepforecast import Naive
from deepforecast.data.columns import Columns, resolve_columns
from deepforecast.errors import DataError, DataWarning, ParameterError, ParameterTypeError
from tests.frames import LIBRARIES, D, P, Stream, converted, follow_hint, joined, plain

HOUSE = ["unique_id", "ds", "y"]
OTHER = ["item_id", "timestamp", "target"]


@pytest.mark.parametrize(
    ("given", "names", "keys"),
    [
        (None, HOUSE, ("unique_id", "ds", "y")),
        (None, ["y", "x", "ds"], (None, "ds", "y")),
        (None, OTHER, ("item_id", "timestamp", "target")),
        (None, ["timestamp", "target"], (None, "timestamp", "target")),
        (None, [*OTHER, *HOUSE], ("unique_id", "ds", "y")),
        ({"target": "sales"}, ["unique_id", "ds", "sales"], ("unique_id", "ds", "sales")),
        ({"target": "sales"}, ["item_id", "timestamp", "sales"], ("item_id", "timestamp", "sales")),
        ({"time": "day"}, ["item_id", "day", "target"], ("item_id", "day", "target")),
        ({"id": "shop"}, ["shop", "timestamp", "target"], ("shop", "timestamp", "target")),
        ({"id": None}, HOUSE, (None, "ds", "y")),
        ({"time": "unique_id"}, ["unique_id", "y"], (None, "unique_id", "y")),
        ({"target": "unique_id"}, ["unique_id", "ds"], (None, "ds", "unique_id")),
        (Columns(target="sales"), ["item_id", "timestamp", "sales"], ("item_id", "timestamp", "sales")),
        (Columns(id=None), HOUSE, (None, "ds", "y")),
    ],
)
def test_keys_are_recognised(given: Any, names: list[str], keys: tuple[Any, ...]) -> None:
    found = resolve_columns(given, names)
    assert (found.id, found.time, found.target) == keys


def test_roles() -> None:
    given = {"future": ["promo", "price"], "past": "load", "static": ("region",)}
    found = resolve_columns(given, [*HOUSE, "promo", "price", "load"])  # a static column may come in a frame of its own
    assert found.covariates == ("promo", "price", "load", "region")
    assert found.all == ("unique_id", "ds", "y", "promo", "price", "load", "region")
    assert resolve_columns(Columns(**given), [*HOUSE, "promo", "price", "load"]) == found
    assert resolve_columns(found, [*HOUSE, "promo", "price", "load"]) == found
    assert Columns(future={"b", "a"}).future == ("a", "b")  # type: ignore[arg-type]
    assert Columns(past=None) == Columns()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "names", "words"),
    [
        (None, ["id", "date", "value"], ["unique_id, ds, y", "lacks ds, y", "has id, date, value", "columns="]),
        (None, ["unique_id", "y"], ["lacks ds", "reset_index"]),
        ({"target": "sales"}, HOUSE, ["unique_id, ds, sales", "lacks sales"]),
        ({"future": "promo"}, HOUSE, ["lacks promo"]),
        ({"id": "shop"}, HOUSE, ["lacks shop"]),
    ],
)
def test_what_is_missing_is_named(given: Any, names: list[str], words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        resolve_columns(given, names)
    assert all(word in str(caught.value) for word in words), caught.value
    assert ("reset_index" in str(caught.value)) == ("lacks ds" in str(caught.value))


def test_a_column_for_each_series_is_told_how_to_become_long() -> None:
    with pytest.raises(
        DataError,
        match=r"lacks ds, y and has .*; a frame with one column per series must be in long format: use melt\(\) or unpivot\(\)",
    ):
        resolve_columns(None, ["day", *(f"shop {number}" for number in range(5))])
    with pytest.raises(DataError, match=r"to make it a column\.$"):
        resolve_columns(None, ["shop", "day", "sales"])


@pytest.mark.parametrize("library", [*LIBRARIES, "stream"])
@pytest.mark.parametrize("time", ["date", "ds"])
def test_the_code_for_a_column_per_series_works(library: str, time: str) -> None:
    wide = D().drop(columns=["unique_id", "y"]).assign(north=1.0, south=2).rename(columns={"ds": time})
    make: Any = Stream if library == "stream" else partial(converted, library=library)
    with pytest.raises(DataError, match="if each column is a series, pass") as caught:
        Naive(horizon=1).fit(make(wide))
    columns = None if time == "ds" else {"time": "date"}
    assert ("columns={'time': 'date'}." in caught.value.hint) == (time == "date")
    forecasts = Naive(horizon=1).fit(follow_hint(caught.value, make(wide)), columns=columns).predict()
    assert plain(forecasts).unique_id.tolist() == ["north", "south"]


def test_the_code_for_a_column_per_series_has_the_names_of_the_caller() -> None:
    wide, columns = D()[["ds"]].assign(north=1.0, south=2.0), {"id": "shop", "target": "sales"}
    with pytest.raises(DataError, match=r"pass frame\.melt\('ds', var_name='shop', value_name='sales'\)\.") as caught:
        Naive(horizon=1).fit(wide, columns=columns)
    Naive(horizon=1).fit(follow_hint(caught.value, wide), columns=columns)


def test_the_code_for_a_column_per_series_takes_the_time_of_the_index() -> None:
    wide = pd.DataFrame({"north": 1.0, "south": 2.0}, index=pd.DatetimeIndex(D().ds, name="day"))
    with pytest.raises(DataError) as caught:
        Naive(horizon=1).fit(wide)
    assert len(Naive(horizon=1).fit(follow_hint(caught.value, wide)).predict()) == 2


@pytest.mark.parametrize(
    "frame",
    [
        D().drop(columns="y").assign(a=1.0, b=2.0),
        D().assign(kind="x").rename(columns={"y": "z"}),
        D()[["ds"]].assign(a=1.0),
        pd.DataFrame({"unique_id": ["north", "south"], "2024-01-01": 1.0, "2024-01-02": 2.0}),  # columns are dates
        pd.DataFrame({"shop": ["north", "south"], "2024-01-01": 1.0, "2024-01-02": 2.0}),
        P(2, 9).pivot(index="ds", columns="unique_id", values=["y"]),  # columns are a MultiIndex
        P(2, 9).pivot(index="ds", columns="unique_id", values=["y"]).reset_index(),
    ],
)
def test_a_long_frame_is_not_melted(frame: pd.DataFrame) -> None:
    with pytest.raises(DataError) as caught:
        Naive(horizon=1).fit(frame)
    assert "melt" not in str(caught.value)


@pytest.mark.parametrize(("id_name", "hint"), [("item", "join them into one id column first"), (None, "Pass the id column")])
def test_the_hint_for_duplicates_thinks_of_series_told_apart_by_two_columns(id_name: str | None, hint: str) -> None:
    items = P(2, 9).rename(columns={"unique_id": id_name or "shop"})
    frame = joined(items.assign(department="A"), items.assign(department="B"))
    with pytest.raises(DataError, match=hint):
        Naive(horizon=1).fit(frame, columns={"id": id_name} if id_name else None)


@pytest.mark.parametrize("role", ["time", "target"])
@pytest.mark.parametrize("name", [5, ["ds"]])
def test_the_message_for_a_name_of_a_wrong_type_is_that_of_its_role(role: str, name: Any) -> None:
    with pytest.raises(ParameterTypeError) as by_dict:
        Naive(horizon=1).fit(P(1, 9), columns={role: name})
    with pytest.raises(ParameterTypeError) as by_columns:
        Columns(**{role: name})
    assert str(by_dict.value) == str(by_columns.value)


@pytest.mark.parametrize("library", [*LIBRARIES, "stream"])
def test_the_code_that_joins_several_id_columns_works(library: str) -> None:
    frame = P(2, 20).rename(columns={"unique_id": "store"}).assign(item=7)
    make: Any = Stream if library == "stream" else partial(converted, library=library)
    with pytest.raises(ParameterTypeError, match=r"`id` must be one column name, got store, item \(list\)") as caught:
        Naive(horizon=1).fit(make(frame), columns={"id": ["store", "item"]})
    with pytest.warns(DataWarning, match="store, item"):
        model = Naive(horizon=1).fit(follow_hint(caught.value, make(frame)), columns={"id": "unique_id"})
    assert plain(model.predict()).unique_id.tolist() == ["s001/7", "s002/7"]


def test_several_id_columns_without_a_frame() -> None:
    with pytest.raises(ParameterTypeError, match=r"Pass frame\.assign\(unique_id="):
        Columns(id=("store", "item"))  # type: ignore[arg-type]


def test_a_frame_without_columns_has_none() -> None:
    with pytest.raises(DataError, match="lacks ds, y and has none"):
        resolve_columns(None, [])


def test_target_is_not_needed_ahead() -> None:
    assert resolve_columns({"future": "promo"}, ["unique_id", "ds", "promo"], target=False).id == "unique_id"
    with pytest.raises(DataError, match=r"The future frame must have the columns unique_id, ds, promo, but it lacks promo"):
        resolve_columns({"future": "promo", "id": "unique_id"}, ["unique_id", "ds"], target=False, what="future frame")


@pytest.mark.parametrize(
    ("given", "error", "word"),
    [
        ({"tgt": "y"}, ParameterError, "tgt"),
        ({"future": ["y"], "target": "y"}, ParameterError, "these are repeated: y (target, future)"),
        ({"future": ["a"], "past": ["a"]}, ParameterError, "these are repeated: a (future, past)"),
        ({"id": "ds", "time": "ds"}, ParameterError, "these are repeated: ds (id, time)"),
        ({"target": 3}, ParameterTypeError, "3 (int)"),
        ({"time": None}, ParameterTypeError, "None (NoneType)"),
        ({"future": [0]}, ParameterTypeError, "0 (int)"),
        ({"future": 5}, ParameterTypeError, "`future` must be a column name or a list"),
        (["y"], ParameterTypeError, "list"),
        ("y", ParameterTypeError, "str"),
    ],
)
def test_wrong_columns(given: Any, error: type[Exception], word: str) -> None:
    with pytest.raises(error) as caught:
        resolve_columns(given, [*HOUSE, "a"])
    assert word in str(caught.value)
    assert "columns" in str(caught.value)


def test_given_dict_is_untouched() -> None:
    given = {"future": ["promo"]}
    resolve_columns(given, [*HOUSE, "promo"])
    assert given == {"future": ["promo"]}
