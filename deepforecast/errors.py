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
        return escaped(super().__str__())


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


def missing_extra(what: str, extra: str) -> DependencyError:
    """The error to raise where an optional package of the same name as its extra is not installed.

    >>> print(missing_extra("backend='plotly'", "plotly"))
    backend='plotly' needs the package plotly (extra plotly), which is not installed. Run: pip install plotly
    """
    return DependencyError(
        f"{what} needs the package {extra} (extra {extra}), which is not installed. Run: pip install {extra}"
    )


class DataWarning(UserWarning):
    """Something in the data was handled in a way the user should know of."""


class TrainingWarning(UserWarning):
    """Something happened while fitting that the user should know of."""


def not_fitted(name: str, why: str = "") -> NotFittedError:
    """The error to raise before fit: scikit-learn's too, where that is loaded (or nobody can be catching its class)."""
    kind: type[NotFittedError] = NotFittedError
    sklearn = sys.modules.get("sklearn.exceptions")
    if sklearn is not None:
        plain = {"__module__": __name__, "__reduce__": lambda error: (NotFittedError, error.args)}  # for pickle
        kind = type("NotFittedError", (NotFittedError, sklearn.NotFittedError), plain)
    what = f"{name} has not been fitted" + (f": {why.rstrip('.')}" if why else "")
    return kind(f"{what}. Call fit(frame) first (again after set_params changed what a fit depends on).")


Kept = dict[object, tuple[str, type[UserWarning]]]  # what was said, by where and of what
_kept: ContextVar[Kept | None] = ContextVar("kept", default=None)
_PACKAGE = str(Path(__file__).parent) + os.sep


def say(message: str, category: type[UserWarning] = DataWarning) -> None:
    """Warn, pointing at the caller's own line; inside `quietly()` or `keeping(...)` nothing is said."""
    kept, speaker = _kept.get(), sys._getframe(1)
    if kept is not None:
        kept[speaker.f_code, speaker.f_lineno, message.partition(":")[0]] = (message, category)
        return
    message, level, frame = escaped(message), 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def quietly() -> Iterator[None]:
    """Keep `say` silent, for work that repeats what has been said or will be."""
    with keeping({}):
        yield


@contextmanager
def keeping(kept: Kept) -> Iterator[None]:
    """Keep what `say` is given for later, for work done many times over: of the same thing said again only the last."""
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)


def say_kept(kept: Kept) -> None:
    """Say what was kept; inside of another `keeping(...)` it is kept there, as if it had been said in place."""
    outer = _kept.get()
    if outer is not None:
        outer.update(kept)
        return
    for message, category in kept.values():
        say(message, category)


def shown(value: object, longest: int = 80) -> str:
    """`value` as it may appear in a message: escaped (no control characters reach a terminal) and cut."""
    text = escaped((value if isinstance(value, str) else ascii(value))[: longest + 1])
    return text if len(text) <= longest else text[: longest - 1] + "…"


def escaped(text: str) -> str:
    """`text` with its control characters written out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def some(values: Sequence[object] | Iterable[object], count: int | None = None, most: int = 5) -> str:
    """The first few of `values`, and how many there are in all if not all are shown.

    >>> some(["s1", "s2"])
    's1, s2'
    >>> some([f"s{i}" for i in range(9)])
    's0, s1, s2, s3, s4 … (9 in all)'
    """
    values = list(values)
    count = len(values) if count is None else count
    text = ", ".join(shown(value) for value in values[:most])
    return text if count <= most else f"{text} … ({count} in all)"


def many(count: int, what: str) -> str:
    """So many of something.

    >>> many(1, "task"), many(2000, "row")
    ('1 task', '2,000 rows')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"
