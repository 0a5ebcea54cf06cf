"""Errors for parameters that have no effect in combination with others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deepforecast.core.params import declared_params
from deepforecast.errors import ParameterError, format_value

NO_SEASON = 1
"""A season_length that means no season, which is always allowed."""


def refuse_unused_parameters(model: Any, unused: Iterable[tuple[str, str]]) -> None:
    """Raise if one of these parameters differs from its default; `unused` are pairs of name and reason with the fix."""
    defaults = declared_params(type(model))
    for name, reason in unused:
        value = getattr(model, name)
        if value != defaults[name].default and not (name == "season_length" and value == NO_SEASON):
            raise ParameterError(f"{model.name}: {name}={format_value(value)} has no effect {reason}.")
