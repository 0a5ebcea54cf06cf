"""scikit-learn estimators passed by users: capabilities and fitted copies."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import DeepForecastError, ParameterTypeError, TrainingError, format_list, format_value
from deepforecast.models.regression._samples import Sample, zero_empty_columns
from deepforecast.models.regression._sklearn_regressors import fit_estimator


class Regressor(ABC):  # noqa: B024  # a protocol, not a base class
    """Protocol of scikit-learn regressors and pipelines: fit, predict and get_params."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        return all(hasattr(subclass, name) for name in ("fit", "predict", "get_params"))


@dataclass(frozen=True)
class FittedEstimator:
    """A fitted estimator; `feature_means` fill missing features if it does not accept them."""

    estimator: Any
    feature_means: Floats | None

    def predict(self, rows: Any) -> Floats:
        """Predictions of rows; one column per output if there are several."""
        rows = rows if self.feature_means is None else np.where(np.isfinite(rows), rows, self.feature_means)
        predictions = np.asarray(self.estimator.predict(rows), dtype=np.float64)
        return predictions.reshape(len(rows)) if predictions.size == len(rows) else predictions


def fit_copy(regressor: Any, sample: Sample) -> FittedEstimator:
    """Fit a clone of the user's estimator, which is not modified; `TrainingError` if that fails.

    Columns without any value are set to 0.
    """
    from sklearn.base import clone

    try:
        copy = fit_estimator(clone(regressor), zero_empty_columns(sample.rows), sample.target, sample.weight)
    except DeepForecastError:
        raise
    except Exception as error:  # user code may raise anything
        text = f"{type(error).__name__}: {format_value(str(error), 300)}"
        raise TrainingError(
            f"{format_value(regressor)} could not be fitted: {text}. If the regressor cannot be trained on a differenced and "
            "scaled target, set differences=None, scale=False."
        ) from error
    return FittedEstimator(copy, None if accepts_missing(regressor) else np.average(sample.rows, axis=0, weights=sample.weight))


def set_nested_params(regressor: Any, nested_params: Mapping[str, Any]) -> Any:
    """A clone of the regressor with changed parameters, named like `regressor__alpha`."""
    from sklearn.base import clone

    try:
        return clone(regressor).set_params(**{name.partition("__")[2]: value for name, value in nested_params.items()})
    except (AttributeError, TypeError, ValueError) as error:
        raise ParameterTypeError(
            f"{format_list(list(nested_params))} cannot be set on {format_value(regressor)}: "
            f"{format_value(str(error), 300)} Use names that get_params() returns."
        ) from error


def accepts_missing(regressor: Any) -> bool:
    """Whether an estimator accepts missing features, by its tags; in a pipeline, all steps up to an imputer must."""
    for _, step in getattr(regressor, "steps", [("", regressor)]):
        if step is None or isinstance(step, str):  # "passthrough"
            continue
        if not _read_tag(step, "allow_nan"):
            return False
        if type(step).__name__.endswith("Imputer"):
            return True
    return True


def supports_multioutput(regressor: Any) -> bool:
    """Whether the estimator, or its inner estimator, supports several outputs."""
    if type(regressor).__name__ == "MultiOutputRegressor":  # no such tag before scikit-learn 1.6
        return True
    return _read_tag(regressor, "multi_output") or _read_tag(inner_estimator(regressor), "multi_output")


def needs_encoding(regressor: Any) -> bool:
    """Whether categories are one-hot encoded: for all but trees, which are estimators with a parameter for their depth."""
    return not {"max_depth", "max_leaf_nodes", "depth"} & set(inner_estimator(regressor).get_params(deep=False))


def inner_estimator(regressor: Any) -> Any:
    """The regressor at the end of nested pipelines, searches and target transformers; else the regressor itself."""
    candidates = [regressor.steps[-1][1]] if hasattr(regressor, "steps") else []
    if not hasattr(regressor, "n_estimators"):  # forests have their trees as `estimator`
        candidates += [getattr(regressor, name, None) for name in ("estimator", "regressor")]
    return next((inner_estimator(candidate) for candidate in candidates if isinstance(candidate, Regressor)), regressor)


def _read_tag(estimator: Any, tag: str) -> bool:
    """The tag "allow_nan" or "multi_output" of an estimator, in the format before or since scikit-learn 1.6.

    False if it has no tags.
    """
    if callable(getattr(estimator, "__sklearn_tags__", None)):
        tags = estimator.__sklearn_tags__()
        return bool(getattr(tags.input_tags if tag == "allow_nan" else tags.target_tags, tag))
    legacy_tags: Mapping[str, Any] = {}
    for method in ("_get_tags", "_more_tags"):
        if hasattr(estimator, method):
            legacy_tags = getattr(estimator, method)()
            break
    legacy_name = "multioutput" if tag == "multi_output" else tag
    return bool(legacy_tags.get(legacy_name, False))
