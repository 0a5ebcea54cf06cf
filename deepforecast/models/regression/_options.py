"""Errors caused by `options`, which are passed on to the underlying library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deepforecast.errors import DeepForecastError, ParameterError, format_value


@contextmanager
def attribute_to_options(options: Mapping[str, Any] | None, name: str) -> Iterator[None]:
    """Convert errors of the library in this block to a `ParameterError` about `options`, if there are any.

    `name` is that of the model in the message. Errors of deepforecast are raised unchanged.
    """
    try:
        yield
    except DeepForecastError:
        raise
    except Exception as error:
        if not options:
            raise
        text = f"{type(error).__name__}: {format_value(str(error), 300)}"
        raise ParameterError(
            f"{name} could not be fitted with options={format_value(options)}: {text}.",
            hint="Correct or remove the invalid options.",
            parameter="options",
        ) from error
