"""Design matrix columns of components that depend on time only: seasons, holidays and events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepforecast.data.components import HOLIDAY, REGRESSOR, SEASON, ComponentSpec, ComponentSpecs
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.holiday_days import holiday_dates
from deepforecast.data.timestamps import Timestamps


def time_component_columns(components: ComponentSpecs, timestamps: Timestamps, country: str | None) -> dict[str, Floats]:
    """The columns (timestamps, columns) of each component that depends on time only."""
    time_components = (component for component in components if component.kind != REGRESSOR)
    return {component.name: _component_columns(component, timestamps, country) for component in time_components}


def _component_columns(component: ComponentSpec, timestamps: Timestamps, country: str | None) -> Floats:
    """The columns (timestamps, columns) of a season, of the holidays or of an event."""
    if component.kind == SEASON:
        return np.stack(list(_fourier_terms(timestamps.days, component.period, component.order)), axis=-1)
    if component.kind == HOLIDAY:
        return _holiday_columns(component, timestamps, str(country))
    return np.stack(list(_event_windows(component, timestamps.whole_days)), axis=-1)


def _fourier_terms(days: Floats, period: float, order: int) -> Iterator[Floats]:
    """sin(2 pi k t / period) and cos(2 pi k t / period) for k = 1 .. order."""
    for harmonic in range(1, order + 1):
        angle = 2.0 * np.pi * (harmonic / period) * days
        yield np.sin(angle)
        yield np.cos(angle)


def _event_windows(component: ComponentSpec, days: Ints) -> Iterator[Floats]:
    """An indicator column for each day of the window around an event, from `lower` to `upper`."""
    for offset in range(component.lower, component.upper + 1):
        yield np.isin(days, np.array(component.days, dtype=np.int64) + offset).astype(np.float64)


def _holiday_columns(component: ComponentSpec, timestamps: Timestamps, country: str) -> Floats:
    """An indicator column for each holiday name of the component."""
    days = timestamps.whole_days
    dates_by_name = holiday_dates(country, int(days.min()), int(days.max())) if len(days) else {}
    columns = [np.isin(days, dates_by_name.get(name, [])).astype(np.float64) for name in component.names]
    return np.stack(columns, axis=-1)
