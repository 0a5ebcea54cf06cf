"""Values as JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd

from deepforecast.cli.json_output import json_text, to_plain, to_records


def test_values_become_plain() -> None:
    odd = {1: np.float64(0.5), "a": [np.int64(3), math.inf, math.nan, True, None], "b": (np.array([1, 2]), {"x"}), "c": len}
    assert to_plain(odd) == {"1": 0.5, "a": [3, None, None, True, None], "b": [[1, 2], ["x"]], "c": str(len)}


def test_text_is_ascii_and_strict() -> None:
    text = json_text({"id": "日本\x1b[2J", "x": math.nan})
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {"id": "日本\x1b[2J", "x": None}


def test_records() -> None:
    frame = pd.DataFrame({
        "id": ["007", None],
        "day": [pd.Timestamp("2024-01-01"), pd.NaT],
        "local": pd.to_datetime(["2024-01-01 05:00", "2024-07-01 05:00"]).tz_localize("Europe/Berlin"),
        "n": [1, 2],
        "y": [0.5, math.nan],
    })  # fmt: skip
    assert to_records(frame) == [
        {"id": "007", "day": "2024-01-01", "local": "2024-01-01 05:00:00+01:00", "n": 1, "y": 0.5},
        {"id": None, "day": None, "local": "2024-07-01 05:00:00+02:00", "n": 2, "y": None},
    ]
    assert to_records(frame.iloc[:0]) == []
