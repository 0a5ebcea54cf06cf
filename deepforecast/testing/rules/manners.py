"""The process is left as it was: chance, threads, folder, environment, filters; nothing printed, nothing written."""

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
from deepforecast.testing import worlds
from deepforecast.testing.check import rule
from deepforecast.testing.expect import expect, expect_same
from deepforecast.testing.subject import Subject
from deepforecast.testing.surroundings import surroundings, unusual


def _no_seed(subject: Subject) -> str | None:
    return None if "seed" in params.declared_params(subject.cls) else "no parameter seed is declared"


@rule()
def the_same_seed_gives_the_same(subject: Subject) -> None:
    """A fresh model on the same data gives the same forecast to the bit, whatever random numbers were drawn in between."""
    random.getrandbits(8)  # the caller's own generators, as other work of the caller's would use them
    np.random.random(3)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.rand(3)
    found = subject.forecast(worlds.daily(), level=subject.levels)
    expect_same(found, subject.fitted().predict(level=subject.levels), "the forecast of a second, fresh model")


@rule(_no_seed)
def another_seed_gives_another(subject: Subject) -> None:
    """Another seed gives another forecast, or another band around it."""
    found, other = (subject.forecast(worlds.one(), model=subject.make(seed=seed), level=subject.levels) for seed in (1, 2))
    expect(not found.equals(other), "seeds 1 and 2 give the same forecast")


@rule()
def the_process_is_left_as_it_was(subject: Subject) -> None:
    """Generators, threads, environment, folder, warning filters, number handling and log handlers are as before."""
    _everything(subject)  # whoever imports a library first gets what that sets: not the model's doing
    with unusual():  # earlier fits may have made the change already
        before = surroundings()
        _everything(subject)
        after = surroundings()
    changed = [name for name in before if before[name] != after[name]]
    expect(not changed, f"fit or predict changes {', '.join(changed)}")


@rule()
def nothing_is_printed_or_written(subject: Subject) -> None:
    """Nothing goes to stdout or stderr, and no file is left in the working or the temporary folder."""
    with tempfile.TemporaryDirectory() as folder, _in_folder(Path(folder)), _caught() as text:
        _everything(subject)
        left = sorted(path.name for path in Path(folder).rglob("*"))
    expect(not text, f"it prints {text[:1]!r}")
    expect(not left, f"it leaves {', '.join(left)}")


def _everything(subject: Subject) -> None:
    model = subject.make().fit(worlds.one())
    model.predict(level=subject.levels)
    model.predict(frame=worlds.one())
    if subject.capabilities.simulates:
        model.simulate(2)
    if subject.capabilities.explains:
        model.explain()
    before, recent = worlds.split(2, worlds.one())
    subject.make().fit(before).update(recent)


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Work in a folder that is that of temporary files too."""
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        with chdir(folder):
            yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _caught() -> Iterator[list[str]]:
    """What is written to stdout and stderr in the block, by compiled code too."""
    text: list[str] = []
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as below, io.StringIO() as above:
        try:
            os.dup2(below.fileno(), 1)
            os.dup2(below.fileno(), 2)
            with redirect_stdout(above), redirect_stderr(above):
                yield text
        finally:
            for place, saved in enumerate(kept, start=1):
                os.dup2(saved, place)
                os.close(saved)
            below.seek(0)
            text += [said for said in (above.getvalue(), below.read().decode("utf-8", "replace")) if said]
