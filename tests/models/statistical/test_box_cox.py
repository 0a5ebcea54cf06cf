"""Box-Cox: there and back, the power, the mean's correction, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, optimize, stats

from deepforecast import ETS, AutoETS, datasets
from deepforecast.errors import DataError, ParameterError
from deepforecast.models.statistical._box_cox import bias_adjusted_mean, guerrero, transform


def monthly():
    return datasets.load("air_passengers")


@pytest.mark.parametrize("power", [-0.5, 0.0, 0.3, 1.0, 2.0])
def test_there_is_scipys_and_back_is_the_inverse(power):
    y = np.array([0.3, 1.0, 2.5, 40.0])
    np.testing.assert_allclose(transform(y, power), stats.boxcox(y, power), rtol=1e-12)
    np.testing.assert_allclose(transform(transform(y, power), power, inverse=True), y, rtol=1e-12)


def test_no_power_is_no_transformation():
    y = np.array([-1.0, 2.0])
    assert transform(y, np.nan) is y
    assert transform(np.array([-50.0]), 0.5, inverse=True) == 0.0


def test_guerreros_power_is_the_minimum_of_the_variation():
    y = monthly()["y"].to_numpy(float)
    turns = y[len(y) % 12 :].reshape(-1, 12)
    mean, deviation = turns.mean(axis=1), turns.std(axis=1, ddof=1)

    def variation(power):
        ratio = deviation / mean ** (1 - power)
        return ratio.std(ddof=1) / ratio.mean()

    peer = optimize.minimize_scalar(variation, bounds=(0, 1), method="bounded", options={"xatol": 1e-10}).x
    doubled = guerrero(np.concatenate([y, 1e6 * y]), np.array([0, len(y), 2 * len(y)]), 12)
    np.testing.assert_allclose(doubled, peer, atol=1e-6)


def test_the_mean_is_corrected_and_the_median_is_not():
    found = bias_adjusted_mean(np.array([2.0, 9.0]), np.array([0.3, 4.0]), np.zeros(2))
    np.testing.assert_allclose(found, np.exp([2.0 + 0.3**2 / 2, 9.0 + 8.0]), rtol=1e-12)
    model = ETS(seasonal="additive", box_cox=0, horizon=6).fit(monthly())
    middle = model.clone(point="median").fit(monthly()).predict()["ETS"]
    assert (model.predict()["ETS"] > middle).all()
    plain = ETS(seasonal="additive", horizon=6).fit(monthly().assign(y=lambda frame: np.log(frame["y"]))).predict()["ETS"]
    np.testing.assert_allclose(middle, np.exp(plain), rtol=1e-6)


@pytest.mark.parametrize("power", [-0.3, 1e-9, 0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("mean", "deviation"), [(2.0, 0.3), (1.0, 0.8), (0.5, 2.0), (12.0, 8.0), (-1.0, 0.5)])
def test_the_mean_is_the_integral(power, mean, deviation):
    """Of the middle 99 % where the power is below 0; infinite, in both, where a value is that none leads to."""
    low, high = stats.norm.ppf([0.005, 0.995]) if power < 0 else (-40.0, 60.0)

    def weighed(z):
        return float(transform(np.array([mean + deviation * z]), power, inverse=True)[0]) * stats.norm.pdf(z)

    edge = (-1.0 / power - mean) / deviation
    points = sorted({low, high, *(one for one in (edge, -3.0, 0.0, 3.0, 6.0, 12.0) if low < one < high)})
    found = bias_adjusted_mean(*(np.array([one]) for one in (mean, deviation, power)))[0]
    if power < 0 and edge < high:
        assert found == np.inf
        return
    wanted = sum(integrate.quad(weighed, *pair, limit=500)[0] for pair in pairwise(points)) / (0.99 if power < 0 else 1.0)
    assert found == pytest.approx(wanted, rel=1e-4)


def test_far_ahead_the_mean_stays_within_its_bands():
    rng = np.random.default_rng(0)
    y = np.maximum(20 + np.cumsum(rng.normal(size=60)), 1.0) ** 2
    frame = pd.DataFrame({"ds": pd.date_range("2015-01-01", periods=60, freq="MS"), "y": y})
    for power in (0.3, 0.5, 1.0, 2.0):
        found = ETS(trend=None, box_cox=power, alpha=0.9, horizon=400).fit(frame).predict(level=[80])
        assert (found["ETS"] > 0).all()
        assert ((found["ETS-lo-80"] < found["ETS"]) & (found["ETS"] < found["ETS-hi-80"])).all()


def test_what_is_infinite_names_the_transformation():
    rng = np.random.default_rng(0)
    y = np.exp(np.cumsum(rng.normal(size=40)) * 0.5 + 2)
    frame = pd.DataFrame({"ds": pd.date_range("2015-01-01", periods=40, freq="MS"), "y": y})
    with pytest.raises(DataError, match=r"power -0\.5.*box_cox=0"):
        ETS(box_cox=-0.5, horizon=60).fit(frame).predict(level=95)


def test_components_of_a_transformed_series_add_up():
    model = AutoETS(box_cox="auto", horizon=5).fit(monthly())
    parts = model.explain().groupby("ds")["value"].sum()
    np.testing.assert_allclose(parts, model.predict()["AutoETS"], rtol=1e-12)
    assert model.parameters()["form"].item().startswith("ETS(A,")
    assert "M" not in model.parameters()["form"].item()


def test_paths_and_bands_are_in_the_units_of_the_data():
    model = ETS(seasonal="additive", box_cox=0.2, horizon=4).fit(monthly())
    paths = model.simulate(400).groupby("ds")["ETS"].quantile([0.1, 0.9]).unstack()
    bands = model.predict(level=80)
    np.testing.assert_allclose(paths[0.1], bands["ETS-lo-80"], rtol=0.04)
    np.testing.assert_allclose(paths[0.9], bands["ETS-hi-80"], rtol=0.04)


def test_what_is_not_positive_and_forms_that_multiply_are_refused():
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=20), "y": np.arange(20.0)})
    with pytest.raises(DataError, match=r"Column y must be positive for ETS"):
        ETS(box_cox=0).fit(frame)
    with pytest.raises(ParameterError, match="additive"):
        ETS(error="multiplicative", box_cox=0).fit(frame.assign(y=frame["y"] + 1))
