"""Every model of the library keeps every rule of the contract that applies by what it declares.

Of rules about code that a family of models shares, `make test` checks the first of each family, `make test-all` every one.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from deepforecast import testing
from deepforecast.core.registry import MODELS

CPU_SECONDS = 3.0  # a model: ten times the budget, so that only a blow-up fails
EVERY = testing.cases(list(MODELS))  # of the index only: what other tests register in this process is not the library's
# The second examples of these models differ from that of LightGBM only in the library that grows the trees.
SLOW_SUBJECTS = {"CatBoost.1", "GradientBoosting.1", "XGBoost.1"}
# What these networks learn in training, a second for each rule: their layers equal plain loops, covariates included (tests/nn).
SLOW_TRAINING = {"DecoderOnly", "DeepAR", "NHITS", "PatchTST", "TCN", "TFT", "TiDE", "TimeXer", "xLSTM"}
TRAINED = ("effect_of", "intervals_cover_their_level")


def is_slow(case: testing.Case) -> bool:
    """Whether `make test` leaves the case to `make test-all`, where another one has the same code."""
    name = case.subject.name
    return name in SLOW_SUBJECTS or (name.partition(".")[0] in SLOW_TRAINING and case.check.name.startswith(TRAINED))


QUICK = {str(case) for case in testing.representative([case for case in EVERY if not is_slow(case)])}

CONFORMAL = "conformal_intervals_cover_their_level"
KNOWN_FAILURES = {  # of a model and a rule: what is off, and by how much
    ("CatBoost", CONFORMAL): "80 % intervals cover 94.5 %: errors on a trend are those of a fit to half of the rows",
    ("GradientBoosting", CONFORMAL): "80 % intervals cover 95.6 %: errors on a trend are those of a fit to half of the rows",
    ("LightGBM", CONFORMAL): "80 % intervals cover 95.2 %: errors on a trend are those of a fit to half of the rows",
    ("LinearModel.1", CONFORMAL): "80 % intervals cover 89.7 %: errors on a trend are those of a fit to half of the rows",
    ("Regression", CONFORMAL): "80 % intervals cover 94.7 %: errors on a trend are those of a fit to half of the rows",
    ("XGBoost", CONFORMAL): "80 % intervals cover 95.5 %: errors on a trend are those of a fit to half of the rows",
}


def marked(case: testing.Case) -> Any:
    """A case as a parameter of a test, with its marks."""
    reason = KNOWN_FAILURES.get((case.subject.name, case.check.name))
    marks = [pytest.mark.slow] if case.slow or str(case) not in QUICK else []
    failure = [] if reason is None else [pytest.mark.xfail(strict=True, raises=testing.RuleBroken, reason=reason)]
    return pytest.param(case, marks=marks + failure, id=str(case))


@pytest.mark.parametrize("case", [marked(case) for case in EVERY if case.exemption_reason is None])
def test_contract(case: testing.Case) -> None:
    if case.skip_reason:
        pytest.skip(case.skip_reason)
    case.run()


def test_every_model_meets_every_rule() -> None:
    assert {case.subject.cls.__name__ for case in EVERY} == set(MODELS)
    assert (
        len(EVERY) == len({str(case) for case in EVERY}) == len({case.subject.name for case in EVERY}) * len(testing.checks())
    )


def test_every_rule_is_checked_in_every_family() -> None:
    quick = {(case.check.name, case.subject.family) for case in EVERY if str(case) in QUICK}
    cases = [case for case in EVERY if case.exemption_reason is None and not is_slow(case)]
    assert quick == {(case.check.name, case.subject.family) for case in cases}


def test_known_failures_name_models_and_rules() -> None:
    assert set(KNOWN_FAILURES) <= {(case.subject.name, case.check.name) for case in EVERY}


def test_the_checks_are_quick() -> None:
    case = testing.cases("SeasonalNaive", only="fit_and_predict")[0]
    case.run()
    begin = time.process_time()
    testing.run("SeasonalNaive")
    assert time.process_time() - begin < CPU_SECONDS
