"""Parameters that are given and can have no effect beside the others: refused, as whoever gives one expects something of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deepforecast.core.params import declared_params
from deepforecast.errors import ParameterError, format_value

NO_SEASON = 1
"""As season_length it says that there is none, and so is never idle."""


def refuse_unused_parameters(model: Any, unused: Iterable[tuple[str, str]]) -> None:
    """`unused`: names, and why they are, with the way out; a parameter that has its default is not given."""
    defaults = declared_params(type(model))
    for name, reason in unused:
        value = getattr(model, name)
        if value != defaults[name].default and not (name == "season_length" and value == NO_SEASON):
            raise ParameterError(f"{model.name}: {name}={format_value(value)} has no effect {reason}.")
