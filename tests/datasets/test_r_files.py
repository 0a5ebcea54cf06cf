from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rdata
from rdata.conversion import to_r
from rdata.parser import RObjectType

from deepforecast.datasets import conversion, r_files
from deepforecast.errors import DataError, DependencyError


class Series:
    """A time series as R keeps it: values with first, last and frequency beside them."""

    def __init__(self, values: list[float], start: float, frequency: float) -> None:
        self.values, self.tsp = values, [start, start + (len(values) - 1) / frequency, frequency]


def _series(given: Series, converter: Any) -> Any:
    beside = to_r.build_r_list([(converter.convert_to_r_sym("tsp"), converter.convert_to_r_object(np.array(given.tsp)))])
    return to_r.build_r_object(RObjectType.REAL, value=np.array(given.values), attributes=beside)


def _written(path: Path, given: dict[str, Any]) -> Path:
    rdata.write_rda(path, given, constructor_dict={**to_r.DEFAULT_CLASS_MAP, Series: _series})
    return path


def test_m1_as_its_package_keeps_it(tmp_path: Path) -> None:
    one = {
        "st": "YAF2",
        "type": "MICRO1",
        "period": "YEARLY",
        "x": Series([1.0, 2.0], 1972.0, 1.0),
        "xx": Series([3.0], 1974.0, 1.0),
    }
    two = one | {"period": "QUARTERLY", "x": Series([4.0], 1980.25, 4.0)}
    held = r_files.read_objects(_written(tmp_path / "M1.rda", {"M1": {"YAF2": one, "QNM3": two}}))
    parts = conversion.m1(held["M1"])
    assert parts["train"][["ds", "y"]].values.tolist() == [[1, 1.0], [2, 2.0], [1, 4.0]]
    assert parts["test"][["ds", "y"]].values.tolist() == [[3, 3.0], [2, 3.0]]
    assert parts["info"].iloc[1].tolist() == ["QNM3", "Quarterly", "MICRO1", 1, 1, 1980.25, 4]


def test_lists_without_names_and_tables(tmp_path: Path) -> None:
    held = r_files.read_objects(
        _written(tmp_path / "nn5.rda", {"nn5": [Series([1.0, np.nan], 1.0, 7.0), Series([2.0, 3.0], 1.0, 7.0)]})
    )
    assert [one["x"].tolist()[0] for one in held["nn5"]] == [1.0, 2.0]
    times = np.array([1325336400.0, 1325338200.0])
    raw = {
        "Time": times,
        "Demand": np.array([4.0, 5.0]),
        "Temperature": np.array([21.4, 21.0]),
        "Holiday": np.array([True, False]),
    }
    held = r_files.read_objects(_written(tmp_path / "vic_elec.rda", {"vic_elec": raw}))
    parts = conversion.demand(held["vic_elec"], 1)
    assert parts["train"]["ds"].astype(str).tolist() == ["2011-12-31 13:00:00"]
    assert parts["train"]["holiday"].tolist() == [1]
    assert parts["test"]["y"].tolist() == [5.0]


def test_what_is_no_file_of_r_is_named(tmp_path: Path) -> None:
    (tmp_path / "M1.rda").write_bytes(b"<html>")
    with pytest.raises(DataError, match=r"M1.rda must be an R data file"):
        r_files.read_objects(tmp_path / "M1.rda")


def test_without_rdata_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdata.parser", None)
    with pytest.raises(DependencyError, match=r"requires the package rdata.* pip install rdata"):
        r_files.read_objects(tmp_path / "M1.rda")
