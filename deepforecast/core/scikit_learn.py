"""What scikit-learn asks of an estimator: tags, whether it is fitted, copies; a refusal where it passes rows and targets.

`GridSearchCV`, `cross_val_score` and `Pipeline` split and transform rows regardless of series and time. They read
`score` and the type of the estimator first and call `fit(X, y)` later, so that all three refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from deepforecast.errors import CapabilityError, ParameterTypeError

if TYPE_CHECKING:
    from sklearn.utils import Tags

INSTEAD = (
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
        from sklearn.utils import Tags, TargetTags

        class ForecasterTags(Tags):  # type: ignore[misc]
            """Tags whose type of estimator cannot be read: neither classifier nor regressor."""

            @property
            def estimator_type(self) -> Any:
                raise _refusal(name)

            @estimator_type.setter
            def estimator_type(self, value: Any) -> None:
                """The constructor of `Tags` sets it."""

        name = type(self).__name__
        return ForecasterTags(estimator_type=None, target_tags=TargetTags(required=False))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "score":
                raise _refusal(type(self).__name__)
            return object.__getattribute__(self, name)  # its own error, also that of a property


def positional_target(name: str, extra: tuple[Any, ...]) -> ParameterTypeError:
    """The error to raise for a second positional argument of `fit`, which scikit-learn passes as y."""
    return ParameterTypeError(
        f"{name}.fit takes one positional argument, the frame; got {1 + len(extra)}, as GridSearchCV and Pipeline of "
        f"scikit-learn pass rows and targets (X, y). {INSTEAD}"
    )


def _refusal(name: str) -> CapabilityError:
    return CapabilityError(f"{name} cannot be used in GridSearchCV, cross_val_score or Pipeline of scikit-learn. {INSTEAD}")
