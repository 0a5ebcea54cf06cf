"""SVG elements: the marks stand where their values are, everything is text, and pages and names are safe."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from deepforecast.plotting import (
    plot,
    plot_attention,
    plot_components,
    plot_leaderboard,
    plot_pareto,
    plot_residuals,
    plot_training,
)
from deepforecast.plotting.chart import Axis, Bars, Chart, Dots, Labels, Line, Mark, Panel, Rules, Spans
from deepforecast.plotting.svg_backend import SvgFigure

Make = Callable[..., pd.DataFrame]
NAME = "{http://www.w3.org/2000/svg}"
TABLE = pd.DataFrame({"model": ["Naive", "LSTM"], "metric": "MAE", "value": [2.0, 1.0], "low": 0.5, "high": [3.0, 2.0]})


def root(figure: SvgFigure, width: float = 800.0) -> ElementTree.Element:
    return ElementTree.fromstring(figure.svg(width))


def texts(figure: SvgFigure, width: float = 800.0) -> dict[str, tuple[float, float]]:
    """Where each line of text stands."""
    found = root(figure, width).iter(f"{NAME}text")
    return {one.text or "": (float(one.attrib["x"]), float(one.attrib["y"])) for one in found}


def figure(*marks: Mark, **axes: Any) -> SvgFigure:
    return SvgFigure(Chart((Panel(marks, "title", **axes),)))


def corners(figure: SvgFigure) -> list[list[float]]:
    """The points of every path of more than two, in pixels."""
    paths = [re.findall(r"([\d.]+) ([\d.]+)", one.attrib["d"]) for one in root(figure).iter(f"{NAME}path")]
    return [[float(number) for pair in path for number in pair] for path in paths if len(path) > 2]


def test_a_figure_is_short_where_a_notebook_prints_it() -> None:
    figure = plot_leaderboard(TABLE, backend="svg")
    assert repr(figure) == "SvgFigure(1 panel)"
    assert figure._repr_html_() == figure.svg()


def test_points_stand_where_their_values_are() -> None:
    drawn = figure(Line(np.array([0.0, 1.0, 2.0]), np.array([10.0, 30.0, 20.0]), "#0072B2"))
    at = texts(drawn)
    x0, y0, x1, y1, x2, y2 = next(path for path in corners(drawn) if len(path) == 6)
    assert [x0, x2] == pytest.approx([at["0"][0], at["2"][0]], abs=0.2)
    assert x1 == pytest.approx((x0 + x2) / 2, abs=0.2)
    assert [y0 + 4, y1 + 4, y2 + 4] == pytest.approx([at[label][1] for label in ("10", "30", "20")], abs=0.2)


def test_logarithms_and_stamps_stand_where_they_are() -> None:
    log = figure(Dots(np.array([1.0, 10.0, 100.0]), np.array([2e6, 3e6, 4e6])), x=Axis(kind="log"))
    centers = [float(one.attrib["cx"]) for one in root(log).iter(f"{NAME}circle")]
    assert centers == pytest.approx([texts(log)[label][0] for label in ("1", "10", "100")], abs=0.2)
    days = np.array(["2024-01-01", "2024-02-01", "2024-03-01"], dtype="M8[us]")
    dates = figure(Dots(days, np.arange(3.0)), x=Axis(kind="time"))
    centers = [float(one.attrib["cx"]) for one in root(dates).iter(f"{NAME}circle")]
    assert centers[:2] == pytest.approx([texts(dates)[label][0] for label in ("2024", "Feb")], abs=0.2)


def test_missing_values_break_a_line() -> None:
    drawn = figure(Line(np.arange(5.0), np.array([1.0, 2.0, np.nan, 3.0, 4.0]), "#0072B2"))
    (path,) = [one.attrib["d"] for one in root(drawn).iter(f"{NAME}path") if one.attrib["stroke"] == "#0072B2"]
    assert path.count("M") == 2
    assert "nan" not in drawn.svg()


def test_long_lines_keep_their_extremes() -> None:
    y = np.sin(np.arange(100_000) / 10)
    y[50_000] = 9.0
    drawn = figure(Line(np.arange(100_000.0), y, "#0072B2"))
    assert len(drawn.svg()) < 60_000
    at = texts(drawn)
    (path,) = [one.attrib["d"] for one in root(drawn).iter(f"{NAME}path") if one.attrib["stroke"] == "#0072B2"]
    top = min(float(pair.split()[1]) for pair in re.findall(r"[\d.]+ [\d.]+", path))
    unit = (at["0"][1] - at["8"][1]) / 8
    assert top == pytest.approx(at["8"][1] - 4 - unit, abs=0.3)


def test_all_marks_of_all_plots_are_drawn(panel: Make, ahead: Make, windows: Make) -> None:
    history = panel("a", "b")
    days = pd.date_range("2024-01-03", periods=35)
    parts = pd.DataFrame({"ds": days, "component": "trend", "value": np.arange(35.0)})
    report = pd.DataFrame({"step": [1, 2], "loss": [2.0, 1.0], "learning_rate": 0.1, "gradient_norm": [3.0, 1.0]})
    lag = pd.date_range("2024-01-01", periods=3)
    weights = pd.DataFrame({
        "ds": lag[2] + pd.Timedelta("1D"), "cutoff": lag[2], "step": 1, "lag": lag, "kind": "cross", "layer": 0, "head": 0,
        "weight": [0.1, 0.7, 0.2],
    })  # fmt: skip
    figures = [
        plot(history, ahead(history), backend="svg"),
        plot_components(parts, backend="svg"),
        plot_training(report, backend="svg"),
        plot_residuals(windows(history), backend="svg"),
        plot_attention(weights, backend="svg"),
        plot_leaderboard(TABLE, backend="svg"),
        plot_pareto(TABLE.assign(seconds=[1.0, 90.0]), backend="svg"),
    ]
    for one in figures:
        for width in (366.0, 800.0):
            drawn = one.svg(width)
            assert ElementTree.fromstring(drawn).attrib["viewBox"].startswith(f"0 0 {width:.0f} ")
            assert "nan" not in drawn
            assert "<image" not in drawn


def test_values_are_shown_on_hover(panel: Make, ahead: Make) -> None:
    history = panel("a")
    drawn = plot(history, ahead(history, levels=(80,)), backend="svg")
    titles = ["".join(one.itertext()) for one in root(drawn).iter(f"{NAME}title")]
    assert any(title.startswith("2024-01-30\nobserved: ") for title in titles)
    assert any("80 % interval" in title and title.startswith("2024-01-31\nLSTM: ") for title in titles)
    named = plot_leaderboard(TABLE, backend="svg")
    assert "LSTM: 1 (0.5 to 2)" in ["".join(one.itertext()) for one in root(named).iter(f"{NAME}title")]


def test_narrow_pages_have_one_column_and_values_below_names(panel: Make, windows: Make) -> None:
    drawn = plot_residuals(windows(panel("a")), backend="svg")
    wide, narrow = (float(root(drawn, width).attrib["viewBox"].split()[3]) for width in (800.0, 366.0))
    assert narrow > 1.7 * wide
    table = TABLE.assign(model=["model_with_a_very_long_name_of_many", "LSTM"])
    at = texts(plot_leaderboard(table, backend="svg"), 366.0)
    name, value = at["model_wi…of_many"], at["2"]
    assert value[1] > name[1]
    assert value[0] == name[0]


def test_no_text_is_interpreted_or_has_control_characters() -> None:
    hostile = '<script>x</script>"$x$\x1b\x00'
    lone = np.array([0.5])
    drawn = figure(
        Dots(lone, lone, names=(hostile,)), Labels(lone, lone, (hostile,), (True,), (lone, lone)),
        x=Axis(hostile), y=Axis(hostile),
    )  # fmt: skip
    text = drawn.svg()
    assert "<script" not in text
    assert "$" not in text
    assert not re.search(r"[\x00-\x1f]", text)
    assert {one.tag.removeprefix(NAME) for one in root(drawn).iter()} <= {"svg", "text", "path", "circle", "g", "title"}


@pytest.mark.parametrize(
    "marks",
    [(), (Line(np.array([1.0]), np.array([0.0])),), (Dots(np.arange(2.0), np.full(2, np.nan)),), (Rules(np.array([3.0])),),
     (Bars(np.arange(3.0), np.zeros(2), "#0072B2"),), (Spans(np.zeros(1), np.zeros(1), np.zeros(1), "#0072B2"),)],
    ids=["nothing", "one point", "missing", "rule", "empty bars", "no span"],
)  # fmt: skip
def test_little_to_draw_is_drawn(marks: tuple[Mark, ...]) -> None:
    drawn = figure(*marks)
    assert "nan" not in drawn.svg()
    assert ("no values" in texts(drawn)) == (not marks)
    assert drawn._repr_html_() == drawn.svg()
