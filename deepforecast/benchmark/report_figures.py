"""The plots of a run's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.rows import Row
from deepforecast.benchmark.summary import by_series, distance
from deepforecast.data.forecast_names import number_text
from deepforecast.errors import DataError, shown
from deepforecast.evaluation.critical import Comparison, friedman
from deepforecast.evaluation.report_figures import LABEL, MOST_CURVES, figure
from deepforecast.evaluation.verdict import number
from deepforecast.plotting import plot_pareto
from deepforecast.plotting.backends import render
from deepforecast.plotting.chart import INK, MUTED, Axis, Chart, Dots, Key, Line, Mark, Panel
from deepforecast.plotting.style import COLORS, look, short, short_number

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
    label = f"{one.metric} over that of {run.suite.reference}" if relative else "pairings lost"
    names = [short(shown(name, 60), LABEL) for name in table["model"]]
    held = pd.DataFrame({"model": names, "metric": short(label), "value": worth, "seconds": spent})
    drawn = plot_pareto(held, backend="plotly")
    drawn.layout.annotations = ()
    said = (
        "Mean seconds a task to fit and forecast, against error: below and left is better in both. In colour: no other model "
        "is both better and faster."
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
    labels = tuple(f"{short(shown(names[model], 60))}   {short_number(float(one.rank[model]))}" for model in order)
    told = tuple(f"{names[model]}: mean rank {one.rank[model]:.3f}" for model in order)
    marks: list[Mark] = [Dots(one.rank[order], np.arange(len(order), dtype=np.float64), COLORS[0], size=8.0, names=told)]
    step = 0.05 * max(float(np.ptp(one.rank)), 1.0)
    for place, clique in enumerate(one.cliques):
        at = float(one.rank.max()) + step * (place + 1)
        ends = [height[clique[0]] + 0.15, height[clique[-1]] - 0.15]
        marks.append(Line(np.array([at, at]), np.array(ends), INK, width=4.0))
    panel = Panel(tuple(marks), "", Axis("mean rank"), Axis(kind="names", names=labels))
    return render(Chart((panel,), 1, 9.0, max(1.0 + 0.3 * len(order), 1.9)), "plotly")


def coverage(run: Told) -> str:
    """The share of values inside the intervals against the level promised, mean over tasks."""
    names = dict.fromkeys(name for row in run.rows for name in row.metrics if name.startswith(COVERAGE))
    levels = sorted(float(name.removeprefix(COVERAGE)) for name in names)
    models = [name for name in run.summary.table["model"] if any(row.model == name and _covers(row) for row in run.rows)]
    if not levels or not models:
        return ""
    shown_models = models[:MOST_CURVES]
    ideal = np.array([0.0, 100.0])
    marks: list[Mark] = [Line(ideal, ideal, MUTED, dash="dash", width=1.2)]
    keys, lowest = [], 100.0
    for place, model in enumerate(shown_models):
        color, dash = look(place)
        y = np.array([_mean(run.rows, model, level) for level in levels])
        x, label = np.array(levels) + 0.25 * (place - MOST_CURVES / 2), short(shown(model, 60))
        lowest = min(lowest, float(np.nanmin(y)))
        told = tuple(f"{label}: {at:.1f} % inside at level {number_text(level)}" for at, level in zip(y, levels, strict=True))
        marks += [Line(x, y, color, label, label, dash)] if len(levels) > 1 else []
        marks.append(Dots(x, y, color, label, label, 7.5, names=told))
        keys.append(Key(label, color, dash=dash))
    panel = Panel(tuple(marks), "", Axis("level, %"), Axis("values inside, %"))
    drawn = render(Chart((panel,), 1, 9.0, 4.2, "", tuple(keys)), "plotly")
    drawn.update_xaxes(range=[max(0.0, min(levels) - 8), 102]).update_yaxes(range=[max(0.0, lowest // 10 * 10 - 5), 102])
    few = f" Shown are the first {MOST_CURVES} of {len(models)} models." if len(models) > MOST_CURVES else ""
    said = "Mean over tasks. On the dashed line an interval holds what it promises; below it is too narrow, above it too wide."
    return f'<p class="quiet">{said}{few}</p>' + figure("coverage-plot", drawn)


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


def _covers(row: Row) -> bool:
    return row.status == "ok" and any(name.startswith(COVERAGE) for name in row.metrics)


def _mean(rows: list[Row], model: str, level: float) -> float:
    key = f"{COVERAGE}{number_text(level)}"
    held = [row.metrics[key] for row in rows if row.model == model and key in row.metrics and row.status == "ok"]
    return 100 * float(np.mean(held)) if held else float("nan")
