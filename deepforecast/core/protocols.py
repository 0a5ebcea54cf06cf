"""Protocols of other libraries: scikit-learn, copy and pickle."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Never, Self, SupportsIndex

from deepforecast.core.threads import stay_on_one_thread_if_forked
from deepforecast.errors import CapabilityError, ParameterTypeError

if TYPE_CHECKING:
    from sklearn.utils import Tags

ALTERNATIVES = (
    "Use deepforecast.tune(model, frame, ...) to search hyperparameters and deepforecast.cross_validate(model, frame, ...) "
    "for a backtest, and pass frames with the target as a column to the model itself."
)


class ScikitLearnProtocol:
    """Mixin that lets scikit-learn display, copy and check models."""

    def clone(self) -> Self:
        """Return an unfitted copy; implemented by `Forecaster`."""
        raise NotImplementedError

    def __sklearn_clone__(self) -> Self:
        return self.clone()

    def __sklearn_is_fitted__(self) -> bool:
        return "state_" in self.__dict__

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags

        input_tags = InputTags(pairwise=RefusedTag(type(self).__name__))
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=input_tags)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "score":
                return partial(_refuse, type(self).__name__)
            return object.__getattribute__(self, name)  # raises the usual AttributeError, or that of a property


def positional_target_error(name: str, extra: tuple[Any, ...]) -> ParameterTypeError:
    """The error for more than one positional argument of `fit`; scikit-learn passes y as the second."""
    return ParameterTypeError(
        f"{name}.fit takes one positional argument, the frame, got {1 + len(extra)}.",
        hint="Pass the others by keyword, e.g. freq='D'. scikit-learn's GridSearchCV and Pipeline, which pass (X, y), cannot "
        f"be used. {ALTERNATIVES}",
    )


class RefusedTag:
    """Value of the tag `pairwise` that raises when scikit-learn reads its truth value to split rows."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        _refuse(self.name)

    def __repr__(self) -> str:
        return "NotSplit()"


def _refuse(name: str, *_: Any, **__: Any) -> Never:
    raise CapabilityError(
        f"{name} cannot be used in GridSearchCV, cross_val_score or Pipeline of scikit-learn.", hint=ALTERNATIVES
    )


class PickleProtocol:
    """Mixin that makes copy and pickle safe in a forked process, where OpenMP must not use more than one thread.

    Boosters and networks are read and created after these calls return, so the number of threads
    cannot be restored.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        stay_on_one_thread_if_forked()
        return _new_instance, (type(self),), self.__getstate__()


def _new_instance(cls: type[PickleProtocol]) -> PickleProtocol:
    """A model without parameters and state, which pickle sets next."""
    stay_on_one_thread_if_forked()
    return cls.__new__(cls)
