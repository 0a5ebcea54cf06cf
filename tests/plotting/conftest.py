"""Small panels, their forecasts and windows, made without chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.fixture(params=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Callable[[pd.DataFrame], Any]:
    """Turns a pandas frame into one of each library in turn."""
    return LIBRARIES[request.param]


@pytest.fixture
def panel() -> Callable[..., pd.DataFrame]:
    """`panel("a", "b", n=30)`: series of a weekly season, each on its own level."""

    def make(*ids: Any, n: int = 30, freq: str = "D", start: str = "2024-01-01", tz: str | None = None) -> pd.DataFrame:
        t = np.arange(n)
        y = 20 + 0.1 * t + 5 * np.sin(2 * np.pi * t / 7)
        ds = pd.date_range(start, periods=n, freq=freq, tz=tz)
        series = [pd.DataFrame({"unique_id": key, "ds": ds, "y": y + 10 * at}) for at, key in enumerate(ids)]
        return pd.concat(series, ignore_index=True)

    return make


@pytest.fixture
def ahead() -> Callable[..., pd.DataFrame]:
    """`ahead(history, 5, models=("LSTM",), levels=(80, 95))`: forecasts that follow on, with bands of +-level/20."""

    def make(
        history: pd.DataFrame,
        steps: int = 7,
        models: Sequence[str] = ("LSTM",),
        levels: Sequence[float] = (80, 95),
        freq: str = "D",
    ) -> pd.DataFrame:
        found = []
        for key, rows in history.groupby("unique_id", sort=False):
            ds = pd.date_range(rows.ds.iloc[-1], periods=steps + 1, freq=freq)[1:]
            columns: dict[str, Any] = {"unique_id": key, "ds": ds}
            for at, model in enumerate(models):
                columns[model] = rows.y.mean() + at + np.arange(steps) / 10
                for level in levels:
                    columns[f"{model}-lo-{level}"] = columns[model] - level / 20
                    columns[f"{model}-hi-{level}"] = columns[model] + level / 20
            found.append(pd.DataFrame(columns))
        return pd.concat(found, ignore_index=True)

    return make


@pytest.fixture
def windows() -> Callable[..., pd.DataFrame]:
    """`windows(history, steps=5, n=3, step=5)`: what cross-validation gives, the error growing with the horizon step."""

    def make(
        history: pd.DataFrame, steps: int = 5, n: int = 3, step: int = 5, models: Sequence[str] = ("LSTM",)
    ) -> pd.DataFrame:
        found = []
        for _, rows in history.groupby("unique_id", sort=False):
            for window in range(n):
                cut = len(rows) - steps - step * (n - 1 - window)
                part = rows.iloc[cut : cut + steps].reset_index(drop=True)
                part.insert(2, "cutoff", rows.ds.iloc[cut - 1])
                for at, model in enumerate(models):
                    point = part.y - np.arange(1, steps + 1) * (-1) ** window - at
                    part = part.assign(**{model: point, f"{model}-lo-80": point - 4, f"{model}-hi-80": point + 4})
                found.append(part)
        return pd.concat(found, ignore_index=True)

    return make
