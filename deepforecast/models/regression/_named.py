"""Regressors of scikit-learn by short name: how each learns a sample, tuned for this use, and what it can do.

What is kept of one are plain arrays: see `_fitted` and `_trees`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from deepforecast.core.threads import allowed_threads, passive_waiting
from deepforecast.errors import ParameterError
from deepforecast.models.regression import _trees
from deepforecast.models.regression._fitted import Fitted, Layers, Line, Machine, Neighbours, Scaled
from deepforecast.models.regression._samples import Sample

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Named:
    """`train(sample, level, options)` gives what learned, of the type `kind`; `level` is a quantile or None, `options` are what
    the estimator of scikit-learn takes. `steady`: last digits of the data change no more than last digits of forecasts."""

    train: Callable[[Sample, float | None, Options], Fitted]
    kind: type[Any]
    adds_up: bool = True
    takes_missing: bool = False
    gives_several: bool = True
    gives_quantiles: bool = False
    steady: bool = True


def fitted(estimator: Any, rows: Any, target: Any, weight: Any) -> Any:
    """An estimator that learned rows, each of which counts `weight`, where they do not count the same."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.validation import has_fit_parameter

    key, inner = "sample_weight", estimator
    if hasattr(estimator, "steps"):  # a pipeline hands on what is named so
        name, inner = estimator.steps[-1]
        key = f"{name}__sample_weight"
    if weight is not None and not has_fit_parameter(inner, "sample_weight"):
        raise ParameterError(
            f"weight_column= and half_life= need a regressor whose fit takes sample_weight; that of {type(inner).__name__} does not. "
            "Leave them out, or take another regressor."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the rounds are bounded on purpose
        return estimator.fit(rows, target, **({} if weight is None else {key: weight}))


def _scaled(
    made: Callable[[float | None, Options], Any], kept: Callable[[Any, dict[str, Any]], Fitted]
) -> Callable[[Sample, float | None, Options], Fitted]:
    """How an estimator learns scaled features and a scaled target; `kept` is given it and the scales."""

    def train(sample: Sample, level: float | None, options: Options) -> Fitted:
        scaled = Scaled.of(sample)
        with passive_waiting("sklearn"):
            estimator = made(level, options)
        return kept(fitted(estimator, scaled.rows(sample.rows), scaled.target(sample), sample.weight), asdict(scaled))

    return train


def _linear(name: str, **usual: Any) -> Callable[[Sample, float | None, Options], Fitted]:
    def made(level: float | None, options: Options) -> Any:
        from sklearn import linear_model

        return getattr(linear_model, name)(**{**usual, **options, **({} if name != "QuantileRegressor" else _at(level or 0.5))})

    def kept(one: Any, scales: dict[str, Any]) -> Line:
        return Line(**scales, weights=np.atleast_2d(one.coef_).T.copy(), constant=np.atleast_1d(one.intercept_).astype(float))

    return _scaled(made, kept)


def _at(level: float) -> dict[str, float]:
    return {"quantile": level}


def _forest(sample: Sample, level: float | None, options: Options) -> Fitted:
    with passive_waiting("sklearn"):
        from sklearn.ensemble import RandomForestRegressor
    usual = {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.5, "random_state": 0, "n_jobs": allowed_threads()}
    return _trees.of_forest(fitted(RandomForestRegressor(**{**usual, **options}), sample.rows, sample.target, sample.weight))


def _boosting(sample: Sample, level: float | None, options: Options) -> Fitted:
    from deepforecast.models.regression.gradient_boosting import GradientBoosting

    rest = {name: value for name, value in options.items() if name != "max_iter"}
    own: dict[str, Any] = {"n_estimators": options.get("max_iter", 200), "options": rest}
    found: Fitted = GradientBoosting(**own)._train(sample, level)
    return found


def _neighbours(level: float | None, options: Options) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(**{"n_neighbors": 10, "weights": "distance", **options})


def _neighbours_kept(one: Any, scales: dict[str, Any]) -> Neighbours:
    options = {name: getattr(one, name) for name in ("n_neighbors", "weights", "p")}
    return Neighbours(**scales, rows=np.asarray(one._fit_X), targets=np.asarray(one._y), options=options)


def _machine(level: float | None, options: Options) -> Any:
    from sklearn.svm import SVR

    return SVR(**{"C": 1.0, "epsilon": 0.05, **options, "kernel": "rbf"})


def _machine_kept(one: Any, scales: dict[str, Any]) -> Machine:
    weights, constant = one.dual_coef_[0].copy(), float(one.intercept_[0])
    return Machine(**scales, vectors=one.support_vectors_, weights=weights, constant=constant, width=float(one._gamma))


def _network(level: float | None, options: Options) -> Any:
    from sklearn.neural_network import MLPRegressor

    usual = {"hidden_layer_sizes": (64,), "alpha": 1e-3, "max_iter": 200, "random_state": 0}
    return MLPRegressor(**{**usual, **options, "activation": "relu"})


def _network_kept(one: Any, scales: dict[str, Any]) -> Layers:
    return Layers(**scales, weights=list(one.coefs_), constants=list(one.intercepts_))


TREES: dict[str, Any] = {"kind": _trees.Trees, "adds_up": False, "takes_missing": True}

RegressorName = Literal[
    "ridge", "linear", "lasso", "elastic_net", "quantile", "random_forest", "hist_gradient_boosting", "knn", "svr", "mlp"
]  # fmt: skip

NAMED: dict[RegressorName, Named] = {
    "ridge": Named(_linear("Ridge"), Line),
    "linear": Named(_linear("LinearRegression"), Line),
    "lasso": Named(_linear("Lasso", alpha=1e-3, max_iter=10_000), Line),
    "elastic_net": Named(_linear("ElasticNet", alpha=1e-3, max_iter=10_000), Line),
    "quantile": Named(
        _linear("QuantileRegressor", alpha=1e-4, solver="highs"), Line, gives_several=False, gives_quantiles=True
    ),
    "random_forest": Named(_forest, **TREES, steady=False),
    "hist_gradient_boosting": Named(_boosting, **TREES, gives_several=False, gives_quantiles=True),
    "knn": Named(_scaled(_neighbours, _neighbours_kept), Neighbours, steady=False),
    "svr": Named(_scaled(_machine, _machine_kept), Machine, gives_several=False),
    "mlp": Named(_scaled(_network, _network_kept), Layers, steady=False),
}
"""Every name: how it learns, and what it can do."""
