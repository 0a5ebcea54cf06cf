"""Saving and loading: the same forecast in another process, and no partly written or corrupted files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.model_file import load
from deepforecast.errors import CapabilityError, ModelFileError, SaveError, format_list
from deepforecast.testing import fixtures, fresh_interpreter
from deepforecast.testing.assertions import expect, expect_equal, expect_error, expect_same, model_columns
from deepforecast.testing.check import rule
from deepforecast.testing.subject import Subject


@rule(fresh_interpreter.requires_importable_module)
def a_fresh_process_forecasts_the_same(subject: Subject) -> None:
    """A saved model loaded in a new process is equal and gives exactly the same forecast."""
    for model in (subject.fitted(), subject.calibrated()):
        level = subject.levels if model.intervals is None else [50, 80]
        with _folder() as folder:
            model.save(folder / "model")
            loaded = fresh_interpreter.load_and_forecast(type(model), folder / "model", level)
        expect(loaded.repr == repr(model), f"{model!r} must have the same repr when loaded in a new process, got {loaded.repr}")
        expect(
            not loaded.imported_trainers,
            f"load and predict must not import {', '.join(loaded.imported_trainers)}. Import it in `_fit` only",
        )
        expected = model.predict(level=level)
        expect(
            loaded.keys == [str(key) for key in (*expected["unique_id"], *expected["ds"])],
            "the forecast in a new process must have the same ids and timestamps, got "
            f"{format_list(loaded.keys, max_shown=10)}",
        )
        for name, values in model_columns(expected, model.name).items():
            expect_equal(loaded.columns[name], values, f"{name} must be the same in a new process")


@rule()
def a_loaded_model_can_be_updated(subject: Subject) -> None:
    """A loaded model accepts updates and new series like the saved one."""
    recent = fixtures.split(5)[1]
    model = subject.fitted_copy(5)
    with _folder() as folder:
        model.save(str(folder / "model"))
        loaded: Forecaster = load(folder / "model")
    expect(loaded == model, f"load must return a model equal to the saved one, got {loaded!r} for {model!r}")
    expect_same(
        loaded.predict(frame=fixtures.daily_panel()),
        model.predict(frame=fixtures.daily_panel()),
        "predict(frame=...) of the loaded model must equal that of the saved model",
    )
    expect_same(
        loaded.update(recent).predict(),
        model.update(recent).predict(),
        "the forecast of the loaded model after `update` must equal that of the saved model",
    )


@rule()
def a_model_without_histories_forecasts_new_ones(subject: Subject) -> None:
    """A file without histories gives exactly the same forecast of other histories; only global models can have one."""
    model, frame = subject.fitted(5), fixtures.daily_panel()
    with _folder() as folder:
        try:
            model.save(folder / "model", histories=False)
        except CapabilityError:
            return
        loaded: Forecaster = load(folder / "model")
    expect(not model.capabilities.by_series, "a model with parameters per series cannot be saved with histories=False")
    expect_same(
        loaded.predict(frame=frame),
        model.predict(frame=frame),
        "predict(frame=...) of a model saved with histories=False must equal that of the model itself",
    )
    with expect_error(CapabilityError, "frame", when="a model saved with histories=False forecasts without a frame"):
        loaded.predict()


@rule()
def a_failed_save_leaves_what_was_there(subject: Subject) -> None:
    """A failed `save` raises SaveError, leaves existing files unchanged and the model usable."""
    model = subject.fitted()
    expected = model.predict()
    with _folder() as folder:
        path = folder / "model"
        path.write_bytes(b"something older")
        model.save(path)
        _expect_only_model_file(folder, "save")
        for bad_path in (folder, path / "below"):
            with expect_error(SaveError, str(bad_path)[-20:], when="the path of save is a folder or inside a file"):
                model.save(bad_path)
        _expect_only_model_file(folder, "a failed save")
        expect_same(load(path).predict(), expected, "a failed save must not change the model that was saved before")
    expect_same(model.predict(), expected, "a failed save must not change the forecast")


@rule()
def an_altered_file_is_refused(subject: Subject) -> None:
    """A corrupted or truncated file raises ModelFileError with the path."""
    with _folder() as folder:
        path = folder / "model"
        subject.fitted().save(path)
        content = path.read_bytes()
        for offset in range(3, len(content), max(1, len(content) // 7)):
            path.write_bytes(content[:offset] + bytes([content[offset] ^ 4]) + content[offset + 1 :])
            with expect_error(ModelFileError, "model", when=f"a file is loaded in which bit 2 of byte {offset} is flipped"):
                load(path)
        path.write_bytes(content[: len(content) // 2])
        with expect_error(ModelFileError, "model", when="a file is loaded that is truncated to half its size"):
            load(path)


def _expect_only_model_file(folder: Path, action: str) -> None:
    names = sorted(file.name for file in folder.iterdir())
    expect(names == ["model"], f"{action} must leave only the file 'model' in its folder, got {names}")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
