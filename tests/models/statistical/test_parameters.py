"""`parameters()`: what was estimated, a row a series, with the effects of columns known ahead in the units of the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import (
    ADIDA,
    ARIMA,
    CES,
    ETS,
    IMAPA,
    MSTL,
    SES,
    TSB,
    AutoARIMA,
    AutoTheta,
    Columns,
    Croston,
    Naive,
    Theta,
    UnobservedComponents,
)
from deepforecast.errors import CapabilityError


def frame(n: int = 90) -> pd.DataFrame:
    """y = level + 5 price + (shop: a 2, b -3, c 1) + noise, of two series; the second 1,000 times as large."""
    rng, parts = np.random.default_rng(2), []
    for size in (1.0, 1000.0):
        price, shop = rng.normal(3, 2, n), np.resize(["a", "b", "c", "b", "a"], n)
        y = 50 + np.cumsum(rng.normal(0, 0.05, n)) + 5 * price + np.select([shop == "a", shop == "b"], [2, -3], 1)
        ds = pd.date_range("2020-01-01", periods=n)
        held = {"unique_id": f"s{size:g}", "ds": ds, "y": size * (y + rng.normal(0, 0.1, n)), "shop": shop, "price": price}
        parts.append(pd.DataFrame(held))
    return pd.concat(parts, ignore_index=True).astype({"shop": "category"})


@pytest.mark.parametrize(
    "model",
    [
        SES(), ETS(trend=None, seasonal="additive"), ARIMA(order=(0, 1, 1)), AutoARIMA(season_length=1),
        UnobservedComponents(level="local level", season_length=1),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_effects_are_those_of_one_unit(model) -> None:
    found = model.fit(frame(), columns=Columns(future=["price", "shop"])).parameters()
    assert found["unique_id"].tolist() == ["s1", "s1000"]
    for size, (_, row) in zip((1.0, 1000.0), found.iterrows(), strict=True):
        assert row["effect_price"] / size == pytest.approx(5, abs=0.1)
        assert [row[f"effect_shop_{one}"] / size for one in "abc"] == pytest.approx([2, -3, 1], abs=0.15)


def test_columns_keep_their_names_in_any_order() -> None:
    for order in (["price", "shop"], ["shop", "price"]):
        for model in (SES(), ARIMA(order=(0, 1, 1)), UnobservedComponents(level="local level", season_length=1)):
            found = model.fit(frame(), columns=Columns(future=order)).parameters()
            assert found["effect_price"][0] == pytest.approx(5, abs=0.1)
            assert found["effect_shop_b"][0] == pytest.approx(-3, abs=0.15)


def test_variances_of_components_are_in_the_units_of_the_data() -> None:
    plain = frame().drop(columns=["shop", "price"])
    model = UnobservedComponents(level="local level", season_length=1).fit(plain)
    found = model.parameters()
    assert found.columns.tolist() == ["unique_id", "sigma2.irregular", "sigma2.level"]
    spread = plain.groupby("unique_id")["y"].var().to_numpy()
    np.testing.assert_allclose(found["sigma2.irregular"] + found["sigma2.level"], spread, rtol=0.3)


def test_waves_are_named() -> None:
    y = 5 * np.cos(2 * np.pi * np.arange(200) / 24) + np.random.default_rng(0).normal(size=200)
    hourly = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=200, freq="h"), "y": y})
    found = AutoARIMA(season_length=24).fit(hourly).parameters()
    assert found["cos1_24"].item() == pytest.approx(5, abs=0.4)
    assert found["sin1_24"].item() == pytest.approx(0, abs=0.4)


def test_theta_models() -> None:
    plain = frame().drop(columns=["shop", "price"])
    found = Theta(theta=2.0, season_length=7).fit(plain).parameters()
    assert found["theta"].tolist() == [2.0, 2.0]
    assert set(found["season"]) <= {"none", "multiplicative"}
    line = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=30), "y": 10 + 2.0 * np.arange(30)})
    row = AutoTheta(season_length=1).fit(line).parameters().iloc[0]
    assert 0.1 <= row["alpha"] <= 0.99
    slope = Theta(season_length=1).fit(line).parameters().iloc[0]
    assert slope["slope"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    "model", [CES(), Croston(variant="optimized"), TSB(), ADIDA(), IMAPA(max_block=3)], ids=lambda m: m.name
)
def test_the_others_have_a_row_a_series_too(model) -> None:
    demand = frame().drop(columns=["shop", "price"]).assign(y=lambda one: one["y"].where(one.index % 4 == 0, 0.0))
    found = model.fit(demand).parameters()
    assert len(found) == 2
    assert found.shape[1] > 2
    assert model.fit(demand.drop(columns="unique_id").head(90)).parameters().shape[0] == 1


def test_mstl_has_those_of_the_model_of_the_rest() -> None:
    model = MSTL(season_length=7, trend_model=SES()).fit(frame(), columns=Columns(future=["price", "shop"]))
    found = model.parameters()
    assert found["form"].tolist() == ["ETS(A,N,N)"] * 2
    np.testing.assert_allclose(found["effect_price"], [4.3, 4300], rtol=0.05)  # the season takes a part of it


def test_a_rest_without_parameters_is_said() -> None:
    with pytest.raises(CapabilityError, match="statistical model to have a table of parameters, got Naive"):
        MSTL(season_length=7, trend_model=Naive()).fit(frame().drop(columns=["shop", "price"])).parameters()


@pytest.mark.parametrize("model", [Theta(), AutoTheta(), CES(), SES(), MSTL()], ids=lambda model: type(model).__name__)
def test_fitted_values_of_the_fit_stay_after_an_update(model) -> None:
    """The season too, wherever it stands after the new rows."""
    rng = np.random.default_rng(1)
    y = 50 + np.resize([0.0, 5.0, 9.0, 2.0, 7.0, 1.0, 3.0], 60) + rng.normal(size=60)
    whole = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=60), "y": y})
    model.fit(whole.head(49))
    before = model.fitted_values()
    pd.testing.assert_frame_equal(model.update(whole.tail(11).head(3)).fitted_values(), before)
