"""A run as one HTML page: who leads and how sure that is, what it costs, every task, what failed, and all settings.

Everything is read from the folder of the run; the same folder gives the same page.
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
from deepforecast.benchmark.folder import suite_of_run
from deepforecast.benchmark.rows import Row, read
from deepforecast.benchmark.suite import Suite
from deepforecast.benchmark.summary import Summary, judged_by, summarise
from deepforecast.errors import format_list, format_value, pluralize
from deepforecast.evaluation import page as pages
from deepforecast.evaluation.page import definitions
from deepforecast.evaluation.report_sections import told_setting
from deepforecast.evaluation.verdict import number, percent


@dataclass(frozen=True)
class Told:
    """A run that is told of: its folder, suite, rows and what they say by the metric that decides."""

    folder: Path
    suite: Suite
    rows: list[Row]
    metric: str | None = None

    @cached_property
    def summary(self) -> Summary:
        """Models over all tasks."""
        return summarise(self.rows, metric=self.metric, reference=self.suite.reference)


def told(folder: str | Path, metric: str | None = None) -> Told:
    """A run by its folder; `metric` decides (default: the first of its suite)."""
    return Told(Path(folder), suite_of_run(folder), read(folder), metric)


def write_report(folder: str | Path, path: str | os.PathLike[str], *, metric: str | None = None) -> None:
    """Write the page of the run in `folder` to `path`, whole or not at all."""
    path = pages.checked(path)
    pages.write(page(told(folder, metric)), path)


def page(run: Told) -> str:
    """The page as text."""
    sections = pages.sections(run, {
        "leaderboard": report_tables.leaderboard, "cost": report_figures.cost, "differ": report_figures.differences,
        "pairs": report_tables.pairs, "coverage": report_figures.coverage, "tasks": report_tables.tasks,
        "growth": report_tables.growth, "forecasts": report_forecasts.forecasts, "failures": report_tables.failures,
        "settings": settings,
    })  # fmt: skip
    title = f"Benchmark {run.suite.suite}"
    return pages.Page("Benchmark of forecasts", title, verdict(run), counted(run), sections, _made(run)).html()


def verdict(run: Told) -> str:
    """Who leads, and by how much."""
    one, reference = run.summary, format_value(run.suite.reference, 40)
    row = one.table.iloc[0]
    said = f"{format_value(row['model'], 60)} leads by {format_value(one.metric, 40)}"
    if one.skill is not None and row["model"] != run.suite.reference:
        less = "less" if row["skill"] >= 0 else "more"
        said += f": {percent(abs(row['skill']))} {less} {judged_by(one.metric)} than {reference}"
        if row["skill-low"] == row["skill-low"]:
            said += f" (95 % interval {percent(row['skill-low'])} to {percent(row['skill-high'])}, over tasks)"
    if one.comparison is None:
        return f"{said}. One task alone does not tell how sure that is."
    p_value = number(one.comparison.p_value, 2)
    if one.comparison.p_value >= 0.05:
        return f"{said}. Over {one.comparison.datasets} tasks the models may all be alike (Friedman, p {p_value})."
    return f"{said}. Over {one.comparison.datasets} tasks the models are not all alike (Friedman, p {p_value})."


def counted(run: Told) -> str:
    """How much was run."""
    one, bad = run.summary, sum(row.status != "ok" for row in run.rows)
    cut = f" Cut: {format_list(run.suite.cut, max_shown=20)}." if run.suite.cut else ""
    what = f"{run.suite.what}. " if run.suite.what else ""
    counts = f"{pluralize(len(one.models), 'model')}, {pluralize(len(one.tasks), 'task')}, {pluralize(len(run.rows), 'job')}"
    jobs = f"{counts}, {bad or 'none'} of them without a result."
    return f"{what[:1].upper()}{what[1:]}{jobs}{cut}"


def settings(run: Told) -> str:
    """The suite as it was run, versions and machine."""
    held = _said(run.suite.to_mapping())
    tasks = {one.pop("task", None) or one["dataset"]: one for one in held.pop("tasks")}
    plain = [(key.replace("_", " "), told_setting(value)) for key, value in held.items()]
    each = [(format_value(name, 80), told_setting(one)) for name, one in tasks.items()]
    models = {row.model: row.parameters for row in run.rows if row.parameters}
    around = {key: format_value(value, 200) for row in run.rows for key, value in {**row.versions, **row.machine}.items()}
    return (
        definitions(plain)
        + "<h3>Tasks</h3>" + definitions(each)
        + "<h3>Models</h3>" + definitions([(format_value(key, 80), told_setting(value)) for key, value in models.items()])
        + "<h3>Versions and machine</h3>" + definitions([(format_value(key, 80), value) for key, value in around.items()])
        + f'<p class="quiet">Run by: deepforecast benchmark {escape(format_value(run.suite.suite, 60))}</p>'
    )  # fmt: skip


def _said(value: Any) -> Any:
    """What was said of settings: without those left empty; a model that is no more than its name as that."""
    if isinstance(value, list):
        return [_said(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    held = {key: _said(one) for key, one in value.items() if one not in (None, "", [], {})}
    return held["model"] if list(held) == ["model"] else held


def _made(run: Told) -> str:
    days = sorted({row.started[:10] for row in run.rows if row.started})
    when = f" on {days[0]}" if len(days) == 1 else f" from {days[0]} to {days[-1]}" if days else ""
    return f"Run{when}, with deepforecast {run.rows[0].versions.get('deepforecast', '')}."
