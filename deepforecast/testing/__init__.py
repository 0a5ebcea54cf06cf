"""The contract checks that every model keeps: shipped, found by themselves, one rule each.

    from deepforecast import testing

    testing.run(MyModel).raise_for_failures()          # a class, or an object with your parameters

With pytest, a test for each model and rule:

    @pytest.mark.parametrize("case", testing.cases([MyModel]), ids=str)
    def test_contract(case):
        if case.skip_reason:
            pytest.skip(case.skip_reason)
        case.run()

Which rules apply, and how exactly, follows from what a model declares in `capabilities`: what it can do, the values it takes
(`domain`), how exactly its forecast follows scale and shift of the data (`precision`), what new values do to it (`new_values`).
A declaration is held to: a model that says it ignores new values may not hear of them.

What a model may say of itself to the checks, each if it needs to:

- `examples()`, a class method: a list of parameters, small and fast ones, to check it with; for a parameter without a default
- `package`, a name: what has to be installed for the model, if that does not come with its library; else all is skipped
- `family`, a name: of models that share the code of some rules, so that `representative` cases need one of them only
- `learning_example`, a dict: what to change of these where a check needs a model that has learnt an effect in the data
- `coverage_process`, the process that its intervals assume: a name in `testing.processes`, or a method that draws series from
  it, `coverage_process(random, n_series, n_rows)`, an array of that shape; white noise if it declares none
- `coverage_example`, a dict: what to change of its parameters where the coverage of its intervals is measured on that process
- `coverage_slow`, a bool: whether that takes over two seconds (`case.slow` tells a test runner)
- `device_step(device)`: a forward and a backward step of its network on a device, tensors only pretending (FakeTensorMode)
"""

from deepforecast.testing.assertions import RuleBroken
from deepforecast.testing.check import Check, checks
from deepforecast.testing.report import Case, Report, Row, cases, representative, run
from deepforecast.testing.subject import Subject

__all__ = ["Case", "Check", "Report", "Row", "RuleBroken", "Subject", "cases", "checks", "representative", "run"]
