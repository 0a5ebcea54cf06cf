"""Data for searches that take milliseconds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Three random walks of 60 days: the last value is the best forecast."""
    draw = np.random.default_rng(0)
    stamps = pd.date_range("2024-01-01", periods=60)
    return pd.concat(
        [pd.DataFrame({"unique_id": name, "ds": stamps, "y": 50 + draw.normal(size=60).cumsum()}) for name in "ABC"],
        ignore_index=True,
    )
