"""Metadata of datasets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """Metadata of a dataset: contents, origin, and how it is usually forecast.

    Attributes
    ----------
    name : str
        Name of the dataset, as passed to `load`.
    description : str
        Description in one line.
    frequency : str or int
        pandas alias, or 1 for integer time.
    season_length, horizon : int or None
        The usual values. None for a set of several frequencies (see `groups`).
    series, rows : int
        Number of series and rows.
    licence : str
        Licence of the data.
    reference : str
        Publication to cite.
    source : str
        Where the rows come from.
    future, past, static : tuple of str
        Covariates by role.
    note : str
        Peculiarities of the set.
    splits : tuple of str
        Allowed values of `split` in `load`.
    groups : tuple of str
        Names of the subsets with one frequency each.
    horizons : tuple of int
        Horizons used in the literature, if there are several.
    borders : tuple of int
        Row of each series at which train, validation and test set end in the literature.
    """

    name: str
    description: str
    frequency: str | int
    season_length: int | None
    horizon: int | None
    series: int
    rows: int
    licence: str
    reference: str
    source: str
    future: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    note: str = ""
    splits: tuple[str, ...] = ("train", "test")
    groups: tuple[str, ...] = ()
    horizons: tuple[int, ...] = ()
    borders: tuple[int, ...] = ()

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The roles of the covariates, to be passed as `fit(frame, columns=...)`."""
        return {"future": self.future, "past": self.past, "static": self.static}

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        """The name, then one line per field that is not empty."""
        roles = [f"{role} {', '.join(names)}" for role, names in self.columns.items() if names]
        facts = {
            "description": self.description,
            "size": f"{self.series:,} series, {self.rows:,} rows",
            "frequency": f"{self.frequency}, season {self.season_length or 'by group'}, horizon {self.horizon or 'by group'}",
            "covariates": "; ".join(roles),
            "horizons": ", ".join(map(str, self.horizons)),
            "borders": ", ".join(map(str, self.borders)),
            "groups": ", ".join(self.groups),
            "splits": ", ".join(self.splits),
            "note": self.note,
            "reference": self.reference,
            "source": self.source,
            "licence": self.licence,
        }
        return "\n".join([self.name, *(f"  {key}: {value}" for key, value in facts.items() if value)])
