"""The plots of a report, as SVG elements."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.forecast_names import format_number
from deepforecast.data.frames import Floats
from deepforecast.errors import format_value
from deepforecast.evaluation.criteria import ENDS
from deepforecast.evaluation.report_tables import intervals
from deepforecast.evaluation.verdict import name
from deepforecast.plotting import plot_leaderboard, plot_pareto
from deepforecast.plotting.backends import render
from deepforecast.plotting.chart import MUTED, Axis, Chart, Dots, Key, Line, Mark, Panel, Spans
from deepforecast.plotting.style import look, short
from deepforecast.plotting.svg_backend import SvgFigure

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

WIDE, NARROW = 800.0, 366.0  # pixels of a plot, and of one on a phone
MOST_CURVES = 8  # models in the plot of coverage: the best ones
LABEL = 20  # characters of a name beside a dot
BESIDE = 0.25  # of the axis of levels, between two models


def figure(anchor: str, drawn: SvgFigure) -> str:
    """A plot in two widths: the page shows the one that fits its own."""
    wide, narrow = drawn.svg(WIDE), drawn.svg(NARROW)
    return (
        f'<div class="figure" id="{anchor}"><div class="wide">{wide}</div>'
        f'<div class="narrow">{narrow}</div></div>'
    )


def untitled(drawn: SvgFigure) -> SvgFigure:
    """The same plot without its titles and note."""
    panels = tuple(replace(panel, title="") for panel in drawn.chart.panels)
    return SvgFigure(replace(drawn.chart, panels=panels, note=""))


def scores(board: Leaderboard) -> str:
    """The metric that decides with its intervals; the others in a part to be opened."""
    first, *others = [*board.metrics, *(name for name in board.criteria if name not in board.metrics)]
    plots = [_dots(board, column, f"scores-{place}") for place, column in enumerate([first, *others])]
    more = "".join(plot for plot in plots[1:] if plot)
    note = '<p class="quiet">The dot is the mean over series, the bar its 95 % bootstrap interval over series.</p>'
    return f"{note}{plots[0]}" + (f"<details><summary>The other scores</summary>{more}</details>" if more else "")


def cost(board: Leaderboard) -> str:
    """Seconds against the metric that decides."""
    metric = board.metrics[0]
    held = board.distances(metric).drop(columns="lower_is_better")
    if board.criteria[metric].metric.better == "high":
        held["value"], held["metric"] = -held["value"], f"minus {metric}"
    if not np.isfinite(held["value"] * held["seconds"]).any():
        return ""
    said = (
        "Seconds to fit and forecast all windows, against the score that decides: below and left is better in both. "
        "In colour: no other model is both better and faster."
    )
    held["model"] = [short(one, LABEL) for one in held["model"]]
    drawn = untitled(plot_pareto(held, backend="svg"))  # the text above says it in the width it needs
    return f'<p class="quiet">{said}</p>' + figure("pareto", drawn)


def coverage(board: Leaderboard) -> str:
    """The share of values that fell into the intervals, against the level that was promised."""
    levels = sorted({one.level for one in board.criteria.values() if one.metric.name == "coverage" and one.level is not None})
    good = board.table[board.table["error"] == ""]
    curves = [
        (row["model"], np.array([[row[f"coverage-{format_number(level)}{end}"] for level in levels] for end in ENDS]))
        for _, row in good.iterrows()
    ]
    return calibration(levels, curves) + intervals(board)


def calibration(levels: list[float], curves: list[tuple[str, Floats]], said: str = "") -> str:
    """The plot of coverage: of each model its name and the shares inside, shape (mean and ends of its interval, levels)."""
    if not levels or not curves:
        return ""
    drawn = curves[:MOST_CURVES]
    keys = [Key(short(format_value(model, 60)), look(place)[0], dash=look(place)[1]) for place, (model, _) in enumerate(drawn)]
    panel = Panel(tuple(calibration_marks(levels, drawn)), "", Axis("level, %"), Axis("values inside, %"))
    plot = render(Chart((panel,), 1, 9.0, 4.2, "", tuple(keys)), "svg")
    words = [said, "On the dashed line an interval holds what it promises; below it is too narrow, above it too wide."]
    words += ["Models stand a little beside each other, so that none hides another: the level is the same."] * (len(drawn) > 1)
    words += [f"Shown are the first {MOST_CURVES} of {len(curves)} models."] * (len(curves) > MOST_CURVES)
    return f'<p class="quiet">{" ".join(words).strip()}</p>' + figure("coverage-plot", plot)


def calibration_marks(levels: list[float], drawn: list[tuple[str, Floats]]) -> list[Mark]:
    """The diagonal, as far down as it is needed, and the curve of each model next to that of the one before it."""
    lowest = min(levels[0] - 8, *(float(np.nanmin(100 * shares[0], initial=100.0)) - 5 for _, shares in drawn))
    diagonal = np.array([max(0.0, lowest), 100.0])
    marks: list[Mark] = [Line(diagonal, diagonal, MUTED, dash="dash", width=1.2)]
    for place, (model, shares) in enumerate(drawn):
        marks += _curve(model, 100 * shares, np.array(levels) + BESIDE * (place - (len(drawn) - 1) / 2), levels, place)
    return marks


def _dots(board: Leaderboard, column: str, anchor: str) -> str:
    """The models in order of one score; nothing where it has no value."""
    held = board.distances(column)
    if not np.isfinite(held["value"]).any():
        return f"<p>{escape(format_value(column, 60))} has no value for any model.</p>"
    return figure(anchor, plot_leaderboard(held, backend="svg"))


def _curve(model: str, shares: Floats, x: Floats, levels: list[float], place: int) -> list[Mark]:
    """One model: dots joined by a line, with their intervals if they have any."""
    (color, dash), label = look(place), short(format_value(model, 60))
    value, low, high = shares
    told = tuple(
        f"{name(model)}: {one:.1f} % inside at level {format_number(level)}" for one, level in zip(value, levels, strict=True)
    )
    marks: list[Mark] = [Line(x, value, color, label, label, dash)] if len(levels) > 1 else []
    bounded = np.isfinite(low)
    if bounded.any():
        marks.append(Spans(x[bounded], low[bounded], high[bounded], color, 2.0, 0.5, group=label))
    return [*marks, Dots(x, value, color, label, label, 7.5, names=told)]
