"""Box-Cox: there and back, the power, the mean's correction, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from deepforecast import ETS, AutoETS, datasets
from deepforecast.errors import DataError, ParameterError
from deepforecast.models.statistical._box_cox import corrected, guerrero, transformed


def monthly():
    return datasets.load("air_passengers")


@pytest.mark.parametrize("power", [-0.5, 0.0, 0.3, 1.0, 2.0])
def test_there_is_scipys_and_back_is_the_inverse(power):
    y = np.array([0.3, 1.0, 2.5, 40.0])
    np.testing.assert_allclose(transformed(y, power), stats.boxcox(y, power), rtol=1e-12)
    np.testing.assert_allclose(transformed(transformed(y, power), power, back=True), y, rtol=1e-12)


def test_no_power_is_no_transformation():
    y = np.array([-1.0, 2.0])
    assert transformed(y, np.nan) is y
    assert transformed(np.array([-50.0]), 0.5, back=True) == 0.0


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
    """The mean of exp(normal) to the second order; with a power of 0 and a spread of 0.3 that is exact to 1 in 1,000."""
    found = corrected(np.array([2.0]), np.array([0.3]), np.array([0.0]))
    np.testing.assert_allclose(found, np.exp(2.0 + 0.3**2 / 2), rtol=1.1e-3)
    model = ETS(seasonal="additive", box_cox=0, horizon=6).fit(monthly())
    middle = model.clone(point="median").fit(monthly()).predict()["ETS"]
    assert (model.predict()["ETS"] > middle).all()
    plain = ETS(seasonal="additive", horizon=6).fit(monthly().assign(y=lambda frame: np.log(frame["y"]))).predict()["ETS"]
    np.testing.assert_allclose(middle, np.exp(plain), rtol=1e-6)


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
    with pytest.raises(DataError, match="positive values; column y"):
        ETS(box_cox=0).fit(frame)
    with pytest.raises(ParameterError, match="additive"):
        ETS(error="multiplicative", box_cox=0).fit(frame.assign(y=frame["y"] + 1))
