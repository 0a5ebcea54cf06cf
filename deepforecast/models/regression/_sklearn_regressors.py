"""scikit-learn regressors by name: training and capabilities.

Fitted regressors are converted to plain arrays, see `_regressor_arrays` and `_tree_arrays`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from deepforecast.core.threads import allowed_threads, passive_waiting
from deepforecast.errors import ParameterError
from deepforecast.models.regression import _tree_arrays
from deepforecast.models.regression._regressor_arrays import (
    FittedRegressor,
    LinearRegressor,
    NeighborsRegressor,
    PerceptronRegressor,
    Standardization,
    SupportVectorRegressor,
)
from deepforecast.models.regression._samples import Sample

Options = Mapping[str, Any]


@dataclass(frozen=True)
class RegressorSpec:
    """How to train a scikit-learn regressor.

    `train(sample, level, options)` returns an instance of `fitted_type`; `level` is a quantile or
    None, `options` are parameters of the estimator. `numerically_stable`: rounding errors in the
    data change forecasts by no more than rounding errors.
    """

    train: Callable[[Sample, float | None, Options], FittedRegressor]
    fitted_type: type[Any]
    needs_encoding: bool = True
    accepts_missing: bool = False
    supports_multioutput: bool = True
    supports_quantiles: bool = False
    accepts_weights: bool = True
    numerically_stable: bool = True


def fit_estimator(estimator: Any, rows: Any, target: Any, weight: Any) -> Any:
    """Fit an estimator or a pipeline, with sample weights unless `weight` is None.

    `ParameterError` if its `fit` does not accept weights. Convergence warnings are suppressed.
    """
    from sklearn.exceptions import ConvergenceWarning

    key, inner = "sample_weight", estimator
    if hasattr(estimator, "steps"):  # pipelines pass on parameters with the step's prefix
        name, inner = estimator.steps[-1]
        key = f"{name}__sample_weight"
    if weight is not None and not accepts_weights(estimator):
        raise ParameterError(
            "Observation weights and `half_life` require a regressor whose `fit` accepts `sample_weight`, which that of "
            f"{type(inner).__name__} does not.",
            hint="Set half_life=None and leave `weight` out of columns=, or use another regressor.",
            parameter="half_life",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of iterations is limited on purpose
        return estimator.fit(rows, target, **({} if weight is None else {key: weight}))


def accepts_weights(estimator: Any) -> bool:
    """Whether `fit` of an estimator, or of the last step of a pipeline, accepts sample weights."""
    from sklearn.utils.validation import has_fit_parameter

    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return hasattr(last, "fit") and bool(has_fit_parameter(last, "sample_weight"))


def _standardized(
    make_estimator: Callable[[float | None, Options], Any], to_arrays: Callable[[Any, dict[str, Any]], FittedRegressor]
) -> Callable[[Sample, float | None, Options], FittedRegressor]:
    """A training function for estimators that require standardized features and target.

    `make_estimator(level, options)` returns the unfitted estimator; `to_arrays(estimator, fields of Standardization)`
    converts the fitted one.
    """

    def train(sample: Sample, level: float | None, options: Options) -> FittedRegressor:
        standardization = Standardization.from_sample(sample)
        with passive_waiting("sklearn"):
            estimator = make_estimator(level, options)
        features, target = standardization.scale_features(sample.rows), standardization.scale_target(sample)
        return to_arrays(fit_estimator(estimator, features, target, sample.weight), asdict(standardization))

    return train


def _linear_model(name: str, **defaults: Any) -> Callable[[Sample, float | None, Options], FittedRegressor]:
    """A training function for the class `name` of `sklearn.linear_model`, whose defaults are changed."""

    def make_estimator(level: float | None, options: Options) -> Any:
        from sklearn import linear_model

        quantile_option = {"quantile": level or 0.5} if name == "QuantileRegressor" else {}
        return getattr(linear_model, name)(**{**defaults, **options, **quantile_option})

    def to_arrays(estimator: Any, scales: dict[str, Any]) -> LinearRegressor:
        return LinearRegressor(
            **scales,
            weights=np.atleast_2d(estimator.coef_).T.copy(),
            constant=np.atleast_1d(estimator.intercept_).astype(float),
        )

    return _standardized(make_estimator, to_arrays)


def _fit_forest(sample: Sample, level: float | None, options: Options) -> FittedRegressor:
    """Train a random forest for the mean on unscaled rows; `level` is ignored."""
    with passive_waiting("sklearn"):
        from sklearn.ensemble import RandomForestRegressor
    defaults = {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.5, "random_state": 0, "n_jobs": allowed_threads()}
    return _tree_arrays.from_forest(
        fit_estimator(RandomForestRegressor(**{**defaults, **options}), sample.rows, sample.target, sample.weight)
    )


def _fit_boosting(sample: Sample, level: float | None, options: Options) -> FittedRegressor:
    """Train `GradientBoosting`; `max_iter` in the options is its number of trees."""
    from deepforecast.models.regression.gradient_boosting import GradientBoosting

    other_options = {name: value for name, value in options.items() if name != "max_iter"}
    parameters: dict[str, Any] = {"n_estimators": options.get("max_iter", 200), "options": other_options}
    trees: FittedRegressor = GradientBoosting(**parameters)._train(sample, level)
    return trees


def _make_neighbors(level: float | None, options: Options) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(**{"n_neighbors": 10, "weights": "distance", **options})


def _neighbors_arrays(estimator: Any, scales: dict[str, Any]) -> NeighborsRegressor:
    options = {name: getattr(estimator, name) for name in ("n_neighbors", "weights", "p")}
    return NeighborsRegressor(**scales, rows=np.asarray(estimator._fit_X), targets=np.asarray(estimator._y), options=options)


def _make_svr(level: float | None, options: Options) -> Any:
    from sklearn.svm import SVR

    return SVR(**{"C": 1.0, "epsilon": 0.05, **options, "kernel": "rbf"})


def _svr_arrays(estimator: Any, scales: dict[str, Any]) -> SupportVectorRegressor:
    weights, constant = estimator.dual_coef_[0].copy(), float(estimator.intercept_[0])
    return SupportVectorRegressor(
        **scales, vectors=estimator.support_vectors_, weights=weights, constant=constant, gamma=float(estimator._gamma)
    )


def _make_mlp(level: float | None, options: Options) -> Any:
    from sklearn.neural_network import MLPRegressor

    defaults = {"hidden_layer_sizes": (64,), "alpha": 1e-3, "max_iter": 200, "random_state": 0}
    return MLPRegressor(**{**defaults, **options, "activation": "relu"})


def _mlp_arrays(estimator: Any, scales: dict[str, Any]) -> PerceptronRegressor:
    return PerceptronRegressor(**scales, weights=list(estimator.coefs_), constants=list(estimator.intercepts_))


TREE_PROPERTIES: dict[str, Any] = {"fitted_type": _tree_arrays.TreeEnsemble, "needs_encoding": False, "accepts_missing": True}

RegressorName = Literal[
    "ridge", "linear", "lasso", "elastic_net", "quantile", "random_forest", "hist_gradient_boosting", "knn", "svr", "mlp"
]  # fmt: skip

REGRESSORS: dict[RegressorName, RegressorSpec] = {
    "ridge": RegressorSpec(_linear_model("Ridge"), LinearRegressor),
    "linear": RegressorSpec(_linear_model("LinearRegression"), LinearRegressor),
    "lasso": RegressorSpec(_linear_model("Lasso", alpha=1e-3, max_iter=10_000), LinearRegressor),
    "elastic_net": RegressorSpec(_linear_model("ElasticNet", alpha=1e-3, max_iter=10_000), LinearRegressor),
    "quantile": RegressorSpec(
        _linear_model("QuantileRegressor", alpha=1e-4, solver="highs"),
        LinearRegressor,
        supports_multioutput=False,
        supports_quantiles=True,
    ),
    "random_forest": RegressorSpec(_fit_forest, **TREE_PROPERTIES, numerically_stable=False),
    "hist_gradient_boosting": RegressorSpec(
        _fit_boosting, **TREE_PROPERTIES, supports_multioutput=False, supports_quantiles=True
    ),
    "knn": RegressorSpec(
        _standardized(_make_neighbors, _neighbors_arrays), NeighborsRegressor, accepts_weights=False, numerically_stable=False
    ),
    "svr": RegressorSpec(_standardized(_make_svr, _svr_arrays), SupportVectorRegressor, supports_multioutput=False),
    "mlp": RegressorSpec(_standardized(_make_mlp, _mlp_arrays), PerceptronRegressor, numerically_stable=False),
}
"""Training function and capabilities of each regressor, by the name that users pass."""
