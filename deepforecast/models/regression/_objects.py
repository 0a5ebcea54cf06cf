"""A user's own regressor or pipeline: what it can do, by what it says of itself, and a copy of it that learned."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import DeepForecastError, ParameterTypeError, TrainingError, format_list, format_value
from deepforecast.models.regression._named import fitted
from deepforecast.models.regression._samples import Sample, without_empty


class Regressor(ABC):  # noqa: B024  # a shape, not a base
    """Whatever has fit, predict and get_params: the regressors and pipelines of scikit-learn, and all that are like them."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return all(hasattr(other, name) for name in ("fit", "predict", "get_params"))


@dataclass(frozen=True)
class Whole:
    """A fitted object. `centre`: the means of its features, for those that are missing where it takes none."""

    estimator: Any
    centre: Floats | None

    def values(self, rows: Any) -> Floats:
        """What it says of rows; of several values a row, one column each."""
        rows = rows if self.centre is None else np.where(np.isfinite(rows), rows, self.centre)
        found = np.asarray(self.estimator.predict(rows), dtype=np.float64)
        return found.reshape(len(rows)) if found.size == len(rows) else found


def learned(regressor: Any, sample: Sample) -> Whole:
    """A copy that learned a sample; the user's own object stays as it is."""
    from sklearn.base import clone

    try:
        copy = fitted(clone(regressor), without_empty(sample.rows), sample.target, sample.weight)
    except DeepForecastError:
        raise
    except Exception as error:  # whatever one's own object may raise
        text = f"{type(error).__name__}: {format_value(str(error), 300)}"
        raise TrainingError(
            f"{format_value(regressor)} could not learn: {text}. It is given differences of the target, scaled: "
            "differences=None, scale=False hands it the target as it is."
        ) from error
    return Whole(copy, None if takes_missing(regressor) else np.average(sample.rows, axis=0, weights=sample.weight))


def changed(regressor: Any, given: Mapping[str, Any]) -> Any:
    """A copy with some of its parameters changed, named as `regressor__alpha`."""
    from sklearn.base import clone

    try:
        return clone(regressor).set_params(**{name.partition("__")[2]: value for name, value in given.items()})
    except (AttributeError, TypeError, ValueError) as error:
        raise ParameterTypeError(f"{format_list(list(given))} does not fit {format_value(regressor)}: {format_value(str(error), 300)}") from error


def takes_missing(regressor: Any) -> bool:
    """Whether it says that its features may be missing; of a pipeline, all steps up to one that fills them in."""
    for _, step in getattr(regressor, "steps", [("", regressor)]):
        if step is None or isinstance(step, str):  # "passthrough"
            continue
        if not _says(step, "allow_nan"):
            return False
        if type(step).__name__.endswith("Imputer"):
            return True
    return True


def gives_several(regressor: Any) -> bool:
    """Whether it, or the regressor inside, says that it learns several values a row."""
    if type(regressor).__name__ == "MultiOutputRegressor":  # before scikit-learn 1.6 it says nothing of it
        return True
    return _says(regressor, "multi_output") or _says(innermost(regressor), "multi_output")


def adds_up(regressor: Any) -> bool:
    """Whether categories get columns of their own: for all but trees, which have a depth."""
    return not {"max_depth", "max_leaf_nodes", "depth"} & set(innermost(regressor).get_params(deep=False))


def innermost(regressor: Any) -> Any:
    """The regressor at the end of pipelines and inside of searches and transformers of the target."""
    inside = [regressor.steps[-1][1]] if hasattr(regressor, "steps") else []
    if not hasattr(regressor, "n_estimators"):  # a forest holds what it is made of
        inside += [getattr(regressor, name, None) for name in ("estimator", "regressor")]
    return next((innermost(one) for one in inside if isinstance(one, Regressor)), regressor)


def _says(one: Any, tag: str) -> bool:
    """A tag, as scikit-learn before 1.6 and since has them; False where an object has none."""
    if callable(getattr(one, "__sklearn_tags__", None)):
        tags = one.__sklearn_tags__()
        return bool(getattr(tags.input_tags if tag == "allow_nan" else tags.target_tags, tag))
    old = one._get_tags() if hasattr(one, "_get_tags") else one._more_tags() if hasattr(one, "_more_tags") else {}
    return bool(old.get({"multi_output": "multioutput"}.get(tag, tag), False))
