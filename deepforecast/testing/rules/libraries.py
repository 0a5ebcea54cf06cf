"""What comes in comes out: polars and pyarrow frames give the forecast of pandas, in their own library."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from deepforecast.testing import worlds
from deepforecast.testing.check import rule
from deepforecast.testing.expect import column, expect, expect_equal
from deepforecast.testing.subject import Subject


@rule(packages=("polars",))
def polars_in_polars_out(subject: Subject) -> None:
    """A polars frame gives the forecast of pandas as a polars frame, dtypes kept."""
    import polars

    frame = polars.DataFrame({name: worlds.daily()[name].to_list() for name in ("unique_id", "ds", "y")})
    _same_but_for_the_library(subject, frame, polars.DataFrame)


@rule(packages=("pyarrow",))
def pyarrow_in_pyarrow_out(subject: Subject) -> None:
    """A pyarrow table gives the forecast of pandas as a pyarrow table, dtypes kept."""
    import pyarrow

    _same_but_for_the_library(subject, pyarrow.Table.from_pandas(worlds.daily(), preserve_index=False), pyarrow.Table)


@rule(packages=("pyarrow",))
def arrow_dtypes_of_pandas_are_kept(subject: Subject) -> None:
    """A pandas frame with arrow dtypes gives the same forecast, ids and times in these dtypes."""
    frame = worlds.daily().convert_dtypes(dtype_backend="pyarrow")
    _same_but_for_the_library(subject, frame, type(frame))


def _same_but_for_the_library(subject: Subject, frame: Any, kind: type) -> None:
    wanted, given = subject.fitted().predict(level=subject.levels), nw.from_native(frame, eager_only=True)
    native = subject.forecast(frame, level=subject.levels)
    expect(isinstance(native, kind), f"{kind.__module__}.{kind.__name__} came in, {type(native)} came out")
    found = nw.from_native(native, eager_only=True)
    expect(found.columns == list(wanted.columns), f"the columns are {found.columns}")
    for name in ("unique_id", "ds"):
        came, went = (_dtype(one[name].to_native()) for one in (given, found))
        expect(came == went, f"{name} came as {came} and is given back as {went}")
        expect(found[name].to_list() == wanted[name].tolist(), f"the column {name} differs from that of pandas")
    for name in wanted.columns[2:]:
        expect_equal(column(native, name), wanted[name].to_numpy(), f"the column {name}")


def _dtype(values: Any) -> str:
    """The dtype as the library of the column calls it: pandas has several for what others would call one."""
    return str(values.dtype if hasattr(values, "dtype") else values.type)
