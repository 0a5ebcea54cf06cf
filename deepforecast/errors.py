"""Everything this library raises or warns on purpose.

DeepForecastError
├── DataError            (ValueError)        the frame is not what it has to be
├── ParameterError       (ValueError)        an argument is out of its range
│   └── ParameterTypeError (TypeError)       an argument is of the wrong type
├── CapabilityError      (ValueError)        the model cannot do what was asked
├── NotFittedError       (ValueError, AttributeError)  predict or save came before fit
├── TrainingError        (ValueError)        the optimisation went wrong
├── ModelFileError       (ValueError)        the file is not a whole model of ours
├── SaveError            (OSError)           the model could not be written
└── DependencyError      (ImportError)       an optional package is missing
DataWarning, TrainingWarning (UserWarning)

A message states the rule, then the value found (series, column, time stamp), then the way out.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path


class DeepForecastError(Exception):
    """Root of all errors raised on purpose. Whatever names they carry, no control character of these reaches a terminal."""

    def __str__(self) -> str:
        return escape_control_characters(super().__str__())


class DataError(DeepForecastError, ValueError):
    """The data break a rule of the frame: see `check(frame)` for the whole list."""


class ParameterError(DeepForecastError, ValueError):
    """A parameter is outside its range."""


class ParameterTypeError(ParameterError, TypeError):
    """A parameter is of the wrong type, or its name is not known."""


class CapabilityError(DeepForecastError, ValueError):
    """The model cannot do what was asked of it."""


class CalibrationError(CapabilityError, DataError):
    """There are too few values or windows to calibrate the prediction intervals asked for."""


class NotFittedError(DeepForecastError, ValueError, AttributeError):
    """The model has to be fitted first. Also caught by scikit-learn's class of that name."""


class TrainingError(DeepForecastError, ValueError):
    """The optimisation diverged or met numbers that are not finite."""


class ModelFileError(DeepForecastError, ValueError):
    """The file is not a whole, unaltered model of this library."""


class SaveError(DeepForecastError, OSError):
    """The model could not be written; what stood at the path before is still there."""


class DependencyError(DeepForecastError, ImportError):
    """An optional package is needed for what was asked."""


def missing_extra_error(feature: str, extra: str) -> DependencyError:
    """The error to raise where an optional package of the same name as its extra is not installed.

    >>> print(missing_extra_error("backend='plotly'", "plotly"))
    backend='plotly' needs the package plotly (extra plotly), which is not installed. Run: pip install plotly
    """
    return DependencyError(
        f"{feature} needs the package {extra} (extra {extra}), which is not installed. Run: pip install {extra}"
    )


class DataWarning(UserWarning):
    """Something in the data was handled in a way the user should know of."""


class TrainingWarning(UserWarning):
    """Something happened while fitting that the user should know of."""


def not_fitted_error(name: str, reason: str = "") -> NotFittedError:
    """The error to raise before fit: scikit-learn's too, where that is loaded (or nobody can be catching its class)."""
    error_class: type[NotFittedError] = NotFittedError
    sklearn = sys.modules.get("sklearn.exceptions")
    if sklearn is not None:
        namespace = {"__module__": __name__, "__reduce__": lambda error: (NotFittedError, error.args)}  # for pickle
        error_class = type("NotFittedError", (NotFittedError, sklearn.NotFittedError), namespace)
    message = f"{name} has not been fitted" + (f": {reason.rstrip('.')}" if reason else "")
    return error_class(f"{message}. Call fit(frame) first (again after set_params changed what a fit depends on).")


CollectedWarnings = dict[object, tuple[str, type[UserWarning]]]  # what was said, by where and of what
_collector: ContextVar[CollectedWarnings | None] = ContextVar("kept", default=None)
_PACKAGE = str(Path(__file__).parent) + os.sep


def warn(message: str, category: type[UserWarning] = DataWarning) -> None:
    """Warn, pointing at the caller's own line; inside `suppress_warnings()` or `collect_warnings(...)` nothing is said."""
    collected, caller = _collector.get(), sys._getframe(1)
    if collected is not None:
        collected[caller.f_code, caller.f_lineno, message.partition(":")[0]] = (message, category)
        return
    message, level, frame = escape_control_characters(message), 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Keep `warn` silent, for work that repeats what has been said or will be."""
    with collect_warnings({}):
        yield


@contextmanager
def collect_warnings(collected: CollectedWarnings) -> Iterator[None]:
    """Keep what `warn` is given for later, for work done many times over: of the same thing said again only the last."""
    token = _collector.set(collected)
    try:
        yield
    finally:
        _collector.reset(token)


def emit_warnings(collected: CollectedWarnings) -> None:
    """Say what was kept; inside of another `collect_warnings(...)` it is kept there, as if it had been said in place."""
    outer = _collector.get()
    if outer is not None:
        outer.update(collected)
        return
    for message, category in collected.values():
        warn(message, category)


def format_value(value: object, max_length: int = 80) -> str:
    """`value` as it may appear in a message: escaped (no control characters reach a terminal) and cut."""
    text = escape_control_characters((value if isinstance(value, str) else ascii(value))[: max_length + 1])
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def escape_control_characters(text: str) -> str:
    """`text` with its control characters written out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def format_list(values: Sequence[object] | Iterable[object], count: int | None = None, max_shown: int = 5) -> str:
    """The first few of `values`, and how many there are in all if not all are shown.

    >>> format_list(["s1", "s2"])
    's1, s2'
    >>> format_list([f"s{i}" for i in range(9)])
    's0, s1, s2, s3, s4 … (9 in all)'
    """
    values = list(values)
    count = len(values) if count is None else count
    text = ", ".join(format_value(value) for value in values[:max_shown])
    return text if count <= max_shown else f"{text} … ({count} in all)"


def pluralize(count: int, noun: str) -> str:
    """So many of something.

    >>> pluralize(1, "task"), pluralize(2000, "row")
    ('1 task', '2,000 rows')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"
