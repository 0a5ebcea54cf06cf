"""Saved and loaded elsewhere, a model forecasts the same; a path holds the old model or the new one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.model_file import load
from deepforecast.errors import ModelFileError, SaveError
from deepforecast.testing import elsewhere, worlds
from deepforecast.testing.check import rule
from deepforecast.testing.expect import expect, expect_equal, expect_same, forecasts, refused
from deepforecast.testing.subject import Subject


@rule(elsewhere.importable)
def a_fresh_process_forecasts_the_same(subject: Subject) -> None:
    """Saved here and loaded in a fresh process, the model gives the same forecast to the bit, and is equal."""
    for model in (subject.fitted(), subject.calibrated()):
        level = subject.levels if model.intervals is None else [50, 80]
        with _folder() as folder:
            model.save(folder / "model")
            found = elsewhere.forecast(type(model), folder / "model", level)
        expect(found.repr == repr(model), f"in a fresh process {model!r} is {found.repr}")
        expect(not found.trainers, f"load and predict import {', '.join(found.trainers)}, which only fit may")
        wanted = model.predict(level=level)
        expect(
            found.keys == [str(one) for one in (*wanted["unique_id"], *wanted["ds"])], "ids or times differ in a fresh process"
        )
        for name, values in forecasts(wanted, model.name).items():
            expect_equal(found.columns[name], values, f"{name} in a fresh process")


@rule()
def a_loaded_model_goes_on(subject: Subject) -> None:
    """A model loaded without its data takes updates and new histories as the one that was saved."""
    recent, model = worlds.split(5)[1], subject.fitted_copy(5)
    with _folder() as folder:
        model.save(str(folder / "model"))
        loaded: Forecaster = load(folder / "model")
    expect(loaded == model, f"loaded, {model!r} is {loaded!r}")
    expect_same(
        loaded.predict(frame=worlds.daily()), model.predict(frame=worlds.daily()), "predict(frame=...) of the loaded model"
    )
    expect_same(
        loaded.update(recent).predict(), model.update(recent).predict(), "the forecast of the loaded model after an update"
    )


@rule()
def a_failed_save_leaves_what_was_there(subject: Subject) -> None:
    """save replaces a file whole; where it cannot write it raises SaveError, leaves nothing, and the model works on."""
    model = subject.fitted()
    wanted = model.predict()
    with _folder() as folder:
        path = folder / "model"
        path.write_bytes(b"something older")
        model.save(path)
        expect(
            [one.name for one in folder.iterdir()] == ["model"], f"save leaves {sorted(one.name for one in folder.iterdir())}"
        )
        for wrong in (folder, path / "below"):
            with refused(SaveError, str(wrong)[-20:], when="the path is a folder, or lies under a file"):
                model.save(wrong)
        expect([one.name for one in folder.iterdir()] == ["model"], "a save that failed leaves something")
        expect_same(load(path).predict(), wanted, "the model saved before a save that failed")
    expect_same(model.predict(), wanted, "the forecast after a save that failed")


@rule()
def an_altered_file_is_refused(subject: Subject) -> None:
    """A file with one bit flipped, or cut short, is no model: ModelFileError with the path."""
    with _folder() as folder:
        path = folder / "model"
        subject.fitted().save(path)
        whole = path.read_bytes()
        for place in range(3, len(whole), max(1, len(whole) // 7)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            with refused(ModelFileError, "model", when=f"bit 2 of byte {place} is flipped"):
                load(path)
        path.write_bytes(whole[: len(whole) // 2])
        with refused(ModelFileError, "model", when="the file is cut in half"):
            load(path)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
