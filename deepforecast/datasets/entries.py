"""Entries of the catalogue: a card and functions to read the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepforecast.datasets.cards import Card

if TYPE_CHECKING:
    import pandas as pd


def _always_available() -> bool:
    return True


@dataclass(frozen=True)
class Entry:
    """A dataset: `read(split)` returns its frame, `read_table(name)` a further table.

    `is_available()` returns whether it can be read without a download, `download()` fetches it.
    """

    card: Card
    read: Callable[[str | None], pd.DataFrame]
    is_available: Callable[[], bool] = _always_available
    read_table: Callable[[str], pd.DataFrame] | None = None
    download: Callable[[], None] | None = None


def entry_from_frame(card: Card, make: Callable[[], pd.DataFrame]) -> Entry:
    """Create an entry from a function that returns all rows.

    The last `horizon` steps of each series are the test set.
    """

    def read(split: str | None) -> pd.DataFrame:
        frame = make()
        if split is None:
            return frame
        n_rows_after = frame.groupby("unique_id", sort=False, observed=True).cumcount(ascending=False)
        is_test = n_rows_after < (card.horizon or 1)
        return frame[is_test if split == "test" else ~is_test].reset_index(drop=True)

    return Entry(card, read)
