"""`plot_leaderboard`: the order, the intervals, what has no value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.errors import DataError, ParameterError
from deepforecast.plotting import plot_leaderboard
from deepforecast.plotting.style import COLORS

TABLE = pd.DataFrame(
    {
        "model": ["Naive", "LSTM", "ETS", "Broken"] * 2,
        "metric": ["MASE"] * 4 + ["coverage"] * 4,
        "value": [2.0, 1.0, 1.5, np.nan, 0.7, 0.8, 0.9, 0.6],
        "low": [1.5, 0.8, 1.2, np.nan, np.nan, np.nan, np.nan, np.nan],
        "high": [2.5, 1.3, 1.9, np.nan, np.nan, np.nan, np.nan, np.nan],
    }
)


def names(axes: Any) -> list[str]:
    """From top to bottom."""
    return [tick.get_text() for tick in axes.get_yticklabels()][::-1]


def dots(axes: Any) -> dict[float, float]:
    """The value drawn in each row."""
    return {float(y): float(x) for area in axes.collections for x, y in area.get_offsets() if (x, y) != (0, 0)}


def spans(axes: Any) -> list[tuple[float, ...]]:
    """From where to where the intervals go."""
    paths = [path.vertices for area in axes.collections for path in area.get_paths()]
    return sorted(tuple(ends[:, 0]) for ends in paths if len(ends) == 2)


def test_best_is_on_top_and_in_colour(library: Callable[..., Any]) -> None:
    axes = plot_leaderboard(library(TABLE), "MASE").axes[0]
    assert names(axes) == ["LSTM   1", "ETS   1.5", "Naive   2", "Broken   no value"]
    assert dots(axes) == {3.0: 1.0, 2.0: 1.5, 1.0: 2.0}
    best = axes.collections[-1]
    assert best.get_facecolor()[0] == pytest.approx([int(COLORS[0][at : at + 2], 16) / 255 for at in (1, 3, 5)] + [1.0])
    assert axes.get_ylim()[0] < axes.get_ylim()[1]


def test_intervals_are_drawn_where_they_are() -> None:
    assert spans(plot_leaderboard(TABLE, "MASE").axes[0]) == [(0.8, 1.3), (1.2, 1.9), (1.5, 2.5)]
    assert spans(plot_leaderboard(TABLE, "coverage").axes[0]) == []


def test_higher_may_be_better() -> None:
    axes = plot_leaderboard(TABLE, "coverage", lower_is_better=False).axes[0]
    assert names(axes) == ["ETS   0.9", "LSTM   0.8", "Naive   0.7", "Broken   0.6"]


@pytest.mark.parametrize(
    ("metric", "values", "order"),
    [
        ("bias", [-5.0, 3.0, -1.0, 2.0], ["ETS", "Broken", "LSTM", "Naive"]),
        ("relative_bias", [0.0, 3.0, -1.0, 2.0], ["Naive", "ETS", "Broken", "LSTM"]),
        ("coverage-80", [0.7, 0.99, 0.79, 0.5], ["ETS", "Naive", "LSTM", "Broken"]),
        ("coverage-97.5", [0.7, 0.99, 0.79, 0.5], ["LSTM", "ETS", "Naive", "Broken"]),
        ("width-80", [0.7, 0.99, 0.79, 0.5], ["Broken", "Naive", "ETS", "LSTM"]),
    ],
)
def test_bias_and_coverage_are_best_at_their_nominal_value(metric: str, values: list[float], order: list[str]) -> None:
    table = pd.DataFrame({"model": TABLE["model"][:4], "metric": metric, "value": values})
    assert [name.split()[0] for name in names(plot_leaderboard(table).axes[0])] == order
    lowest = [name.split()[0] for name in names(plot_leaderboard(table, lower_is_better=True).axes[0])]
    assert lowest == list(table.sort_values("value")["model"])


def test_all_metrics_by_default_each_in_its_own_order() -> None:
    first, second = plot_leaderboard(TABLE).axes
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["MASE, best on top", "coverage, best on top"]
    assert names(first)[0] == "LSTM   1"
    assert names(second)[0] == "Broken   0.6"


def test_long_names_fit_into_the_picture() -> None:
    figure = plot_leaderboard(TABLE.assign(model=lambda table: table.model + " with a very long name" * 5), "MASE")
    figure.draw_without_rendering()
    assert all(tick.get_window_extent().x0 >= 0 for tick in figure.axes[0].get_yticklabels())
    assert figure.axes[0].get_window_extent().width > 0.4 * figure.bbox.width


def test_no_value_at_all() -> None:
    axes = plot_leaderboard(TABLE[["model", "metric"]].assign(value=np.nan), "MASE").axes[0]
    assert names(axes) == ["Broken   no value", "ETS   no value", "LSTM   no value", "Naive   no value"]
    assert [text.get_text() for text in axes.texts] == ["no values"]


def test_plotly_draws_the_same_and_tells_the_interval() -> None:
    figure = plot_leaderboard(TABLE, "MASE", backend="plotly")
    assert list(figure.layout.yaxis.ticktext) == ["Broken   no value", "Naive   2", "ETS   1.5", "LSTM   1"]
    told = [text for trace in figure.data for text in trace.text or ()]
    assert told == ["Naive: 2 (1.5 to 2.5)", "ETS: 1.5 (1.2 to 1.9)", "LSTM: 1 (0.8 to 1.3)"]


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'MASE"):
        plot_leaderboard(TABLE, "MAS")
    with pytest.raises(ParameterError, match="Available: MASE, coverage"):
        plot_leaderboard(TABLE, [])
    with pytest.raises(ParameterError, match=r"list of names, got 3\. Available: MASE, coverage"):
        plot_leaderboard(TABLE, 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="several rows for MASE: LSTM"):
        plot_leaderboard(pd.concat([TABLE, TABLE[1:2]]), "MASE")
    with pytest.raises(DataError, match="must have the columns model, metric, value, got model, metric, low, high"):
        plot_leaderboard(TABLE.drop(columns="value"))
    with pytest.raises(DataError, match="non-empty DataFrame, got 0 rows"):
        plot_leaderboard(TABLE[:0])
