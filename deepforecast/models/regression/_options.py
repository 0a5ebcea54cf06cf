"""Options that are handed on to a library, and what it says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deepforecast.errors import DeepForecastError, ParameterError, format_value


@contextmanager
def attribute_to_options(options: Mapping[str, Any] | None, name: str) -> Iterator[None]:
    """An error of whatever class inside of this block is said to be one of the `options` of the model `name`, if it has any."""
    try:
        yield
    except DeepForecastError:
        raise
    except Exception as error:
        if not options:
            raise
        text = f"{type(error).__name__}: {format_value(str(error), 300)}"
        raise ParameterError(f"{name} could not be fitted with options={format_value(options)}: {text}") from error
