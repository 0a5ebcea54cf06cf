"""AutoETS and MSTL on skewed daily series: no form whose forecast variance explodes within the horizon is chosen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import MSTL, AutoETS
from deepforecast.kernels.ets.filter import Model
from deepforecast.kernels.ets.forecasts import forecast_deviations
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical import _variance_explosion
from deepforecast.models.statistical._variance_explosion import examined_steps, log_variance


def skewed(count: int = 6, length: int = 800) -> pd.DataFrame:
    """Positive daily series with heavy-tailed, persistent multiplicative noise and a weekly season."""
    generator, parts = np.random.default_rng(20261119), []
    for number in range(count):
        shocks, noise = 0.3 * generator.standard_t(5, length), np.zeros(length)
        for step in range(1, length):
            noise[step] = 0.7 * noise[step - 1] + shocks[step]
        y = 20 * np.exp(noise + 0.1 * np.sin(2 * np.pi * np.arange(length) / 7))
        days = pd.date_range("2020-01-01", periods=length, freq="D")
        parts.append(pd.DataFrame({"unique_id": f"s{number}", "ds": days, "y": y}))
    return pd.concat(parts, ignore_index=True)


def widths(model: AutoETS | MSTL, frame: pd.DataFrame, steps: int) -> pd.Series:
    """The widest 95 % interval of each series in units of the range of its history."""
    forecast = model.predict(steps, level=95)
    width = forecast[f"{model.name}-hi-95"] - forecast[f"{model.name}-lo-95"]
    return width.groupby(forecast["unique_id"]).max() / frame.groupby("unique_id")["y"].agg(np.ptp)


@pytest.mark.parametrize("model", [AutoETS(horizon=180), AutoETS(), MSTL(horizon=180)], ids=repr)
def test_intervals_do_not_explode_on_skewed_daily_series(model):
    frame = skewed()
    assert widths(model.fit(frame), frame, 180).max() < 8


def test_without_the_limit_the_criterion_alone_decides(monkeypatch):
    monkeypatch.setattr(_variance_explosion, "LARGEST_VARIANCE", np.inf)
    frame = skewed()
    with pytest.warns(match="AutoETS: forecasts of series s0, s1"):
        assert widths(AutoETS(horizon=180).fit(frame), frame, 180).max() > 1000


def test_the_horizon_decides_which_form_is_chosen():
    frame = skewed(3, 60)
    near, far = (AutoETS(horizon=horizon).fit(frame).parameters()["form"].tolist() for horizon in (20, 400))
    assert near[2] == "ETS(M,N,M)"
    assert far[2] == "ETS(A,N,A)"


def test_the_best_form_stays_where_no_other_is_allowed():
    frame = skewed(1)
    model = AutoETS(horizon=180, error="multiplicative", trend=None, seasonal=None).fit(frame)
    assert model.parameters()["form"].item() == "ETS(M,N,N)"


def test_the_criterion_decides_where_all_forms_are_explosive():
    frame = skewed(1)
    model = AutoETS(horizon=180, error="multiplicative", seasonal=None).fit(frame)
    assert model.parameters()["form"].item() == "ETS(M,A,N)"  # not the first of the forms, ETS(M,N,N)


def test_effects_of_covariates_are_no_errors():
    generator = np.random.default_rng(0)
    shocks, active = 0.1 * generator.normal(size=200), 1.0 * (generator.random(200) < 0.5)
    level, y = 20.0, np.empty(200)
    for step in range(200):
        mean = level + 100 * active[step]
        y[step] = mean * (1 + shocks[step])
        level = max(level + 0.3 * mean * shocks[step], 3.0)
    days = pd.date_range("2020-01-01", periods=200, freq="D")
    frame = pd.DataFrame({"unique_id": "a", "ds": days, "y": y, "active": active})
    model = AutoETS(horizon=20, season_length=1, trend=None).fit(frame, columns={"future": ["active"]})
    assert model.parameters()["form"].item() == "ETS(M,N,N)"


@pytest.mark.parametrize("form", [Form(1, 0, 0, 0), Form(1, 1, 0, 0), Form(1, 1, 1, 0), Form(1, 1, 1, 1), Form(1, 1, 0, 1)])
@pytest.mark.parametrize("steps", [1, 2, 4, 5, 9, 30])
def test_variance_of_logarithms_is_that_of_additive_errors(form, steps):
    rates = np.array([[0.4, 0.05 if form.trend else 0.0, 0.1, 0.9 if form.damped else 1.0]])
    forms, sigma = np.array([form]), np.array([0.3])
    additive = Model(np.array([form._replace(error=0)]), rates, np.ones((1, 6)), np.zeros(1, np.int64))
    expected = forecast_deviations(additive, sigma, np.zeros((1, steps)))[0, -1] ** 2
    found = log_variance(forms, rates, sigma, 4, np.array([steps]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_long_histories_are_judged_beyond_the_horizon():
    assert examined_steps(np.array([40, 4000]), 14).tolist() == [14, 1000]
    assert examined_steps(np.array([3]), None).tolist() == [1]
