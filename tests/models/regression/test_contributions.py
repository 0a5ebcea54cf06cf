"""Contributions add up to the forecast, name what moved it, and go through scale and differences."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import CatBoost, Conformal, GradientBoosting, LightGBM, LinearModel, Regression, XGBoost
from deepforecast.errors import CapabilityError
from tests.models.regression.promoted import PLAIN, PROMOTION, sales, walks

ROLES = {"future": ["promotion", "weather"]}
WITH_SHARES = {
    "LinearModel": lambda **given: LinearModel(**given),
    "ridge": lambda **given: Regression("ridge", **given),
    "LightGBM": lambda **given: LightGBM(n_estimators=60, learning_rate=0.2, min_child_samples=5, **given),
    "XGBoost": lambda **given: XGBoost(n_estimators=60, learning_rate=0.2, **given),
    "CatBoost": lambda **given: CatBoost(n_estimators=60, learning_rate=0.2, **given),
}


@pytest.fixture(params=WITH_SHARES)
def make(request: pytest.FixtureRequest) -> Any:
    if request.param.lower() in ("lightgbm", "xgboost", "catboost") and find_spec(request.param.lower()) is None:
        pytest.skip(f"the package {request.param.lower()} is not installed")
    return WITH_SHARES[request.param]


def parts(model: Any, **given: Any) -> pd.DataFrame:
    """Series and steps by component."""
    found = model.explain(**given)
    return found.pivot(index=["unique_id", "ds"], columns="component", values="value")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"differences": [7, 1]},
        {"differences": None, "detrend": True},
        {"differences": None, "strategy": "direct"},
        {"differences": [7, 1], "strategy": "direct"},
        {"strategy": "blocks", "block_size": 3, "differences": [1]},
        {"per_series": True},
        {"bounds": (None, 105.0)},
    ],
    ids=str,
)
def test_they_add_up(make: Any, given: dict[str, Any]) -> None:
    history, future = sales(2, 60)
    model = make(horizon=4, **given).fit(history, columns=ROLES)
    wanted = model.predict(future=future)[model.name].to_numpy()
    found = parts(model, future=future)
    np.testing.assert_allclose(found.sum(axis=1), wanted, rtol=1e-10)
    assert ("bounds" in found) == ("bounds" in given)


def test_the_known_effect_is_the_feature_s(make: Any) -> None:
    history, future = sales()
    found = parts(make(horizon=4, **PLAIN).fit(history, columns=ROLES), future=future)
    on = future["promotion"].to_numpy() == 1
    share = found["promotion"].to_numpy()
    assert share[on].mean() - share[~on].mean() == pytest.approx(PROMOTION, abs=2)
    assert np.ptp(found["base"]) < 1e-4  # XGBoost adds in float32


def test_a_difference_hands_shares_on(make: Any) -> None:
    """A promotion of the first day moves the change of that day, and so the level of all days after."""
    history, future = (one.drop(columns="weather") for one in sales(1, 100))
    history["y"] = history["promotion"].cumsum() * 2.0
    future["promotion"] = [1.0, 0, 0, 0]
    model = make(horizon=4, **{**PLAIN, "differences": [1]}).fit(history, columns={"future": ["promotion"]})
    share = parts(model, future=future)["promotion"].to_numpy()
    none = parts(model, future=future.assign(promotion=0.0))["promotion"].to_numpy()
    np.testing.assert_allclose(share - none, [2, 2, 2, 2], atol=0.1)


def test_a_line_for_all_steps_counts_every_step_s_columns() -> None:
    history, future = sales(2, 80)
    model = LinearModel(horizon=4, strategy="direct_multioutput", **PLAIN).fit(history, columns=ROLES)
    found = parts(model, future=future)
    np.testing.assert_allclose(found.sum(axis=1), model.predict(future=future)["LinearModel"], rtol=1e-10)
    on = future["promotion"].to_numpy() == 1
    assert np.subtract(*(found["promotion"].to_numpy()[one].mean() for one in (on, ~on))) == pytest.approx(PROMOTION, abs=2)


def test_the_median_of_quantiles_is_taken_apart() -> None:
    pytest.importorskip("lightgbm", reason="the package lightgbm is not installed")
    given: dict[str, Any] = {"horizon": 3, "n_estimators": 20, "strategy": "direct"}
    model = LightGBM(quantiles=[0.1, 0.5, 0.9], **given).fit(walks(2, 60))
    np.testing.assert_allclose(parts(model).sum(axis=1), model.predict()["LightGBM"], rtol=1e-10)
    assert not LightGBM(quantiles=[0.1, 0.9], **given).capabilities.explains
    assert LightGBM(quantiles=[0.1, 0.9], point="mean", **given).capabilities.explains


def test_what_cannot_be_taken_apart_is_refused() -> None:
    frame = walks(1, 60)
    for model in (
        LinearModel(horizon=2, transform="log"),
        GradientBoosting(horizon=2, n_estimators=5),
        Regression("knn", horizon=2),
    ):
        with pytest.raises(CapabilityError, match="cannot explain"):
            model.fit(frame).explain()


def test_a_learner_told_another_scale_says_so() -> None:
    pytest.importorskip("lightgbm", reason="the package lightgbm is not installed")
    model = LightGBM(horizon=2, n_estimators=20, options={"objective": "poisson"}, differences=None, scale=False).fit(
        walks(2, 60)
    )
    with pytest.raises(CapabilityError, match="objective"):
        model.explain()


def test_bands_around_it_change_nothing() -> None:
    model = Conformal(LinearModel(), horizon=2).fit(walks(1, 60))
    np.testing.assert_allclose(parts(model).sum(axis=1), model.predict()["Conformal"], rtol=1e-10)


def test_a_column_named_as_a_part_stays_apart() -> None:
    history, future = (one.drop(columns="weather") for one in sales(1, 60))
    names = {"promotion": "base"}
    model = LinearModel(horizon=4, **PLAIN).fit(history.rename(columns=names), columns={"future": ["base"]})
    found = parts(model, future=future.rename(columns=names))
    assert {"base", "base_"} <= set(found.columns)
    np.testing.assert_allclose(found.sum(axis=1), model.predict(future=future.rename(columns=names))["LinearModel"], rtol=1e-10)
