"""Copies of a fitted model, made by `copy.deepcopy` or by pickling to a worker process, give the same forecast."""

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
    copied = copy.deepcopy(model)
    expect(copied == model, f"copy.deepcopy must return an equal model, got {copied!r} for {model!r}")
    expect_same(
        copied.predict(level=subject.levels),
        model.predict(level=subject.levels),
        "the forecast of a deep copy must equal that of the model",
    )


@rule()
def workers_forecast_the_same(subject: Subject) -> None:
    """A fitted model sent to a worker process gives the same forecast there."""
    model = subject.fitted()
    received = ForkingPickler.loads(ForkingPickler.dumps(model))  # as multiprocessing does; nothing is read from a file
    expect(received == model, f"a pickled and unpickled model must be equal, got {received!r} for {model!r}")
    expect_same(
        received.predict(level=subject.levels),
        model.predict(level=subject.levels),
        "the forecast of a model sent to a worker process must equal that of the model",
    )
