"""The leak audit: what comes after a cutoff is replaced, and no forecast made at that cutoff may move by a bit.

The rows are replaced before anything is made of them, so that scaling, slicing and filling are audited with the models. With
one fit for several windows, the values between the first cutoff and the audited one belong to what is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.data import Prepared, arranged, limited, rows_of
from deepforecast.benchmark.job import build, season_told
from deepforecast.benchmark.suite import Entry, Suite, Task
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.progress import progress_bar
from deepforecast.data.frames import Floats
from deepforecast.errors import format_value
from deepforecast.evaluation.compare import Run, run, told
from deepforecast.evaluation.cross_validation import Rows

if TYPE_CHECKING:
    import pandas as pd

WINDOWS, SERIES = 2, 4
Progress = bool | None


@dataclass(frozen=True)
class Finding:
    """What the audit says of a model on a task: "clean", "leak" (`moved`: rows whose forecast moved, of how many), "failed"."""

    task: str
    model: str
    verdict: str
    window: int = 0
    moved: int = 0
    rows: int = 0
    furthest: float = 0.0
    told: str = ""


def audit(suite: Suite, *, windows: int = WINDOWS, series: int = SERIES, progress: Progress = None) -> list[Finding]:
    """Audit every model of a suite on every task, cut to a few series and the last windows."""
    found = []
    with progress_bar(sum(len(_ours(suite, task)) for task in suite.tasks), "audits", progress) as tick:
        for task in suite.tasks:
            short = shortened(task, windows, series)
            frame = rows_of(short)
            for entry in _ours(suite, task):
                found.append(audited(entry, short, frame))
                tick(1)
    return found


def shortened(task: Task, windows: int, series: int) -> Task:
    """The task with a few series and the last windows; what it is scaled by and refitted at stays."""
    held = task.windows
    count = windows if held.test is not None else min(held.count, windows)
    return replace(limited(task, series)[0], windows=replace(held, count=count, test=None))


def audited(entry: Entry, task: Task, frame: pd.DataFrame, make: Callable[[], Forecaster] | None = None) -> Finding:
    """One model on one task, window after window. `make` builds the model, where it is not the entry's."""
    finding = Finding(task.name, entry.name, "clean")
    try:
        before = arranged(task, frame)
        wanted, place = forecasts(entry, before, make), places(before)
        for window in range(before.plan.n_windows):
            after = arranged(task, changed(frame, before, window))
            found = forecasts(entry, after, make)
            own = place == window
            finding = _compared(finding, wanted, found, own, window)
            if finding.verdict == "leak":
                return finding
    except Exception as error:  # a model may fail in any way: it is told, and is no proof of anything
        return replace(finding, verdict="failed", told=told(error)[:500])
    return finding


def forecasts(entry: Entry, prepared: Prepared, make: Callable[[], Forecaster] | None) -> Run:
    """Every forecast column of the model over the rows judged."""
    model = build(entry, prepared.task, season_told(prepared)) if make is None else make()
    model = model.clone(horizon=prepared.plan.horizon)
    found = run(model, prepared.panel, prepared.plan, prepared.refit, prepared.levels, seed=0)
    if found.cause is not None:
        raise found.cause
    return found


def places(prepared: Prepared) -> Any:
    """The number of the window of each row judged."""
    rows = Rows.of(prepared.panel, prepared.plan)
    last = prepared.panel.series.last[rows.series]
    back = (last - rows.cutoff) // prepared.panel.calendar.step - prepared.plan.horizon
    return prepared.plan.n_windows - 1 - back // prepared.plan.step


def changed(frame: pd.DataFrame, prepared: Prepared, window: int) -> pd.DataFrame:
    """The rows with other values after a cutoff: the target, what is known up to now, and what is known beyond the horizon."""
    plan = prepared.plan
    after = plan.horizon + (plan.n_windows - 1 - window) * plan.step  # rows at the end of each series that are not seen
    from_end = frame.groupby("unique_id", sort=False, observed=True).cumcount(ascending=False).to_numpy()
    unseen, beyond = from_end < after, from_end < after - plan.horizon
    found = frame.assign(y=_other(frame["y"].to_numpy(np.float64), unseen))
    for names, rows in ((prepared.columns["past"], unseen), (prepared.columns["future"], beyond)):
        for name in names:
            found[name] = _shuffled(found[name], rows)
    return found


def _other(values: Floats, where: Any) -> Floats:
    """Others of another size and shape, but of the same sign and whole where all are whole, as counts have to stay counts."""
    there = values[~np.isnan(values)]
    size = float(np.abs(there).max()) if len(there) else 1.0
    drawn = np.random.default_rng(0).uniform(1.5, 3.0, len(values)) * max(size, 1.0)
    drawn = np.rint(drawn) if len(there) and (there == np.rint(there)).all() else drawn
    return np.where(where & ~np.isnan(values), drawn, values)


def _shuffled(column: pd.Series, where: Any) -> pd.Series:
    """The column with values of its own, in another order, in those rows."""
    order = np.arange(len(column))
    rows = np.flatnonzero(where)
    order[rows] = np.random.default_rng(1).integers(0, len(column), len(rows))
    return column.take(order).set_axis(column.index)


def _compared(finding: Finding, wanted: Run, found: Run, own: Any, window: int) -> Finding:
    """The finding, and a leak if any forecast of the window moved."""
    moved, furthest = np.zeros(int(own.sum()), dtype=bool), 0.0
    for name, values in wanted.columns.items():
        one, other = values[own], found.columns[name][own]
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        moved |= ~same
        if not same.all():
            furthest = max(furthest, float(np.nanmax(np.abs(one - other)[~same], initial=0.0)))
    if not moved.any():
        return replace(finding, rows=finding.rows + len(moved))
    words = f"window {window + 1}: {int(moved.sum())} of {len(moved)} forecasts moved, by up to {format_value(f'{furthest:.3g}')}"
    return replace(
        finding, verdict="leak", window=window + 1, moved=int(moved.sum()), rows=len(moved), furthest=furthest, told=words
    )


def _ours(suite: Suite, task: Task) -> Sequence[Entry]:
    return [entry for entry in suite.entries(task) if not entry.peer]
