"""Models by name: those of a generated index, of entry points of other packages, and those registered at run time."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, TypeVar

from deepforecast.core.index import MODELS
from deepforecast.errors import DependencyError, ParameterError, ParameterTypeError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

GROUP = "deepforecast.models"
_registered: dict[str, type[Forecaster]] = {}
Model = TypeVar("Model", bound="type[Forecaster]")


def register(cls: Model) -> Model:
    """Register a model class, so that `load` and the command line find it by its name.

    Parameters
    ----------
    cls : type
        Subclass of `Forecaster`, whose name must be unique.

    Returns
    -------
    type
        The same class, so `register` can be used as a decorator.

    Raises
    ------
    ParameterError
        If another model has this name.
    """
    if not (isinstance(cls, type) and hasattr(cls, "_own_params")):
        raise ParameterTypeError(f"`register` must be passed a subclass of Forecaster, got {format_value(cls)}.")
    registered = _registered.get(cls.__name__)
    module = MODELS.get(cls.__name__, cls.__module__) if registered is None else registered.__module__
    if module != cls.__module__ or (registered is not None and registered.__qualname__ != cls.__qualname__):
        raise ParameterError(
            f"The name of a model must be unique, but {module} defines {cls.__name__}, too. Rename the class of "
            f"{cls.__module__}."
        )
    _registered[cls.__name__] = cls
    return cls


def names() -> list[str]:
    """Names of all models: the library's, those of installed packages, and those registered in this process."""
    return sorted({*MODELS, *_entry_points(), *_registered})


def get(name: str) -> type[Forecaster]:
    """The model class of that name; imports its module."""
    if name not in _registered:
        if name in MODELS:
            import_module(MODELS[name])
        elif name in (entry_points_by_name := _entry_points()):
            _load(entry_points_by_name[name])
    if name not in _registered:
        from difflib import get_close_matches

        similar = get_close_matches(name, names(), n=3, cutoff=0.5) or names()
        raise ParameterError(f"Unknown model '{format_value(name)}'. Use {format_list(similar, max_shown=100)}.")
    return _registered[name]


def models() -> Iterator[type[Forecaster]]:
    """All model classes, sorted by name."""
    return (get(name) for name in names())


def _entry_points() -> dict[str, list[EntryPoint]]:
    """The entry points of other packages by name: one each, unless two packages have a model of the same name."""
    try:
        points = entry_points(group=GROUP)
    except OSError as error:  # e.g. too many open files
        raise DependencyError(f"Cannot search installed packages for models: {format_value(str(error))}.") from error
    points_by_name: dict[str, list[EntryPoint]] = {}
    for point in points:
        if point not in points_by_name.setdefault(point.name, []):
            points_by_name[point.name].append(point)
    return points_by_name


def _load(points: list[EntryPoint]) -> None:
    """Import and register the model of an entry point; several points of one name raise `ParameterError`."""
    point = points[0]
    origin = format_list(
        [f"{entry_point.dist.name if entry_point.dist else 'a package'} ({entry_point.value})" for entry_point in points]
    )
    if len(points) > 1:
        raise ParameterError(
            f"The name of a model must be unique, but several packages define {point.name}: {origin}. Uninstall all but one."
        )
    try:
        cls = point.load()
    except Exception as error:  # a foreign module may raise anything
        text = f"{type(error).__name__}: {format_value(str(error))}"
        raise DependencyError(
            f"The model {format_value(point.name)} of {origin} could not be imported: {text}. Reinstall or update the package."
        ) from error
    if getattr(cls, "__name__", None) != point.name:
        raise DependencyError(
            f"The entry point {format_value(point.name)} of {origin} must load the class of that name, got {format_value(cls)}."
        )
    register(cls)
