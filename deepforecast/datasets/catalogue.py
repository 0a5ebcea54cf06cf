"""Every dataset by its name: what can be loaded, its card, its frame."""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING

from deepforecast.datasets import bundled, local_files, synthetic
from deepforecast.datasets.cards import Card
from deepforecast.datasets.entries import Entry
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value

if TYPE_CHECKING:
    import pandas as pd


def load(name: str, *, split: str | None = None, download: bool = True) -> pd.DataFrame:
    """The dataset `name` as a long frame `unique_id, ds, y` with the covariates of its card.

    `split` is `"train"`, `"test"` (the last steps of each series, as its literature has it) or `None` for both together.

    A set that does not ship is looked for in the folder that DEEPFORECAST_DATA names and in the user's cache, and else
    downloaded from its public home, once: about 270 MB for M4, 50 for M5 and 40 for Rossmann, below 10 for the others. Its
    rows are compared with a pinned hash. With `download=False`, or while DEEPFORECAST_OFFLINE is set, nothing is downloaded.

    >>> load("air_passengers", split="test").shape
    (12, 3)
    """
    entry = _find_entry(name)
    if split is not None and split not in entry.card.splits:
        splits = ", ".join(map(repr, entry.card.splits))
        raise ParameterError(
            f"split of {name!r} must be one of {splits}, or None for train and test together; got {format_value(split)!r}."
        )
    _download_if_missing(entry, download)
    return entry.read(split)


def card(name: str) -> Card:
    """What is known of the dataset `name`: frequency, season, horizon, roles of its columns, licence, source.

    >>> card("co2").frequency, card("co2").season_length, card("macrodata").past[:2]
    ('W-SAT', 52, ('realcons', 'realinv'))
    """
    return _find_entry(name).card


def names(*, available: bool = False) -> list[str]:
    """The names that `load` knows, sorted; with `available` only those that can be loaded here and now."""
    return sorted(name for name, entry in _entries().items() if not available or entry.is_available())


def table(name: str, table_name: str, *, download: bool = True) -> pd.DataFrame:
    """Another file of a set of the data folder: `table("m4", "info")`, `table("m4_hourly", "official_forecasts")`."""
    entry = _find_entry(name)
    if entry.read_table is None:
        raise ParameterError(f"{name!r} is a single frame and cannot have other tables. Use load({name!r}).")
    _download_if_missing(entry, download)
    return entry.read_table(table_name)


def _download_if_missing(entry: Entry, download: bool) -> None:
    """Download a set that is not there, where that is allowed; reading it says what is missing otherwise."""
    if download and entry.download is not None and not entry.is_available():
        entry.download()


@cache
def _entries() -> dict[str, Entry]:
    """The registry. Another source of datasets is one more list of entries here."""
    return {entry.card.name: entry for entry in (*bundled.entries(), *synthetic.entries(), *local_files.entries())}


def _find_entry(name: str) -> Entry:
    if not isinstance(name, str):
        raise ParameterTypeError(f"name must be a string; got {format_value(name)} ({type(name).__name__}).")
    entries = _entries()
    if name not in entries:
        near = difflib.get_close_matches(name.lower(), entries, n=3)
        hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise ParameterError(
            f"name must be the name of a dataset; got {format_value(name)!r}. {hint}"
            f"Available: {format_list(sorted(entries), max_shown=len(entries))}."
        )
    return entries[name]
