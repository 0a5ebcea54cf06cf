"""HTML report of a run: leaderboard with uncertainty, costs, every task, failures and settings.

The report is computed from the folder of the run alone; the same folder gives the same page.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from deepforecast.benchmark import report_figures, report_forecasts, report_tables
from deepforecast.benchmark.job_results import Row, read_rows
from deepforecast.benchmark.run_folder import load_run_suite
from deepforecast.benchmark.suite import Suite
from deepforecast.benchmark.summary import Summary, describe_distance, summarize
from deepforecast.errors import format_list, format_value, pluralize
from deepforecast.evaluation import html_page as pages
from deepforecast.evaluation.html_page import definition_list
from deepforecast.evaluation.leaderboard_summary import format_percent, format_rounded
from deepforecast.evaluation.report_sections import format_setting


@dataclass(frozen=True)
class BenchmarkRun:
    """A run to report.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    suite : Suite
        Its suite.
    rows : list of Row
        Its rows.
    metric : str, optional
        Metric that ranks the models. Defaults to the first one of the suite.
    """

    folder: Path
    suite: Suite
    rows: list[Row]
    metric: str | None = None

    @cached_property
    def summary(self) -> Summary:
        """Comparison of the models over all tasks."""
        return summarize(self.rows, metric=self.metric, reference=self.suite.reference)


def load_run(folder: str | Path, metric: str | None = None) -> BenchmarkRun:
    """Read a run from its folder; `metric` ranks the models (default: the first one of the suite)."""
    return BenchmarkRun(Path(folder), load_run_suite(folder), read_rows(folder), metric)


def write_report(folder: str | Path, path: str | os.PathLike[str], *, metric: str | None = None) -> None:
    """Write the HTML report of a run, atomically.

    Parameters
    ----------
    folder : str or Path
        Folder of the run.
    path : str or path-like
        File to write.
    metric : str, optional
        Metric that ranks the models. Defaults to the first one of the suite.

    Raises
    ------
    DataError
        If the folder is not that of a run, or no job has scored forecasts.
    SaveError
        If the file cannot be written.
    """
    path = pages.validate_path(path)
    pages.write_page(render_page(load_run(folder, metric)), path)


def render_page(run: BenchmarkRun) -> str:
    """Return the HTML report of a run."""
    sections = pages.make_sections(
        run,
        {
            "leaderboard": report_tables.leaderboard_table,
            "cost": report_figures.cost_figure,
            "differ": report_figures.critical_difference_figure,
            "pairs": report_tables.pairs_table,
            "coverage": report_figures.coverage_figure,
            "tasks": report_tables.task_tables,
            "growth": report_tables.growth_table,
            "forecasts": report_forecasts.forecast_figures,
            "failures": report_tables.failures_section,
            "settings": settings_section,
        },
    )
    title = f"Benchmark {run.suite.suite}"
    return pages.Page("Forecasting benchmark", title, verdict(run), describe_counts(run), sections, _created_text(run)).html()


def verdict(run: BenchmarkRun) -> str:
    """Return a sentence on the best model, its skill, and the test of differences between the models."""
    summary, reference = run.summary, format_value(run.suite.reference, 40)
    row = summary.table.iloc[0]
    sentence = f"{format_value(row['model'], 60)} leads by {format_value(summary.metric, 40)}"
    if summary.skill is not None and row["model"] != run.suite.reference:
        direction = "less" if row["skill"] >= 0 else "more"
        sentence += f": {format_percent(abs(row['skill']))} {direction} {describe_distance(summary.metric)} than {reference}"
        if row["skill-low"] == row["skill-low"]:
            sentence += (
                f" (95 % interval {format_percent(row['skill-low'])} to {format_percent(row['skill-high'])}, over tasks)"
            )
    if summary.friedman_test is None:
        return f"{sentence}. With a single task, the uncertainty of this ranking cannot be estimated."
    p_value = format_rounded(summary.friedman_test.p_value, 2)
    if summary.friedman_test.p_value >= 0.05:
        outcome = "no significant difference between the models"
    else:
        outcome = "a significant difference between the models"
    return f"{sentence}. Over {summary.friedman_test.n_datasets} tasks there is {outcome} (Friedman test, p = {p_value})."


def describe_counts(run: BenchmarkRun) -> str:
    """Return the description of the suite, the size of the run and its restrictions."""
    summary, n_failed = run.summary, sum(row.status != "ok" for row in run.rows)
    subset = f" Subset: {format_list(run.suite.cut, max_shown=20)}." if run.suite.cut else ""
    description = f"{run.suite.what}. " if run.suite.what else ""
    counts = (
        f"{pluralize(len(summary.models), 'model')}, {pluralize(len(summary.tasks), 'task')}, {pluralize(len(run.rows), 'job')}"
    )
    jobs = f"{counts}; {n_failed or 'none'} of the jobs {'has' if n_failed == 1 else 'have'} no result."
    return f"{description[:1].upper()}{description[1:]}{jobs}{subset}"


def settings_section(run: BenchmarkRun) -> str:
    """Return the section with the settings of suite, tasks and models, package versions and machine."""
    suite_fields = _drop_empty(run.suite.to_mapping())
    tasks = {task.pop("task", None) or task["dataset"]: task for task in suite_fields.pop("tasks")}
    suite_rows = [(key.replace("_", " "), format_setting(value)) for key, value in suite_fields.items()]
    task_rows = [(format_value(name, 80), format_setting(task)) for name, task in tasks.items()]
    models = {row.model: row.parameters for row in run.rows if row.parameters}
    environment = {key: format_value(value, 200) for row in run.rows for key, value in {**row.versions, **row.machine}.items()}
    return (
        definition_list(suite_rows)
        + "<h3>Tasks</h3>"
        + definition_list(task_rows)
        + "<h3>Models</h3>"
        + definition_list([(format_value(key, 80), format_setting(value)) for key, value in models.items()])
        + "<h3>Versions and machine</h3>"
        + definition_list([(format_value(key, 80), value) for key, value in environment.items()])
        + f'<p class="quiet">Command: deepforecast benchmark {escape(format_value(run.suite.suite, 60))}</p>'
    )


def _drop_empty(value: Any) -> Any:
    """Remove empty settings, recursively; a model without further settings becomes its name."""
    if isinstance(value, list):
        return [_drop_empty(element) for element in value]
    if not isinstance(value, Mapping):
        return value
    cleaned = {key: _drop_empty(element) for key, element in value.items() if element not in (None, "", [], {})}
    return cleaned["model"] if list(cleaned) == ["model"] else cleaned


def _created_text(run: BenchmarkRun) -> str:
    days = sorted({row.started[:10] for row in run.rows if row.started})
    when = f" on {days[0]}" if len(days) == 1 else f" from {days[0]} to {days[-1]}" if days else ""
    return f"Run{when}, with deepforecast {run.rows[0].versions.get('deepforecast', '')}."
