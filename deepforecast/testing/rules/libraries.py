"""Frame libraries: polars and pyarrow frames give the same forecast as pandas, as frames of their library."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from deepforecast.errors import format_list
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, expect, expect_equal
from deepforecast.testing.check import rule
from deepforecast.testing.subject import Subject


@rule(packages=("polars",), shared=True)
def polars_in_polars_out(subject: Subject) -> None:
    """A polars frame gives the same forecast as pandas, as a polars frame with the same dtypes."""
    import polars

    frame = polars.DataFrame({name: fixtures.daily_panel()[name].to_list() for name in ("unique_id", "ds", "y")})
    _expect_same_in_library(subject, frame, polars.DataFrame)


@rule(packages=("pyarrow",), shared=True)
def pyarrow_in_pyarrow_out(subject: Subject) -> None:
    """A pyarrow table gives the same forecast as pandas, as a pyarrow table with the same dtypes."""
    import pyarrow

    _expect_same_in_library(subject, pyarrow.Table.from_pandas(fixtures.daily_panel(), preserve_index=False), pyarrow.Table)


@rule(packages=("pyarrow",), shared=True)
def arrow_dtypes_of_pandas_are_kept(subject: Subject) -> None:
    """A pandas frame with arrow dtypes gives the same forecast, with ids and times in these dtypes."""
    frame = fixtures.daily_panel().convert_dtypes(dtype_backend="pyarrow")
    _expect_same_in_library(subject, frame, type(frame))


def _expect_same_in_library(subject: Subject, frame: Any, frame_type: type) -> None:
    """Expect the forecast of `frame` to be of its library, with the dtypes of its keys and the values of
    the forecast from pandas."""
    expected = subject.fitted().predict(level=subject.levels)
    source = nw.from_native(frame, eager_only=True)
    native = subject.forecast(frame, level=subject.levels)
    library_type = f"{frame_type.__module__}.{frame_type.__name__}"
    expect(isinstance(native, frame_type), f"the forecast of a {library_type} must be a {library_type}, got {type(native)}")
    forecast = nw.from_native(native, eager_only=True)
    expect(
        forecast.columns == list(expected.columns),
        f"the forecast must have the columns {list(expected.columns)}, got {forecast.columns}",
    )
    for name in ("unique_id", "ds"):
        source_dtype, forecast_dtype = (_dtype(table[name].to_native()) for table in (source, forecast))
        expect(
            source_dtype == forecast_dtype,
            f"column {name} of the forecast must have the dtype of the frame, {source_dtype}, got {forecast_dtype}",
        )
        expect(
            forecast[name].to_list() == expected[name].tolist(),
            f"column {name} of the forecast must have the values of the forecast from pandas, "
            f"{format_list(map(str, expected[name]))}, got {format_list(map(str, forecast[name]))}",
        )
    for name in expected.columns[2:]:
        expect_equal(
            column(native, name),
            expected[name].to_numpy(),
            f"column {name} of the forecast must have the values of the forecast from pandas",
        )


def _dtype(values: Any) -> str:
    """Return the name of the dtype in the library of the column; pandas has several dtypes where narwhals has one."""
    return str(values.dtype if hasattr(values, "dtype") else values.type)
