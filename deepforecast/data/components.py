"""Trend, Fourier and event columns of the Prophet family, as functions of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from deepforecast.data.calendar import Calendar, Timestamps, timestamps_at
from deepforecast.data.features import holiday_dates
from deepforecast.data.frames import Floats, Ints

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
    return [asdict(component, dict_factory=with_lists) for component in components]


def from_dicts(records: Iterable[Mapping[str, Any]]) -> ComponentSpecs:
    """Components from plain values, the inverse of `to_dicts`."""
    fields_of_records: Iterable[dict[str, Any]] = (
        {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()} for record in records
    )
    return tuple(ComponentSpec(**fields) for fields in fields_of_records)


def with_lists(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a dataclass with tuples as lists, for `asdict`."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in items}


def condition_columns(components: Iterable[ComponentSpec]) -> tuple[str, ...]:
    """The covariates that are conditions of seasons."""
    return tuple(dict.fromkeys(component.condition for component in components if component.condition))


def time_component_columns(components: ComponentSpecs, timestamps: Timestamps, country: str | None) -> dict[str, Floats]:
    """The columns (timestamps, columns) of each component that depends on time only."""
    time_components = (component for component in components if component.kind != REGRESSOR)
    return {component.name: _component_columns(component, timestamps, country) for component in time_components}


def _component_columns(component: ComponentSpec, timestamps: Timestamps, country: str | None) -> Floats:
    """The columns (timestamps, columns) of a season, of the holidays or of an event."""
    days = timestamps.whole_days
    columns: list[Any] = []
    if component.kind == SEASON:
        time = timestamps.days
        for harmonic in range(1, component.order + 1):  # sin(2 pi k t / period) and cos(2 pi k t / period)
            angle = 2.0 * np.pi * (harmonic / component.period) * time
            columns += [np.sin(angle), np.cos(angle)]
    elif component.kind == HOLIDAY:  # an indicator for each name
        dates_by_name = holiday_dates(str(country), int(days.min()), int(days.max())) if len(days) else {}
        columns = [np.isin(days, dates_by_name.get(name, [])) for name in component.names]
    else:  # an indicator for each day of the window around an event
        event_days = np.array(component.days, dtype=np.int64)
        columns = [np.isin(days, event_days + offset) for offset in range(component.lower, component.upper + 1)]
    return np.stack(columns, axis=-1, dtype=np.float64)


def is_active(component: ComponentSpec, clock: Ints, per_day: int) -> bool:
    """Whether a component is used: always, unless it is an automatic seasonality.

    Then the history must span `min_span` days and have two rows less than `max_gap` days apart.
    `clock`: sorted times of the rows, in units of which a day has `per_day`.
    """
    if component.when != AUTO:
        return True
    is_dense = component.max_gap == 0.0 or np.diff(clock).min() < component.max_gap * per_day
    return bool(is_dense and clock[-1] - clock[0] >= component.min_span * per_day)


def is_flag(values: Floats) -> bool:
    """Whether the values are a 0/1 indicator with both values."""
    return bool(values.min() == 0.0 and values.max() == 1.0 and ((values == 0.0) | (values == 1.0)).all())


@dataclass(frozen=True)
class TimeFeatures:
    """The time features of a fitted model.

    `components` are all components of the model; regressors have no column here. `country` is that
    of the holidays. `start` and `span` are the start and duration of the training data in local
    time; `changepoints` are shares of the duration, in (0, 1). `n_values` is the number of training
    values.
    """

    components: ComponentSpecs
    country: str | None
    start: int
    span: int
    changepoints: tuple[float, ...]
    n_values: int

    @property
    def time_components(self) -> ComponentSpecs:
        """The components that depend on time only."""
        return tuple(component for component in self.components if component.kind != REGRESSOR)

    @property
    def width(self) -> int:
        """Number of columns: scaled time and those of the components."""
        return 1 + sum(component.columns for component in self.time_components)

    def evaluate(self, calendar: Calendar, positions: Ints) -> Any:
        """The features at positions (n,) as float32 (n, width); scaled time is 0 at the start and 1 after `span`."""
        timestamps = timestamps_at(calendar, positions)
        columns = time_component_columns(self.components, timestamps, self.country)
        time = ((timestamps.local_time - self.start) / self.span)[:, None]
        return np.concatenate([time, *columns.values()], axis=1, dtype=np.float32)[timestamps.index]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for model files."""
        return asdict(self, dict_factory=with_lists)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TimeFeatures:
        """Create from plain values, the inverse of `to_dict`."""
        components, changepoints = from_dicts(record["components"]), tuple(record["changepoints"])
        return cls(**{**record, "components": components, "changepoints": changepoints})
