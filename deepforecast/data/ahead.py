"""Covariates known ahead: the caller's `future` frame matched by key to the steps after each series' end."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepforecast.data import covariates, frames
from deepforecast.data.columns import resolve
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame, Ints
from deepforecast.data.panel import Series
from deepforecast.data.reading import Keys, read_keys
from deepforecast.errors import DataError, say, some

Categories = Mapping[str, tuple[str, ...] | None]


def ahead(future: Frame | None, series: Series, steps: int, known: Categories) -> dict[str, Covariate]:
    """Each future column as an array (series, steps); rows past the horizon, other series and a target in it are ignored."""
    if not known:
        if future is not None:
            say("future= is left out: the model was fitted without columns known ahead.")
        return {}
    if future is None:
        raise DataError(
            f"The model was fitted with columns known ahead, so predict needs future= with {some(known)} for the next {steps} steps of "
            "each series. model.future_frame(horizon) gives the rows expected."
        )
    table = frames.opened(future, "future frame")
    names = resolve({"id": series.columns.id, "time": series.columns.time, "future": tuple(known)}, table.columns, target=False)
    keys = read_keys(table, names, "future frame") if len(table) else None
    if keys is None:
        raise DataError(f"The future frame has rows; this one is empty. It needs {some(known)} for the next {steps} steps.")
    rows = _rows(keys, series, steps)
    absent = np.argwhere(rows < 0)
    if len(absent):
        one, step = absent[0]
        stamp = series.calendar.text(int(series.calendar.following(series.last[one : one + 1], int(step) + 1)[0, -1]))
        raise DataError(
            f"The future frame has a row for every series and step; {len(absent)} are missing, first series {series.label(int(one))} at "
            f"{stamp} (columns {some(known)}). model.future_frame(horizon) gives the rows expected."
        )
    return {name: _column(table, name, keys, rows, series, categories) for name, categories in known.items()}


def recoded(one: Covariate, name: str, known: tuple[str, ...] | None) -> Covariate:
    """Categories as the fit knew them; one never seen is said once and becomes unknown."""
    if known is None or one.categories is None:
        return one
    new = [category for category in one.categories if category not in known]
    if new:
        say(f"Column {name} has categories never seen in fit, taken as unknown: {some(new)}.")
    return one.recoded(known)


def _rows(keys: Keys, series: Series, steps: int) -> Ints:
    """The sorted row of the future frame for each series and step, -1 where there is none."""
    place = covariates.match(keys.ids, series.ids, "fitted model", "id") if keys.ids is not None else np.zeros(1, np.int64)
    whose = np.repeat(place, np.diff(keys.indptr))
    position = keys.on_calendar(None, series.calendar)[1]
    offset = position - series.last[np.maximum(whose, 0)]
    step, rest = offset // series.calendar.step - 1, offset % series.calendar.step
    wanted = np.flatnonzero((whose >= 0) & (rest == 0) & (step >= 0) & (step < steps))
    rows = np.full((len(series), steps), -1, dtype=np.int64)
    rows[whose[wanted], step[wanted]] = wanted
    return rows


def _column(table: object, name: str, keys: Keys, rows: Ints, series: Series, categories: tuple[str, ...] | None) -> Covariate:
    column = covariates.read(table[name], name)  # type: ignore[index]
    column = recoded(column if keys.order is None else column.take(keys.order), name, categories)
    found = column.take(rows)
    lacking = np.argwhere(np.isnan(found.values))
    if len(lacking):
        one, step = lacking[0]
        raise DataError(
            f"Columns known ahead are known at every step; {name} of the future frame is missing for series {series.label(int(one))}, "
            f"step {int(step) + 1}. Fill it."
        )
    return found
