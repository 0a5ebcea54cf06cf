"""The catalogue of datasets: names, cards and loading."""

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
    """Load a dataset as a long frame `unique_id, ds, y` with the covariates of its card.

    Parameters
    ----------
    name : str
        Name of the dataset, see `names`.
    split : str, optional
        "train", "test" (the last steps of each series, as in the literature), or another split of
        the card. By default train and test set together.
    download : bool, default True
        Whether to download a set that is neither bundled nor on this machine. Never done while the
        environment variable DEEPFORECAST_OFFLINE is set.

    Returns
    -------
    pandas.DataFrame
        The rows, sorted by series and time.

    Raises
    ------
    ParameterError
        If there is no such dataset or split.
    DataError
        If the set is not available, the download fails, or its rows do not have the expected hash.

    Notes
    -----
    Sets that are not bundled are searched for in the folder given by the environment variable
    DEEPFORECAST_DATA and in the user's cache. Otherwise they are downloaded once: about 270 MB for
    M4, 50 MB for M5, 40 MB for Rossmann, less than 10 MB for the others.

    Examples
    --------
    >>> load("air_passengers", split="test").shape
    (12, 3)
    """
    entry = _find_entry(name)
    if split is not None and split not in entry.card.splits:
        splits = ", ".join(map(repr, entry.card.splits))
        raise ParameterError(
            f"`split` of dataset {name!r} must be one of {splits}, or None for train and test together, got "
            f"'{format_value(split)}'.",
            parameter="split",
        )
    _download_if_missing(entry, download)
    return entry.read(split)


def card(name: str) -> Card:
    """Return the metadata of a dataset: frequency, season, horizon, covariates, licence, source.

    Parameters
    ----------
    name : str
        Name of the dataset.

    Returns
    -------
    Card
        Print it for an overview; `card(name).columns` are the roles of the covariates for `fit`.

    Examples
    --------
    >>> card("co2").frequency, card("co2").season_length, card("macrodata").past[:2]
    ('W-SAT', 52, ('realcons', 'realinv'))
    """
    return _find_entry(name).card


def names(*, available: bool = False) -> list[str]:
    """Return the sorted names of all datasets.

    Parameters
    ----------
    available : bool, default False
        Whether to return only those that can be loaded without a download.

    Returns
    -------
    list of str
        The names.
    """
    return sorted(name for name, entry in _entries().items() if not available or entry.is_available())


def table(name: str, table_name: str, *, download: bool = True) -> pd.DataFrame:
    """Load an additional table of a dataset, e.g. `table("m4", "info")`.

    Parameters
    ----------
    name : str
        Name of the dataset.
    table_name : str
        Name of the table: that of its file, without the extension.
    download : bool, default True
        Whether to download a set that is not on this machine.

    Returns
    -------
    pandas.DataFrame
        The table.
    """
    entry = _find_entry(name)
    if entry.read_table is None:
        raise ParameterError(f"Dataset {name!r} has no tables other than its frame.", hint=f"Use load({name!r}).")
    _download_if_missing(entry, download)
    return entry.read_table(table_name)


def _download_if_missing(entry: Entry, download: bool) -> None:
    """Download a set that is not available, if `download`; otherwise reading it raises later."""
    if download and entry.download is not None and not entry.is_available():
        entry.download()


@cache
def _entries() -> dict[str, Entry]:
    """All datasets by name. Add further sources here."""
    return {entry.card.name: entry for entry in (*bundled.entries(), *synthetic.entries(), *local_files.entries())}


def _find_entry(name: str) -> Entry:
    """The entry of a dataset; an unknown name raises `ParameterError` with similar names."""
    if not isinstance(name, str):
        raise ParameterTypeError(
            f"`name` must be a string, got {format_value(name)} ({type(name).__name__}).",
            parameter="name",
            value=name,
        )
    entries = _entries()
    if name not in entries:
        similar = difflib.get_close_matches(name.lower(), entries, n=3)
        hint = f"Did you mean {' or '.join(map(repr, similar))}? " if similar else ""
        raise ParameterError(
            f"Unknown dataset '{format_value(name)}'.",
            hint=f"{hint}Available: {format_list(sorted(entries), max_shown=len(entries))}.",
            parameter="name",
        )
    return entries[name]
