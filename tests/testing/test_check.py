from __future__ import annotations

import warnings

import pytest

from deepforecast import testing
from deepforecast.core.registry import Capabilities
from deepforecast.errors import DataWarning, DeepForecastError
from deepforecast.testing.check import THEMES, Check, requires, requires_no
from deepforecast.testing.subject import Subject, make_subjects


@pytest.fixture
def subject() -> Subject:
    return make_subjects("Naive")[0]


def test_checks_are_found_and_named() -> None:
    found = testing.checks()
    assert len({check.name for check in found}) == len(found) > 90
    assert {check.theme for check in found} == set(THEMES)
    assert [check.theme for check in found] == sorted((check.theme for check in found), key=THEMES.index)
    assert all(check.rule.endswith(".") and len(check.rule) > 20 for check in found)
    assert found == testing.checks()


def broken(subject: Subject) -> None:
    raise testing.RuleBroken("2 is not 3")


def stumbling(subject: Subject) -> None:
    raise KeyError("x")


def warning_of(kind: type[Warning]) -> object:
    return lambda subject: warnings.warn("careful", kind, stacklevel=1)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (broken, "2 is not 3"),
        (stumbling, "KeyError: 'x'"),
        (warning_of(DataWarning), "DataWarning: careful"),
        (warning_of(RuntimeWarning), "RuntimeWarning: careful"),
    ],
)
def test_a_failure_names_model_and_rule(subject: Subject, body: object, said: str) -> None:
    check = Check("some_rule", "values", "Rules are kept.", body)
    with pytest.raises(testing.RuleBroken) as caught:
        check.run(subject)
    assert str(caught.value) == f"Naive breaks some_rule (Rules are kept.) {said}"
    assert isinstance(caught.value, DeepForecastError)
    assert isinstance(caught.value, AssertionError)


def test_what_is_no_failure_passes(subject: Subject) -> None:
    Check("quiet", "values", "Quiet.", lambda subject: None).run(subject)


def test_conditions_ask_capabilities(subject: Subject) -> None:
    assert subject.capabilities == Capabilities(new_values="followed",
        missing=True, distribution="analytic", simulates=True, explains=True, scale_equivariant=True, shift_equivariant=True
    )
    assert requires("missing", "local")(subject) is None
    assert requires("missing", "future", "past")(subject) == "capabilities.future is False"
    assert requires_no("future")(subject) is None
    assert requires_no("distribution")(subject) == "capabilities.distribution is analytic"


def test_the_first_reason_counts(subject: Subject) -> None:
    check = Check("x", "values", "X.", broken, (requires("missing"), requires("future"), requires("past")))
    assert check.skip_reason(subject) == "capabilities.future is False"
    assert check.exemption_reason(subject) == "capabilities.future is False"


def test_a_package_that_is_not_there_is_no_exemption(subject: Subject) -> None:
    check = Check("x", "values", "X.", broken, packages=("numpy", "no_such_package"))
    assert check.exemption_reason(subject) is None
    assert check.missing_package_reason(subject) == check.skip_reason(subject) == "the package no_such_package is not installed"
    assert Check("x", "values", "X.", broken, packages=("numpy",)).skip_reason(subject) is None
