"""Records model files of this release, and what they forecast, once and for all: `python tests/golden/models/record.py`.

Run before a release, after its version is set; a folder that is there is never written again. Later releases load these files
and forecast the same (tests/core/test_golden_models.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import deepforecast
from deepforecast import Conformal, Drift, Forecaster, Mean, Naive, Naive2, SeasonalMean, SeasonalNaive, WindowMean

FOLDER = Path(__file__).parent
HORIZON, LEVEL = 3, 80


def noisy(length: int = 40, **times: Any) -> pd.DataFrame:
    """Two series with a week in them."""
    rng = np.random.default_rng(1)
    stamps = pd.date_range(**{"start": "2024-01-01", "periods": length, "freq": "D", **times})
    week = 20 + np.arange(length) % 7
    parts = [pd.DataFrame({"unique_id": name, "ds": stamps, "y": week + rng.normal(size=length)}) for name in ("日本", "b")]
    return pd.concat(parts, ignore_index=True)


def business() -> Forecaster:
    freq = pd.offsets.CustomBusinessDay(holidays=["2023-01-02", "2024-05-01"], weekmask="Mon Tue Wed Thu")
    frame = noisy(30, freq=freq, tz="Europe/Berlin").assign(unique_id=lambda one: (one.unique_id == "b").astype("int16"))
    return Naive2(horizon=HORIZON, season_length=4).fit(frame, freq=freq)


def months() -> Forecaster:
    frame = noisy(30, freq="ME", unit="s").astype({"unique_id": "category"})
    return Conformal(
        SeasonalNaive(season_length=3), horizon=HORIZON, method="adaptive", adaptation_rate=0.1, alias="Bänder"
    ).fit(frame)


def numbered() -> Forecaster:
    frame = pd.DataFrame({"t": np.arange(100, 160, 5, dtype="int32"), "v": np.arange(12.0) ** 2})
    return Drift(horizon=HORIZON).fit(frame, freq=5, columns={"time": "t", "target": "v"})


MODELS: dict[str, Callable[[], Forecaster]] = {
    "naive_days": lambda: Naive(horizon=HORIZON).fit(noisy()),
    "seasonal_naive_arrow": lambda: SeasonalNaive(horizon=HORIZON, season_length=7).fit(
        pa.Table.from_pandas(noisy(), preserve_index=False)
    ),
    "seasonal_mean_weeks": lambda: SeasonalMean(horizon=HORIZON, season_length=4, missing="ffill").fit(
        noisy(30, freq="W-WED").drop(index=[5, 40])
    ),
    "window_mean_hours": lambda: WindowMean(horizon=HORIZON, window=6).fit(
        noisy(freq="h", tz="America/New_York", start="2024-03-08")
    ),
    "mean_pooled": lambda: Conformal(Mean(), horizon=HORIZON, pool=True, n_windows=5).fit(noisy(freq="QE-NOV")),
    "naive2_business_days": business,
    "conformal_months": months,
    "drift_numbered": numbered,
}


def recorded(frame: Any) -> dict[str, list[str]]:
    """A forecast as text that is exact: numbers in hexadecimal, stamps in ISO-8601."""
    table = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()
    return {
        name: [value.hex() for value in values.tolist()] if values.dtype == float else [str(value) for value in values]
        for name, values in table.items()
    }


def main() -> int:
    """Write the folder of this version."""
    folder = FOLDER / deepforecast.__version__
    if folder.exists():
        sys.stderr.write(f"{folder} is there: what a release has written stays as it is.\n")
        return 1
    folder.mkdir()
    for name, make in MODELS.items():
        model = make()
        model.save(folder / f"{name}.dfc")
        forecast = recorded(model.predict(level=LEVEL))
        said = {"repr": repr(model), "library": model.state_.series.library, "forecast": forecast}
        (folder / f"{name}.json").write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
