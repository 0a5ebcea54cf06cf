"""Capabilities of models as data, and the registry of models by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Literal, TypeVar

from deepforecast.core.index import MODELS
from deepforecast.errors import DependencyError, ParameterError, ParameterTypeError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a model.

    The class declares them; an instance may have fewer, depending on its parameters (regressor,
    head).

    Parameters
    ----------
    future, past, static : bool
        Whether the model uses future, past and static covariates.
    categorical : bool
        Whether covariates may be categorical.
    missing : bool
        Whether the model handles missing values without imputation.
    multivariate : bool
        Whether series are forecast jointly.
    distribution : {"analytic", "samples", "quantiles"} or None
        Origin of prediction intervals: a formula, sample paths, learned quantiles, or none (use
        `intervals="conformal"`).
    learns_distribution : bool
        Whether the distribution is part of the training loss; then the default point forecast is
        the median.
    local : bool
        Whether a forecast and its intervals depend on the series alone, not on other series.
    pooled : bool
        Whether point forecasts depend on the series alone, but intervals on all series. Such a
        model is not `local`.
    partly_own : bool
        Whether a global model has some parameters per series, which are missing for new series
        (with a warning).
    domain : {"real", "nonnegative", "positive"}
        Values of the target that the model accepts.
    scale_equivariant, shift_equivariant : bool
        Whether the forecast changes as the data do when they are multiplied by a positive number or
        shifted.
    sign_equivariant : bool
        Whether a scale-equivariant model also follows a change of sign. Trees do not, as thresholds
        are one-sided.
    precision : float
        Relative error of this equivariance: rounding for closed forms, the tolerance of the
        optimizer otherwise.
    new_values : {"followed", "heard", "ignored"}
        Effect of new observations in `update` and `predict(frame=...)`. "followed": the forecast
        shifts with them; "heard": it depends on them; "ignored": it depends only on `fit` and on
        time.
    simulates : bool
        Whether `simulate` is available.
    explains : bool
        Whether `explain` is available.
    """

    future: bool = False
    past: bool = False
    static: bool = False
    categorical: bool = False
    missing: bool = False
    multivariate: bool = False
    distribution: Literal["analytic", "samples", "quantiles"] | None = None
    learns_distribution: bool = False
    local: bool = True
    pooled: bool = False
    partly_own: bool = False
    domain: Literal["real", "nonnegative", "positive"] = "real"
    scale_equivariant: bool = False
    shift_equivariant: bool = False
    sign_equivariant: bool = True
    precision: float = 1e-9
    new_values: Literal["followed", "heard", "ignored"] = "heard"
    simulates: bool = False
    explains: bool = False

    @property
    def by_series(self) -> bool:
        """Whether parameters are estimated per series, so that a new series must be fitted before it is forecast."""
        return self.local or self.pooled

    def can_use(self, role: str) -> bool:
        """Whether covariates of a role ("future", "past" or "static") are used."""
        return bool(getattr(self, role))


class CapabilitiesDescriptor:
    """Descriptor that returns the declared capabilities of a class, or those of an instance after `_narrow`."""

    def __init__(self, declared: Capabilities) -> None:
        self.declared = declared

    def __get__(self, instance: object | None, owner: type) -> Capabilities:
        narrow = None if instance is None else getattr(owner, "_narrow", None)
        capabilities = self.declared if narrow is None else narrow(instance, self.declared)
        if getattr(instance, "bounds", None) is not None:
            capabilities = replace(capabilities, scale_equivariant=False, shift_equivariant=False)
        # sample paths are those of the model's own distribution, which calibrated intervals replace
        return capabilities if getattr(instance, "intervals", None) is None else replace(capabilities, simulates=False)


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
        raise ParameterTypeError(
            f"`register` must be passed a subclass of Forecaster, got {format_value(cls)}.", parameter="cls", value=cls
        )
    registered = _registered.get(cls.__name__)
    module = MODELS.get(cls.__name__, cls.__module__) if registered is None else registered.__module__
    if module != cls.__module__ or (registered is not None and registered.__qualname__ != cls.__qualname__):
        raise ParameterError(
            f"The name of a model must be unique, but {module} defines {cls.__name__}, too.",
            hint=f"Rename the class of {cls.__module__}.",
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
        raise ParameterError(f"Unknown model '{format_value(name)}'.", hint=f"Use {format_list(similar, max_shown=100)}.")
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
