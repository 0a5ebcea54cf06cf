"""The columns of the design: what each part is at each stamp, and what covariates add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.additive._clock import Stamps
from deepforecast.models.additive._holidays import days_of
from deepforecast.models.additive._parts import HOLIDAY, REGRESSOR, SEASON, Part, Parts


def table(parts: Parts, stamps: Stamps, country: str | None) -> dict[str, Floats]:
    """The columns (stamps, columns) of each part that follows from time alone, at the few stamps there are."""
    return {one.name: _columns(one, stamps, country) for one in parts if one.kind != REGRESSOR}


def rows_of(
    part: Part, held: Mapping[str, Floats], place: Ints, covariates: Mapping[str, Covariate], rows: Ints | slice
) -> Floats:
    """The columns of a part at some rows, (rows, columns); regressors in their own units. `place`: which stamp each has."""
    if part.kind == REGRESSOR:
        return _of_covariate(part, covariates[part.name].values.reshape(-1)[rows])
    found = held[part.name][place]
    if part.condition:
        found = found * covariates[part.condition].values.reshape(-1)[rows][:, None]
    return np.asarray(found)


def column_of(
    part: Part, number: int, held: Mapping[str, Floats], place: Ints, covariates: Mapping[str, Covariate]
) -> Floats:
    """One column of a part at all rows."""
    if part.kind == REGRESSOR:
        return _of_covariate(part, covariates[part.name].values.reshape(-1))[:, number]
    found = held[part.name][:, number][place]
    return found * covariates[part.condition].values.reshape(-1) if part.condition else found


def _of_covariate(part: Part, values: Floats) -> Floats:
    if not part.names:
        return np.asarray(values[:, None])
    return np.asarray(values[:, None] == np.arange(len(part.names)), dtype=np.float64)


def _columns(part: Part, stamps: Stamps, country: str | None) -> Floats:
    if part.kind == SEASON:
        return np.stack(list(_waves(stamps.days, part.period, part.order)), axis=-1)
    if part.kind == HOLIDAY:
        return _holidays(part, stamps, str(country))
    return np.stack(list(_windows(part, stamps.whole_days)), axis=-1)


def _waves(days: Floats, period: float, order: int) -> Iterator[Floats]:
    for number in range(1, order + 1):
        angle = 2.0 * np.pi * (number / period) * days
        yield np.sin(angle)
        yield np.cos(angle)


def _windows(part: Part, days: Ints) -> Iterator[Floats]:
    """A column for each day of the window of an event."""
    for offset in range(part.lower, part.upper + 1):
        yield np.isin(days, np.array(part.days, dtype=np.int64) + offset).astype(np.float64)


def _holidays(part: Part, stamps: Stamps, country: str) -> Floats:
    days = stamps.whole_days
    found = days_of(country, int(days.min()), int(days.max())) if len(days) else {}
    return np.stack([np.isin(days, found.get(name, [])).astype(np.float64) for name in part.names], axis=-1)


