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
    "intervals", "paths", "covariates", "effects", "leakage", "invariance", "manners", "saving", "devices",
)  # fmt: skip
Condition = Callable[[Subject], str | None]
Body = Callable[[Subject], None]


@dataclass(frozen=True)
class Check:
    """One rule. `conditions` give None where it applies, else why it does not: a declared capability, never a model's name."""

    name: str
    theme: str
    rule: str
    body: Body
    conditions: tuple[Condition, ...] = ()

    def skipped(self, subject: Subject) -> str | None:
        """Why the rule does not apply to a model, or None if it does."""
        reasons = (condition(subject) for condition in (_there, *self.conditions))
        return next((reason for reason in reasons if reason is not None), None)

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


def rule(*conditions: Condition) -> Callable[[Body], Body]:
    """Decorator: the function is a check of its own name, its docstring's first line is the rule."""

    def register(body: Body) -> Body:
        theme = body.__module__.rpartition(".")[2]
        _found[body.__name__] = Check(body.__name__, theme, (body.__doc__ or "").partition("\n")[0], body, conditions)
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


def _there(subject: Subject) -> str | None:
    """A model may stand on a package that not everybody has: its class names it."""
    package = getattr(subject.cls, "package", None)
    return installed(package)(subject) if package else None


def installed(package: str) -> Condition:
    """The rule needs a package that may not be there."""
    return lambda subject: None if find_spec(package) is not None else f"the package {package} is not installed"
