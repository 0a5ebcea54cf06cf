"""What a forecast is the sum of beside the trend, as data: a part is some columns of the design, of one name and one mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

SEASON, HOLIDAY, EVENT, REGRESSOR = "season", "holiday", "event", "regressor"
AUTO, ALWAYS = "auto", "always"


@dataclass(frozen=True)
class ComponentSpec:
    """`columns` of a design that belong together.

    season: `period` in days (steps, where time is counted in integers), `order` sines and cosines; `condition`, a column
    known ahead that says where it holds; `when` "auto": only in series that have `min_span` days, and two rows less than `max_gap`
    days apart (0: any). holiday: a country's, `names` its days. event: `days` (since 1970) of it, `lower` to `upper` days
    around each. regressor: the column of that name; of categories, `names` are these. `standardize`: "auto" but for flags,
    "yes" or "no".
    """

    name: str
    kind: str
    columns: int
    prior_scale: float
    multiplicative: bool
    period: float = 0.0
    order: int = 0
    condition: str = ""
    when: str = ALWAYS
    min_span: float = 0.0
    max_gap: float = 0.0
    names: tuple[str, ...] = ()
    days: tuple[int, ...] = ()
    lower: int = 0
    upper: int = 0
    standardize: str = "no"


ComponentSpecs = tuple[ComponentSpec, ...]


def column_slices(components: Iterable[ComponentSpec]) -> dict[str, slice]:
    """Which columns of the design belong to each part."""
    slices, start = {}, 0
    for component in components:
        slices[component.name] = slice(start, start + component.columns)
        start += component.columns
    return slices


def to_dicts(components: ComponentSpecs) -> list[dict[str, Any]]:
    """Parts as a file holds them."""
    return [{name: list(value) if isinstance(value, tuple) else value for name, value in asdict(component).items()} for component in components]


def from_dicts(records: Iterable[Mapping[str, Any]]) -> ComponentSpecs:
    """And back."""

    def make_component(record: Mapping[str, Any]) -> ComponentSpec:
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
        return ComponentSpec(**values)

    return tuple(make_component(record) for record in records)


def condition_columns(components: Iterable[ComponentSpec]) -> tuple[str, ...]:
    """The columns that say where a season holds."""
    return tuple(dict.fromkeys(component.condition for component in components if component.condition))
