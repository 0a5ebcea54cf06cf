"""M4: the official table and the organisers' own forecasts, on the small groups; benchmarks/bench_m4_baselines.py has all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deepforecast import Forecaster, Naive, Naive2, SeasonalNaive, datasets, score

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
def test_official_m4_table_and_forecasts(data_folder: Path, group: str, cls: type[Forecaster]) -> None:
    card = datasets.card(f"m4_{group}")
    season, horizon = card.season_length, card.horizon
    train, test = (datasets.load(f"m4_{group}", split=split) for split in ("train", "test"))
    model = cls() if cls is Naive else cls(season_length=season)
    forecast = model.fit(train, freq=1).predict(horizon)
    found = score(forecast, actual=test, train=train, metrics=["smape", "mase"], season_length=season).iloc[0]
    percent, scaled = OFFICIAL[group, cls.__name__]
    assert abs(found["smape"] - percent) <= 0.0005
    if scaled is not None:
        assert abs(found["mase"] - scaled) <= 0.0005
    if cls.__name__ in THEIRS:
        official = datasets.table(f"m4_{group}", "official_forecasts").rename(columns={THEIRS[cls.__name__]: "theirs"})
        known = forecast.merge(official[["unique_id", "ds", "theirs"]], on=["unique_id", "ds"], validate="1:1")
        assert len(known) == len(forecast) == card.series * horizon
        np.testing.assert_allclose(known[model.name], known["theirs"].astype(float), rtol=1e-6)  # stored as float32
