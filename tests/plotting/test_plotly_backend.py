"""Plotly figures: the same data, readable on light and dark pages, harmless whatever the names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.plotting import plot

Make = Callable[..., pd.DataFrame]


def traces(figure: Any, name: str) -> list[Any]:
    return [trace for trace in figure.data if trace.name == name]


def test_lines_hold_the_values_of_the_frames(panel: Make, ahead: Make, library: Callable[..., Any]) -> None:
    history = panel("a")
    forecast = ahead(history)
    figure = plot(library(history), library(forecast), backend="plotly")
    (observed,), (line,) = traces(figure, "observed"), traces(figure, "LSTM")
    np.testing.assert_array_equal(observed.y, history.y)
    np.testing.assert_array_equal(np.asarray(observed.x, dtype="M8[us]"), history.ds.to_numpy().astype("M8[us]"))
    np.testing.assert_array_equal(line.y, forecast.LSTM)
    np.testing.assert_array_equal(line.customdata[:, 0], forecast["LSTM-lo-80"])
    assert line.hovertemplate.count("interval") == 2


def test_bands_nest_below_the_line(panel: Make, ahead: Make) -> None:
    history = panel("a")
    data = list(plot(history, ahead(history, levels=(80, 95)), backend="plotly").data)
    wide, narrow = (trace for trace in data if trace.fill == "toself")
    assert data.index(wide) < data.index(narrow) < data.index(next(trace for trace in data if trace.name == "LSTM"))
    assert np.nanmin(wide.y) < np.nanmin(narrow.y) < np.nanmax(narrow.y) < np.nanmax(wide.y)


def test_a_gap_parts_line_and_band(panel: Make, ahead: Make) -> None:
    history = panel("a")
    forecast = ahead(history, levels=(80,))
    forecast.loc[3, ["LSTM", "LSTM-lo-80"]] = np.nan
    figure = plot(history, forecast, backend="plotly")
    (band,) = [trace for trace in figure.data if trace.fill == "toself"]
    assert np.isnan(band.y).sum() == 2  # each outline ends in a break
    (line,) = traces(figure, "LSTM")
    assert not line.connectgaps
    assert np.isnan(line.y).tolist() == [False, False, False, True, False, False, False]


def test_legend_stands_once_in_order_and_rules_all_panels(panel: Make, ahead: Make) -> None:
    history = panel("a", "b", "c")
    figure = plot(history, ahead(history, models=("LSTM", "ETS")), backend="plotly")
    entries = sorted((trace for trace in figure.data if trace.showlegend), key=lambda trace: trace.legendrank)
    assert [trace.name for trace in entries] == ["observed", "LSTM", "ETS", "95 % interval", "80 % interval"]
    groups = [trace.legendgroup for trace in figure.data if trace.fill == "toself"]
    assert sorted(set(groups)) == ["ETS", "LSTM"]  # hiding a model hides its bands


def test_ground_is_transparent_and_words_read_on_both(panel: Make, ahead: Make) -> None:
    history = panel("a", "b")
    layout = plot(history, ahead(history), backend="plotly").layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert layout.font.color == "#7A7A7A"
    assert layout.width is None  # it takes the width of its page


def test_forecast_start_is_marked_in_each_panel(panel: Make, ahead: Make) -> None:
    history = panel("a", "b")
    shapes = plot(history, ahead(history), backend="plotly").layout.shapes
    assert [pd.Timestamp(shape.x0) for shape in shapes] == [pd.Timestamp("2024-01-31")] * 2
    assert [shape.yref for shape in shapes] == ["y domain", "y2 domain"]


def test_time_zone_is_shown_as_the_wall_shows_it(panel: Make) -> None:
    history = panel("a", n=4, freq="h", tz="Europe/Berlin", start="2024-10-27 01:00")
    figure = plot(history, backend="plotly")
    hours = [str(stamp)[11:16] for stamp in np.asarray(figure.data[0].x, dtype="M8[us]")]
    assert hours == ["01:00", "02:00", "02:00", "03:00"]
    assert figure.layout.xaxis.title.text == "Europe/Berlin"


def test_names_cannot_become_markup_or_scripts(panel: Make, ahead: Make) -> None:
    name = "</script><script>alert(1)</script> $a$"
    figure = plot(panel(name, "b"), ahead(panel(name, "b"), models=(name,)), backend="plotly")
    escaped = "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; &#36;a&#36;"
    assert escaped in {note.text for note in figure.layout.annotations}
    assert traces(figure, "&lt;/script&gt;&lt;script…ert(1)&lt;/script&gt; &#36;a&#36;") or traces(figure, escaped)
    page = figure.to_html(include_plotlyjs=False, full_html=False)
    assert len(re.findall("</script>", page)) == len(re.findall("<script", page))
    assert "alert(1)</script>" not in page


@pytest.mark.parametrize("n", [1, 4, 9])
def test_figure_is_whole_json_with_room_for_every_row(panel: Make, n: int) -> None:
    history = panel(*range(n), n=10)
    figure = plot(history, ids=list(range(n)), backend="plotly")
    assert len(json.loads(figure.to_json())["data"]) == n
    rows = {1: 1, 4: 2, 9: 3}[n]
    assert figure.layout.height > 180 * rows
    domains = sorted({tuple(axis.domain) for axis in figure.select_yaxes()})
    assert len(domains) == rows
    assert all(low[1] < high[0] for low, high in pairwise(domains))


def test_integer_time_and_large_numbers_are_told_in_full(panel: Make) -> None:
    figure = plot(panel("a").assign(ds=range(2000, 2030), y=3e9 + np.arange(30) % 4), backend="plotly")
    assert figure.layout.xaxis.tickformat == "d"
    assert figure.layout.yaxis.exponentformat == "none"
    assert figure.data[0].hovertemplate == "%{y:,.3~f}"


def test_empty_panel_says_so(panel: Make) -> None:
    figure = plot(panel("a").assign(y=np.nan), backend="plotly")
    assert [note.text for note in figure.layout.annotations] == ["a (no values)"]
