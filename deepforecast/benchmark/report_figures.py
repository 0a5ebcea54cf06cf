"""Plots of the report of a run, as HTML with captions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.job_results import Row
from deepforecast.benchmark.summary import describe_distance, distance, read_series_metrics
from deepforecast.data.columns import format_number
from deepforecast.data.frames import Floats
from deepforecast.errors import DataError, format_value
from deepforecast.evaluation.critical_difference import FriedmanTest, friedman
from deepforecast.evaluation.leaderboard_summary import format_rounded
from deepforecast.evaluation.report_figures import LABEL_LENGTH, calibration_figure, figure_html, without_titles
from deepforecast.plotting import plot_pareto
from deepforecast.plotting.backends import render
from deepforecast.plotting.chart import INK, Axis, Chart, Dots, Line, Mark, Panel
from deepforecast.plotting.style import COLORS, format_compact, shorten

if TYPE_CHECKING:
    from deepforecast.benchmark.report import BenchmarkRun

COVERAGE_PREFIX = "coverage-"


def cost_figure(run: BenchmarkRun) -> str:
    """Plot error relative to the reference, or comparisons lost without one, against mean seconds per task."""
    import pandas as pd

    summary = run.summary
    table = summary.table
    relative = summary.skill is not None and table["skill"].notna().any()
    relative_error = 1 - (table["skill"] if relative else table["wins"]).to_numpy(np.float64)
    mean_seconds = (table["fit_seconds"] + table["predict_seconds"]).to_numpy(np.float64) / np.maximum(table["tasks"], 1)
    if not np.isfinite(relative_error * mean_seconds).any():
        return ""
    distance_name = describe_distance(summary.metric)
    error_name = summary.metric if distance_name == "error" else "distance"  # the caption has the full name
    label = f"{error_name} relative to {run.suite.reference}" if relative else "comparisons lost"
    names = [shorten(format_value(name, 60), LABEL_LENGTH) for name in table["model"]]
    points = pd.DataFrame({"model": names, "metric": shorten(label), "value": relative_error, "seconds": mean_seconds})
    plot = without_titles(plot_pareto(points, backend="svg"))
    caption = (
        f"Mean seconds per task to fit and forecast, against {distance_name if relative else 'comparisons lost'}: "
        "lower left is better in both. In colour: the Pareto front, models that no other model beats in both."
    )
    return f'<p class="quiet">{caption}</p>' + figure_html("pareto", plot)


def critical_difference_figure(run: BenchmarkRun) -> str:
    """Plot the critical difference diagram: mean ranks, with bars that connect models without a significant difference.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7.
    """
    comparison = _friedman_test(run)
    if comparison is None:
        return ""
    names, test, unit = comparison
    caption = (
        f"Mean rank over {test.n_datasets:,} {unit}; 1 is best. A bar connects models whose mean ranks differ by less than the "
        f"critical difference {format_rounded(test.critical_difference, 3)}: they do not differ significantly (Nemenyi test at "
        f"the 5 % level). Friedman test of equal performance: p = {format_rounded(test.p_value, 2)}."
    )
    return f'<p class="quiet">{caption}</p>' + figure_html("critical", rank_diagram(names, test))


def rank_diagram(names: list[str], test: FriedmanTest) -> Any:
    """Draw mean ranks as dots, the best on top, and the bars to the right of them.

    Parameters
    ----------
    names : list of str
        Names of the models.
    test : FriedmanTest
        Mean ranks and groups of models without a significant difference.
    """
    order = np.argsort(test.mean_ranks, kind="stable")[::-1]
    height = {int(model): float(position) for position, model in enumerate(order)}
    labels = tuple(
        f"{shorten(format_value(names[model], 60))}   {format_compact(float(test.mean_ranks[model]))}" for model in order
    )
    tooltips = tuple(f"{names[model]}: mean rank {test.mean_ranks[model]:.3f}" for model in order)
    marks: list[Mark] = [
        Dots(test.mean_ranks[order], np.arange(len(order), dtype=np.float64), COLORS[0], size=8.0, names=tooltips)
    ]
    step = 0.05 * max(float(np.ptp(test.mean_ranks)), 1.0)
    for clique_index, clique in enumerate(test.cliques):
        position = float(test.mean_ranks.max()) + step * (clique_index + 1)
        ends = [height[clique[0]] + 0.15, height[clique[-1]] - 0.15]
        marks.append(Line(np.array([position, position]), np.array(ends), INK, width=4.0))
    panel = Panel(tuple(marks), "", Axis("mean rank"), Axis(kind="names", names=labels))
    return render(Chart((panel,), 1, 9.0, max(1.0 + 0.3 * len(order), 1.9)), "svg")


def coverage_figure(run: BenchmarkRun) -> str:
    """Plot the coverage of the intervals against their level, averaged over tasks."""
    names = {name for row in run.rows for name in row.metrics if name.startswith(COVERAGE_PREFIX)}
    levels = sorted(float(name.removeprefix(COVERAGE_PREFIX)) for name in names)
    curves = [(model, _mean_coverage(run.rows, model, levels)) for model in run.summary.table["model"]]
    return calibration_figure(levels, [curve for curve in curves if np.isfinite(curve[1]).any()], "Mean over tasks.")


def _friedman_test(run: BenchmarkRun) -> tuple[list[str], FriedmanTest, str] | None:
    """Return models, test and unit: over tasks, or over the series of a single task; None if neither is possible."""
    summary = run.summary
    if summary.friedman_test is not None:
        return list(summary.complete_models), summary.friedman_test, "tasks"
    if len(summary.tasks) != 1:
        return None
    try:
        models, _, values = read_series_metrics(run.folder, run.rows, summary.tasks[0], summary.metric)
        return models, friedman(distance(summary.metric, values)), "series"
    except DataError:  # a single model or series
        return None


def _mean_coverage(rows: list[Row], model: str, levels: list[float]) -> Floats:
    """Return the coverage of a model at each level, averaged over tasks, and NaN as bounds: tasks are not a sample."""
    coverages = np.full((3, len(levels)), np.nan)
    for index, key in enumerate(f"{COVERAGE_PREFIX}{format_number(level)}" for level in levels):
        level_coverages = [row.metrics[key] for row in rows if row.model == model and key in row.metrics and row.status == "ok"]
        coverages[0, index] = np.mean(level_coverages) if level_coverages else np.nan
    return coverages
