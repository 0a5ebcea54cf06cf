"""The model under test: small, fast instances, and fits shared by several checks."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from deepforecast.core import params, registry
from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Frame
from deepforecast.errors import ParameterError
from deepforecast.testing import fixtures
from deepforecast.testing.fixtures import HORIZON


class Subject:
    """A model class and the parameters to check it with; the horizon is `fixtures.HORIZON`."""

    def __init__(self, cls: type[Forecaster], parameters: Mapping[str, Any], name: str) -> None:
        self.cls = cls
        self.name = name
        self.parameters = {**parameters, "horizon": HORIZON}
        model = self.make()
        self.capabilities = model.capabilities
        self.family: str = getattr(model, "family", name)  # models that share code
        self._fits: dict[str, Forecaster] = {}

    def __repr__(self) -> str:
        return self.name

    def make(self, **changes: Any) -> Forecaster:
        """Return an unfitted instance; wrapped models are cloned."""
        parameters = {
            name: value.clone() if isinstance(value, Forecaster) else value for name, value in self.parameters.items()
        }
        return self.cls(**{**parameters, **changes})

    def make_for_effects(self, **changes: Any) -> Forecaster:
        """Return an unfitted instance with the changes of `learning_example`, which learns effects in the data."""
        return self.make(**{**getattr(self.cls, "learning_example", {}), **changes})

    @property
    def coverage_example(self) -> dict[str, Any]:
        """Parameter changes for measuring the coverage of intervals."""
        return dict(getattr(self.make(), "coverage_example", {}))

    def fitted(self, without: int = 0) -> Forecaster:
        """Return a model fitted on `daily_panel` without the last rows of each series; shared, do not modify."""
        return self._cached_fit(f"daily {without}", lambda model: model.fit(fixtures.split(without)[0]))

    def fitted_copy(self, without: int = 0) -> Forecaster:
        """Return a copy of `fitted`, which may be modified."""
        return deepcopy(self.fitted(without))

    def fitted_on_series(self, name: str = "s0") -> Forecaster:
        """Return a model fitted on one series of `daily_panel`; shared, do not modify."""
        return self._cached_fit(f"alone {name}", lambda model: model.fit(fixtures.one_series(name)))

    def calibrated(self) -> Forecaster:
        """Return a model fitted on `daily_panel` with intervals="conformal"; shared, do not modify."""
        return self._cached_fit("calibrated", lambda model: model.set_params(intervals="conformal").fit(fixtures.daily_panel()))

    def fitted_with(self, covariate: str) -> Forecaster:
        """Return a model fitted on `covariate_panel(covariate)`; shared, do not modify."""
        history, _, columns = fixtures.covariate_panel(covariate)
        return self._cached_fit(f"with {covariate}", lambda model: model.fit(history, columns=columns))

    def forecast(self, frame: Frame, /, *, model: Forecaster | None = None, level: Any = None, **fit: Any) -> Frame:
        """Fit a new instance (or `model`) on `frame` and return its forecast."""
        return (self.make() if model is None else model).fit(frame, **fit).predict(level=level)

    @property
    def levels(self) -> list[int] | None:
        """Levels of the prediction intervals; None if the model has no distribution."""
        return [50, 80] if self.capabilities.distribution is not None else None

    @property
    def precision(self) -> float:
        """Relative tolerance of forecasts of scaled data: as declared, up to a maximum."""
        return min(float(self.capabilities.precision), 1e-3 if self.capabilities.by_series else 5e-3)

    @property
    def shift_precision(self) -> float:
        """Tolerance for shifted or negated data, relative to the standard deviation of the data."""
        return min(float(self.capabilities.precision), 1e-4 if self.capabilities.by_series else 1e-3)

    def accepts(self, values: Any) -> bool:
        """Whether target values lie in the domain that the model declares."""
        minimum = float(np.nanmin(values))
        return {"real": True, "nonnegative": minimum >= 0, "positive": minimum > 0}[self.capabilities.domain]

    def _cached_fit(self, key: str, fit: Callable[[Forecaster], Forecaster]) -> Forecaster:
        """A model fitted by `fit` on the first call with this key; later calls return the same object."""
        if key not in self._fits:
            model = self.make()
            fit(model)
            self._fits[key] = model
        return self._fits[key]


def make_subjects(models: Any = None) -> list[Subject]:
    """Return a subject per example of each model: classes, instances or registered names; None: all registered models."""
    selected_models = registry.names() if models is None else models if isinstance(models, (list, tuple)) else [models]
    return [
        subject
        for model in selected_models
        for subject in _subjects_of_model(registry.get(model) if isinstance(model, str) else model)
    ]


def _subjects_of_model(model: Any) -> list[Subject]:
    """The subjects of a fitted or unfitted model, or one per example of a class; placeholders fill
    required parameters."""
    if isinstance(model, Forecaster):
        return [Subject(type(model), model.get_params(deep=False), model.name)]
    if not (isinstance(model, type) and issubclass(model, Forecaster)):
        raise ParameterError(
            f"`models` must contain Forecasters, their classes or registered names, got {model!r}.",
            hint="Pass for example 'Naive'.",
            parameter="models",
            value=model,
        )
    example_method = getattr(model, "examples", None)
    examples: list[dict[str, Any]] = [dict(spec) for spec in example_method()] if example_method is not None else [{}]
    common_names = set.intersection(*(set(spec) for spec in examples))
    placeholders = {
        name: _placeholder(model, spec)
        for name, spec in params.declared_params(model).items()
        if spec.required and name not in common_names
    }
    names = [model.__name__ if not index else f"{model.__name__}.{index}" for index in range(len(examples))]
    return [Subject(model, {**placeholders, **example}, name) for name, example in zip(names, examples, strict=True)]


def _placeholder(model: type[Forecaster], param: params.Param) -> Any:
    """Return a value for a required parameter: simple models for a wrapper."""
    if param.annotation is Forecaster:
        return registry.get("SeasonalNaive")()
    if Forecaster in typing.get_args(param.annotation):
        return [registry.get("SeasonalNaive")(), registry.get("Naive")()]
    raise ParameterError(
        f"The class {model.__name__} must have a class method examples() with a value of {param.name} for the checks.",
        hint="Add it.",
    )
