"""Errors that list the available choices."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from deepforecast.errors import ParameterError, format_list, format_value


def unknown_choice(description: str, value: object, choices: Sequence[object]) -> ParameterError:
    """The error for a `value` that is not among `choices`: names the closest ones, then lists all.

    >>> print(unknown_choice("backend", "plotty", ["matplotlib", "plotly"]))
    Unknown backend 'plotty'. Did you mean 'plotly'? Available: matplotlib, plotly.
    """
    names = [str(choice) for choice in choices]
    close = get_close_matches(str(value), names[:10_000], n=3)
    quoted = " or ".join(f"'{format_value(name)}'" for name in close)
    hint = f" Did you mean {quoted}?" if close else ""
    return ParameterError(
        f"Unknown {description} {format_value(repr(value))}.{hint} Available: {format_list(names, max_shown=10) or 'none'}."
    )
