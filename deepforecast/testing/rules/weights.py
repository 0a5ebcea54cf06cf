"""Observation weights: they count in training as declared, and are refused by models that cannot use them."""

from __future__ import annotations

import numpy as np

from deepforecast.errors import CapabilityError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, expect, expect_close, expect_error
from deepforecast.testing.check import requires, rule
from deepforecast.testing.subject import Subject

COLUMNS = {"weight": "importance"}


def _requires_no_weights(subject: Subject) -> str | None:
    return "capabilities.weights is True" if subject.capabilities.weights else None


@rule(_requires_no_weights)
def unusable_weights_are_refused(subject: Subject) -> None:
    """Declared weights that the model cannot use raise an error with the column and the missing capability."""
    with expect_error(CapabilityError, "importance", "weights", when="fit is called with observation weights"):
        subject.make().fit(fixtures.daily_panel().assign(importance=1.0), columns=COLUMNS)


@rule(requires("weights"))
def weights_count_in_training(subject: Subject) -> None:
    """Unequal weights change the forecast, and only their ratios count."""
    frame = fixtures.daily_panel()
    weights = 1.0 + np.arange(len(frame)) % 4
    weighted, doubled = (
        column(model.fit(frame.assign(importance=values), columns=COLUMNS).predict(), model.name)
        for model, values in ((subject.make(), weights), (subject.make(), 2 * weights))
    )
    tolerance = subject.precision * float(np.abs(weighted).max())
    expect_close(doubled, weighted, tolerance, "twice the weights must give the same forecast")
    unweighted = column(subject.fitted().predict(), subject.fitted().name)
    expect(
        np.abs(weighted - unweighted).max() > 0,
        "unequal weights must change the forecast, but it is that without weights. Use `panel.weight` in `_fit`, or set "
        "capabilities.weights to False",
    )
