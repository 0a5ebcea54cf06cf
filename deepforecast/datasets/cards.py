"""What is known of a dataset before it is loaded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """What a dataset is, where it comes from, and how it is usually forecast.

    `frequency` is a pandas alias, or 1 for integer time. `season_length` and `horizon` are the usual ones; they are
    `None` for a set of several frequencies, whose `groups` name the sets of one frequency each. `horizons` are all that the
    literature uses, where there are several. `borders` are the rows of each series where train, validation and test end
    in the literature. `reference` is what to cite, `source` where the rows come from.
    """

    name: str
    what: str
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
        """The roles of the covariates, as `fit(frame, columns=...)` takes them."""
        return {"future": self.future, "past": self.past, "static": self.static}

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for a report or a file."""
        return asdict(self)

    def __str__(self) -> str:
        roles = [f"{role} {', '.join(names)}" for role, names in self.columns.items() if names]
        facts = {
            "what": self.what,
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
