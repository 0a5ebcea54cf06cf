"""A check: one rule of the contract as a function of a model, with the conditions under which the rule applies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from deepforecast.errors import DataWarning, TrainingWarning
from deepforecast.testing.assertions import RuleBroken
from deepforecast.testing.subject import Subject

THEMES = (
    "parameters", "fit_and_predict", "copies", "output", "frames", "libraries", "edge_cases", "missing_values", "horizons", "updates",
    "explanations", "intervals", "calibration", "fitted_values", "sample_paths", "covariates", "effects", "leakage", "invariance",
    "isolation", "serialization", "devices",
)  # fmt: skip
Condition = Callable[[Subject], str | None]
CheckFunction = Callable[[Subject], None]


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
    function: CheckFunction
    conditions: tuple[Condition, ...] = ()
    packages: tuple[str, ...] = ()
    shared: bool = False
    slow: str | None = None

    def exemption_reason(self, subject: Subject) -> str | None:
        """Why the rule does not apply to a model, by what it declares, or None if it does."""
        reasons = (condition(subject) for condition in self.conditions)
        return next((reason for reason in reasons if reason is not None), None)

    def missing_package_reason(self, subject: Subject) -> str | None:
        """Which package that the model or the rule needs is not installed, or None if all are."""
        package = getattr(subject.cls, "package", None)
        required_packages = (*([package] if package else []), *self.packages)
        return next((f"the package {name} is not installed" for name in required_packages if find_spec(name) is None), None)

    def skip_reason(self, subject: Subject) -> str | None:
        """Why the rule cannot be checked on a model, or None if it can."""
        return self.missing_package_reason(subject) or self.exemption_reason(subject)

    def run(self, subject: Subject) -> None:
        """Raise `RuleBroken`, naming the model and the rule, unless the model keeps it."""
        with warnings.catch_warnings():
            for category in (DataWarning, TrainingWarning, RuntimeWarning):
                warnings.simplefilter("error", category)
            try:
                self.function(subject)
            except RuleBroken as violation:
                raise RuleBroken(f"{subject.name} breaks {self.name} ({self.rule}) {violation}") from violation.__cause__
            except Exception as error:
                raise RuleBroken(f"{subject.name} breaks {self.name} ({self.rule}) {type(error).__name__}: {error}") from error


_checks: dict[str, Check] = {}


def rule(
    *conditions: Condition, packages: tuple[str, ...] = (), shared: bool = False, slow: str | None = None
) -> Callable[[CheckFunction], CheckFunction]:
    """Decorator: the function is a check of its own name, its docstring's first line is the rule."""

    def register(function: CheckFunction) -> CheckFunction:
        theme = function.__module__.rpartition(".")[2]
        docstring = (function.__doc__ or "").partition("\n")[0]
        _checks[function.__name__] = Check(function.__name__, theme, docstring, function, conditions, packages, shared, slow)
        return function

    return register


def checks() -> list[Check]:
    """Every check, by theme.

    >>> len(checks()) > 50
    True
    """
    for theme in THEMES:
        import_module(f"deepforecast.testing.rules.{theme}")
    return sorted(_checks.values(), key=lambda check: THEMES.index(check.theme))


def requires(*names: str) -> Condition:
    """The rule is for models with these capabilities."""

    def condition(subject: Subject) -> str | None:
        unmet = [name for name in names if not getattr(subject.capabilities, name)]
        return f"capabilities.{unmet[0]} is {getattr(subject.capabilities, unmet[0])}" if unmet else None

    return condition


def requires_no(name: str) -> Condition:
    """The rule is for models without this capability."""

    def condition(subject: Subject) -> str | None:
        value = getattr(subject.capabilities, name)
        return f"capabilities.{name} is {value}" if value else None

    return condition


def requires_method(method: str) -> Condition:
    """The rule is for models with this method."""
    return lambda subject: None if hasattr(subject.cls, method) else f"the model has no method {method}"
