"""What scikit-learn asks of an estimator: tags, whether it is fitted, copies; a refusal where it passes rows and targets.

`GridSearchCV`, `cross_val_score` and `Pipeline` split and transform rows regardless of series and time. The first two
ask for an attribute `score` and, before each split, whether rows are pairwise distances; all call `fit(X, y)`. What is
asked can be read by anyone; to use it is refused.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Never, Self

from deepforecast.errors import CapabilityError, ParameterTypeError

if TYPE_CHECKING:
    from sklearn.utils import Tags

ALTERNATIVES = (
    "Use deepforecast.tune(model, frame, ...) for a search of parameters and deepforecast.cross_validate(model, frame, "
    "...) for a backtest, and pass frames, with the target as a column, to the model itself."
)


class ScikitLearnProtocol:
    """Base of models that scikit-learn can display, copy and check."""

    def clone(self) -> Self:
        """Return an unfitted copy; defined by the model."""
        raise NotImplementedError

    def __sklearn_clone__(self) -> Self:
        return self.clone()

    def __sklearn_is_fitted__(self) -> bool:
        return "state_" in self.__dict__

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags

        rows = InputTags(pairwise=RefusedTag(type(self).__name__))
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=rows)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "score":
                return partial(_refuse, type(self).__name__)
            return object.__getattribute__(self, name)  # its own error, also that of a property


def positional_target_error(name: str, extra: tuple[Any, ...]) -> ParameterTypeError:
    """The error to raise for a second positional argument of `fit`, which scikit-learn passes as y."""
    return ParameterTypeError(
        f"{name}.fit takes one positional argument, the frame; got {1 + len(extra)}, as GridSearchCV and Pipeline of "
        f"scikit-learn pass rows and targets (X, y). {ALTERNATIVES}"
    )


class RefusedTag:
    """The tag `pairwise`, which decides how rows are split: an error when used as a condition."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        _refuse(self.name)

    def __repr__(self) -> str:
        return "NotSplit()"


def _refuse(name: str, *_: Any, **__: Any) -> Never:
    raise CapabilityError(f"{name} cannot be used in GridSearchCV, cross_val_score or Pipeline of scikit-learn. {ALTERNATIVES}")
