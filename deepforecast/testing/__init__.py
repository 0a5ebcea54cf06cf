"""The contract checks that every model keeps: shipped, found by themselves, one rule each.

    from deepforecast import testing

    testing.run(MyModel).raise_for_failures()          # a class, or an object with your parameters

With pytest, a test for each model and rule:

    @pytest.mark.parametrize("case", testing.cases([MyModel]), ids=str)
    def test_contract(case):
        if case.skipped:
            pytest.skip(case.skipped)
        case.run()

A model whose usual configuration is slow says in a class method `examples()` which small ones to check, and in
`learning_example` what to change where a check needs a model that has learnt.
"""

from deepforecast.testing.check import Check, checks
from deepforecast.testing.expect import RuleBroken
from deepforecast.testing.report import Case, Report, Row, cases, run
from deepforecast.testing.subject import Subject

__all__ = ["Case", "Check", "Report", "Row", "RuleBroken", "Subject", "cases", "checks", "run"]
