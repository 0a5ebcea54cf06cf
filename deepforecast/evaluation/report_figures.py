"""The plots of a report: figures of plotly as data beside the place they are drawn in."""

from __future__ import annotations

import json
from html import escape, unescape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.forecast_names import number_text
from deepforecast.data.frames import Floats
from deepforecast.errors import shown
from deepforecast.evaluation.criteria import ENDS
from deepforecast.evaluation.verdict import name
from deepforecast.plotting import plot_leaderboard, plot_pareto
from deepforecast.plotting.backends import render
from deepforecast.plotting.chart import MUTED, Axis, Chart, Dots, Key, Line, Mark, Panel, Spans
from deepforecast.plotting.style import look, short

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

MOST_CURVES = 8  # models in the plot of coverage: the best ones
NARROW = 16  # characters of a name beside an axis on a phone
LABEL = 20  # characters of a name beside a dot
BESIDE = 0.25  # of the axis of levels, between two models
SPARE = 24  # pixels over a plot that has words of the page there anyway
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def figure(anchor: str, drawn: Any) -> str:
    """A place for a figure, and its data as JSON that cannot end the element it stands in."""
    layout = drawn.layout
    drawn.update_layout(template={}, overwrite=True)
    drawn.update_layout(margin_t=layout.margin.t - SPARE, height=layout.height - SPARE)
    data = f'{{"figure": {drawn.to_json()}, "narrow": {json.dumps(_narrow(drawn))}}}'
    for character, told in UNSAFE.items():
        data = data.replace(character, told)
    return f'<div class="figure" data-figure="{anchor}"></div>\n<script type="application/json" id="{anchor}">{data}</script>'


def _narrow(drawn: Any) -> list[str]:
    """The names of models beside an axis, for a page too narrow to hold them: cut, the value below."""
    told = []
    for text in drawn.layout.yaxis.ticktext or ():
        words, _, value = unescape(text).rpartition("   ")
        told.append(f"{escape(short(words, NARROW), quote=False)}<br>{escape(value, quote=False)}".replace("$", "&#36;"))
    return told


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
    drawn = plot_pareto(held, backend="plotly")
    drawn.layout.annotations = ()  # said here, where it has the width it needs
    return f'<p class="quiet">{said}</p>' + figure("pareto", drawn)


def coverage(board: Leaderboard) -> str:
    """The share of values that fell into the intervals, against the level that was promised."""
    levels = sorted({one.level for one in board.criteria.values() if one.metric.name == "coverage" and one.level is not None})
    good = board.table[board.table["error"] == ""]
    curves = [
        (row["model"], np.array([[row[f"coverage-{number_text(level)}{end}"] for level in levels] for end in ENDS]))
        for _, row in good.iterrows()
    ]
    return calibration(levels, curves)


def calibration(levels: list[float], curves: list[tuple[str, Floats]], said: str = "") -> str:
    """The plot of coverage: of each model its name and the shares inside, shape (mean and ends of its interval, levels)."""
    if not levels or not curves:
        return ""
    drawn = curves[:MOST_CURVES]
    marks: list[Mark] = [Line(np.array([0.0, 100.0]), np.array([0.0, 100.0]), MUTED, dash="dash", width=1.2)]
    for place, (model, shares) in enumerate(drawn):
        marks += _curve(model, 100 * shares, np.array(levels) + BESIDE * (place - (len(drawn) - 1) / 2), levels, place)
    keys = [Key(short(shown(model, 60)), look(place)[0], dash=look(place)[1]) for place, (model, _) in enumerate(drawn)]
    lowest = min(levels[0], *(float(np.nanmin(100 * shares[0], initial=100.0)) for _, shares in drawn))
    panel = Panel(tuple(marks), "", Axis("level, %"), Axis("values inside, %"))
    plot = render(Chart((panel,), 1, 9.0, 4.2, "", tuple(keys)), "plotly")
    ends = [max(0.0, np.floor(lowest / 10) * 10 - 5), 102]
    plot.update_xaxes(range=[max(0.0, min(levels) - 8), 102]).update_yaxes(range=ends)
    words = [said, "On the dashed line an interval holds what it promises; below it is too narrow, above it too wide."]
    words += ["Models stand a little beside each other, so that none hides another: the level is the same."] * (len(drawn) > 1)
    words += [f"Shown are the first {MOST_CURVES} of {len(curves)} models."] * (len(curves) > MOST_CURVES)
    return f'<p class="quiet">{" ".join(words).strip()}</p>' + figure("coverage-plot", plot)


def _dots(board: Leaderboard, column: str, anchor: str) -> str:
    """The models in order of one score; nothing where it has no value."""
    held = board.distances(column)
    if not np.isfinite(held["value"]).any():
        return f"<p>{escape(shown(column, 60))} has no value for any model.</p>"
    return figure(anchor, plot_leaderboard(held, backend="plotly"))


def _curve(model: str, shares: Floats, x: Floats, levels: list[float], place: int) -> list[Mark]:
    """One model: dots joined by a line, with their intervals if they have any."""
    (color, dash), label = look(place), short(shown(model, 60))
    value, low, high = shares
    told = tuple(
        f"{name(model)}: {one:.1f} % inside at level {number_text(level)}" for one, level in zip(value, levels, strict=True)
    )
    marks: list[Mark] = [Line(x, value, color, label, label, dash)] if len(levels) > 1 else []
    bounded = np.isfinite(low)
    if bounded.any():
        marks.append(Spans(x[bounded], low[bounded], high[bounded], color, 2.0, 0.5, group=label))
    return [*marks, Dots(x, value, color, label, label, 7.5, names=told)]
