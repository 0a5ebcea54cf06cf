"""Exceptions and warnings of the library, helpers for their messages, and the check of integer arguments.

DeepForecastError
├── DataError              (ValueError)                  invalid data
├── ParameterError         (ValueError)                  invalid value of an argument
│   └── ParameterTypeError (TypeError)                   invalid type or name of an argument
├── CapabilityError        (ValueError)                  the model cannot do this
│   └── CalibrationError   (also a DataError)            too few errors to calibrate intervals
├── NotFittedError         (ValueError, AttributeError)  `fit` was not called
├── TrainingError          (ValueError)                  the optimization failed
├── ModelFileError         (ValueError)                  the file is damaged or not a model
├── SaveError              (OSError)                     the model or a file cannot be written
└── DependencyError        (ImportError)                 an optional package is missing
DataWarning, TrainingWarning (UserWarning)

A message states the rule, the value found (with series, column and timestamp) and the fix.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple


class DeepForecastError(Exception):
    """Base class of all errors of the library; control characters in messages are escaped.

    Parameters
    ----------
    message : str
        The rule that was broken, and what was found.
    hint : str, default ""
        How to fix it; `str(error)` is the message followed by the hint.
    parameter : str, optional
        The name of the parameter or argument whose value was refused.
    value : object, optional
        That value.
    series : sequence of str, default ()
        The ids of the affected series, as text.
    """

    def __init__(
        self, message: str = "", *, hint: str = "", parameter: str | None = None, value: Any = None, series: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message, self.hint, self.parameter, self.value, self.series = message, hint, parameter, value, tuple(series)

    def __str__(self) -> str:
        return escape_control_characters(f"{self.message} {self.hint}" if self.hint else self.message)


class DataError(DeepForecastError, ValueError):
    """Invalid data; `check(frame)` lists all problems of a frame.

    Parameters
    ----------
    message, **attributes
        As for `DeepForecastError`.
    problem : str, default "frame"
        The problem in a few words, as in the findings of `check`.
    count : int, default 1
        Number of affected rows or series.
    where : str, default ""
        The affected series and the first timestamp; "": the message.
    reason : str, default ""
        Why each of `series` is refused, in a sentence; "": the message.
    """

    def __init__(
        self,
        message: str = "",
        *,
        problem: str = "frame",
        count: int = 1,
        where: str = "",
        reason: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__(message, **attributes)
        self.problem, self.count, self.where = problem, count, where or message.rstrip(".")
        self.reason = reason or message


def raise_error(error: DeepForecastError) -> None:
    """Raise an error; the default of functions that report problems, which `check` collects instead."""
    raise error


class ParameterError(DeepForecastError, ValueError):
    """Invalid value of a parameter or argument."""


class ParameterTypeError(ParameterError, TypeError):
    """Invalid type of a parameter or argument, or an unknown name."""


class CapabilityError(DeepForecastError, ValueError):
    """The model does not support the requested operation."""


class CalibrationError(CapabilityError, DataError):
    """Too few observations or windows to calibrate the requested prediction intervals."""


class NotFittedError(DeepForecastError, ValueError, AttributeError):
    """The model has not been fitted. `except sklearn.exceptions.NotFittedError` catches it, too."""


class TrainingError(DeepForecastError, ValueError):
    """The optimization diverged or produced values that are not finite."""


class ModelFileError(DeepForecastError, ValueError):
    """The file is damaged, was altered, or is not a model of this library."""


class SaveError(DeepForecastError, OSError):
    """The model cannot be saved; an existing file at the path is unchanged."""


class DependencyError(DeepForecastError, ImportError):
    """A required optional package is not installed or cannot be imported."""


def missing_extra_error(feature: str, extra: str) -> DependencyError:
    """The error for a missing optional package whose extra has the same name.

    >>> print(missing_extra_error("backend='plotly'", "plotly"))
    backend='plotly' requires the package plotly (extra plotly), which is not installed. Run: pip install plotly
    """
    return DependencyError(
        f"{feature} requires the package {extra} (extra {extra}), which is not installed. Run: pip install {extra}"
    )


class DataWarning(UserWarning):
    """Data were handled in a way that may affect the forecasts, e.g. missing values or dropped columns."""


class TrainingWarning(UserWarning):
    """Something in a fit may affect the forecasts, e.g. an optimizer that did not converge."""


def not_fitted_error(name: str, reason: str = "") -> NotFittedError:
    """The error to raise before `fit`; also an instance of scikit-learn's `NotFittedError`, if scikit-learn is loaded."""
    error_class: type[NotFittedError] = NotFittedError
    sklearn = sys.modules.get("sklearn.exceptions")
    if sklearn is not None:
        namespace = {"__module__": __name__, "__reduce__": lambda error: (NotFittedError, error.args)}  # for pickle
        error_class = type("NotFittedError", (NotFittedError, sklearn.NotFittedError), namespace)
    message = f"{name} has not been fitted" + (f": {reason.rstrip('.')}" if reason else "")
    return error_class(f"{message}. Call fit(frame) first; set_params discards the previous fit.")


class CollectedWarning(NamedTuple):
    """A warning that was not issued yet; `subject` is the name its message begins with, if any."""

    message: str
    category: type[UserWarning]
    subject: str


CollectedWarnings = dict[object, CollectedWarning]  # by code location and subject
_collector: ContextVar[CollectedWarnings | None] = ContextVar("collected_warnings", default=None)
_PACKAGE = str(Path(__file__).parent) + os.sep


def warn(message: str, category: type[UserWarning] = DataWarning, *, subject: str = "") -> None:
    """Issue a warning that points to the user's code, or collect it inside `collect_warnings` or `suppress_warnings`.

    `subject` names what the message is about if it begins with that name, usually a model. A collected warning replaces
    an earlier one of the same code location and subject.
    """
    collected = _collector.get()
    caller = sys._getframe(1)
    if collected is not None:
        collected[caller.f_code, caller.f_lineno, subject] = CollectedWarning(message, category, subject)
        return
    message = escape_control_characters(message)
    stack_level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        stack_level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=stack_level)


def suppress_warnings() -> AbstractContextManager[None]:
    """Discard all warnings of the block, for repeated work whose warnings are issued elsewhere."""
    return collect_warnings({})


@contextmanager
def collect_warnings(collected: CollectedWarnings) -> Iterator[None]:
    """Collect warnings in a dict instead of issuing them; of repeated ones only the last is kept."""
    token = _collector.set(collected)
    try:
        yield
    finally:
        _collector.reset(token)


def emit_warnings(collected: CollectedWarnings) -> None:
    """Issue the collected warnings, or pass them on to an enclosing `collect_warnings`."""
    outer = _collector.get()
    if outer is not None:
        outer.update(collected)
        return
    for message, category, subject in collected.values():
        warn(message, category, subject=subject)


def format_value(value: object, max_length: int = 80) -> str:
    """Text of a value for a message, without quotes around strings: control characters escaped, and truncated."""
    text = escape_control_characters((value if isinstance(value, str) else ascii(value))[: max_length + 1])
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def escape_control_characters(text: str) -> str:
    """`text` with control characters escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def format_list(values: Iterable[object], n_total: int | None = None, max_shown: int = 5) -> str:
    """The first few of `values`, and their number if not all are shown.

    `n_total` is that number if `values` are only the first few; None: the number of `values`.

    >>> format_list(["s1", "s2"])
    's1, s2'
    >>> format_list([f"s{i}" for i in range(9)])
    's0, s1, s2, s3, s4 … (9 in all)'
    """
    values = list(values)
    n_total = len(values) if n_total is None else n_total
    text = ", ".join(format_value(value) for value in values[:max_shown])
    return text if n_total <= max_shown else f"{text} … ({n_total} in all)"


def join_alternatives(words: Sequence[str]) -> str:
    """The words separated by commas, the last one by "or".

    >>> join_alternatives(["'auto'", "an integer", "None"])
    "'auto', an integer or None"
    """
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def pluralize(n_items: int, noun: str) -> str:
    """A number with its noun in the singular or plural.

    >>> pluralize(1, "task"), pluralize(2000, "row")
    ('1 task', '2,000 rows')
    """
    return f"{n_items:,} {noun}{'s' * (n_items != 1)}"


def validate_integer(value: Any, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int if it is an integer from `minimum` to `maximum`; raise otherwise, also for bools and floats.

    Examples
    --------
    >>> validate_integer(3, "gap", minimum=0)
    3
    """
    bounds = f"at least {minimum}" if maximum is None else f"at least {minimum} and at most {maximum:,}"
    subject = f"`{name}`" if name.isidentifier() else name
    if type(value).__name__ in ("bool", "bool_") or not hasattr(value, "__index__"):
        raise ParameterTypeError(
            f"{subject} must be an integer of {bounds}, got {format_value(value)} ({type(value).__name__}).",
            parameter=name,
            value=value,
        )
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise ParameterError(f"{subject} must be {bounds}, got {format_value(f'{number:,}')}.", parameter=name, value=number)
    return number
