"""The frames of the suite of bad input: D(u, n, f) and P(k, n), and the same rows in another library."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pandas as pd

from deepforecast.errors import DeepForecastError

LIBRARIES = ("pandas", "polars", "pyarrow")


def D(u: str = "A", n: int = 60, f: Any = "D", start: str = "2024-01-01", tz: str | None = None) -> pd.DataFrame:
    """One series: a line, a week in it, no noise."""
    t = np.arange(n)
    stamps = pd.date_range(start, periods=n, freq=f, tz=tz)
    return pd.DataFrame({"unique_id": u, "ds": stamps, "y": 20 + 0.1 * t + 5 * np.sin(2 * np.pi * t / 7)})


def P(k: int, n: int, f: Any = "D") -> pd.DataFrame:
    """k such series, ten apart."""
    parts = [D(f"s{i:03d}", n, f).assign(y=lambda frame, i=i: frame.y + 10 * i) for i in range(1, k + 1)]
    return pd.concat(parts, ignore_index=True)


def joined(*frames: pd.DataFrame) -> pd.DataFrame:
    """The rows of several frames."""
    return pd.concat(list(frames), ignore_index=True)


def converted(frame: pd.DataFrame, library: str) -> Any:
    """The frame in another library, through arrow."""
    if library == "pandas":
        return frame
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if library == "pyarrow":
        return table
    import polars as pl

    return pl.DataFrame(table)


class Stream:
    """An object with the Arrow C stream interface that can be read once, as a relation of DuckDB."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.table = converted(frame, "pyarrow")
        self.n_reads = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.n_reads += 1
        assert self.n_reads == 1, "read twice"
        return self.table.__arrow_c_stream__(requested_schema)


def follow_hint(error: DeepForecastError, frame: Any) -> Any:
    """The value of the code in the hint of an error about `frame`."""
    code = re.search(r"(frame|pandas|pyarrow|deepforecast)\..*\)", error.hint)
    assert code is not None, error.hint
    modules = {name: importlib.import_module(name) for name in ("deepforecast", "pandas", "polars", "pyarrow")}
    return eval(code[0], {**modules, "frame": frame})


def plain(frame: Any) -> pd.DataFrame:
    """Any frame as pandas."""
    if isinstance(frame, pd.DataFrame):
        return frame
    return frame.to_pandas()


def same(one: Any, other: Any, types: bool = True) -> None:
    """Equal to the bit, with columns, index and (unless `types` is False) dtypes."""
    pd.testing.assert_frame_equal(plain(one), plain(other), check_exact=True, check_dtype=types, check_categorical=types)


FREQUENCIES = (
    "ms", "s", "10s", "min", "5min", "15min", "90min", "h", "2h", "6h", "D", "2D", "10D", "30D", "B", "2B", "3B",
    "W-SUN", "W-MON", "W-WED", "W-SAT", "2W-THU", "4W-FRI", "MS", "ME", "BMS", "BME", "2MS", "2ME", "5ME", "4BMS",
    "QS-JAN", "QS-FEB", "QS-MAR", "QE-OCT", "QE-NOV", "QE-DEC", "BQS-MAR", "BQE-DEC", "2QS-FEB", "3QE-NOV",
    "YS-JAN", "YS-APR", "YE-DEC", "YE-JUN", "BYS-JAN", "BYE-MAR", "2YE-DEC", "5YS-JUL",
)  # fmt: skip
ZONES = (
    None,
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "Australia/Lord_Howe",
    "+02:00",
)
