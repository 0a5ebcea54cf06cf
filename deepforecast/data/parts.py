"""What a forecast is the sum of beside the trend, as data: a part is some columns of the design, of one name and one mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

SEASON, HOLIDAY, EVENT, REGRESSOR = "season", "holiday", "event", "regressor"
AUTO, ALWAYS = "auto", "always"


@dataclass(frozen=True)
class Part:
    """`columns` of a design that belong together.

    season: `period` in days (steps, where time is counted in integers), `order` sines and cosines; `condition`, a column
    known ahead that says where it holds; `when` "auto": only in series that have `span` days, and two rows less than `apart`
    days apart (0: any). holiday: a country's, `names` its days. event: `days` (since 1970) of it, `lower` to `upper` days
    around each. regressor: the column of that name; of categories, `names` are these. `standardize`: "auto" but for flags,
    "yes" or "no".
    """

    name: str
    kind: str
    columns: int
    prior_scale: float
    multiplies: bool
    period: float = 0.0
    order: int = 0
    condition: str = ""
    when: str = ALWAYS
    span: float = 0.0
    apart: float = 0.0
    names: tuple[str, ...] = ()
    days: tuple[int, ...] = ()
    lower: int = 0
    upper: int = 0
    standardize: str = "no"


Parts = tuple[Part, ...]


def places(parts: Iterable[Part]) -> dict[str, slice]:
    """Which columns of the design belong to each part."""
    found, begin = {}, 0
    for one in parts:
        found[one.name] = slice(begin, begin + one.columns)
        begin += one.columns
    return found


def written(parts: Parts) -> list[dict[str, Any]]:
    """Parts as a file holds them."""
    return [{name: list(value) if isinstance(value, tuple) else value for name, value in asdict(one).items()} for one in parts]


def read(said: Iterable[Mapping[str, Any]]) -> Parts:
    """And back."""

    def one(held: Mapping[str, Any]) -> Part:
        found: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in held.items()}
        return Part(**found)

    return tuple(one(held) for held in said)


def conditions(parts: Iterable[Part]) -> tuple[str, ...]:
    """The columns that say where a season holds."""
    return tuple(dict.fromkeys(one.condition for one in parts if one.condition))
