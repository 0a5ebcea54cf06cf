"""The tables of a run's report: the leaderboard, every pair, every task with published figures, growth, failures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.anchors import Anchor, anchors
from deepforecast.benchmark.rows import OURS, Row
from deepforecast.benchmark.summary import distance, fallen, judged_by, over_seeds, slopes
from deepforecast.errors import format_value, pluralize
from deepforecast.evaluation.html_table import MOST_PAIRED, cell, first_of, head, named, smallest, table, words
from deepforecast.evaluation.page import definitions
from deepforecast.evaluation.skill import pairwise_win_rates
from deepforecast.evaluation.verdict import number, percent, seconds

if TYPE_CHECKING:
    from deepforecast.benchmark.report import Told

FEWEST = 5  # tasks from which shares of tasks won say something
OPEN = 6  # tasks shown at once; more are parts to be opened


def leaderboard(run: Told) -> str:
    """The models over all tasks, best first."""
    one = run.summary
    held = {name: one.table[name].to_numpy(np.float64) for name in _NUMBERS}
    tops = {"rank": held["rank"], "skill": -held["skill"], "wins": -held["wins"]}
    best = {name: smallest(values) for name, values in tops.items()}
    shown_columns = [name for name in _NUMBERS if np.isfinite(held[name]).any() and (name != "failed" or held[name].any())]
    rows = []
    for at, row in enumerate(one.table.itertuples()):
        cells = [_summary_cell(one.table.iloc[at], name, best.get(name, [False] * (at + 1))[at]) for name in shown_columns]
        ran = "measured here" if any(one.status == "ok" for one in run.rows if one.model == row.model) else "without a result"
        peer = "" if row.library == OURS else f"{row.library}, {ran}"
        rows.append(f"<tr>{named('row', format_value(row.model, 60), peer)}{''.join(cells)}</tr>")
    heads = [head("model"), *(head(_NUMBERS[name][0], _NUMBERS[name][1]) for name in shown_columns)]
    reference = escape(format_value(run.suite.reference, 40))
    note = (
        f'<p class="quiet">By {escape(format_value(one.metric, 40))}. Skill: 1 less the geometric mean over tasks of the '
        f"{judged_by(one.metric)} over that of {reference}. Wins: the share of all pairings with another model on a task. "
        "Below them 95 % bootstrap intervals over tasks. Rank: the mean place, among models that have every task. Seconds are "
        "summed over the tasks that a model has.</p>"
    )
    return table(heads, rows) + note


def pairs(run: Told) -> str:
    """For each pair the share of tasks on which the one in the row is better, with its bootstrap interval."""
    one = run.summary
    order = [one.models.index(name) for name in one.table["model"]][:MOST_PAIRED]
    if len(order) < 2 or len(one.tasks) < FEWEST:
        return ""
    rates = pairwise_win_rates(distance(one.metric, one.values)[order])
    names = [format_value(one.models[at], 60) for at in order]
    rows = []
    for row, name in enumerate(names):
        cells = "".join(_pair(rates, row, column) for column in range(len(names)))
        rows.append(f"<tr>{named('row', name)}{cells}</tr>")
    note = (
        "<p>The share of tasks on which the model in the row beats the one in the column; below, its 95 % bootstrap interval "
        f"over tasks. Coloured: the interval does not hold one half.{first_of(len(one.table))}</p>"
    )
    return note + table(['<th scope="col"></th>', *(named("col", name) for name in names)], rows)


def tasks(run: Told) -> str:
    """A table a task: all metrics, the best bold, published figures below, marked as such."""
    held = [(task, _task(run, task)) for task in run.summary.tasks]
    held = [(task, body) for task, body in held if body]
    parts = []
    for place, (task, body) in enumerate(held):
        title = escape(format_value(task, 80))
        if len(held) > OPEN and place:
            parts.append(f"<details><summary>{title}</summary>{body}</details>")
        else:
            parts.append(f"<h3>{title}</h3>{body}")
    note = (
        '<p class="quiet">Means over seeds where there are several, with their 95 % interval (Student\'s t). Rows in grey are '
        "published figures of others' runs: they compare as far as their protocol, told when the pointer rests on them, is "
        "that of the task.</p>"
    )
    return "".join(parts) + note if parts else ""


def growth(run: Told) -> str:
    """Slopes of log cost on log size, where a suite varies sizes."""
    found = slopes(run.rows)
    if found.empty:
        return ""
    wide = found.pivot_table(index="model", columns=["size", "cost"], values="slope", sort=False)
    labels = [f"{cost.replace('_', ' ')} by {size}" for size, cost in wide.columns]
    rows = [
        f"<tr>{named('row', format_value(model, 60))}{''.join(cell(value, number(value, 2)) for value in values)}</tr>"
        for model, values in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    note = '<p class="quiet">Slope of log cost on log size: 1 grows in proportion, 2 with the square, 0 not at all.</p>'
    return note + table([head("model"), *(head(label) for label in labels)], rows)


def failures(run: Told) -> str:
    """Jobs without a result, covariates not used, and warnings."""
    bad = [(who, f"{row.status}: {format_value(row.error, 1000)}") for who, row in fallen(run.rows)]
    text = definitions(bad) if bad else "<p>Every job has a result.</p>"
    unused = sorted({(row.model, ", ".join(row.unused)) for row in run.rows if row.unused})
    if unused:
        text += "<h3>Covariates that models could not use</h3>" + definitions(unused)
    said = sorted({(row.model, format_value(one, 300)) for row in run.rows for one in row.said})
    if said:
        text += f"<details><summary>Warnings ({len(said)})</summary>{definitions(said)}</details>"
    return text


_NUMBERS = {
    "rank": ("rank", "Mean place over the tasks that every complete model has; 1 is the best."),
    "skill": ("skill", "1 less the geometric mean of the ratios to the reference."),
    "wins": ("wins", "Share of pairings with other models that were won."),
    "tasks": ("tasks", "Tasks with a result."),
    "fit_seconds": ("fit s", "Wall-clock seconds to fit, summed."),
    "predict_seconds": ("predict s", "Wall-clock seconds to forecast, summed."),
    "peak_mb": ("peak MB", "The most memory a job held beyond what it began with."),
    "failed": ("failed", "Jobs without a result."),
}


def _summary_cell(row: Any, name: str, best: bool) -> str:
    value = float(row[name])
    if not np.isfinite(value):
        return cell(value, "")
    if name in ("skill", "wins"):
        low, high = float(row[f"{name}-low"]), float(row[f"{name}-high"])
        interval = f"{percent(low)} to {percent(high)}" if np.isfinite(low) else ""
        return cell(-value, percent(value), interval, best)
    text = seconds(value) if name.endswith("seconds") else f"{value:,.0f}" if name in ("peak_mb", "tasks", "failed") else ""
    return cell(value, text or number(value, 3), "", best)


def _pair(rates: Any, row: int, column: int) -> str:
    value, low, high = (float(part[row, column]) for part in (rates.value, rates.low, rates.high))
    if not np.isfinite(value):
        return "<td>–</td>"
    side = ' class="for"' if low > 0.5 else ' class="against"' if high < 0.5 else ""
    below = f"<small>{percent(low)} to {percent(high)}</small>" if np.isfinite(low) else ""
    return f"<td{side}>{percent(value)}{below}</td>"


def _task(run: Told, task: str) -> str:
    rows = [row for row in run.rows if row.task == task]
    metrics = _ordered(run, task, {name for row in rows for name in row.metrics})
    if not metrics:
        return ""
    models = [name for name in run.summary.table["model"] if any(row.model == name and row.metrics for row in rows)]
    means = {name: over_seeds(rows, name).set_index("model") for name in metrics}
    values = {name: np.array([means[name]["mean"].get(model, np.nan) for model in models]) for name in metrics}
    best = {name: smallest(distance(name, held)) for name, held in values.items()}
    order = np.argsort(np.nan_to_num(distance(metrics[0], values[metrics[0]]), nan=np.inf), kind="stable")
    lines = []
    for at in order:
        own = [row for row in rows if row.model == models[at] and row.status == "ok"]
        cells = [_mean(means[name], models[at], name, best[name][at]) for name in metrics]
        lines.append(f"<tr>{named('row', format_value(models[at], 60))}{''.join(cells)}{_seconds(own)}</tr>")
    lines += [_published(one, metrics) for one in _anchors(rows[0], metrics)]
    said = [f"horizon {rows[0].horizon}", pluralize(rows[0].windows or 0, "window")]
    said += [f"{rows[0].series:,} series"] if rows[0].series else []
    note = f'<p class="quiet">{escape(", ".join(said))}; sorted by {escape(format_value(metrics[0], 40))}.</p>'
    return note + table([head("model"), *(head(format_value(name, 40)) for name in metrics), head("seconds")], lines)


def _ordered(run: Told, task: str, there: set[str]) -> list[str]:
    """The metric that decides, then as the suite names them; one of several levels goes by its name before the level."""
    said = next((one.metrics for one in run.suite.tasks if one.name == task), ())
    place = {name: at for at, name in enumerate(said)}
    usual = sorted(there, key=lambda name: (place.get(name, place.get(name.rpartition("-")[0], len(place))), name))
    return sorted(usual, key=lambda name: name != run.summary.metric)


def _mean(means: Any, model: str, metric: str, best: bool) -> str:
    if model not in means.index:
        return cell(float("nan"), "–")
    row = means.loc[model]
    share = metric.startswith("coverage-")
    interval = f"{number(row['low'])} to {number(row['high'])}" if np.isfinite(row["low"]) else ""
    away = float(distance(metric, np.array([row["mean"]]))[0])
    return cell(away, percent(row["mean"]) if share else number(row["mean"]), interval, best)


def _seconds(rows: list[Row]) -> str:
    spent = [(row.fit_seconds or 0.0) + (row.predict_seconds or 0.0) for row in rows]
    return cell(float(np.mean(spent)), seconds(float(np.mean(spent)))) if spent else cell(float("nan"), "–")


def _anchors(row: Row, metrics: list[str]) -> list[tuple[str, dict[str, Anchor]]]:
    """Published figures of the task's dataset and horizon, a row a model."""
    found: dict[str, dict[str, Anchor]] = {}
    for one in anchors(row.dataset, horizon=row.horizon):
        if one.metric in metrics:
            found.setdefault(one.model, {})[one.metric] = one
    return list(found.items())


def _published(found: tuple[str, dict[str, Anchor]], metrics: list[str]) -> str:
    model, held = found
    one = next(iter(held.values()))
    cells = [cell(held[name].value, number(held[name].value)) if name in held else cell(float("nan"), "–") for name in metrics]
    title = escape(format_value(f"{one.protocol}. {one.source}", 300))
    return f'<tr class="failed" title="{title}">{named("row", format_value(model, 60), "published")}{"".join(cells)}{words("")}</tr>'
