"""Fitted values: the forecast of each row of a history from the rows before it.

A change of one value tells the two apart: with the parameters of the fit, the fitted values up to its row stay, those after it
move. A fit of the changed values would not do: its parameters move, and all fitted values with them.
"""

from __future__ import annotations

import numpy as np

from deepforecast.errors import CapabilityError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, expect, expect_equal, expect_same
from deepforecast.testing.check import requires_method, rule
from deepforecast.testing.subject import Subject

ROW = 30
CHANGE = 50.0


@rule(requires_method("fitted_values"))
def fitted_values_use_earlier_rows_alone(subject: Subject) -> None:
    """A fitted value depends only on earlier rows: a changed value affects later fitted values only."""
    model, history = subject.fitted(), fixtures.daily_panel()
    try:
        fitted_frame = model.fitted_values(history)  # type: ignore[attr-defined]
    except CapabilityError:
        return  # of these parameters it has none
    expect_same(model.fitted_values(), fitted_frame, "fitted_values of the rows of the fit")  # type: ignore[attr-defined]
    row = history.groupby("unique_id").cumcount().to_numpy()
    changed = fixtures.replace_target(history, history["y"] + CHANGE * (row == ROW))
    changed_fitted = column(model.fitted_values(changed), model.name)  # type: ignore[attr-defined]
    fitted, is_unaffected = column(fitted_frame, model.name), row <= ROW
    expect(np.isfinite(fitted[row >= ROW]).all(), f"fitted values from row {ROW} are not finite")
    expect_equal(
        changed_fitted[is_unaffected],
        fitted[is_unaffected],
        f"with another value in row {ROW}, the fitted values up to that row",
    )
    if subject.capabilities.new_values != "ignored":
        is_affected = [
            (changed_fitted[series_mask] != fitted[series_mask]).any()
            for series_mask in (history["unique_id"] == name for name in fixtures.series_ids())
        ]
        expect(all(is_affected), f"another value in row {ROW} moves no fitted value after it")
