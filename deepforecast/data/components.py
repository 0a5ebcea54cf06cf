"""Specification of seasons, holidays, events and regressors of additive models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

SEASON, HOLIDAY, EVENT, REGRESSOR = "season", "holiday", "event", "regressor"
AUTO, ALWAYS = "auto", "always"


@dataclass(frozen=True)
class ComponentSpec:
    """A component: `columns` of the design matrix with a common name, prior scale and mode.

    season: Fourier terms of `order` with `period` in days (steps for integer time). `condition` is
    a future covariate that flags where the season applies. `when="auto"` restricts it to series
    that span `min_span` days and have two rows less than `max_gap` days apart (0: no limit).
    holiday: the holidays `names` of the country. event: `days` (since 1970), with a window from
    `lower` to `upper` days around each. regressor: the covariate `name`; if categorical, `names`
    are its categories. `standardize` is "auto" (all but 0-1 indicators), "yes" or "no".
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
    """The columns of each component in the design matrix."""
    slices, start = {}, 0
    for component in components:
        slices[component.name] = slice(start, start + component.columns)
        start += component.columns
    return slices


def to_dicts(components: ComponentSpecs) -> list[dict[str, Any]]:
    """Components as plain values, for model files."""

    def to_dict(component: ComponentSpec) -> dict[str, Any]:
        values = asdict(component)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    return [to_dict(component) for component in components]


def from_dicts(records: Iterable[Mapping[str, Any]]) -> ComponentSpecs:
    """Components from plain values, the inverse of `to_dicts`."""

    def make_component(record: Mapping[str, Any]) -> ComponentSpec:
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
        return ComponentSpec(**values)

    return tuple(make_component(record) for record in records)


def condition_columns(components: Iterable[ComponentSpec]) -> tuple[str, ...]:
    """The covariates that are conditions of seasons."""
    return tuple(dict.fromkeys(component.condition for component in components if component.condition))
