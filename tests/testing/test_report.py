from __future__ import annotations

import pytest

from deepforecast import Naive, testing
from deepforecast.errors import ParameterError
from tests.testing.toys import Last


class Forgetful(Last):
    def fit(self, *args: object, **given: object) -> None:
        super().fit(*args, **given)


def test_a_report_counts_and_prints() -> None:
    report = testing.run([Naive, Forgetful], only=["fit_returns_self", "explain_is_refused"])
    assert [(row.model, row.rule, row.outcome) for row in report.rows] == [
        ("Naive", "fit_returns_self", "passed"),
        ("Naive", "explain_is_refused", "skipped"),
        ("Forgetful", "fit_returns_self", "failed"),
        ("Forgetful", "explain_is_refused", "skipped"),
    ]
    assert str(report).splitlines()[0].startswith("Naive, Forgetful: 4 checks, 1 passed, 1 failed, 2 skipped in 0.")
    assert str(report).splitlines()[1:] == [
        "  failed   Forgetful breaks fit_returns_self (`fit` returns the model itself.) fit must return the model itself",
        "  skipped   1 of Naive: capabilities.explains is True",
        "  skipped   1 of Forgetful: capabilities.explains is True",
    ]
    assert [row.rule for row in report.with_outcome("passed")] == ["fit_returns_self"]


def test_failures_are_raised_by_name_of_model_and_rule() -> None:
    report = testing.run(Forgetful, only="fit_returns_self")
    with pytest.raises(testing.RuleBroken, match="1 of 1 checks failed:\nForgetful breaks fit_returns_self"):
        report.raise_for_failures()
    sound = testing.run(Naive, only="fit_returns_self")
    assert sound.raise_for_failures() is sound


def test_cases_are_named_by_model_and_rule() -> None:
    found = testing.cases(["Naive", Last], only="explanations")
    assert [str(case) for case in found] == [
        f"{m}-{rule}" for m in ("Naive", "Last") for rule in ("explanations_add_up", "explain_is_refused")
    ]
    assert [case.skip_reason for case in found[:2]] == [None, "capabilities.explains is True"]
    found[0].run()


def test_of_rules_about_shared_code_the_first_model_of_a_family_is_enough() -> None:
    names = ["Naive", "DLinear", "MLP", "NLinear", "LSTM"]
    cases = testing.cases(names, only=["effect_of_a_static_number", "fit_returns_self", "explain_is_refused"])
    chosen = {str(case) for case in testing.representative(cases)}
    assert {name for name in chosen if "static" in name} == {
        f"{model}-effect_of_a_static_number" for model in ("DLinear", "LSTM.1")
    }
    assert {name for name in chosen if "fit" in name} == {
        f"{model}-fit_returns_self" for model in ("Naive", "DLinear", "MLP", "NLinear", "LSTM", "LSTM.1")
    }
    assert not any(name.startswith("Naive-explain") for name in chosen), "it explains"


def test_without_models_every_registered_one_is_checked() -> None:
    found = {case.subject.name for case in testing.cases(only="fit_returns_self")}
    assert {"Naive", "SeasonalNaive", "Conformal"} <= found


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ParameterError, match="must contain names of checks or themes, got fit_return_self"):
        testing.run(Naive, only="fit_return_self")
