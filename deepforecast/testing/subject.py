"""The model under test: small, fast instances of it, and fits that several checks may share."""

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
from deepforecast.testing import worlds
from deepforecast.testing.worlds import HORIZON


class Subject:
    """A model class with the parameters to check it with; the horizon is that of the worlds."""

    def __init__(self, cls: type[Forecaster], parameters: Mapping[str, Any], name: str) -> None:
        self.cls, self.name = cls, name
        self.parameters = {**parameters, "horizon": HORIZON}
        model = self.make()
        self.capabilities = model.capabilities
        self.family: str = getattr(model, "family", name)  # of models whose code is the same but for what tells them apart
        self._fits: dict[str, Forecaster] = {}

    def __repr__(self) -> str:
        return self.name

    def make(self, **changed: Any) -> Forecaster:
        """An unfitted instance; wrapped models are its own."""
        own = {name: value.clone() if isinstance(value, Forecaster) else value for name, value in self.parameters.items()}
        return self.cls(**{**own, **changed})

    def learned(self, **changed: Any) -> Forecaster:
        """An unfitted instance that learns enough to know an effect in the data, where the family says how to get one."""
        return self.make(**{**getattr(self.cls, "learning_example", {}), **changed})

    @property
    def coverage_example(self) -> dict[str, Any]:
        """What to change of the parameters where the coverage of intervals is measured."""
        return dict(getattr(self.make(), "coverage_example", {}))

    def fitted(self, without: int = 0) -> Forecaster:
        """Fitted on `worlds.daily()` without some last rows of each series; shared by the checks, so they leave it as it is."""
        return self._shared(f"daily {without}", lambda model: model.fit(worlds.split(without)[0]))

    def fitted_copy(self, without: int = 0) -> Forecaster:
        """The same for a check's own use."""
        return deepcopy(self.fitted(without))

    def alone(self, name: str = "s0") -> Forecaster:
        """Fitted on one series of `worlds.daily()`; shared."""
        return self._shared(f"alone {name}", lambda model: model.fit(worlds.one(name)))

    def calibrated(self) -> Forecaster:
        """Fitted on `worlds.daily()` with intervals="conformal"; shared."""
        return self._shared("calibrated", lambda model: model.set_params(intervals="conformal").fit(worlds.daily()))

    def fitted_with(self, covariate: str) -> Forecaster:
        """Fitted on the world of a covariate; shared."""
        history, _, columns = worlds.world(covariate)
        return self._shared(f"with {covariate}", lambda model: model.fit(history, columns=columns))

    def forecast(self, frame: Frame, /, *, model: Forecaster | None = None, level: Any = None, **fit: Any) -> Frame:
        """The forecast of a fresh instance (or `model`) fitted on `frame`."""
        return (self.make() if model is None else model).fit(frame, **fit).predict(level=level)

    @property
    def levels(self) -> list[int] | None:
        """Levels to ask for beside the points; None where the model has no bands."""
        return [50, 80] if self.capabilities.distribution is not None else None

    @property
    def precision(self) -> float:
        """How far a forecast may be off, relative to it, where the data are scaled: as declared, and never more than this."""
        return min(float(self.capabilities.precision), 1e-3 if self.capabilities.by_series else 5e-3)

    @property
    def shift_precision(self) -> float:
        """The same, relative to the spread of the data, where they are shifted or their sign is changed."""
        return min(float(self.capabilities.precision), 1e-4 if self.capabilities.by_series else 1e-3)

    def takes(self, values: Any) -> bool:
        """Whether these values of the target lie in the domain that the model declares."""
        least = float(np.nanmin(values))
        return {"real": True, "nonnegative": least >= 0, "positive": least > 0}[self.capabilities.domain]

    def _shared(self, key: str, fit: Callable[[Forecaster], Forecaster]) -> Forecaster:
        if key not in self._fits:
            model = self.make()
            fit(model)
            self._fits[key] = model
        return self._fits[key]


def subjects(models: Any = None) -> list[Subject]:
    """A subject for each example of each model: classes, objects or registered names; every registered model if None."""
    wanted = registry.names() if models is None else models if isinstance(models, (list, tuple)) else [models]
    return [subject for model in wanted for subject in _examples(registry.get(model) if isinstance(model, str) else model)]


def _examples(model: Any) -> list[Subject]:
    if isinstance(model, Forecaster):
        return [Subject(type(model), model.get_params(deep=False), model.name)]
    if not (isinstance(model, type) and issubclass(model, Forecaster)):
        raise ParameterError(f"A model is a Forecaster, its class or its registered name; got {model!r}.")
    said = getattr(model, "examples", None)
    examples: list[dict[str, Any]] = [dict(one) for one in said()] if said is not None else [{}]
    given = set.intersection(*(set(one) for one in examples))
    needed = {name: _stand_in(model, one) for name, one in params.declared_params(model).items() if one.required and name not in given}
    numbered = [model.__name__ if not number else f"{model.__name__}.{number}" for number in range(len(examples))]
    return [Subject(model, {**needed, **example}, name) for name, example in zip(numbered, examples, strict=True)]


def _stand_in(model: type[Forecaster], one: params.Param) -> Any:
    """A value for a required parameter: simple models for a wrapper."""
    if one.annotation is Forecaster:
        return registry.get("SeasonalNaive")()
    if Forecaster in typing.get_args(one.annotation):
        return [registry.get("SeasonalNaive")(), registry.get("Naive")()]
    raise ParameterError(f"{model.__name__} needs {one.name}: its class method examples() says with which values to check it.")
