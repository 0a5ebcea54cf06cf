"""The plots of a run's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.rows import Row
from deepforecast.benchmark.summary import by_series, distance, judged_by
from deepforecast.data.forecast_names import format_number
from deepforecast.data.frames import Floats
from deepforecast.errors import DataError, format_value
from deepforecast.evaluation.critical import Comparison, friedman
from deepforecast.evaluation.report_figures import LABEL, calibration, figure, untitled
from deepforecast.evaluation.verdict import number
from deepforecast.plotting import plot_pareto
from deepforecast.plotting.backends import render
from deepforecast.plotting.chart import INK, Axis, Chart, Dots, Line, Mark, Panel
from deepforecast.plotting.style import COLORS, short, short_number

if TYPE_CHECKING:
    from deepforecast.benchmark.report import Told

COVERAGE = "coverage-"


def cost(run: Told) -> str:
    """Error relative to the reference, or wins where there is none, against mean seconds a task."""
    import pandas as pd

    one = run.summary
    table = one.table
    relative = one.skill is not None and table["skill"].notna().any()
    worth = 1 - (table["skill"] if relative else table["wins"]).to_numpy(np.float64)
    spent = (table["fit_seconds"] + table["predict_seconds"]).to_numpy(np.float64) / np.maximum(table["tasks"], 1)
    if not np.isfinite(worth * spent).any():
        return ""
    what = judged_by(one.metric)
    own = one.metric if what == "error" else "distance"  # the words above the plot say from where
    label = f"{own} over that of {run.suite.reference}" if relative else "pairings lost"
    names = [short(format_value(name, 60), LABEL) for name in table["model"]]
    held = pd.DataFrame({"model": names, "metric": short(label), "value": worth, "seconds": spent})
    drawn = untitled(plot_pareto(held, backend="svg"))
    said = (
        f"Mean seconds a task to fit and forecast, against {what if relative else 'pairings lost'}: below and left is better "
        "in both. In colour: no other model is both better and faster."
    )
    return f'<p class="quiet">{said}</p>' + figure("pareto", drawn)


def differences(run: Told) -> str:
    """The diagram of critical differences: mean ranks, and bars over models that Nemenyi's test does not tell apart."""
    found = _comparison(run)
    if found is None:
        return ""
    names, one, over = found
    said = (
        f"Mean rank over {one.datasets:,} {over}, 1 the best. A bar joins models that Nemenyi's test does not tell apart at 95 "
        f"%, as their ranks are less than {number(one.difference, 3)} apart. Friedman's test that all are alike: p "
        f"{number(one.p_value, 2)}."
    )
    return f'<p class="quiet">{said}</p>' + figure("critical", diagram(names, one))


def diagram(names: list[str], one: Comparison) -> Any:
    """The best on top; the bars stand to the right of the dots."""
    order = np.argsort(one.rank, kind="stable")[::-1]
    height = {int(model): float(at) for at, model in enumerate(order)}
    labels = tuple(f"{short(format_value(names[model], 60))}   {short_number(float(one.rank[model]))}" for model in order)
    told = tuple(f"{names[model]}: mean rank {one.rank[model]:.3f}" for model in order)
    marks: list[Mark] = [Dots(one.rank[order], np.arange(len(order), dtype=np.float64), COLORS[0], size=8.0, names=told)]
    step = 0.05 * max(float(np.ptp(one.rank)), 1.0)
    for place, clique in enumerate(one.cliques):
        at = float(one.rank.max()) + step * (place + 1)
        ends = [height[clique[0]] + 0.15, height[clique[-1]] - 0.15]
        marks.append(Line(np.array([at, at]), np.array(ends), INK, width=4.0))
    panel = Panel(tuple(marks), "", Axis("mean rank"), Axis(kind="names", names=labels))
    return render(Chart((panel,), 1, 9.0, max(1.0 + 0.3 * len(order), 1.9)), "svg")


def coverage(run: Told) -> str:
    """The share of values inside the intervals against the level promised, mean over tasks."""
    names = {name for row in run.rows for name in row.metrics if name.startswith(COVERAGE)}
    levels = sorted(float(name.removeprefix(COVERAGE)) for name in names)
    curves = [(model, _shares(run.rows, model, levels)) for model in run.summary.table["model"]]
    return calibration(levels, [one for one in curves if np.isfinite(one[1]).any()], "Mean over tasks.")


def _comparison(run: Told) -> tuple[list[str], Comparison, str] | None:
    """Over tasks; where there is one task alone, over its series."""
    one = run.summary
    if one.comparison is not None:
        return list(one.compared), one.comparison, "tasks"
    if len(one.tasks) != 1:
        return None
    try:
        models, _, values = by_series(run.folder, run.rows, one.tasks[0], one.metric)
        return models, friedman(distance(one.metric, values)), "series"
    except DataError:  # one model, or one series: nothing to compare
        return None


def _shares(rows: list[Row], model: str, levels: list[float]) -> Floats:
    """Of a model the mean share inside at each level; its ends, as of tasks that are not alike, are missing."""
    found = np.full((3, len(levels)), np.nan)
    for place, key in enumerate(f"{COVERAGE}{format_number(level)}" for level in levels):
        held = [row.metrics[key] for row in rows if row.model == model and key in row.metrics and row.status == "ok"]
        found[0, place] = np.mean(held) if held else np.nan
    return found
