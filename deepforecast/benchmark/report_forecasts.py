"""Forecast plots of the report: the sampled series with the best, median and worst error of the best model."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.job_results import Row, read_file
from deepforecast.benchmark.summary import distance
from deepforecast.errors import format_value
from deepforecast.evaluation.leaderboard_summary import format_rounded
from deepforecast.evaluation.report_figures import figure_html
from deepforecast.evaluation.report_forecasts import HISTORY_HORIZONS
from deepforecast.plotting import plot_cross_validation

if TYPE_CHECKING:
    from deepforecast.benchmark.report import BenchmarkRun

MAX_TASKS = 12
MAX_WINDOWS = 6  # per series, the last ones


def forecast_figures(run: BenchmarkRun) -> str:
    """Plot forecasts of the best model for the best, median and worst saved series of each task."""
    sections: list[str] = []
    metric = run.summary.metric
    for index, task in enumerate(run.summary.tasks[:MAX_TASKS]):
        rows = [row for row in run.rows if row.task == task and {"forecasts", "series", "history"} <= set(row.files)]
        rows = [row for row in rows if metric in row.metrics]
        if not rows:
            continue
        best = min(rows, key=lambda row: float(distance(metric, np.array([row.metrics[metric]]))[0]))
        plots = "".join(_series_plots(run, best, f"forecast-{index}"))
        title = escape(f"{format_value(task, 80)}: {format_value(best.model, 60)}")
        sections.append(f"<details{'' if sections else ' open'}><summary>{title}</summary>{plots}</details>")
    n_tasks = len(run.summary.tasks)
    task_note = f" The first {MAX_TASKS} of {n_tasks} tasks are shown." if n_tasks > MAX_TASKS else ""
    caption = f"Series whose forecasts were saved; dashed lines mark the cutoffs, at most the last {MAX_WINDOWS}.{task_note}"
    return f'<p class="quiet">{caption}</p>' + "".join(sections) if sections else ""


def _series_plots(run: BenchmarkRun, row: Row, anchor: str) -> list[str]:
    job_forecasts, history = read_file(run.folder, row, "forecasts"), read_file(run.folder, row, "history")
    scores = read_file(run.folder, row, "series").set_index("unique_id")[run.summary.metric]
    plots = []
    for index, (prefix, key) in enumerate(_sample_series(run, job_forecasts["unique_id"].unique(), scores)):
        series_forecasts = job_forecasts[job_forecasts["unique_id"] == key]
        last_cutoffs = np.sort(series_forecasts["cutoff"].unique())[-MAX_WINDOWS:]
        plot = plot_cross_validation(
            series_forecasts[series_forecasts["cutoff"].isin(last_cutoffs)],
            history=history[history["unique_id"] == key],
            models=row.model,
            max_history=HISTORY_HORIZONS * int(series_forecasts.groupby("cutoff").size().max()),
            backend="svg",
        )
        score = f"{format_value(run.summary.metric, 40)} {format_rounded(float(scores.get(key, np.nan)))}"
        heading = f"{prefix}{format_value(key, 60)}, {score}"
        plots.append(f"<h3>{escape(heading)}</h3>" + figure_html(f"{anchor}-{index}", plot))
    return plots


def _sample_series(run: BenchmarkRun, keys: Any, scores: Any) -> list[tuple[str, Any]]:
    """Select the best, median and worst of the saved series by the main metric."""
    distances = distance(run.summary.metric, scores.reindex(keys).to_numpy(np.float64))
    order = np.argsort(distances, kind="stable")[: int(np.isfinite(distances).sum())]
    if len(order) < 3:
        return [("", keys[position]) for position in order]
    positions = {"Best: ": 0, "Median: ": (len(order) - 1) // 2, "Worst: ": len(order) - 1}
    return [(prefix, keys[order[position]]) for prefix, position in positions.items()]
