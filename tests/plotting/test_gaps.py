"""Lines break where rows are absent, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.plotting import plot, plot_cross_validation
from deepforecast.plotting.gaps import TimeSteps

Make = Callable[..., pd.DataFrame]
CASES: dict[str, Any] = {
    "weeks": pd.date_range("2024-01-07", periods=30, freq="W-SUN"),
    "days": pd.date_range("2024-01-01", periods=30),
    "business days": pd.date_range("2024-01-01", periods=30, freq="B"),
    "month ends": pd.date_range("2023-01-31", periods=30, freq="ME"),
    "quarters": pd.date_range("2023-01-01", periods=30, freq="QS"),
    "hours over a clock change": pd.date_range("2024-03-30 20:00", periods=30, freq="h", tz="Europe/Berlin"),
    "local days over a clock change": pd.date_range("2024-03-20", periods=30, tz="Europe/Berlin"),
    "numbers": np.arange(0, 150, 5),
}


def observed(figure: Any) -> Any:
    return next(line for line in figure.axes[0].lines if line.get_label() == "observed").get_ydata()


@pytest.mark.parametrize("case", list(CASES))
def test_a_line_breaks_where_rows_are_absent(case: str) -> None:
    frame = pd.DataFrame({"ds": CASES[case], "y": np.arange(30.0)})
    np.testing.assert_array_equal(observed(plot(frame)), frame.y)
    drawn = observed(plot(frame.drop(index=[7, 20, 21])))
    assert drawn[np.flatnonzero(np.isnan(drawn)) - 1].tolist() == [6, 19]
    assert drawn[np.flatnonzero(np.isnan(drawn)) + 1].tolist() == [8, 22]
    np.testing.assert_array_equal(drawn[np.isfinite(drawn)], frame.y.drop(index=[7, 20, 21]))


def test_stamps_of_no_calendar_go_by_their_median_step() -> None:
    days = np.cumsum([0, 3, 4, 3, 5, 4, 12, 3, 4, 3])
    stamps = np.datetime64("2024-01-01T00:00", "us") + days * np.timedelta64(1, "D")
    assert TimeSteps.from_timestamps(stamps, None).find_gaps(stamps).tolist() == [6]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_stamps_have_no_hole(count: int) -> None:
    stamps = np.array(["2024-01-01", "2024-03-01"], dtype="M8[us]")[:count]
    assert TimeSteps.from_timestamps(stamps, None).find_gaps(stamps).tolist() == []


def test_a_forecast_breaks_by_the_step_of_its_history(panel: Make, ahead: Make) -> None:
    history = panel("a")
    figure = plot(history, ahead(history, 7).drop(index=[2]))
    forecast = next(line for line in figure.axes[0].lines if line.get_label() == "LSTM").get_ydata()
    assert np.flatnonzero(np.isnan(forecast)).tolist() == [2]
    lone = plot(history, ahead(history, 7).iloc[[0, 6]])
    assert len(next(line for line in lone.axes[0].lines if line.get_label() == "LSTM").get_ydata()) == 3


def test_a_history_before_windows_breaks_too(panel: Make, windows: Make) -> None:
    figure = plot_cross_validation(windows(panel("a")), history=panel("a").drop(index=[8, 9]))
    assert np.flatnonzero(np.isnan(observed(figure))).tolist() == [8]


def test_plotly_breaks_the_same(panel: Make) -> None:
    (line,) = plot(panel("a").drop(index=[8]), backend="plotly").data
    assert np.flatnonzero(np.isnan(line.y)).tolist() == [8]
    assert not line.connectgaps
