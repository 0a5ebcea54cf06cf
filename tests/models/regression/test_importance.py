"""The feature that matters comes first, by what a regressor says and by shuffling."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pandas as pd
import polars as pl
import pytest

from deepforecast import CatBoost, GradientBoosting, LightGBM, LinearModel, Regression, XGBoost
from deepforecast.errors import CapabilityError
from tests.models.regression.promoted import sales

MODELS = {
    "LinearModel": lambda **given: LinearModel(**given),
    "lasso": lambda **given: Regression("lasso", **given),
    "random_forest": lambda **given: Regression("random_forest", options={"n_estimators": 20}, **given),
    "GradientBoosting": lambda **given: GradientBoosting(n_estimators=30, min_child_samples=5, **given),
    "LightGBM": lambda **given: LightGBM(n_estimators=30, min_child_samples=5, **given),
    "XGBoost": lambda **given: XGBoost(n_estimators=30, **given),
    "CatBoost": lambda **given: CatBoost(n_estimators=30, **given),
}


@pytest.fixture(params=MODELS)
def make(request: pytest.FixtureRequest) -> Any:
    if request.param.lower() in ("lightgbm", "xgboost", "catboost") and find_spec(request.param.lower()) is None:
        pytest.skip(f"the package {request.param.lower()} is not installed")
    return MODELS[request.param]


@pytest.mark.parametrize("given", [{}, {"strategy": "direct"}, {"per_series": True, "calendar": None}], ids=str)
def test_the_feature_that_matters_comes_first(make: Any, given: dict[str, Any]) -> None:
    history, _ = sales(2, 80)
    model = make(horizon=2, **given).fit(history.drop(columns="weather"), columns={"future": ["promotion"]})
    for found in (model.importance(), model.importance(history.drop(columns="weather"))):
        assert list(found.columns) == ["feature", "importance"]
        assert found["feature"][0] == "promotion"
        assert found["importance"].sum() == pytest.approx(1)
        assert found["importance"].is_monotonic_decreasing
        assert (found["importance"] >= 0).all()
        assert found["feature"].is_unique


def test_steps_at_once_count_a_column_for_all_of_them() -> None:
    history, _ = sales(2, 80)
    model = LinearModel(horizon=3, strategy="direct_multioutput").fit(history, columns={"future": ["promotion", "weather"]})
    found = model.importance()
    assert "promotion" in found["feature"][:5].tolist()
    assert found["feature"].is_unique
    assert found["importance"].sum() == pytest.approx(1)


def test_a_regressor_that_says_nothing_is_asked_by_shuffling() -> None:
    history, _ = sales(2, 80)
    model = Regression("knn", horizon=2, lags=1, lag_transforms=None, calendar=None, differences=None)
    model.fit(history, columns={"future": ["promotion", "weather"]})
    with pytest.raises(CapabilityError, match=r"importance\(frame=...\)"):
        model.importance()
    assert model.importance(history)["feature"][0] == "promotion"


def test_it_comes_in_the_library_of_the_caller() -> None:
    history, _ = sales(2, 60)
    model = LinearModel(horizon=2).fit(pl.from_pandas(history), columns={"future": ["promotion", "weather"]})
    assert isinstance(model.importance(), pl.DataFrame)
    pd.testing.assert_series_equal(
        model.importance().to_pandas()["importance"],
        LinearModel(horizon=2).fit(history, columns={"future": ["promotion", "weather"]}).importance()["importance"],
    )
