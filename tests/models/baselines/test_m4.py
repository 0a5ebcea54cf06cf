"""M4: the official table and the organisers' own forecasts, on the small groups; benchmarks/bench_m4_baselines.py has all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deepforecast import Forecaster, Naive, Naive2, SeasonalNaive, datasets
from deepforecast.evaluation.metrics import mase, seasonal_scale, smape

pytestmark = pytest.mark.data
OFFICIAL = {
    ("hourly", "Naive2"): (18.383, 2.395),
    ("hourly", "Naive"): (43.003, None),
    ("hourly", "SeasonalNaive"): (13.912, 1.193),
    ("weekly", "Naive2"): (9.161, 2.777),
    ("weekly", "Naive"): (9.161, None),
    ("weekly", "SeasonalNaive"): (9.161, 2.777),
}
THEIRS = {"Naive2": "Naive2", "SeasonalNaive": "sNaive"}


@pytest.mark.parametrize("group", ["hourly", "weekly"])
@pytest.mark.parametrize("cls", [Naive2, Naive, SeasonalNaive])
def test_p3_official_table_and_forecasts(data_folder: Path, group: str, cls: type[Forecaster]) -> None:
    card = datasets.card(f"m4_{group}")
    season, horizon = card.season_length, card.horizon
    train, test = (datasets.load(f"m4_{group}", split=split) for split in ("train", "test"))
    model = cls() if cls is Naive else cls(season_length=season)
    forecast = model.fit(train, freq=1).predict(horizon)
    known = test.merge(datasets.table(f"m4_{group}", "official_forecasts"), on=["unique_id", "ds"])
    joined = known.merge(forecast.rename(columns={model.name: "ours"}), on=["unique_id", "ds"], validate="1:1")
    assert len(joined) == len(test) == card.series * horizon
    actual, points = (joined[name].to_numpy(np.float64).reshape(-1, horizon) for name in ("y", "ours"))
    lengths = train.groupby("unique_id", observed=True, sort=False).size()
    assert list(lengths.index) == list(joined["unique_id"][::horizon])
    scale = seasonal_scale(train["y"].to_numpy(np.float64), season, np.concatenate([[0], np.cumsum(lengths)]))
    percent, scaled = OFFICIAL[group, cls.__name__]
    assert abs(smape(actual, points).mean() - percent) <= 0.0005
    if scaled is not None:
        assert abs(mase(actual, points, scale=scale).mean() - scaled) <= 0.0005
    if cls.__name__ in THEIRS:  # stored as float32, as the data are
        np.testing.assert_allclose(points, joined[THEIRS[cls.__name__]].to_numpy(np.float64).reshape(-1, horizon), rtol=1e-6)
