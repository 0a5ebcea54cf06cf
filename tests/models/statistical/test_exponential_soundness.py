"""Forms that multiply on series they cannot describe, and seasons longer than series: named, finite, never silent."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from deepforecast import ETS, AutoETS, Holt, HoltWinters
from deepforecast.errors import DataWarning

PRODUCTS = [
    {"error": "multiplicative", "trend": "multiplicative"},
    {"error": "multiplicative", "trend": "multiplicative", "damped": True},
    {"error": "multiplicative", "trend": "additive"},
    {"error": "multiplicative", "trend": "multiplicative", "seasonal": "multiplicative"},
    {"error": "multiplicative", "trend": "additive", "seasonal": "multiplicative"},
    {"trend": "multiplicative", "allow_unstable": True},
    {"trend": "additive", "seasonal": "multiplicative", "allow_unstable": True},
]


def panel(spoiled):
    """A tame series a, and b of 120 months with one value in a million."""
    y = 100 + 10 * np.sin(np.arange(120) * np.pi / 6) + np.random.default_rng(0).normal(0, 3, 120)
    ds = pd.date_range("2010-01-01", periods=120, freq="MS")
    other = y.copy()
    other[spoiled] = 1e9
    return pd.concat([pd.DataFrame({"unique_id": name, "ds": ds, "y": z}) for name, z in (("a", y), ("b", other))])


def shares(model, frame):
    """The largest size of forecast and band, over the largest value of the series."""
    found = model.predict(24, level=80)
    size = found[found.columns[2:]].abs().max(axis=1).groupby(found["unique_id"].to_numpy()).max()
    assert np.isfinite(size).all()
    return size / frame.groupby("unique_id")["y"].max()


@pytest.mark.parametrize("spoiled", [0, 60, 119])
@pytest.mark.parametrize("parts", PRODUCTS, ids=str)
def test_an_outlier_leads_no_forecast_away(parts, spoiled):
    frame = panel(spoiled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = ETS(**parts).fit(frame)
    found = shares(model, frame)
    assert found["a"] < 2
    assert found["b"] < 200
    alone = ETS(**parts).fit(frame[frame["unique_id"] == "a"])
    assert alone.predict(3)["ETS"].tolist() == model.predict(3)["ETS"][:3].tolist()


def test_a_form_that_describes_nothing_is_replaced_and_named():
    with pytest.warns(DataWarning, match=r"ETS\(M,A,N\) give implausible forecasts for series b \(") as said:
        model = ETS(error="multiplicative", trend="additive").fit(panel(119))
    assert len(said) == 1
    assert model.parameters()["form"].tolist() == ["ETS(M,A,N)", "ETS(A,A,N)"]
    plain = ETS(trend="additive").fit(panel(119))
    np.testing.assert_array_equal(model.predict(5, level=80).iloc[5:, 2:], plain.predict(5, level=80).iloc[5:, 2:])


def test_a_choice_between_forms_takes_one_that_adds_without_a_word():
    frame = panel(119)
    model = AutoETS().fit(frame)
    assert model.parameters()["form"][1].startswith("ETS(A,")
    with pytest.warns(DataWarning, match=r"give implausible forecasts for series b \("):
        AutoETS(error="multiplicative").fit(frame)


def test_growth_is_no_explosion():
    frame = pd.DataFrame({"ds": pd.date_range("1990-01-01", periods=20, freq="YS"), "y": 2.0 ** np.arange(20)})
    frame["y"] *= 1 + np.random.default_rng(0).normal(0, 0.01, 20)
    model = ETS(error="multiplicative", trend="multiplicative").fit(frame)
    assert model.parameters()["form"].item() == "ETS(M,M,N)"
    with pytest.warns(DataWarning, match="lie far outside the history"):  # as they do: 2^22 after 2^19
        np.testing.assert_allclose(model.predict(3)["ETS"], 2.0 ** np.arange(20, 23), rtol=0.05)


def test_a_season_longer_than_the_series_is_named_once():
    y = np.random.default_rng(0).normal(100, 1, 16)
    stamps = pd.date_range("2020-01-01", periods=18, freq="MS")
    parts = [pd.DataFrame({"unique_id": f"s{one}", "ds": stamps, "y": np.resize(y, 18)})[: 16 + one] for one in range(3)]
    frame = pd.concat(parts)
    with pytest.warns(DataWarning, match="season_length=12 requires at least 17 values per series; .*: s0") as said:
        AutoETS().fit(frame)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AutoETS(seasonal=None).fit(frame)
        AutoETS().fit(frame[frame["unique_id"] != "s0"])
    with pytest.raises(ValueError, match=r"requires at least 17 values per series, but series s0 has 16"):
        HoltWinters().fit(frame)


@pytest.mark.parametrize("shift", [1e3, 1e4, 1e6])
def test_a_shift_of_the_level_leads_no_choice_away(shift):
    t = np.arange(120)
    y = 100 + 0.3 * t + 10 * np.sin(t * np.pi / 6) + np.random.default_rng(0).normal(0, 3, 120)
    y[70:] += shift
    frame = pd.DataFrame({"ds": pd.date_range("2010-01-01", periods=120, freq="MS"), "y": y})
    model = AutoETS().fit(frame)
    found = model.predict(24, level=80)
    np.testing.assert_allclose(found["AutoETS"], y[-1], rtol=0.05)
    assert found[found.columns[2:]].abs().to_numpy().max() < 2 * y[-1]


def test_values_near_the_largest_number_say_nothing():
    rng = np.random.default_rng(0)
    y = (1 + 0.2 * rng.random(60) + 0.1 * np.tile(np.arange(12) / 12, 5)) * 1e307
    frame = pd.DataFrame({"ds": pd.date_range("2010-01-01", periods=60, freq="MS"), "y": y})
    for model in (HoltWinters(horizon=3, seasonal="multiplicative"), Holt(horizon=3, trend="multiplicative")):
        assert np.isfinite(model.fit(frame).predict()[model.name]).all()
