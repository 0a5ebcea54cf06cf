"""Columns by their role."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deepforecast.cli.arguments import TextFormat
from deepforecast.cli.column_types import convert_columns
from deepforecast.data.columns import Columns
from deepforecast.errors import DataError


def covariate(*text: str | None, **reading: object):
    table = pa.table({"x": pa.array(text, pa.string())})
    return convert_columns(table, Columns(future=("x",)), TextFormat(**reading))["x"]  # type: ignore[arg-type]


def test_numbers_where_all_cells_are() -> None:
    assert covariate("1", "2.5", "").tolist()[:2] == [1.0, 2.5]
    assert covariate("", None).dtype == "float64"


def test_categories_where_none_is() -> None:
    found = covariate("a", "b", "NA", "a")
    assert found.dtype == "category"
    assert found.cat.categories.tolist() == ["a", "b"]
    assert found.isna().tolist() == [False, False, True, False]


def test_a_mixture_is_refused() -> None:
    with pytest.raises(DataError, match=r"either numbers or categories: data row 3 holds .x., and 2 rows contain numbers"):
        covariate("1", "2", "x")


def test_categories_where_the_user_says_so() -> None:
    assert covariate("1", "02", "x", categorical=("x",)).tolist() == ["1", "02", "x"]
