"""Covariates known ahead: the caller's `future` frame matched by key to the steps after each series' end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deepforecast.data import covariates, frames
from deepforecast.data.columns import resolve, say_undeclared
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame, Ints
from deepforecast.data.panel import Series
from deepforecast.data.reading import Keys, read_keys
from deepforecast.errors import DataError, say, shown, some

Categories = Mapping[str, tuple[str, ...] | None]
EXPECTED = "model.future_frame(horizon) gives the rows expected"


def ahead(
    future: Frame | None, series: Series, steps: int, known: Categories, undeclared: Sequence[str] = ()
) -> dict[str, Covariate]:
    """Each future column as an array (series, steps); rows past the horizon, other series and a target in it are ignored.

    A column that has no role in the fit either is said, unless it was there: `undeclared` names those.
    """
    if not known:
        if future is not None:
            say("future= is left out: the model was fitted without columns known ahead.")
        return {}
    if future is None:
        raise DataError(
            f"The model was fitted with columns known ahead, so predict needs future= with {some(known)} for the next "
            f"{steps} steps of each series. {EXPECTED}: add these columns to it."
        )
    table = frames.table(future, "future frame")
    names = resolve(
        {"id": series.columns.id, "time": series.columns.time, "target": series.columns.target, "future": tuple(known)},
        table.columns,
        target=False,
        what="future frame",
    )
    say_undeclared([name for name in table.columns if name not in (*series.columns.all, *known)], undeclared)
    if not len(table.native):
        raise DataError(
            f"The future frame has rows; this one is empty. It needs {some(known)} for the next {steps} steps; {EXPECTED}."
        )
    rows = _rows(read_keys(table, names, "future frame"), series, steps)
    if (rows < 0).any():
        raise _lacks_rows(rows, series, known)
    return {name: _column(table.native[name], name, rows, series, categories) for name, categories in known.items()}


def recoded(one: Covariate, name: str, known: tuple[str, ...] | None) -> Covariate:
    """Categories as the fit knew them; one never seen is said once and becomes unknown. Numbers stay numbers, codes codes."""
    if (known is None) != (one.categories is None):
        wanted, found = ("numbers", "categories") if known is None else ("categories", "numbers")
        raise DataError(
            f"Column {shown(name)} is what it was in fit, {wanted}; it holds {found}. Convert it to the dtype it had."
        )
    if known is None or one.categories is None:
        return one
    new = [category for category in one.categories if category not in known]
    if new:
        say(f"Column {shown(name)} has categories never seen in fit, taken as unknown: {some(new)}.")
    return one.recoded(known)


def _rows(keys: Keys, series: Series, steps: int) -> Ints:
    """The caller's row of the future frame for each series and step, -1 where there is none."""
    place = np.zeros(1, np.int64) if keys.ids is None else series.numbers_of(keys.ids)
    if (place < 0).any():  # whatever the rows of other series hold
        keys = _only(keys, place)
        place = place[place >= 0]
    rows = np.full((len(series), steps), -1, dtype=np.int64)
    if not len(place):
        return rows
    whose = np.repeat(place, np.diff(keys.indptr))
    position = keys.on_calendar(None, series.calendar)[1]
    offset = position - series.last[whose]
    step, rest = offset // series.calendar.step - 1, offset % series.calendar.step
    wanted = np.flatnonzero((rest == 0) & (step >= 0) & (step < steps))
    rows[whose[wanted], step[wanted]] = wanted if keys.order is None else keys.order[wanted]
    return rows


def _only(keys: Keys, place: Ints) -> Keys:
    """The keys of the series that have a place."""
    lengths = np.diff(keys.indptr)
    rows = np.flatnonzero(np.repeat(place >= 0, lengths))
    known = np.flatnonzero(place >= 0)
    order = rows if keys.order is None else keys.order[rows]
    ids = None if keys.ids is None else frames.rows_of(keys.ids, known)
    return keys._replace(ids=ids, order=order, indptr=np.append(0, np.cumsum(lengths[known])), raw=keys.raw[rows])


def _lacks_rows(rows: Ints, series: Series, known: Categories) -> DataError:
    absent = np.argwhere(rows < 0)
    one, step = (int(number) for number in absent[0])
    stamp = series.calendar.text(int(series.calendar.following(series.last[one : one + 1], step + 1)[0, -1]))
    whose = np.unique(absent[:, 0])
    return DataError(
        f"The future frame has a row for every series and step; {len(absent)} are missing, in series "
        f"{series.labels(whose)}, first that of {series.label(one)} at {stamp} (columns {some(known)}). {EXPECTED}."
    )


def _column(column: Any, name: str, rows: Ints, series: Series, categories: tuple[str, ...] | None) -> Covariate:
    """The values at the steps wanted; what other rows hold does not matter."""
    used, place = np.unique(rows, return_inverse=True)
    place = place.reshape(rows.shape)
    try:
        given = covariates.read(frames.rows_of(column, used), name)
    except DataError as error:
        said = str(error) if categories is None else (
            f"Column {shown(name)} is categorical, as it was in fit; its dtype is {shown(str(frames.wrapped(column).dtype))}. "
            "Convert it to a categorical dtype"
        )  # fmt: skip
        raise DataError(f"In the future frame, first for series {series.label(0)}: {said.rstrip('.')}.") from None
    found = recoded(given, name, categories).take(place)
    bad = given.missing()[place] | np.isinf(found.values)
    if bad.any():
        one, step = (int(number) for number in np.argwhere(bad)[0])
        lacking = np.flatnonzero(bad.any(axis=1))
        whose = f" (series {series.label(one)})" if len(lacking) > 1 else ""
        stamp = series.calendar.text(int(series.calendar.following(series.last[one : one + 1], step + 1)[0, -1]))
        raise DataError(
            f"Columns known ahead are known at every step; {shown(name)} of the future frame is missing or infinite for series "
            f"{series.labels(lacking)}, first at {stamp}{whose}, {int(bad.sum())} value(s) in all. Fill it."
        )
    return found
