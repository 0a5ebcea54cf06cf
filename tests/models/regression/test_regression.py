"""Regressors by name and as objects: what they find, what they can do, what is refused, what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, PoissonRegressor, QuantileRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.validation import has_fit_parameter

from deepforecast import Regression
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.errors import CapabilityError, DataWarning, ParameterError, ParameterTypeError, TrainingError
from deepforecast.models.regression._sklearn_regressors import REGRESSORS
from tests.models.regression.promoted import PLAIN, PROMOTION, WEATHER, sales, walks

QUICK: dict[str, dict[str, Any]] = {
    "mlp": {"max_iter": 150, "learning_rate_init": 0.02},
    "random_forest": {"n_estimators": 20},
    "hist_gradient_boosting": {"max_iter": 40, "learning_rate": 0.2},
}
ROLES = {"future": ["promotion", "weather"]}


def quick(name: str, **given: Any) -> Regression:
    return Regression(name, **{"horizon": 4, "options": QUICK.get(name), **given})


@pytest.mark.parametrize("name", REGRESSORS)
def test_known_effects_are_found(name: str) -> None:
    history, future = sales()
    model = quick(name, **PLAIN).fit(history, columns=ROLES)
    found = model.predict(future=future)["Regression"].to_numpy()
    effects = future["weather"].astype(str).map(WEATHER).to_numpy(float)
    np.testing.assert_allclose(found, 100 + PROMOTION * future["promotion"] + effects, atol=2)


@pytest.mark.parametrize("name", REGRESSORS)
def test_what_is_kept_says_the_same_after_it_was_written_to_the_bit(name: str) -> None:
    model = quick(name, season_length=7).fit(walks(2, 60))
    one = model.state_.learned["regressors"].models[0][0]
    again = model._deserialize_regressor(model._serialize_regressor(one, SkopsSerializer()), SkopsSerializer())
    rows = np.random.default_rng(0).normal(size=(30, len(getattr(one, "gains", getattr(one, "feature_means", [])))))
    rows[0, 0] = np.nan
    np.testing.assert_array_equal(again.predict(rows), one.predict(rows))
    assert np.isfinite(one.predict(rows)).all()


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("ridge", Ridge()),
        ("linear", LinearRegression()),
        ("quantile", QuantileRegressor(alpha=1e-4, solver="highs")),
        ("knn", KNeighborsRegressor(10, weights="distance")),
        ("svr", SVR(C=1.0, epsilon=0.05)),
        ("mlp", MLPRegressor(hidden_layer_sizes=(64,), alpha=1e-3, max_iter=30, random_state=0)),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_arrays_say_what_the_estimator_says(name: str, theirs: Any) -> None:
    """The same estimator in a pipeline that scales features and target."""
    scaled = TransformedTargetRegressor(make_pipeline(StandardScaler(), theirs), transformer=StandardScaler())
    given: dict[str, Any] = {"lags": 7, "lag_transforms": None, "calendar": None, "season_length": 7, "horizon": 4}
    ours = Regression(name, options={"max_iter": 30} if name == "mlp" else None, **given).fit(walks(2, 60))
    found = Regression(scaled, **given).fit(walks(2, 60))
    np.testing.assert_allclose(ours.predict()["Regression"], found.predict()["Regression"], rtol=1e-5)


@pytest.mark.parametrize("name", [name for name, one in REGRESSORS.items() if one.supports_multioutput])
def test_several_steps_at_once(name: str) -> None:
    frame = walks(3, 90)
    found = quick(name, strategy="direct_multioutput", season_length=7).fit(frame.groupby("unique_id").head(86)).predict()
    late = frame.groupby("unique_id").tail(4)["y"].to_numpy()
    assert np.abs(found["Regression"].to_numpy() - late).mean() < 4


@pytest.mark.parametrize("name", [name for name, one in REGRESSORS.items() if one.supports_quantiles])
def test_quantiles_rise(name: str) -> None:
    model = quick(name, strategy="direct", quantiles=[0.1, 0.5, 0.9], lags=None, lag_transforms=None, differences=None)
    found = model.fit(walks(3, 60)).predict(level=80)
    width = found["Regression-hi-80"] - found["Regression-lo-80"]
    assert (width > 0.5).all()


@pytest.mark.parametrize("name", [name for name, spec in REGRESSORS.items() if spec.accepts_weights])
def test_a_row_of_weight_zero_counts_for_nothing(name: str) -> None:
    if name == "mlp" and not has_fit_parameter(MLPRegressor(), "sample_weight"):
        pytest.skip("before scikit-learn 1.7 it takes no weights")
    history, future = sales(2, 50)
    history["counts"] = np.where(history.index % 5 == 0, 0.0, 1.0 + history.index % 3)
    wild = history.assign(y=np.where(history["counts"] == 0, 1e4, history["y"]))
    roles = {**ROLES, "weight": "counts"}
    found = [
        quick(name, **PLAIN).fit(one, columns=roles).predict(future=future) for one in (history, wild)
    ]
    pd.testing.assert_frame_equal(*found)


def test_weights_are_refused_where_a_regressor_takes_none() -> None:
    for regressor in ("knn", KNeighborsRegressor(), make_pipeline(StandardScaler(), KNeighborsRegressor())):
        with pytest.raises(ParameterError, match="KNeighborsRegressor does not"):
            Regression(regressor, horizon=2, half_life=10).fit(walks(1, 40))
        model = Regression(regressor, horizon=2)
        assert not model.capabilities.weights
        with pytest.raises(CapabilityError, match=r"Regression cannot use observation weights \(column counts\)"):
            model.fit(walks(1, 40).assign(counts=1.0), columns={"weight": "counts"})
    for regressor in ("ridge", Ridge(), make_pipeline(StandardScaler(), Ridge())):
        assert Regression(regressor).capabilities.weights


def test_weights_reach_the_end_of_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), Ridge())
    found = [Regression(pipeline, horizon=2, half_life=life).fit(walks(2, 60)).predict() for life in (None, 5)]
    assert not found[0].equals(found[1])


@pytest.mark.parametrize(
    ("regressor", "missing", "several", "columns"),
    [
        (LinearRegression(), False, True, True),
        (make_pipeline(StandardScaler(), Ridge()), False, True, True),
        (make_pipeline(SimpleImputer(), Ridge()), True, True, True),
        (make_pipeline(StandardScaler(), HistGradientBoostingRegressor()), True, False, False),
        (HistGradientBoostingRegressor(), True, False, False),
        (RandomForestRegressor(), True, True, False),
        (GridSearchCV(SVR(), {}), False, False, True),
        (MultiOutputRegressor(SVR()), False, True, True),
        (TransformedTargetRegressor(Ridge()), False, True, True),
    ],
    ids=repr,
)
def test_what_an_object_can_do_is_what_it_says(regressor: Any, missing: bool, several: bool, columns: bool) -> None:
    model = Regression(regressor)
    assert (model.accepts_missing, model.supports_multioutput, model.needs_encoding) == (missing, several, columns)
    assert model.capabilities.missing
    assert not model.capabilities.explains


class Bare:
    """Nothing but what is needed."""

    def fit(self, X: Any, y: Any) -> Bare:
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


class Old(Bare):
    """As before tags were objects."""

    def _more_tags(self) -> dict[str, bool]:
        return {"allow_nan": True, "multioutput": True}


def test_tags_of_before_and_none_at_all() -> None:
    assert (Regression(Old()).accepts_missing, Regression(Old()).supports_multioutput) == (True, True)
    assert (Regression(Bare()).accepts_missing, Regression(Bare()).supports_multioutput) == (False, False)


class Spy(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Counts the rows it learned."""

    def fit(self, X: Any, y: Any) -> Spy:
        self.rows_ = len(X)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 1.0)


def test_an_object_is_never_fitted_itself_and_stays_the_very_one() -> None:
    own = Spy()
    model = Regression(own, horizon=2).fit(walks(1, 40))
    assert not hasattr(own, "rows_")
    assert model.regressor is own
    assert model.clone() == model
    assert clone(model) == model
    assert model.get_params()["regressor"] is own
    assert repr(model) == "Regression(horizon=2, regressor=Spy())"


def test_wrong_regressors_are_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="'rigde'"):
        Regression("rigde")
    with pytest.raises(ParameterTypeError, match=r"Did you mean Ridge\(\)"):
        Regression(Ridge)
    with pytest.raises(ParameterTypeError, match="got 3"):
        Regression(3)
    with pytest.raises(ParameterError, match="`options` cannot be used with a regressor object"):
        Regression(Ridge(), options={"alpha": 2}, horizon=2).fit(walks(1, 40))
    with pytest.raises(ParameterError, match=r"could not be fitted with options=.*no_such"):
        Regression("ridge", options={"no_such": 2}, horizon=2).fit(walks(1, 40))
    with pytest.raises(ParameterError, match="direct_multioutput"):
        Regression("svr", horizon=2, strategy="direct_multioutput").fit(walks(1, 40))
    with pytest.raises(ParameterError, match="`quantiles` requires"):
        Regression("ridge", horizon=2, strategy="direct", quantiles=[0.1, 0.9]).fit(walks(1, 40))


def test_a_model_with_an_object_is_saved_where_it_is_asked_for(tmp_path: Path) -> None:
    from deepforecast import load

    model = Regression(make_pipeline(StandardScaler(), Ridge(alpha=2.0)), horizon=3).fit(walks(2, 60))
    model.save(tmp_path / "model.dfc", allow_skops=True)
    pd.testing.assert_frame_equal(load(tmp_path / "model.dfc").predict(), model.predict())


def test_a_named_regressor_is_saved_without_asking(tmp_path: Path) -> None:
    from deepforecast import load

    for name in REGRESSORS:
        model = quick(name, season_length=7).fit(walks(2, 60))
        model.save(tmp_path / "model.dfc")
        pd.testing.assert_frame_equal(load(tmp_path / "model.dfc").predict(), model.predict())


def test_what_ones_own_regressor_cannot_learn_is_said_with_the_way_out() -> None:
    history = walks(2, 60)
    model = Regression(PoissonRegressor(), horizon=2, season_length=7)
    with pytest.raises(TrainingError, match=r"PoissonRegressor\(\) could not be fitted: ValueError: .*=None, scale=False"):
        model.fit(history)
    assert np.isfinite(model.clone(differences=None, scale=False).fit(history).predict()["Regression"]).all()


def test_a_feature_that_no_row_has_is_none_to_ones_own_trees() -> None:
    history = walks(2, 60)
    history.loc[history.groupby("unique_id").cumcount() % 3 == 0, "y"] = np.nan
    model = Regression(HistGradientBoostingRegressor(max_iter=5), horizon=2, lags=[1, 3], lag_transforms=None, differences=[2])
    with pytest.warns(DataWarning):
        model.fit(history)


def test_parameters_of_ones_own_regressor_are_reached_by_their_names_as_in_scikit_learn() -> None:
    own = make_pipeline(StandardScaler(), Ridge(alpha=2.0))
    model = Regression(own, horizon=2, season_length=7).fit(walks(2, 60))
    assert model.get_params()["regressor__ridge__alpha"] == 2
    assert not [name for name in model.get_params(deep=False) if "__" in name]
    other = clone(model).set_params(regressor__ridge__alpha=50.0, horizon=3)
    assert (other.get_params()["regressor__ridge__alpha"], other.horizon, own[-1].alpha) == (50, 3, 2)
    assert not other.fit(walks(2, 60)).predict(2).equals(model.predict())
    model.set_params(regressor__ridge__alpha=2.0)
    model.set_params(regressor=Ridge(), regressor__alpha=7.0)
    assert model.regressor.alpha == 7
    assert "state_" not in model.__dict__
    with pytest.raises(
        ParameterTypeError, match=r"regressor__alfa cannot be set on Ridge\(alpha=7.0\): Invalid parameter 'alfa'"
    ):
        model.set_params(regressor__alfa=1, horizon=9)
    assert model.horizon == 2
    with pytest.raises(ParameterTypeError, match=r"`regressor__alpha` cannot be set: `regressor` must be a model"):
        Regression("ridge").set_params(regressor__alpha=1)
