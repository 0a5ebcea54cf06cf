"""explain: components add up to the forecast, weights to one."""

from __future__ import annotations

import numpy as np

from deepforecast.errors import CapabilityError
from deepforecast.testing.assertions import column, column_names, expect, expect_close, expect_error
from deepforecast.testing.check import requires, requires_no, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject


@rule(requires("explains"))
def explanations_add_up(subject: Subject) -> None:
    """`explain` returns components that sum to the forecast or weights that sum to 1, for each series and step."""
    model = subject.fitted()
    for steps in (HORIZON, HORIZON + 2):
        explanation, forecast = model.explain(steps), model.predict(steps)
        names = column_names(explanation)
        expect({"value", "weight"} & set(names), f"an explanation has a column value or weight; the columns are {names}")
        if "value" in names:
            expect("component" in names, f"values belong to a component; the columns are {names}")
            component_sums = column(explanation.groupby(["unique_id", "ds"], sort=False)["value"].sum().reset_index(), "value")
            expect(
                explanation["component"].notna().all() and not explanation.duplicated(["unique_id", "ds", "component"]).any(),
                "a component is twice",
            )
            expect(
                len(component_sums) == len(forecast),
                f"{len(component_sums)} pairs of series and step are explained, {len(forecast)} forecast",
            )
            tolerance = 1e-9 * float(np.abs(column(forecast, model.name)).max())
            expect_close(component_sums, column(forecast, model.name), tolerance, "the sum of the components")
        else:
            weight_sums = (
                explanation.groupby([name for name in names if name not in ("lag", "weight")])["weight"].sum().to_numpy()
            )
            expect((column(explanation, "weight") >= 0).all(), "a weight is negative")
            expect_close(weight_sums, np.ones(len(weight_sums)), 1e-5, "the sum of the weights")


@rule(requires_no("explains"))
def explain_is_refused(subject: Subject) -> None:
    """`explain` of a model without explanations raises CapabilityError."""
    with expect_error(CapabilityError, subject.fitted().name, when="explain is asked for"):
        subject.fitted().explain()
