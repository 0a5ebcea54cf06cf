"""The part of a run's report that shows forecasts: the sampled series the best model forecasts best, worst and in between."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.rows import Row, part
from deepforecast.benchmark.summary import distance
from deepforecast.errors import format_value
from deepforecast.evaluation.report_figures import figure
from deepforecast.evaluation.report_forecasts import HORIZONS
from deepforecast.evaluation.verdict import number
from deepforecast.plotting import plot_cross_validation

if TYPE_CHECKING:
    from deepforecast.benchmark.report import Told

MOST_TASKS = 12
MOST_WINDOWS = 6  # of a series; the last ones


def forecasts(run: Told) -> str:
    """Three series of each task, by the model that is best there."""
    parts: list[str] = []
    metric = run.summary.metric
    for place, task in enumerate(run.summary.tasks[:MOST_TASKS]):
        rows = [row for row in run.rows if row.task == task and {"forecasts", "series", "history"} <= set(row.files)]
        rows = [row for row in rows if metric in row.metrics]
        if not rows:
            continue
        best = min(rows, key=lambda row: float(distance(metric, np.array([row.metrics[metric]]))[0]))
        plots = "".join(_plots(run, best, f"forecast-{place}"))
        title = escape(f"{format_value(task, 80)}: {format_value(best.model, 60)}")
        parts.append(f"<details{'' if parts else ' open'}><summary>{title}</summary>{plots}</details>")
    most = f" Of {len(run.summary.tasks)} tasks the first {MOST_TASKS}." if len(run.summary.tasks) > MOST_TASKS else ""
    said = f"Of the series whose forecasts were kept; a dashed line stands at each cutoff, {MOST_WINDOWS} at most.{most}"
    return f'<p class="quiet">{said}</p>' + "".join(parts) if parts else ""


def _plots(run: Told, row: Row, anchor: str) -> list[str]:
    held, history = part(run.folder, row, "forecasts"), part(run.folder, row, "history")
    scores = part(run.folder, row, "series").set_index("unique_id")[run.summary.metric]
    found = []
    for place, (what, key) in enumerate(_sampled(run, held["unique_id"].unique(), scores)):
        own = held[held["unique_id"] == key]
        last = np.sort(own["cutoff"].unique())[-MOST_WINDOWS:]
        drawn = plot_cross_validation(
            own[own["cutoff"].isin(last)],
            history=history[history["unique_id"] == key],
            models=row.model,
            max_history=HORIZONS * int(own.groupby("cutoff").size().max()),
            backend="svg",
        )
        told = f"{what}{format_value(key, 60)}, {format_value(run.summary.metric, 40)} {number(float(scores.get(key, np.nan)))}"
        found.append(f"<h3>{escape(told)}</h3>" + figure(f"{anchor}-{place}", drawn))
    return found


def _sampled(run: Told, keys: Any, scores: Any) -> list[tuple[str, Any]]:
    """Best, median and worst of the series kept."""
    away = distance(run.summary.metric, scores.reindex(keys).to_numpy(np.float64))
    order = np.argsort(away, kind="stable")[: int(np.isfinite(away).sum())]
    if len(order) < 3:
        return [("", keys[at]) for at in order]
    places = {"Best: ": 0, "Median: ": (len(order) - 1) // 2, "Worst: ": len(order) - 1}
    return [(what, keys[order[at]]) for what, at in places.items()]
