"""The estimator protocol of scikit-learn: clone, fitted state and tags, but no use in its model selection.

`GridSearchCV`, `cross_val_score` and `Pipeline` split and transform rows regardless of series and
time, so models must refuse them. The first two read the attribute `score` and, before each split,
the tag `pairwise`; all call `fit(X, y)`. Reading these attributes works, as displays and checks of
estimators do; using them raises.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Never, Self

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
        f"{name}.fit takes one positional argument, the frame, got {1 + len(extra)}. Pass the others by keyword, e.g. "
        f"freq='D'. scikit-learn's GridSearchCV and Pipeline, which pass (X, y), cannot be used. {ALTERNATIVES}"
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
    raise CapabilityError(f"{name} cannot be used in GridSearchCV, cross_val_score or Pipeline of scikit-learn. {ALTERNATIVES}")
