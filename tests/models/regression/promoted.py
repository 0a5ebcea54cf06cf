"""Data whose only regular parts are known: the effect of a promotion, of a shop's kind, of a day's weather."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

PROMOTION, WEATHER = 20.0, {"fog": 0.0, "rain": -8.0, "sun": 12.0}
PLAIN: dict[str, Any] = {"lags": None, "lag_transforms": None, "differences": None, "calendar": None, "scale": False}
"""No features but the columns given, and the target as it is."""


def sales(series: int = 3, rows: int = 120, ahead: int = 4) -> tuple[pd.DataFrame, pd.DataFrame]:
    """History and future: y is 100, more by PROMOTION where `promotion` is 1, by WEATHER of the `weather`, and small noise."""
    random = np.random.default_rng(2)
    parts = []
    for one in range(series):
        stamps = pd.date_range("2024-01-01", periods=rows + ahead)
        promotion = (random.random(rows + ahead) < 0.3).astype(float)
        weather = random.choice(list(WEATHER), rows + ahead)
        y = 100 + PROMOTION * promotion + np.array([WEATHER[one] for one in weather]) + random.normal(0, 0.5, rows + ahead)
        parts.append(pd.DataFrame({"unique_id": f"s{one}", "ds": stamps, "promotion": promotion, "weather": weather, "y": y}))
    frame = pd.concat(parts, ignore_index=True)
    frame["weather"] = pd.Categorical(frame["weather"])
    late = frame.groupby("unique_id").cumcount(ascending=False) < ahead
    return frame[~late].reset_index(drop=True), frame[late].drop(columns="y").reset_index(drop=True)


def walks(series: int = 4, rows: int = 90) -> pd.DataFrame:
    """Series whose week and level are all there is to know."""
    random = np.random.default_rng(5)
    week = np.array([3.0, 1.0, -2.0, 2.0, -4.0, 2.0, -2.0])
    parts = [
        pd.DataFrame(
            {
                "unique_id": f"s{one}",
                "ds": pd.date_range("2024-01-01", periods=rows),
                "y": 50 + 10 * one + week[np.arange(rows) % 7] * 3 + random.normal(0, 1, rows),
            }
        )
        for one in range(series)
    ]
    return pd.concat(parts, ignore_index=True)
