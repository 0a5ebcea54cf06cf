"""The same series in other units, or at another height where everything adds up: searches go the same way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import ETS, SES, AutoETS, Holt, HoltWinters

MODELS = [
    SES(horizon=6),
    Holt(horizon=6, damped=True),
    HoltWinters(horizon=6, season_length=4),
    HoltWinters(horizon=6, season_length=4, seasonal="multiplicative"),
    ETS(horizon=6, error="multiplicative", trend="multiplicative"),
    AutoETS(horizon=6, season_length=4),
]


def panel(factor=1.0, more=0.0):
    random, parts = np.random.default_rng(7), []
    for one in range(40):
        n = int(random.integers(20, 90))
        season = 0.2 * np.sin(np.arange(n) * np.pi / 2)
        y = np.exp(4 + np.cumsum(random.normal(0, 0.06, n)) + season + random.normal(0, 0.03, n))
        stamps = pd.date_range("2000-01-01", periods=n, freq="QS")
        parts.append(pd.DataFrame({"unique_id": one, "ds": stamps, "y": factor * y + more}))
    return pd.concat(parts, ignore_index=True)


def forecast(model, frame):
    return model.clone().fit(frame).predict(level=80).iloc[:, 2:].to_numpy()


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_units_do_not_count(model):
    plain = forecast(model, panel())
    for factor in (1e-12, 1e-6, 3.7, 1e6, 1e12):
        np.testing.assert_allclose(forecast(model, panel(factor)) / factor, plain, rtol=2e-8)
    assert (forecast(model, panel(1024.0)) == 1024.0 * plain).all()


@pytest.mark.parametrize("model", MODELS[:3], ids=repr)
def test_heights_do_not_count_where_everything_adds_up(model):
    plain = forecast(model, panel())
    for more in (1000.0, -300.0):
        np.testing.assert_allclose(forecast(model, panel(1.0, more)) - more, plain, rtol=1e-6)
