"""Plots of a report as SVG elements."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.columns import format_number
from deepforecast.data.frames import Floats
from deepforecast.errors import format_value
from deepforecast.evaluation.criteria import INTERVAL_SUFFIXES
from deepforecast.evaluation.leaderboard_summary import format_model_name
from deepforecast.evaluation.report_tables import interval_tables
from deepforecast.plotting import plot_leaderboard, plot_pareto
from deepforecast.plotting.backends import render
from deepforecast.plotting.chart import MUTED, Axis, Chart, Dots, Key, Line, Mark, Panel, Spans
from deepforecast.plotting.style import model_style, shorten
from deepforecast.plotting.svg_backend import SvgFigure

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

WIDE_PIXELS = 800.0  # width of a plot on a desktop
NARROW_PIXELS = 366.0  # width of a plot on a phone
MAX_CURVES = 8  # models in the plot of coverage: the best ones
LABEL_LENGTH = 20  # characters of a name next to a dot
CURVE_OFFSET = 0.25  # horizontal distance between the curves of two models, in percent


def figure_html(anchor: str, plot: SvgFigure) -> str:
    """A plot in two widths; the style sheet shows the one that fits."""
    return (
        f'<div class="figure" id="{anchor}"><div class="wide">{plot.svg(WIDE_PIXELS)}</div>'
        f'<div class="narrow">{plot.svg(NARROW_PIXELS)}</div></div>'
    )


def without_titles(plot: SvgFigure) -> SvgFigure:
    """The same plot without its titles and note."""
    panels = tuple(replace(panel, title="") for panel in plot.chart.panels)
    return SvgFigure(replace(plot.chart, panels=panels, note=""))


def score_figures(board: Leaderboard) -> str:
    """The ranking metric with its intervals; other metrics in a collapsed element."""
    main_column, *other_columns = [*board.metrics, *(name for name in board.criteria if name not in board.metrics)]
    plots = [_score_figure(board, column, f"scores-{index}") for index, column in enumerate([main_column, *other_columns])]
    other_plots = "".join(plot for plot in plots[1:] if plot)
    note = '<p class="quiet">The dot is the mean over series, the bar its 95 % bootstrap interval over series.</p>'
    return f"{note}{plots[0]}" + (f"<details><summary>The other scores</summary>{other_plots}</details>" if other_plots else "")


def cost_figure(board: Leaderboard) -> str:
    """Seconds against the ranking metric."""
    metric = board.metrics[0]
    distances = board.distances(metric).drop(columns="lower_is_better")
    if board.criteria[metric].metric.better == "high":
        distances["value"] = -distances["value"]
        distances["metric"] = f"minus {metric}"
    if not np.isfinite(distances["value"] * distances["seconds"]).any():
        return ""
    caption = (
        "Seconds to fit and forecast all windows, against the ranking metric: lower left is better in both. "
        "In colour: the Pareto front, models that no other model beats in both."
    )
    distances["model"] = [shorten(model_name, LABEL_LENGTH) for model_name in distances["model"]]
    plot = without_titles(plot_pareto(distances, backend="svg"))  # the caption above replaces the title
    return f'<p class="quiet">{caption}</p>' + figure_html("pareto", plot)


def coverage_section(board: Leaderboard) -> str:
    """Coverage of the prediction intervals against their level."""
    levels = sorted(
        {
            criterion.level
            for criterion in board.criteria.values()
            if criterion.metric.name == "coverage" and criterion.level is not None
        }
    )
    successful = board.table[board.table["error"] == ""]
    curves = [
        (
            row["model"],
            np.array([[row[f"coverage-{format_number(level)}{end}"] for level in levels] for end in INTERVAL_SUFFIXES]),
        )
        for _, row in successful.iterrows()
    ]
    return calibration_figure(levels, curves) + interval_tables(board)


def calibration_figure(levels: list[float], curves: list[tuple[str, Floats]], introduction: str = "") -> str:
    """The coverage plot; `curves` has the name and coverage of each model, shape (mean and interval
    bounds, levels)."""
    if not levels or not curves:
        return ""
    shown_curves = curves[:MAX_CURVES]
    keys = [
        Key(shorten(format_value(model, 60)), model_style(index)[0], dash=model_style(index)[1])
        for index, (model, _) in enumerate(shown_curves)
    ]
    panel = Panel(tuple(calibration_marks(levels, shown_curves)), "", Axis("level, %"), Axis("coverage, %"))
    plot = render(Chart((panel,), 1, 9.0, 4.2, "", tuple(keys)), "svg")
    sentences = [
        introduction,
        "On the dashed line coverage equals the level; below it intervals are too narrow, above it too wide.",
    ]
    sentences += ["Models are shifted horizontally to avoid overlaps; the levels are the same."] * (len(shown_curves) > 1)
    sentences += [f"Shown are the first {MAX_CURVES} of {len(curves)} models."] * (len(curves) > MAX_CURVES)
    return f'<p class="quiet">{" ".join(sentences).strip()}</p>' + figure_html("coverage-plot", plot)


def calibration_marks(levels: list[float], shown_curves: list[tuple[str, Floats]]) -> list[Mark]:
    """The diagonal and the curves of the models, each shifted against the previous one."""
    lowest = min(levels[0] - 8, *(float(np.nanmin(100 * shares[0], initial=100.0)) - 5 for _, shares in shown_curves))
    diagonal = np.array([max(0.0, lowest), 100.0])
    marks: list[Mark] = [Line(diagonal, diagonal, MUTED, dash="dash", width=1.2)]
    for index, (model, shares) in enumerate(shown_curves):
        marks += _curve_marks(
            model, 100 * shares, np.array(levels) + CURVE_OFFSET * (index - (len(shown_curves) - 1) / 2), levels, index
        )
    return marks


def _score_figure(board: Leaderboard, column: str, anchor: str) -> str:
    """The models in order of one score."""
    distances = board.distances(column)
    if not np.isfinite(distances["value"]).any():
        return f"<p>{escape(format_value(column, 60))} has no value for any model.</p>"
    return figure_html(anchor, plot_leaderboard(distances, backend="svg"))


def _curve_marks(model: str, shares: Floats, x: Floats, levels: list[float], index: int) -> list[Mark]:
    """The curve of one model, with intervals if there are any."""
    (color, dash), label = model_style(index), shorten(format_value(model, 60))
    value, low, high = shares
    tooltips = tuple(
        f"{format_model_name(model)}: {share:.1f} % coverage at level {format_number(level)}"
        for share, level in zip(value, levels, strict=True)
    )
    marks: list[Mark] = [Line(x, value, color, label, label, dash)] if len(levels) > 1 else []
    bounded = np.isfinite(low)
    if bounded.any():
        marks.append(Spans(x[bounded], low[bounded], high[bounded], color, 2.0, 0.5, group=label))
    return [*marks, Dots(x, value, color, label, label, 7.5, names=tooltips)]
