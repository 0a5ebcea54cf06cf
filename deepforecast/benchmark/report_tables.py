"""Tables of the report: leaderboard, pairwise comparison, tasks with published results, scaling, failures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.job_results import OWN_LIBRARY, Row
from deepforecast.benchmark.published_results import PublishedResult, find_published
from deepforecast.benchmark.summary import cost_slopes, describe_distance, distance, group_failures, mean_over_seeds
from deepforecast.errors import format_value, pluralize
from deepforecast.evaluation.html_page import definition_list
from deepforecast.evaluation.html_table import (
    MAX_PAIRED_MODELS,
    is_smallest,
    name_heading,
    number_cell,
    sortable_heading,
    table_html,
    text_cell,
    truncation_note,
)
from deepforecast.evaluation.leaderboard_summary import format_percent, format_rounded, format_seconds
from deepforecast.evaluation.skill import pairwise_win_rates

if TYPE_CHECKING:
    from deepforecast.benchmark.report import BenchmarkRun

MIN_TASKS = 5  # with fewer tasks, pairwise shares of tasks won are not shown
MAX_OPEN_TASKS = 6  # with more tasks, all but the first are collapsed


def leaderboard_table(run: BenchmarkRun) -> str:
    """Return the leaderboard over all tasks, best model first."""
    summary = run.summary
    columns = {name: summary.table[name].to_numpy(np.float64) for name in _NUMBER_COLUMNS}
    sort_values = {"rank": columns["rank"], "skill": -columns["skill"], "wins": -columns["wins"]}
    best = {name: is_smallest(values) for name, values in sort_values.items()}
    shown_columns = [
        name for name in _NUMBER_COLUMNS if np.isfinite(columns[name]).any() and (name != "failed" or columns[name].any())
    ]
    rows = []
    for index, row in enumerate(summary.table.itertuples()):
        cells = [
            _summary_cell(summary.table.iloc[index], name, best.get(name, [False] * (index + 1))[index])
            for name in shown_columns
        ]
        has_result = any(job.status == "ok" for job in run.rows if job.model == row.model)
        origin = "measured in this run" if has_result else "without a result"
        peer = "" if row.library == OWN_LIBRARY else f"{row.library}, {origin}"
        rows.append(f"<tr>{name_heading('row', format_value(row.model, 60), peer)}{''.join(cells)}</tr>")
    headings = [
        sortable_heading("model"),
        *(sortable_heading(_NUMBER_COLUMNS[name][0], _NUMBER_COLUMNS[name][1]) for name in shown_columns),
    ]
    reference = escape(format_value(run.suite.reference, 40))
    note = (
        f'<p class="quiet">Ranked by {escape(format_value(summary.metric, 40))}. Skill: 1 minus the geometric mean over tasks '
        f"of the {describe_distance(summary.metric)} divided by that of {reference}. Wins: share of the comparisons with "
        "another model on a task that were won. Below both: 95 % bootstrap intervals over tasks. Rank: mean rank among models "
        "with a result on every task. Seconds are summed over the tasks with a result.</p>"
    )
    return table_html(headings, rows) + note


def pairs_table(run: BenchmarkRun) -> str:
    """Return the share of tasks on which the model of the row beats that of the column, with bootstrap intervals."""
    summary = run.summary
    order = [summary.models.index(name) for name in summary.table["model"]][:MAX_PAIRED_MODELS]
    if len(order) < 2 or len(summary.tasks) < MIN_TASKS:
        return ""
    rates = pairwise_win_rates(distance(summary.metric, summary.values)[order])
    names = [format_value(summary.models[model_index], 60) for model_index in order]
    rows = []
    for row, name in enumerate(names):
        cells = "".join(_pair_cell(rates, row, column) for column in range(len(names)))
        rows.append(f"<tr>{name_heading('row', name)}{cells}</tr>")
    note = (
        "<p>Share of tasks on which the model of the row beats that of the column, with its 95 % bootstrap interval over "
        f"tasks. In colour: the interval does not contain 50 %.{truncation_note(len(summary.table))}</p>"
    )
    return note + table_html(['<th scope="col"></th>', *(name_heading("col", name) for name in names)], rows)


def task_tables(run: BenchmarkRun) -> str:
    """Return one table per task with all metrics, the best values in bold, and published results."""
    task_bodies = [(task, _task_table(run, task)) for task in run.summary.tasks]
    task_bodies = [(task, body) for task, body in task_bodies if body]
    sections = []
    for index, (task, body) in enumerate(task_bodies):
        title = escape(format_value(task, 80))
        if len(task_bodies) > MAX_OPEN_TASKS and index:
            sections.append(f"<details><summary>{title}</summary>{body}</details>")
        else:
            sections.append(f"<h3>{title}</h3>{body}")
    note = (
        '<p class="quiet">With several seeds: means and their 95 % confidence intervals (Student\'s t). Grey rows are '
        "published results of other authors; they are comparable only if their protocol (see the tooltip) is that of "
        "the task.</p>"
    )
    return "".join(sections) + note if sections else ""


def growth_table(run: BenchmarkRun) -> str:
    """Return the slopes of log cost on log size, for suites whose tasks differ in size."""
    slope_table = cost_slopes(run.rows)
    if slope_table.empty:
        return ""
    pivoted = slope_table.pivot_table(index="model", columns=["size", "cost"], values="slope", sort=False)
    labels = [f"{cost.replace('_', ' ')} by {size}" for size, cost in pivoted.columns]
    rows = [
        f"<tr>{name_heading('row', format_value(model, 60))}"
        f"{''.join(number_cell(value, format_rounded(value, 2)) for value in values)}</tr>"
        for model, values in zip(pivoted.index, pivoted.to_numpy(), strict=True)
    ]
    note = '<p class="quiet">Slope of log cost on log size: 0 constant, 1 proportional, 2 quadratic.</p>'
    return note + table_html([sortable_heading("model"), *(sortable_heading(label) for label in labels)], rows)


def failures_section(run: BenchmarkRun) -> str:
    """Return the section with failed jobs, unused covariates and warnings."""
    failed = [(subject, f"{row.status}: {format_value(row.error, 1000)}") for subject, row in group_failures(run.rows)]
    text = definition_list(failed) if failed else "<p>Every job has a result.</p>"
    unused = sorted({(row.model, ", ".join(row.unused)) for row in run.rows if row.unused})
    if unused:
        text += "<h3>Covariates that models could not use</h3>" + definition_list(unused)
    warning_texts = sorted({(row.model, format_value(warning, 300)) for row in run.rows for warning in row.warnings})
    if warning_texts:
        text += f"<details><summary>Warnings ({len(warning_texts)})</summary>{definition_list(warning_texts)}</details>"
    return text


_NUMBER_COLUMNS = {
    "rank": ("rank", "Mean rank over all tasks, among models with a result on every task; 1 is best."),
    "skill": ("skill", "1 minus the geometric mean of the errors relative to the reference."),
    "wins": ("wins", "Share of comparisons with other models that were won."),
    "tasks": ("tasks", "Number of tasks with a result."),
    "fit_seconds": ("fit s", "Wall-clock seconds to fit, summed over tasks."),
    "predict_seconds": ("predict s", "Wall-clock seconds to forecast, summed over tasks."),
    "peak_mb": ("peak MB", "Largest peak memory of a job beyond that at its start."),
    "failed": ("failed", "Number of jobs without a result."),
}


def _summary_cell(row: Any, name: str, best: bool) -> str:
    value = float(row[name])
    if not np.isfinite(value):
        return number_cell(value, "")
    if name in ("skill", "wins"):
        low, high = float(row[f"{name}-low"]), float(row[f"{name}-high"])
        interval = f"{format_percent(low)} to {format_percent(high)}" if np.isfinite(low) else ""
        return number_cell(-value, format_percent(value), interval, best)
    text = (
        format_seconds(value) if name.endswith("seconds") else f"{value:,.0f}" if name in ("peak_mb", "tasks", "failed") else ""
    )
    return number_cell(value, text or format_rounded(value, 3), "", best)


def _pair_cell(rates: Any, row: int, column: int) -> str:
    value, low, high = (float(array[row, column]) for array in (rates.value, rates.low, rates.high))
    if not np.isfinite(value):
        return "<td>–</td>"
    class_attribute = ' class="for"' if low > 0.5 else ' class="against"' if high < 0.5 else ""
    interval = f"<small>{format_percent(low)} to {format_percent(high)}</small>" if np.isfinite(low) else ""
    return f"<td{class_attribute}>{format_percent(value)}{interval}</td>"


def _task_table(run: BenchmarkRun, task: str) -> str:
    rows = [row for row in run.rows if row.task == task]
    metrics = _order_metrics(run, task, {name for row in rows for name in row.metrics})
    if not metrics:
        return ""
    models = [name for name in run.summary.table["model"] if any(row.model == name and row.metrics for row in rows)]
    means = {name: mean_over_seeds(rows, name).set_index("model") for name in metrics}
    values = {name: np.array([means[name]["mean"].get(model, np.nan) for model in models]) for name in metrics}
    best = {name: is_smallest(distance(name, metric_values)) for name, metric_values in values.items()}
    order = np.argsort(np.nan_to_num(distance(metrics[0], values[metrics[0]]), nan=np.inf), kind="stable")
    lines = []
    for index in order:
        model_rows = [row for row in rows if row.model == models[index] and row.status == "ok"]
        cells = [_mean_cell(means[name], models[index], name, best[name][index]) for name in metrics]
        lines.append(
            f"<tr>{name_heading('row', format_value(models[index], 60))}{''.join(cells)}{_seconds_cell(model_rows)}</tr>"
        )
    lines += [_published_row(published, metrics) for published in _published_by_model(rows[0], metrics)]
    facts = [f"horizon {rows[0].horizon}", pluralize(rows[0].windows or 0, "window")]
    facts += [f"{rows[0].series:,} series"] if rows[0].series else []
    note = f'<p class="quiet">{escape(", ".join(facts))}; sorted by {escape(format_value(metrics[0], 40))}.</p>'
    return note + table_html(
        [
            sortable_heading("model"),
            *(sortable_heading(format_value(name, 40)) for name in metrics),
            sortable_heading("seconds"),
        ],
        lines,
    )


def _order_metrics(run: BenchmarkRun, task: str, available: set[str]) -> list[str]:
    """Sort metrics: the main one first, then in the order of the suite; levels of a metric are sorted by name."""
    metric_names = next((task_spec.metrics for task_spec in run.suite.tasks if task_spec.name == task), ())
    positions = {name: index for index, name in enumerate(metric_names)}
    ordered = sorted(
        available, key=lambda name: (positions.get(name, positions.get(name.rpartition("-")[0], len(positions))), name)
    )
    return sorted(ordered, key=lambda name: name != run.summary.metric)


def _mean_cell(means: Any, model: str, metric: str, best: bool) -> str:
    if model not in means.index:
        return number_cell(float("nan"), "–")
    row = means.loc[model]
    is_coverage = metric.startswith("coverage-")
    interval = f"{format_rounded(row['low'])} to {format_rounded(row['high'])}" if np.isfinite(row["low"]) else ""
    sort_key = float(distance(metric, np.array([row["mean"]]))[0])
    return number_cell(sort_key, format_percent(row["mean"]) if is_coverage else format_rounded(row["mean"]), interval, best)


def _seconds_cell(rows: list[Row]) -> str:
    job_seconds = [(row.fit_seconds or 0.0) + (row.predict_seconds or 0.0) for row in rows]
    return (
        number_cell(float(np.mean(job_seconds)), format_seconds(float(np.mean(job_seconds))))
        if job_seconds
        else number_cell(float("nan"), "–")
    )


def _published_by_model(row: Row, metrics: list[str]) -> list[tuple[str, dict[str, PublishedResult]]]:
    """Return the published results on the dataset and horizon of a task, by model."""
    published_by_model: dict[str, dict[str, PublishedResult]] = {}
    for published in find_published(row.dataset, horizon=row.horizon):
        if published.metric in metrics:
            published_by_model.setdefault(published.model, {})[published.metric] = published
    return list(published_by_model.items())


def _published_row(model_published: tuple[str, dict[str, PublishedResult]], metrics: list[str]) -> str:
    model, published_by_metric = model_published
    published = next(iter(published_by_metric.values()))
    cells = [
        number_cell(published_by_metric[name].value, format_rounded(published_by_metric[name].value))
        if name in published_by_metric
        else number_cell(float("nan"), "–")
        for name in metrics
    ]
    title = escape(format_value(f"{published.protocol}. {published.source}", 300))
    heading = name_heading("row", format_value(model, 60), "published")
    return f'<tr class="failed" title="{title}">{heading}{"".join(cells)}{text_cell("")}</tr>'
