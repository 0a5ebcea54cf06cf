"""When a parameter has an effect, as declared by `param(needs=...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deepforecast.errors import format_value, join_alternatives

if TYPE_CHECKING:
    from deepforecast.core.params import Param

Rule = tuple[str, Callable[[Mapping[str, Any]], bool]]

MAX_LISTED = 3
"""Largest number of choices that the fix of an error lists."""


class Not:
    """Any value but these, for another parameter in `param(needs=...)`."""

    def __init__(self, *values: Any) -> None:
        self.values = values


class Needs:
    """The condition under which a parameter has an effect; a function of the values of all parameters.

    `declared` is `param(needs=...)`: a mapping from other parameters to the value they must have or
    to `Not` with the values they must not have, or a pair of a rule in words and a function.

    >>> needs = Needs({"head": "bins", "scaler": Not("none")})
    >>> needs({"head": "bins", "scaler": "robust"}), needs({"head": "bins", "scaler": "none"})
    (True, False)
    >>> needs.help
    "Used only with head='bins', not with scaler='none'."
    """

    def __init__(self, declared: Mapping[str, Any] | Rule) -> None:
        self.conditions: dict[str, Any] = {}
        self.rule = ""
        self.holds: Callable[[Mapping[str, Any]], bool] | None = None
        if isinstance(declared, tuple):
            self.rule, self.holds = declared
        else:
            self.conditions = dict(declared)

    def __call__(self, values: Mapping[str, Any]) -> bool:
        """Whether the parameter has an effect with these values."""
        if self.holds is not None:
            return self.holds(values)
        return all(_is_met(condition, values[name]) for name, condition in self.conditions.items())

    @property
    def help(self) -> str:
        """The condition as a sentence for the help of the parameter."""
        required = [_assignment(name, value) for name, value in self.conditions.items() if not isinstance(value, Not)]
        excluded = [_assignment(name, value) for name, value in self.conditions.items() if isinstance(value, Not)]
        without = f"with {' or '.join(excluded)}" if excluded else ""
        if not required and not self.rule:
            return f"Not used {without}."
        return f"Used only with {self.rule or ' and '.join(required)}{without and ', not ' + without}."

    def explain(self, values: Mapping[str, Any], params: Mapping[str, Param]) -> tuple[str, str]:
        """Why these values do not meet the condition, to follow "has no effect", and a fix."""
        if self.rule:
            return f"without {self.rule}", f"Set {self.rule}"
        name = next(name for name, condition in self.conditions.items() if not _is_met(condition, values[name]))
        condition, reason = self.conditions[name], f"with {_assignment(name, values[name])}"
        if not isinstance(condition, Not):
            return reason, f"Set {_assignment(name, condition)}"
        choices = [choice for choice in params[name].choices or () if _is_met(condition, choice)]
        if 0 < len(choices) <= MAX_LISTED:
            return reason, f"Set {_assignment(name, Not(*choices))}"
        return reason, f"Set `{name}`" if values[name] is None else f"Set another `{name}`"


def _is_met(condition: Any, value: Any) -> bool:
    value = tuple(value) if isinstance(value, list) else value
    return value not in condition.values if isinstance(condition, Not) else bool(value == condition)


def _assignment(name: str, value: Any) -> str:
    """`name=value`, for several values in a `Not` with commas and "or"."""
    values = value.values if isinstance(value, Not) else (value,)
    return f"{name}={join_alternatives([format_value(repr(alternative)) for alternative in values])}"
