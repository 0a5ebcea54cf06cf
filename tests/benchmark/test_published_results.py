from __future__ import annotations

import math

from deepforecast import datasets
from deepforecast.benchmark.published_results import _load_all, find_published
from deepforecast.evaluation.metrics import METRICS


def test_every_anchor_is_of_a_known_set_and_says_where_it_comes_from() -> None:
    rows = _load_all()
    for row in rows:
        card = datasets.card(row.dataset)
        assert row.horizon in (None, card.horizon, *card.horizons)
        assert row.metric.partition("-")[0] in {*METRICS, "mse", "acd"}
        assert row.source
        assert row.protocol
        assert math.isfinite(row.value)
    keys = [(row.dataset, row.horizon, row.model, row.metric) for row in rows]
    assert len(keys) == len(set(keys))


def test_figures_that_other_tests_stand_on() -> None:
    naive2 = {row.dataset: row.value for row in _load_all() if (row.model, row.metric) == ("Naive2", "smape")}
    assert naive2 == {
        "m4_yearly": 16.342, "m4_quarterly": 11.012, "m4_monthly": 14.427, "m4_weekly": 9.161, "m4_daily": 3.045,
        "m4_hourly": 18.383, "m4": 13.56407,
    }  # fmt: skip
    assert [row.value for row in find_published("etth1", horizon=96, metric="mse") if row.model in ("DLinear", "NLinear")] == [
        0.375,
        0.374,
    ]
    assert find_published("nile") == []
