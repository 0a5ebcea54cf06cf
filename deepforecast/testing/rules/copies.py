"""A copy of a fitted model forecasts the same: made by `copy`, or sent to another process."""

from __future__ import annotations

import copy
from multiprocessing.reduction import ForkingPickler

from deepforecast.testing.assertions import expect, expect_same
from deepforecast.testing.check import rule
from deepforecast.testing.subject import Subject


@rule()
def deep_copies_forecast_the_same(subject: Subject) -> None:
    """A deep copy of a fitted model gives the same forecast and shares no mutable state."""
    model = subject.fitted()
    twin = copy.deepcopy(model)
    expect(twin == model, "the deep copy is not equal")
    expect_same(twin.predict(level=subject.levels), model.predict(level=subject.levels), "the forecast of a deep copy")


@rule()
def workers_forecast_the_same(subject: Subject) -> None:
    """A fitted model sent to a worker process gives the same forecast there."""
    model = subject.fitted()
    twin = ForkingPickler.loads(ForkingPickler.dumps(model))  # what a pipe to a worker does; nothing is read from a file
    expect(twin == model, "the model that came through a pipe is not equal")
    expect_same(
        twin.predict(level=subject.levels), model.predict(level=subject.levels), "the forecast of a model sent to a worker"
    )
