"""`plot`: what is drawn, where, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.dates import date2num
from matplotlib.figure import Figure

from deepforecast import plotting
from deepforecast.data.columns import Columns
from deepforecast.errors import DataError, ParameterError
from deepforecast.plotting import plot

Make = Callable[..., pd.DataFrame]


def test_dir_lists_the_functions() -> None:
    assert dir(plotting) == sorted(plotting.__all__)
    assert all(callable(getattr(plotting, name)) for name in dir(plotting))


def lines(figure: Figure, at: int = 0) -> dict[str, Any]:
    """The named lines of a panel."""
    return {str(line.get_label()): line for line in figure.axes[at].lines if not str(line.get_label()).startswith("_")}


def bands(figure: Figure, at: int = 0) -> list[PolyCollection]:
    """The filled areas of a panel, from the bottom up."""
    found = [area for area in figure.axes[at].collections if isinstance(area, PolyCollection)]
    return sorted(found, key=lambda area: area.get_zorder())


def heights(area: PolyCollection) -> tuple[float, float]:
    corners = np.concatenate([path.vertices for path in area.get_paths()])
    return float(corners[:, 1].min()), float(corners[:, 1].max())


def entries(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_lines_hold_the_values_of_the_frames(panel: Make, ahead: Make, library: Callable[..., Any]) -> None:
    history = panel("a")
    forecast = ahead(history)
    drawn = lines(plot(library(history), library(forecast)))
    np.testing.assert_array_equal(drawn["observed"].get_ydata(), history.y)
    np.testing.assert_allclose(drawn["observed"].get_xdata(), date2num(history.ds.to_numpy()))
    np.testing.assert_array_equal(drawn["LSTM"].get_ydata(), forecast.LSTM)


def test_bands_nest_the_wider_lighter_and_below(panel: Make, ahead: Make) -> None:
    history = panel("a")
    wide, narrow = bands(plot(history, ahead(history, levels=(80, 95))))
    assert wide.get_zorder() < narrow.get_zorder() < lines(plot(history, ahead(history)))["LSTM"].get_zorder()
    (low, high), (inner_low, inner_high) = heights(wide), heights(narrow)
    assert low < inner_low < inner_high < high
    assert high - inner_high == pytest.approx(15 / 20)
    shown = [patch.get_alpha() for patch in plot(history, ahead(history)).legends[0].get_patches()]
    assert shown[0] < shown[1]


def test_level_chooses_bands_and_an_empty_list_draws_none(panel: Make, ahead: Make) -> None:
    history = panel("a")
    forecast = ahead(history, levels=(50, 80, 95))
    assert len(bands(plot(history, forecast))) == 3
    assert len(bands(plot(history, forecast, level=80))) == 1
    assert len(bands(plot(history, forecast, level=[95, 50]))) == 2
    assert bands(plot(history, forecast, level=[])) == []


def test_forecast_start_is_marked_at_its_first_stamp(panel: Make, ahead: Make) -> None:
    history = panel("a")
    forecast = ahead(history)
    rule = lines(plot(history, forecast))["forecast start"]
    assert list(rule.get_xdata()) == [date2num(forecast.ds.iloc[0].to_numpy())] * 2


def test_legend_stands_once_and_names_every_line_and_level(panel: Make, ahead: Make) -> None:
    history = panel("a", "b", "c", "d")
    figure = plot(history, ahead(history, models=("LSTM", "ETS")))
    assert entries(figure) == ["observed", "LSTM", "ETS", "95 % interval", "80 % interval"]
    assert len(figure.axes) == 4
    colors = {line.get_color() for name, line in lines(figure).items() if name in ("LSTM", "ETS")}
    assert len(colors) == 2


def test_models_are_chosen_in_the_order_asked(panel: Make, ahead: Make) -> None:
    history = panel("a")
    figure = plot(history, ahead(history, models=("LSTM", "ETS", "Naive")), models=["Naive", "LSTM"], level=[])
    assert entries(figure) == ["observed", "Naive", "LSTM"]


def test_first_eight_series_by_id_whatever_the_order_of_rows(panel: Make) -> None:
    history = panel(*[f"s{at}" for at in range(10)], n=5)
    shuffled = history.sample(frac=1, random_state=0)
    figure, other = plot(history), plot(shuffled)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"s{at}" for at in range(8)] == [axes.get_title(loc="left") for axes in other.axes]
    assert figure.get_suptitle() == "8 of 10 series (2 more)"
    for at in range(8):
        np.testing.assert_array_equal(lines(figure, at)["observed"].get_ydata(), lines(other, at)["observed"].get_ydata())


def test_ids_choose_series_and_all_that_are_named_are_drawn(panel: Make) -> None:
    history = panel(*range(12), n=5)
    assert [axes.get_title(loc="left") for axes in plot(history, ids=[11, 3, 11]).axes] == ["11", "3"]
    assert [axes.get_title(loc="left") for axes in plot(history, ids=7).axes] == ["7"]
    figure = plot(history, ids=history.unique_id.unique())
    assert len(figure.axes) == 12
    assert figure.get_suptitle() == ""


def test_by_default_the_series_that_were_forecast(panel: Make, ahead: Make) -> None:
    history = panel("a", "b", "c")
    figure = plot(history, ahead(history[history.unique_id == "b"]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["b"]


def test_declared_covariates_of_a_forecast_are_not_drawn(panel: Make, ahead: Make) -> None:
    history = panel("a").assign(price=3.0)
    for forecast in (ahead(history).assign(price=3.0), ahead(history)):
        figure = plot(history, forecast, columns={"future": ["price"]})
        assert "price" not in lines(figure)
        assert "LSTM" in lines(figure)


def test_missing_values_break_the_line_and_a_lonely_point_stays_visible(panel: Make) -> None:
    history = panel("a", n=10)
    history.loc[[3, 5], "y"] = np.nan
    figure = plot(history)
    assert np.flatnonzero(np.isnan(lines(figure)["observed"].get_ydata())).tolist() == [3, 5]
    (dots,) = figure.axes[0].collections
    np.testing.assert_array_equal(np.asarray(dots.get_offsets())[:, 1], [history.y[4]])


def test_one_point_and_one_step_are_visible(panel: Make, ahead: Make) -> None:
    history = panel("a", n=1)
    axes = plot(history, ahead(history, 1)).axes[0]
    upright = [path.vertices for area in axes.collections for path in area.get_paths() if len(path.vertices) == 2]
    assert [float(np.ptp(ends[:, 1])) for ends in upright] == pytest.approx([9.5, 8.0])
    assert axes.get_xlim()[0] < axes.get_xlim()[1]


def test_no_value_at_all_is_said_in_the_panel(panel: Make) -> None:
    axes = plot(panel("a").assign(y=np.nan)).axes[0]
    assert [text.get_text() for text in axes.texts] == ["no values"]


def test_history_is_cut_before_the_forecast_and_the_cut_is_told(panel: Make, ahead: Make) -> None:
    history = panel("a", n=200)
    forecast = ahead(history, 7)
    figure = plot(history, forecast)
    assert len(lines(figure)["observed"].get_ydata()) == 70
    assert figure.get_suptitle() == "only the last 70 points of the history"
    assert len(lines(plot(history, forecast, max_history=None))["observed"].get_ydata()) == 200
    np.testing.assert_array_equal(lines(plot(history, forecast, max_history=12))["observed"].get_ydata(), history.y[-12:])
    assert len(lines(plot(history))["observed"].get_ydata()) == 200
    assert len(lines(plot(history, max_history=5))["observed"].get_ydata()) == 5


def test_what_came_true_is_kept_when_the_history_is_cut(panel: Make, ahead: Make) -> None:
    history = panel("a", n=40)
    figure = plot(history, ahead(history[:30], 7), max_history=5)
    np.testing.assert_array_equal(lines(figure)["observed"].get_ydata(), history.y[25:])


def test_integer_time_has_whole_ticks(panel: Make, ahead: Make) -> None:
    history = panel("a").assign(ds=range(100, 130))
    forecast = ahead(panel("a"), 3).assign(ds=[130, 131, 132])
    axes = plot(history, forecast).axes[0]
    assert axes.get_xlabel() == "ds"
    assert all(tick == round(tick) for tick in axes.get_xticks())
    assert axes.lines[0].get_xdata()[0] == 130


def test_time_zone_is_shown_as_the_wall_shows_it(panel: Make) -> None:
    history = panel("a", n=24, freq="h", tz="Europe/Berlin", start="2024-06-01 00:00")
    axes = plot(history).axes[0]
    assert axes.get_xlabel() == "Europe/Berlin"
    np.testing.assert_allclose(axes.lines[0].get_xdata()[0], date2num(np.datetime64("2024-05-31T22:00")))
    axes.figure.draw_without_rendering()
    at_noon = date2num(np.datetime64("2024-06-01T10:00"))
    labels = dict(zip(axes.get_xticks(), [tick.get_text() for tick in axes.get_xticklabels()], strict=True))
    assert labels[at_noon] == "12:00"


def test_hours_stay_evenly_apart_over_a_clock_change(panel: Make) -> None:
    history = panel("a", n=30, freq="h", tz="Europe/Berlin", start="2024-10-26 18:00")
    np.testing.assert_allclose(np.diff(plot(history).axes[0].lines[0].get_xdata()), 1 / 24, rtol=1e-6)


@pytest.mark.parametrize("columns", [{"id": "shop", "time": "day", "target": "sales"}, Columns("shop", "day", "sales")])
def test_own_column_names(panel: Make, ahead: Make, columns: Any) -> None:
    names = {"unique_id": "shop", "ds": "day", "y": "sales"}
    history = panel("a", "b")
    figure = plot(history.rename(columns=names), ahead(history).rename(columns=names), columns=columns)
    assert figure.axes[0].get_ylabel() == "sales"
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b"]


def test_single_series_without_id_and_as_a_series(panel: Make, ahead: Make) -> None:
    history = panel("a")
    figure = plot(history.drop(columns="unique_id"), ahead(history).drop(columns="unique_id"))
    assert figure.axes[0].get_title(loc="left") == ""
    np.testing.assert_array_equal(lines(plot(history.set_index("ds").y))["observed"].get_ydata(), history.y)


def test_names_are_shown_as_they_are(panel: Make, ahead: Make) -> None:
    history = panel("$\\frac{x$\n<b>")
    figure = plot(history, ahead(history, models=("_hidden $\\frac{a$",), levels=()))
    assert figure.axes[0].get_title(loc="left") == "$\\frac{x$\\n<b>"
    assert entries(figure) == ["observed", "_hidden $\\frac{a$"]
    figure.draw_without_rendering()  # a formula that is none would raise here


def test_frames_are_left_as_they_were(panel: Make, ahead: Make) -> None:
    history = panel("b", "a").sample(frac=1, random_state=1)
    forecast = ahead(panel("b", "a"))
    before, expected = history.copy(deep=True), forecast.copy(deep=True)
    plot(history, forecast)
    plot(history, forecast, backend="plotly")
    pd.testing.assert_frame_equal(history, before)
    pd.testing.assert_frame_equal(forecast, expected)


def test_no_global_figure_setting_or_backend_is_touched(panel: Make, ahead: Make) -> None:
    import matplotlib.pyplot as plt

    history = panel("a", "b")
    settings, backend, figures = dict(matplotlib.rcParams), matplotlib.get_backend(), plt.get_fignums()
    figure = plot(history, ahead(history))
    assert isinstance(figure, Figure)
    assert plt.get_fignums() == figures
    assert (dict(matplotlib.rcParams), matplotlib.get_backend()) == (settings, backend)


def test_figure_shows_itself_in_a_notebook(panel: Make) -> None:
    assert plot(panel("a"))._repr_png_().startswith(b"\x89PNG")


def test_room_loads_nothing_heavy_and_plot_no_pyplot() -> None:
    code = (
        "import sys, deepforecast.plotting as room\n"
        "print([name for name in ('numpy', 'pandas', 'matplotlib', 'plotly') if name in sys.modules])\n"
        "import pandas as pd\n"
        "room.plot(pd.DataFrame({'ds': [1, 2], 'y': [1.0, 2.0]}))\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "False"]


def seen(axis: Axis, ends: tuple[float, float]) -> list[Any]:
    """Where the words at the ticks stand that are in view."""
    ticks = [tick for tick in axis.get_major_ticks() if ends[0] <= tick.get_loc() <= ends[1] and tick.label1.get_text()]
    return [tick.label1.get_window_extent() for tick in ticks]


CASES = {
    "daily grid": {"ids": tuple(f"store {at}" for at in range(6)), "n": 90},
    "monthly": {"ids": ("a",), "n": 144, "freq": "MS", "start": "1949-01-01"},
    "hourly with zone": {"ids": ("a", "b", "c", "d"), "n": 300, "freq": "h", "tz": "Europe/Berlin"},
    "long names": {"ids": tuple(f"{'a_very_long_name_' * 9}{at}" for at in range(9)), "n": 40},
    "seconds": {"ids": ("a",), "n": 100, "freq": "s"},
}


@pytest.mark.parametrize("case", list(CASES))
def test_no_words_overlap_or_leave_the_picture(panel: Make, ahead: Make, case: str) -> None:
    setting = dict(CASES[case])
    history = panel(*setting.pop("ids"), **setting)
    models = ("LSTM", "An ensemble of this and that and some more")
    figure = plot(history, ahead(history, models=models, freq=setting.get("freq", "D")), ids=history.unique_id.unique())
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for axes in figure.axes:
        below, beside = seen(axes.xaxis, axes.get_xlim()), seen(axes.yaxis, axes.get_ylim())
        titles = [text.get_window_extent() for other in figure.axes for text in [other._left_title]]
        assert len(below) >= 2
        assert all(one.x1 < other.x0 for one, other in pairwise(below))
        assert all(one.y1 < other.y0 for one, other in pairwise(beside))
        assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in below + beside + titles)
        assert not any(one.overlaps(other) for at, one in enumerate(titles) for other in titles[at + 1 :])
        (legend,) = figure.legends
        assert not any(legend.get_window_extent().overlaps(box) for box in below)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"backend": "plotty"}, "Did you mean 'plotly"),
        ({"models": "LSTN"}, "Did you mean 'LSTM"),
        ({"models": []}, "Available: LSTM"),
        ({"ids": ["a", "sore_1"]}, "Did you mean 'store_1"),
        ({"ids": []}, "Available: a, store_1"),
        ({"level": 90}, r"levels of the forecasts \(95, 80\)"),
        ({"level": 0}, "above 0 and below 100"),
        ({"level": [80, True]}, "above 0 and below 100"),
        ({"level": ["80"]}, "above 0 and below 100"),
        ({"max_history": 0}, "integer of at least 1"),
        ({"max_history": "all"}, "'auto' or None"),
    ],
)
def test_a_choice_that_is_not_there_is_refused_with_the_choices(panel: Make, ahead: Make, options: Any, said: str) -> None:
    history = panel("a", "store_1")
    with pytest.raises(ParameterError, match=said):
        plot(history, ahead(history), **options)


def refused(panel: Make, ahead: Make) -> dict[str, tuple[Any, Any, str]]:
    history = panel("a", "b")
    forecast = ahead(history)
    return {
        "empty history": (history[:0], forecast, "history must be a non-empty DataFrame, got 0 rows"),
        "empty forecast": (history, forecast[:0], "forecast must be a non-empty DataFrame, got 0 rows"),
        "no frame": ([1, 2], None, "DataFrame"),
        "no target": (history.drop(columns="y"), None, "it lacks y"),
        "text as target": (history.assign(y="x"), None, "Column y"),
        "float time": (history.assign(ds=1.5), None, "ds"),
        "missing stamp": (history.assign(ds=history.ds.where(history.index != 3)), None, "ds of the history"),
        "repeated stamp": (pd.concat([history, history[40:41]]), forecast, "series b repeats 2024-01-11"),
        "no id column": (history.drop(columns="unique_id"), None, "columns="),
        "ids in one frame only": (history, forecast[:7].drop(columns="unique_id"), "history has the id column unique_id"),
        "other time": (history.assign(ds=range(60)), forecast, "must both be integers, timestamps"),
        "no model": (history, forecast[["unique_id", "ds"]], "numeric column for each model"),
        "windows": (history, pd.concat([forecast, forecast]).assign(cutoff=history.ds[0]), "plot_cross_validation"),
    }


@pytest.mark.parametrize("case", [
    "empty history", "empty forecast", "no frame", "no target", "text as target", "float time", "missing stamp",
    "repeated stamp", "no id column", "ids in one frame only", "other time", "no model", "windows",
])  # fmt: skip
def test_frames_that_cannot_be_drawn_are_refused(panel: Make, ahead: Make, case: str) -> None:
    history, forecast, said = refused(panel, ahead)[case]
    with pytest.raises(DataError, match=said):
        plot(history, forecast)


FIRST = """
import io, matplotlib, pandas as pd
before = dict(matplotlib.rcParams), matplotlib.get_backend()
from deepforecast import plot
plot(pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=9), "y": range(9)})).savefig(io.BytesIO())
print((dict(matplotlib.rcParams), matplotlib.get_backend()) == before)
"""


def test_the_first_picture_of_a_process_touches_no_setting() -> None:
    """In a fresh process: what an earlier picture of this one had set would look as if it had always been so."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout == "True\n"
