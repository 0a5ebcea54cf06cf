"""A panel to what is learned of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.parallel import map_chunks
from deepforecast.core.state import Learned
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.data.parts import written
from deepforecast.data.stamps import stamps_at
from deepforecast.errors import DataError, ParameterError, say
from deepforecast.models.additive._changepoints import checked, refuse_outside
from deepforecast.models.additive._fitting import Work, work_of
from deepforecast.models.additive._planning import planned
from deepforecast.models.additive._scaling import used_rows
from deepforecast.models.additive._solving import solved

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

SECONDS = 3e-10  # about what a number of a design costs in a fit, for each column
TURNS = 12.0  # as much, where each step needs the products anew


def fitted(model: Prophet, panel: Panel, known: Learned | None) -> Learned:
    """What is learned of each series; `known` from before is where searches start, beside others."""
    if model.growth == "logistic" and model.cap is None:
        raise ParameterError("growth='logistic' needs cap=, the most there can be: a number, or a column known ahead.")
    parts = planned(model, panel)
    first, last = _ends(model, panel, used_rows(model, panel, parts))
    if model.changepoints is not None and model.growth != "flat":
        _check_changepoints(model.changepoints, panel, first, last)
    before = None if known is None or len(known["rate"]) != len(panel) or known["parts"] != written(parts) else known.by_series
    work = work_of(model, panel, parts)
    todo = work.groups()
    found = map_chunks(
        lambda part: [one for numbers in todo[part] for one in solved(model, work.job(model, numbers), before)],
        len(todo),
        cost=[_cost(model, work, numbers) for numbers in todo],
    )
    by_number = {number: learned for part in found for number, learned in part}
    ordered = [by_number[number] for number in range(len(panel))]
    held = {name: np.array([one[name] for one in ordered]) for name in ordered[0]}
    _say_exact(model, panel, held.pop("exact"))
    return Learned({**held, "end": last}, {"parts": written(parts)}, history=panel)


def _ends(model: Prophet, panel: Panel, used: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The positions of the first and the last row of each series that is used, or a `DataError` where there are not two."""
    count = np.add.reduceat(used, panel.indptr[:-1], dtype=np.int64)
    few = np.flatnonzero(count < 2)
    if len(few):
        raise DataError(
            f"{model.name} needs at least 2 rows a series with a value and all columns known ahead; series "
            f"{panel.series.labels(few)} has {count[few[0]]}. Leave such series out, or fill the columns."
        )
    rows = np.arange(len(used))
    first = np.minimum.reduceat(np.where(used, rows, len(used)), panel.indptr[:-1]) - panel.indptr[:-1]
    last = np.maximum.reduceat(np.where(used, rows, -1), panel.indptr[:-1]) - panel.indptr[:-1]
    step = panel.calendar.step
    return np.asarray(panel.start + step * first), np.asarray(panel.start + step * last)


def _say_exact(model: Prophet, panel: Panel, exact: NDArray[np.bool_]) -> None:
    """Series with no more values than parameters, and nothing left over: their bands tell nothing of noise."""
    if exact.any():
        say(
            f"{model.name} goes through every value of series {panel.series.labels(np.flatnonzero(exact))}, which have no more "
            "values than there are parameters: bands count no noise. Give longer series, or a smaller n_changepoints."
        )


def _check_changepoints(given: list[Any], panel: Panel, first: Ints, last: Ints) -> None:
    checked(given, not panel.calendar.frequency.base)
    begin, end = (stamps_at(panel.calendar, one) for one in (first, last))
    refuse_outside(given, panel, begin.rows, end.rows, begin.per_day)


def _cost(model: Prophet, work: Work, numbers: list[int]) -> float:
    """About how many seconds a job takes."""
    rows = int(work.panel.lengths[numbers[0]])
    columns = 2 + model.most_changes + sum(one.columns for one in work.parts)
    multiply = any(one.multiplies for one in work.parts)
    plain = not multiply and model.errors == "normal" and model.growth != "logistic"
    each = 0.0 if plain else TURNS * len(numbers)
    return rows * columns**2 * SECONDS * (1.0 + each) + 1e-4 * len(numbers)
