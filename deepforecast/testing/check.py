"""A check: one rule of the contract as a function of a model, with the conditions under which the rule applies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from deepforecast.errors import DataWarning, TrainingWarning
from deepforecast.testing.expect import RuleBroken
from deepforecast.testing.subject import Subject

THEMES = (
    "parameters", "fitting", "copies", "output", "frames", "libraries", "values", "gaps", "horizons", "moving", "explaining",
    "intervals", "calibration", "fitted_values", "paths", "covariates", "effects", "leakage", "invariance", "manners",
    "saving", "devices",
)  # fmt: skip
Condition = Callable[[Subject], str | None]
Body = Callable[[Subject], None]


@dataclass(frozen=True)
class Check:
    """One rule. `conditions` give None where it applies, else why it does not: a declared capability, never a model's name.

    packages: what has to be installed to check it.
    shared: whether it exercises only code that the models of a family share (`Subject.family`).
    slow: the attribute by which a model says that this rule takes it over two seconds.
    """

    name: str
    theme: str
    rule: str
    body: Body
    conditions: tuple[Condition, ...] = ()
    packages: tuple[str, ...] = ()
    shared: bool = False
    slow: str | None = None

    def exempt(self, subject: Subject) -> str | None:
        """Why the rule does not apply to a model, by what it declares, or None if it does."""
        reasons = (condition(subject) for condition in self.conditions)
        return next((reason for reason in reasons if reason is not None), None)

    def lacking(self, subject: Subject) -> str | None:
        """Which package that the model or the rule needs is not installed, or None if all are."""
        package = getattr(subject.cls, "package", None)
        needed = (*([package] if package else []), *self.packages)
        return next((f"the package {name} is not installed" for name in needed if find_spec(name) is None), None)

    def skipped(self, subject: Subject) -> str | None:
        """Why the rule cannot be checked on a model, or None if it can."""
        return self.lacking(subject) or self.exempt(subject)

    def run(self, subject: Subject) -> None:
        """Raise `RuleBroken`, naming the model and the rule, unless the model keeps it."""
        with warnings.catch_warnings():
            for kind in (DataWarning, TrainingWarning, RuntimeWarning):
                warnings.simplefilter("error", kind)
            try:
                self.body(subject)
            except RuleBroken as broken:
                raise RuleBroken(f"{subject.name} breaks {self.name} ({self.rule}) {broken}") from broken.__cause__
            except Exception as error:
                raise RuleBroken(f"{subject.name} breaks {self.name} ({self.rule}) {type(error).__name__}: {error}") from error


_found: dict[str, Check] = {}


def rule(
    *conditions: Condition, packages: tuple[str, ...] = (), shared: bool = False, slow: str | None = None
) -> Callable[[Body], Body]:
    """Decorator: the function is a check of its own name, its docstring's first line is the rule."""

    def register(body: Body) -> Body:
        theme = body.__module__.rpartition(".")[2]
        docstring = (body.__doc__ or "").partition("\n")[0]
        _found[body.__name__] = Check(body.__name__, theme, docstring, body, conditions, packages, shared, slow)
        return body

    return register


def checks() -> list[Check]:
    """Every check, by theme.

    >>> len(checks()) > 50
    True
    """
    for theme in THEMES:
        import_module(f"deepforecast.testing.rules.{theme}")
    return sorted(_found.values(), key=lambda check: THEMES.index(check.theme))


def able(*names: str) -> Condition:
    """The rule is for models with these capabilities."""

    def condition(subject: Subject) -> str | None:
        lacking = [name for name in names if not getattr(subject.capabilities, name)]
        return f"capabilities.{lacking[0]} is {getattr(subject.capabilities, lacking[0])}" if lacking else None

    return condition


def unable(name: str) -> Condition:
    """The rule is for models without this capability."""

    def condition(subject: Subject) -> str | None:
        value = getattr(subject.capabilities, name)
        return f"capabilities.{name} is {value}" if value else None

    return condition


def having(method: str) -> Condition:
    """The rule is for models with this method."""
    return lambda subject: None if hasattr(subject.cls, method) else f"the model has no method {method}"
