"""Which models there are, without importing one: a generated index of ours, and the entry points of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, TypeVar

from deepforecast.core.index import MODELS
from deepforecast.errors import ParameterError, shown, some

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

GROUP = "deepforecast.models"
_registered: dict[str, type[Forecaster]] = {}
Model = TypeVar("Model", bound="type[Forecaster]")


def register(cls: Model) -> Model:
    """Class decorator: the model is found by its class name. A name belongs to one class."""
    before = _registered.get(cls.__name__)
    if before is not None and (before.__module__, before.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ParameterError(f"A model's name is unique; {cls.__name__} is {before.__module__} already. Rename {cls.__module__}'s.")
    _registered[cls.__name__] = cls
    return cls


def names() -> list[str]:
    """Names of all models: the library's, those of installed packages, those registered in this process."""
    return sorted({*MODELS, *_foreign(), *_registered})


def get(name: str) -> type[Forecaster]:
    """The class of a model by its name; its module is imported when it is asked for."""
    if name not in _registered:
        if name in MODELS:
            import_module(MODELS[name])
        elif name in (foreign := _foreign()):
            register(foreign[name].load())
    if name not in _registered:
        from difflib import get_close_matches

        near = get_close_matches(name, names(), n=3, cutoff=0.5) or names()
        raise ParameterError(f"No model is called {shown(name)}. There is {some(near, most=40)}.")
    return _registered[name]


def models() -> Iterator[type[Forecaster]]:
    """All model classes, by name."""
    return (get(name) for name in names())


def _foreign() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
