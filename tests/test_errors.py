from __future__ import annotations

import pickle
import warnings

import pytest

from deepforecast import errors
from deepforecast.errors import (
    DataError,
    DataWarning,
    TrainingWarning,
    collect_warnings,
    emit_warnings,
    escape_control_characters,
    format_list,
    format_value,
    suppress_warnings,
    warn,
)

ANSI = "\x1b[2J\x1b]0;owned\x07\r\n\u202e"
BUILTINS = {
    "DataError": ValueError, "ParameterError": ValueError, "ParameterTypeError": TypeError, "CapabilityError": ValueError,
    "CalibrationError": ValueError,
    "NotFittedError": ValueError, "TrainingError": ValueError, "ModelFileError": ValueError, "SaveError": OSError,
    "DependencyError": ImportError,
}  # fmt: skip


@pytest.mark.parametrize("name", BUILTINS)
def test_every_error_derives_from_the_base_error_and_a_builtin(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.DeepForecastError)
    assert issubclass(kind, BUILTINS[name])
    assert str(pickle.loads(pickle.dumps(kind("why")))) == "why"


@pytest.mark.parametrize("name", BUILTINS)
def test_control_characters_in_messages_are_escaped(name: str) -> None:
    error = getattr(errors, name)(f"column {ANSI} of 日本 \xa0")
    assert str(error) == r"column \x1b[2J\x1b]0;owned\x07\r\n\u202e of 日本 \xa0"
    assert str(error).isprintable()


def test_what_is_shown_of_a_value() -> None:
    assert format_value("日本\n\x1b") == r"日本\n\x1b"
    assert format_value(["\x1b", "日"]) == r"['\x1b', '\u65e5']"
    assert format_value("a" * 200) == "a" * 79 + "…"
    assert len(format_value(list(range(10**6)))) == 80
    assert escape_control_characters("a b") == "a b"
    assert format_list(range(7), max_shown=2) == "0, 1 … (7 in all)"


def speak(message: str, subject: str = "") -> None:
    warn(message, subject=subject)


def test_a_warning_points_at_the_line_outside_of_the_package() -> None:
    with pytest.warns(DataWarning) as said:
        speak(f"It was {ANSI}.")
    assert said[0].filename == __file__
    assert str(said[0].message).isprintable()


def test_nothing_is_said_quietly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress_warnings():
            speak("no")
            with suppress_warnings():
                speak("no")
            speak("no")
    with pytest.warns(DataWarning, match="yes"):
        speak("yes")


def test_what_is_kept_is_said_once_of_each_thing_and_the_last_time() -> None:
    kept: errors.CollectedWarnings = {}
    for window in range(3):
        with collect_warnings(kept):
            speak(f"Column a: {window}", "a")
            speak(f"Column b: {window}", "b")
            warn(f"Training: {window}", TrainingWarning)
    with pytest.warns((DataWarning, TrainingWarning)) as said:
        emit_warnings(kept)
    assert [(str(one.message), one.category) for one in said] == [
        ("Column a: 2", DataWarning), ("Column b: 2", DataWarning), ("Training: 2", TrainingWarning),
    ]  # fmt: skip


def test_what_is_kept_and_said_while_another_keeps_is_the_same_thing() -> None:
    kept: errors.CollectedWarnings = {}
    for window in range(4):
        inner: errors.CollectedWarnings = {}
        with collect_warnings(kept):
            with collect_warnings(inner if window % 2 else kept):
                speak(f"Column a: {window}")
            emit_warnings(inner)
    assert [warning.message for warning in kept.values()] == ["Column a: 3"]


def test_keeping_ends_with_its_block_whatever_happens_in_it() -> None:
    def fails() -> None:
        with collect_warnings({}):
            raise DataError("in the middle")

    with pytest.raises(DataError):
        fails()
    with pytest.warns(DataWarning, match="heard"):
        speak("heard")
