"""Lengths of windows and sampling of networks by rule: input_size="auto" and sample_by="auto"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, NBEATS
from deepforecast.data.panel import Panel
from deepforecast.models.neural._fit import samples_by_series

SMALL: dict[str, Any] = {"hidden_sizes": [8], "max_steps": 5, "batch_size": 16, "season_length": 4}


def walks(*lengths: int) -> pd.DataFrame:
    """Random walks of these lengths with integer times."""
    random = np.random.default_rng(0)
    series = [
        pd.DataFrame({"unique_id": f"s{number}", "ds": np.arange(length), "y": 50 + random.normal(size=length).cumsum()})
        for number, length in enumerate(lengths)
    ]
    return pd.concat(series, ignore_index=True)


@pytest.mark.parametrize(
    ("lengths", "horizon", "season", "mlp", "nbeats"),
    [
        ([100, 200, 300], 18, 12, 54, 36),  # 3 or 2 horizons
        ([359, 359, 359], 18, 12, 54, 36),
        ([100, 360, 360], 18, 12, 54, 54),  # half of the series have 20 horizons
        ([100, 100, 9_000], 18, 12, 54, 36),  # one long series among short ones changes nothing
        ([200, 200], 7, 24, 48, 48),  # 2 seasons
        ([60, 60], 5, 1, 15, 18),  # NBEATS: at least 18 time steps
        ([18, 20], 6, 1, 14, 14),  # as far as the longest series permits
    ],
)
def test_auto_input_size(lengths: list[int], horizon: int, season: int, mlp: int, nbeats: int) -> None:
    settings = {**SMALL, "season_length": season, "max_steps": 1}
    for model, input_size in ((MLP, mlp), (NBEATS, nbeats)):
        fitted = model(horizon=horizon, calendar=None, **settings).fit(walks(*lengths))
        assert fitted.network_.sizes.input_size == input_size


@pytest.mark.parametrize(
    ("lengths", "sample_by", "expected"),
    [
        ([20, 60, 80], "auto", True),
        ([20, 20, 80], "auto", False),  # half of the series are shorter than two windows with their horizons
        ([60, 60, 60], "auto", False),  # equal lengths: the same distribution
        ([20, 49, 49], "auto", False),
        ([20, 50, 50], "auto", True),
        ([20, 20, 80], "series", True),
        ([20, 60, 80], "windows", False),
    ],
)
def test_auto_sampling(lengths: list[int], sample_by: str, expected: bool) -> None:
    panel = Panel.from_frame(walks(*lengths))
    assert samples_by_series(MLP(horizon=5, sample_by=sample_by), panel, 20, 5) is expected


@pytest.mark.parametrize(("lengths", "resolved"), [([30, 200, 200], "series"), ([30, 30, 200], "windows")])
def test_auto_sampling_reaches_the_training(lengths: list[int], resolved: str) -> None:
    frame = walks(*lengths)
    forecasts = {
        sample_by: MLP(horizon=4, sample_by=sample_by, **SMALL).fit(frame).predict()["MLP"].to_numpy()
        for sample_by in ("auto", "series", "windows")
    }
    assert np.array_equal(forecasts["auto"], forecasts[resolved])
    assert not np.array_equal(forecasts["series"], forecasts["windows"])


def test_nbeats_samples_by_the_rule() -> None:
    assert (NBEATS().sample_by, MLP().sample_by) == ("auto", "windows")
