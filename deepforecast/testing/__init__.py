"""Contract checks that every model must pass, one rule each.

    from deepforecast import testing

    testing.run(MyModel).raise_for_failures()          # a class, or an object with your parameters

With pytest, one test per model and rule:

    @pytest.mark.parametrize("case", testing.cases([MyModel]), ids=str)
    def test_contract(case):
        if case.skip_reason:
            pytest.skip(case.skip_reason)
        case.run()

The `capabilities` of a model determine which rules apply and their tolerances: its features, the values it accepts
(`domain`), the precision under scaling and shifting of the data (`precision`), and its response to new values
(`new_values`). Declarations are checked as well: the forecasts of a model that declares to ignore new values must not
depend on them.

Optional attributes of a model class, read by the checks:

- `examples()`, a class method: a list of parameter dicts for small, fast instances; needed for parameters without default
- `package`: name of an optional package that the model needs; its checks are skipped if that is not installed
- `family`: name shared by models with common code; `representative` cases check shared rules on one of them only
- `learning_example`: dict of parameter changes for checks that need a model that has learned an effect in the data
- `coverage_process`: the process that the intervals assume, a name in `testing.processes` or a method
  `coverage_process(random, n_series, n_rows)` that returns an array of that shape; default: white noise
- `coverage_example`: dict of parameter changes for measuring the coverage of intervals on that process
- `coverage_slow`: whether measuring the coverage takes more than two seconds (see `Case.slow`)
- `device_step(device)`: checks loss, gradient and forecasts of the network on a device that may be simulated
"""

from deepforecast.testing.assertions import RuleBroken
from deepforecast.testing.check import Check, checks
from deepforecast.testing.report import Case, Report, Row, cases, representative, run
from deepforecast.testing.subject import Subject

__all__ = ["Case", "Check", "Report", "Row", "RuleBroken", "Subject", "cases", "checks", "representative", "run"]
