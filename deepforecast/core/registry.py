"""Which models there are, without importing one: a generated index of ours, and the entry points of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, TypeVar

from deepforecast.core.index import MODELS
from deepforecast.errors import DependencyError, ParameterError, ParameterTypeError, shown, some

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

GROUP = "deepforecast.models"
_registered: dict[str, type[Forecaster]] = {}
Model = TypeVar("Model", bound="type[Forecaster]")


def register(cls: Model) -> Model:
    """Class decorator: the model is found by its class name. A name belongs to one class."""
    if not (isinstance(cls, type) and hasattr(cls, "_own_params")):
        raise ParameterTypeError(f"register takes a class derived from Forecaster; got {shown(cls)}.")
    before = _registered.get(cls.__name__)
    home = MODELS.get(cls.__name__, cls.__module__) if before is None else before.__module__
    if home != cls.__module__ or (before is not None and before.__qualname__ != cls.__qualname__):
        raise ParameterError(f"A model's name is unique; {home} has a {cls.__name__} already. Rename that of {cls.__module__}.")
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
            _load(foreign[name])
    if name not in _registered:
        from difflib import get_close_matches

        near = get_close_matches(name, names(), n=3, cutoff=0.5) or names()
        raise ParameterError(f"No model is called {shown(name)}. There is {some(near, most=100)}.")
    return _registered[name]


def models() -> Iterator[type[Forecaster]]:
    """All model classes, by name."""
    return (get(name) for name in names())


def _foreign() -> dict[str, list[EntryPoint]]:
    """The entry points of other packages by name: one each, if all is well."""
    try:
        points = entry_points(group=GROUP)
    except OSError as error:  # their metadata are files like others: none may be left to open
        raise DependencyError(f"Installed packages are searched for models, and could not be: {shown(str(error))}.") from error
    found: dict[str, list[EntryPoint]] = {}
    for point in points:
        if point not in found.setdefault(point.name, []):
            found[point.name].append(point)
    return found


def _load(points: list[EntryPoint]) -> None:
    point = points[0]
    where = some([f"{one.dist.name if one.dist else 'a package'} ({one.value})" for one in points])
    if len(points) > 1:
        raise ParameterError(
            f"A model's name is unique; several packages bring a {point.name}: {where}. Uninstall all but one."
        )
    try:
        cls = point.load()
    except Exception as error:  # whatever a foreign module may raise: said with the name of its package
        text = f"{type(error).__name__}: {shown(str(error))}"
        raise DependencyError(f"The model {shown(point.name)} of {where} could not be imported: {text}") from error
    if getattr(cls, "__name__", None) != point.name:
        raise DependencyError(
            f"The entry point {shown(point.name)} of {where} leads to the class of that name; it gave {shown(cls)}."
        )
    register(cls)
