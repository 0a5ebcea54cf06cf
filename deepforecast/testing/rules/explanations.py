"""Explanations: components sum to the forecast, weights to 1."""

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
        explanation = model.explain(steps)
        forecast = model.predict(steps)
        names = column_names(explanation)
        expect({"value", "weight"} & set(names), f"`explain` must return a column value or weight, got the columns {names}")
        if "value" in names:
            expect("component" in names, f"`explain` must return a column component next to value, got the columns {names}")
            component_sums = column(explanation.groupby(["unique_id", "ds"], sort=False)["value"].sum().reset_index(), "value")
            n_unnamed = int(explanation["component"].isna().sum())
            n_duplicates = int(explanation.duplicated(["unique_id", "ds", "component"]).sum())
            expect(
                n_unnamed == n_duplicates == 0,
                "each component must have a name and occur once per series and timestamp, got "
                f"{n_unnamed} missing names and {n_duplicates} duplicates",
            )
            expect(
                len(component_sums) == len(forecast),
                f"`explain` must cover the {len(forecast)} pairs of series and timestamp of the forecast, "
                f"got {len(component_sums)}",
            )
            tolerance = 1e-9 * float(np.abs(column(forecast, model.name)).max())
            requirement = f"the components of `_explain` must sum to the forecast at horizon {steps}"
            expect_close(component_sums, column(forecast, model.name), tolerance, requirement)
        else:
            weight_sums = (
                explanation.groupby([name for name in names if name not in ("lag", "variable", "weight")])["weight"].sum().to_numpy()
            )
            weights = column(explanation, "weight")
            invalid_weights = weights[~(weights >= 0)]
            expect(not len(invalid_weights), f"attention weights must not be negative, got {invalid_weights[:3].tolist()}")
            expect_close(weight_sums, np.ones(len(weight_sums)), 1e-5, "the attention weights over all lags must sum to 1")


@rule(requires_no("explains"))
def explain_is_refused(subject: Subject) -> None:
    """`explain` of a model without explanations raises CapabilityError."""
    with expect_error(CapabilityError, subject.fitted().name, when="explain is called"):
        subject.fitted().explain()
