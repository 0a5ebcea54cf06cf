"""Every model of the library keeps every rule of the contract; what a capability exempts it from is listed as skipped."""

from __future__ import annotations

import time

import pytest

from deepforecast import testing
from deepforecast.core.index import MODELS

CPU_SECONDS = 3.0  # a model: ten times the budget, so that only a blow-up fails
CASES = testing.cases(list(MODELS))  # of the index only: what other tests register in this process is not the library's


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: testing.Case) -> None:
    if case.skipped:
        pytest.skip(case.skipped)
    case.run()


def test_every_model_meets_every_rule() -> None:
    assert {case.subject.cls.__name__ for case in CASES} == set(MODELS)
    assert (
        len(CASES) == len({str(case) for case in CASES}) == len({case.subject.name for case in CASES}) * len(testing.checks())
    )


def test_the_checks_are_quick() -> None:
    case = testing.cases("SeasonalNaive", only="fitting")[0]
    case.run()
    begin = time.process_time()
    testing.run("SeasonalNaive")
    assert time.process_time() - begin < CPU_SECONDS
