"""`plot_components`: one panel a component, cycles drawn once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Naive, datasets, decompose
from deepforecast.errors import DataError
from deepforecast.plotting import plot_components
from tests.plotting.conftest import LIBRARIES

DAYS = pd.date_range("2024-01-03", periods=35)  # a Wednesday
WEEK = np.array([2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 1.0])  # from Wednesday on: Monday has 0


def parts(days: pd.DatetimeIndex = DAYS, **components: Any) -> pd.DataFrame:
    frame = pd.DataFrame({"unique_id": "a", "ds": days, **components})
    return frame.melt(["unique_id", "ds"], var_name="component").sort_values("ds", kind="stable").reset_index(drop=True)


PAST = parts(trend=np.arange(35.0), weekly=np.tile(WEEK, 5), price=np.sin(np.arange(35.0) ** 2))


def test_a_panel_for_each_component(library: Callable[..., Any]) -> None:
    figure = plot_components(library(PAST))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["trend", "weekly", "price"]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), np.arange(35.0))
    np.testing.assert_allclose(figure.axes[2].lines[0].get_ydata(), np.sin(np.arange(35.0) ** 2))


def test_a_week_is_drawn_once_from_monday_on() -> None:
    week = plot_components(PAST).axes[1]
    np.testing.assert_allclose(week.lines[0].get_ydata(), np.arange(7.0))
    assert [text.get_text() for text in week.get_xticklabels()] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert week.get_ylim()[1] < 7 < week.get_xlim()[1] + 1


def test_other_cycles_go_by_steps() -> None:
    hours = pd.date_range("2024-01-03", periods=96, freq="h")
    day = plot_components(parts(hours, daily=np.tile(np.arange(24.0), 4))).axes[0]
    assert len(day.lines[0].get_ydata()) == 24
    assert day.get_xlabel() == "step of the cycle, from 2024-01-03 00:00"


def test_what_repeats_too_seldom_is_drawn_over_time() -> None:
    figure = plot_components(parts(DAYS[:14], weekly=np.tile(WEEK, 2), flat=np.ones(14)))
    assert [len(axes.lines[0].get_ydata()) for axes in figure.axes] == [14, 14]


def test_steps_ahead_go_on_in_the_same_panels() -> None:
    coming = parts(pd.date_range("2024-02-07", periods=7), trend=np.arange(35.0, 42.0), weekly=WEEK, fair=np.ones(7))
    figure = plot_components(PAST, coming)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["trend", "weekly", "price", "fair"]
    past, ahead, rule = figure.axes[0].lines
    assert (len(past.get_ydata()), len(ahead.get_ydata())) == (35, 7)
    assert rule.get_xdata()[0] == ahead.get_xdata()[0]
    assert len(figure.axes[1].lines[0].get_ydata()) == 7


def test_one_series_is_drawn_and_the_rest_told() -> None:
    both = pd.concat([PAST, PAST.assign(unique_id="b", value=PAST.value + 100.0)])
    assert plot_components(both).get_suptitle() == "a · 1 of 2 series"
    figure = plot_components(both, ids="b")
    assert figure.get_suptitle() == "b"
    assert figure.axes[0].lines[0].get_ydata()[0] == 100.0


def test_components_of_several_forecasts_are_refused() -> None:
    with pytest.raises(DataError, match="one value per timestamp, but trend has several"):
        plot_components(pd.concat([PAST, PAST]))
    with pytest.raises(DataError, match="component"):
        plot_components(PAST.drop(columns="component"))


@pytest.mark.parametrize("kind", LIBRARIES)
def test_decomposition_is_drawn_column_by_column(kind: str) -> None:
    frame = datasets.load("air_passengers")
    figure = plot_components(decompose(LIBRARIES[kind](frame)))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["y", "trend", "season_12", "remainder"]
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), frame["y"])


def test_wrong_input_is_refused_with_advice() -> None:
    with pytest.raises(DataError, match=r"got Naive\(\)\. Pass model\.explain\(\)"):
        plot_components(Naive())
    with pytest.raises(DataError, match=r"must have a column component, got the columns .* Pass the result of `decompose`"):
        plot_components(datasets.load("air_passengers"))


def test_plotly_draws_the_same() -> None:
    figure = plot_components(PAST, backend="plotly")
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    np.testing.assert_allclose(lines[0].y, np.arange(35.0))
    np.testing.assert_allclose(lines[1].y, np.arange(7.0))
    assert list(figure.layout.xaxis2.ticktext) == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
