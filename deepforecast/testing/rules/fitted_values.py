"""Fitted values: the forecast of each row from rows before it, one or (networks) up to `horizon` steps ahead.

The check changes one value of each series, at a different step of the horizon in each, and keeps the fitted parameters:
fitted values up to its row must not change, later ones must. A new fit to the changed values would not show this, as its
parameters, and with them all fitted values, would change.
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
    model = subject.fitted()
    history = fixtures.daily_panel()
    try:
        fitted_frame = model.fitted_values(history)  # type: ignore[attr-defined]
    except CapabilityError:
        return  # no fitted values with these parameters
    expect_same(
        model.fitted_values(),  # type: ignore[attr-defined]
        fitted_frame,
        "fitted_values() must equal fitted_values(frame) with the training frame",
    )
    row = history.groupby("unique_id").cumcount().to_numpy()
    series_ids = fixtures.series_ids()
    changed_row = ROW + history["unique_id"].map(series_ids.index).to_numpy()
    changed = fixtures.replace_target(history, history["y"] + CHANGE * (row == changed_row))
    changed_fitted = column(model.fitted_values(changed), model.name)  # type: ignore[attr-defined]
    fitted = column(fitted_frame, model.name)
    is_unaffected = row <= changed_row
    n_invalid = int((~np.isfinite(fitted[row >= ROW])).sum())
    expect(
        n_invalid == 0, f"fitted values from row {ROW} of each series must be finite, got {n_invalid} NaN or infinite values"
    )
    expect_equal(
        changed_fitted[is_unaffected],
        fitted[is_unaffected],
        f"changing y in a row from {ROW} on must not change the fitted values up to that row",
    )
    if subject.capabilities.new_values != "ignored":
        is_affected = [
            (changed_fitted[series_mask] != fitted[series_mask]).any()
            for series_mask in (history["unique_id"] == name for name in series_ids)
        ]
        unaffected_ids = [name for name, changes in zip(series_ids, is_affected, strict=True) if not changes]
        expect(
            not unaffected_ids,
            f"changing y in a row from {ROW} on must change later fitted values, but changed none of {', '.join(unaffected_ids)}",
        )
