"""The `Check` of a contract rule, its registration, and the conditions under which a rule applies."""

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
    "parameters",
    "fit_and_predict",
    "copies",
    "output",
    "frames",
    "libraries",
    "edge_cases",
    "missing_values",
    "horizons",
    "updates",
    "explanations",
    "intervals",
    "calibration",
    "fitted_values",
    "sample_paths",
    "covariates",
    "effects",
    "weights",
    "leakage",
    "invariance",
    "isolation",
    "serialization",
    "devices",
)
Condition = Callable[[Subject], str | None]
CheckFunction = Callable[[Subject], None]


@dataclass(frozen=True)
class Check:
    """A contract rule with the conditions under which it applies.

    Parameters
    ----------
    name : str
        Name of the rule.
    theme : str
        Module of the rule in `deepforecast.testing.rules`.
    rule : str
        The rule in one sentence.
    function : callable
        Raises `RuleBroken` if a subject violates the rule.
    conditions : tuple of callable
        Each returns None if the rule applies to a subject, otherwise the reason why not. Conditions depend on declared
        capabilities, never on the name of a model.
    packages : tuple of str
        Packages that the check needs.
    shared : bool, default False
        Whether the rule tests only code that the models of a family share (`Subject.family`).
    slow : str, optional
        Attribute by which a model declares that this rule takes more than two seconds.
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
        """Return why the rule does not apply to a model by its capabilities, or None if it applies."""
        reasons = (condition(subject) for condition in self.conditions)
        return next((reason for reason in reasons if reason is not None), None)

    def missing_package_reason(self, subject: Subject) -> str | None:
        """Return which required package is not installed, or None if all are."""
        package = getattr(subject.cls, "package", None)
        required_packages = (*([package] if package else []), *self.packages)
        return next((f"the package {name} is not installed" for name in required_packages if find_spec(name) is None), None)

    def skip_reason(self, subject: Subject) -> str | None:
        """Return why the rule cannot be checked on a model, or None if it can."""
        return self.missing_package_reason(subject) or self.exemption_reason(subject)

    def run(self, subject: Subject) -> None:
        """Raise `RuleBroken` with the names of model and rule if the model violates the rule."""
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
    """Register a function as a check; the first line of its docstring is the rule shown to users."""

    def register(function: CheckFunction) -> CheckFunction:
        theme = function.__module__.rpartition(".")[2]
        docstring = (function.__doc__ or "").partition("\n")[0]
        _checks[function.__name__] = Check(function.__name__, theme, docstring, function, conditions, packages, shared, slow)
        return function

    return register


def checks() -> list[Check]:
    """Return all checks, ordered by theme.

    Returns
    -------
    list of Check

    Examples
    --------
    >>> len(checks()) > 50
    True
    """
    for theme in THEMES:
        import_module(f"deepforecast.testing.rules.{theme}")
    return sorted(_checks.values(), key=lambda check: THEMES.index(check.theme))


def requires(*names: str) -> Condition:
    """Return a condition: the model has these capabilities."""

    def condition(subject: Subject) -> str | None:
        unmet = [name for name in names if not getattr(subject.capabilities, name)]
        return f"capabilities.{unmet[0]} is {getattr(subject.capabilities, unmet[0])}" if unmet else None

    return condition


def requires_no(name: str) -> Condition:
    """Return a condition: the model does not have this capability."""

    def condition(subject: Subject) -> str | None:
        value = getattr(subject.capabilities, name)
        return f"capabilities.{name} is {value}" if value else None

    return condition


def requires_method(method: str) -> Condition:
    """Return a condition: the model has this method."""
    return lambda subject: None if hasattr(subject.cls, method) else f"the model has no method {method}"
