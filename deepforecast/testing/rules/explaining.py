"""explain: components add up to the forecast, weights to one."""

from __future__ import annotations

import numpy as np

from deepforecast.errors import CapabilityError
from deepforecast.testing.check import able, rule, unable
from deepforecast.testing.expect import column, expect, expect_close, names_of, refused
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON


@rule(able("explains"))
def explanations_add_up(subject: Subject) -> None:
    """explain gives parts for every series and step: components that add up to the forecast, or weights that add up to 1."""
    model = subject.fitted()
    for steps in (HORIZON, HORIZON + 2):
        found, wanted = model.explain(steps), model.predict(steps)
        names = names_of(found)
        expect({"value", "weight"} & set(names), f"an explanation has a column value or weight; the columns are {names}")
        if "value" in names:
            expect("component" in names, f"values belong to a component; the columns are {names}")
            total = column(found.groupby(["unique_id", "ds"], sort=False)["value"].sum().reset_index(), "value")
            expect(
                found["component"].notna().all() and not found.duplicated(["unique_id", "ds", "component"]).any(),
                "a component is twice",
            )
            expect(len(total) == len(wanted), f"{len(total)} pairs of series and step are explained, {len(wanted)} forecast")
            closeness = 1e-9 * float(np.abs(column(wanted, model.name)).max())
            expect_close(total, column(wanted, model.name), closeness, "the sum of the components")
        else:
            whole = found.groupby([name for name in names if name not in ("lag", "weight")])["weight"].sum().to_numpy()
            expect((column(found, "weight") >= 0).all(), "a weight is negative")
            expect_close(whole, np.ones(len(whole)), 1e-5, "the sum of the weights")


@rule(unable("explains"))
def explain_is_refused(subject: Subject) -> None:
    """A model without anything to show says so."""
    with refused(CapabilityError, subject.fitted().name, when="explain is asked for"):
        subject.fitted().explain()
