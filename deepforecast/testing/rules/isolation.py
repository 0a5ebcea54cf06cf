"""Isolation: models leave global state (random generators, threads, environment, ...) unchanged and print or write nothing."""

from __future__ import annotations

import io
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from deepforecast.core import params
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import expect, expect_same
from deepforecast.testing.check import rule
from deepforecast.testing.global_state import read_global_state, unusual_global_state
from deepforecast.testing.subject import Subject


def _requires_seed(subject: Subject) -> str | None:
    return None if "seed" in params.declared_params(subject.cls) else "no parameter seed is declared"


@rule()
def the_same_seed_gives_the_same(subject: Subject) -> None:
    """A new model with the same seed and data gives exactly the same forecast."""
    random.getrandbits(8)  # other code of the caller uses the global generators
    np.random.random(3)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.rand(3)
    forecast = subject.forecast(fixtures.daily_panel(), level=subject.levels)
    expect_same(
        forecast,
        subject.fitted().predict(level=subject.levels),
        "a second new model with the same seed must give the same forecast",
    )


@rule(_requires_seed)
def another_seed_gives_another(subject: Subject) -> None:
    """Another seed gives another forecast or other intervals."""
    first, second = (
        subject.forecast(fixtures.one_series(), model=subject.make(seed=seed), level=subject.levels) for seed in (1, 2)
    )
    expect(
        not first.equals(second), "seed=1 and seed=2 must give different forecasts or intervals, got the same. Use `self.seed`"
    )


@rule()
def the_process_is_left_as_it_was(subject: Subject) -> None:
    """Random state, threads, environment, folder, warning filters, error state and log handlers are unchanged."""
    _call_all_methods(subject)  # first imports may change global state, which is not due to the model
    with unusual_global_state():  # an earlier fit may have made the same change
        state_before = read_global_state()
        _call_all_methods(subject)
        state_after = read_global_state()
    changed = [name for name in state_before if state_before[name] != state_after[name]]
    expect(
        not changed,
        "fit, predict and update must restore global state, and generators should be local (np.random.default_rng(seed)); "
        f"changed: {', '.join(changed)}",
    )


@rule()
def nothing_is_printed_or_written(subject: Subject) -> None:
    """Nothing is printed, and no file is left in the working or temporary folder."""
    with tempfile.TemporaryDirectory() as folder, _working_folder(Path(folder)), _captured_output() as text:
        _call_all_methods(subject)
        files = sorted(path.name for path in Path(folder).rglob("*"))
    expect(not text, f"fit, predict and update must not print, got {text[:1]!r}. Use warnings or logging")
    expect(not files, f"fit, predict and update must not leave files, got {', '.join(files)}")


def _call_all_methods(subject: Subject) -> None:
    """Call `fit`, `predict`, `update` and, if supported, `simulate` and `explain`."""
    model = subject.make().fit(fixtures.one_series())
    model.predict(level=subject.levels)
    model.predict(frame=fixtures.one_series())
    if subject.capabilities.simulates:
        model.simulate(2)
    if subject.capabilities.explains:
        model.explain()
    history, recent = fixtures.split(2, fixtures.one_series())
    subject.make().fit(history).update(recent)


@contextmanager
def _working_folder(folder: Path) -> Iterator[None]:
    """Make `folder` the working directory and the folder of temporary files."""
    original = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        with chdir(folder):
            yield
    finally:
        tempfile.tempdir = original


@contextmanager
def _captured_output() -> Iterator[list[str]]:
    """Collect the output to stdout and stderr in the block, including that of compiled code."""
    text: list[str] = []
    duplicates = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as file, io.StringIO() as buffer:
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            with redirect_stdout(buffer), redirect_stderr(buffer):
                yield text
        finally:
            for descriptor, duplicate in enumerate(duplicates, start=1):
                os.dup2(duplicate, descriptor)
                os.close(duplicate)
            file.seek(0)
            text += [written for written in (buffer.getvalue(), file.read().decode("utf-8", "replace")) if written]
