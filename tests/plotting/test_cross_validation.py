"""`plot_cross_validation`: each window against what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.dates import date2num

from deepforecast.errors import DataError, ParameterError
from deepforecast.plotting import plot_cross_validation

Make = Callable[..., pd.DataFrame]


def named(figure: Any, label: str, at: int = 0) -> list[Any]:
    return [line for line in figure.axes[at].lines if line.get_label() == label]


def test_each_window_is_a_line_of_its_own(panel: Make, windows: Make, library: Callable[..., Any]) -> None:
    frame = windows(panel("a"), steps=5, n=3, step=5)
    figure = plot_cross_validation(library(frame))
    (line,) = named(figure, "LSTM")
    pieces = np.split(np.asarray(line.get_ydata()), np.flatnonzero(np.isnan(line.get_ydata())))
    expected = [rows.LSTM.to_numpy() for _, rows in frame.groupby("cutoff")]
    for piece, values in zip(pieces, expected, strict=True):
        np.testing.assert_array_equal(piece[np.isfinite(piece)], values)
    band = next(area for area in figure.axes[0].collections if isinstance(area, PolyCollection))
    assert len(band.get_paths()) == 3


def test_a_rule_stands_at_each_cutoff(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"), n=3)
    axes = plot_cross_validation(frame).axes[0]
    rules = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linestyle() == "--"]
    assert rules == list(date2num(frame.cutoff.unique()))


def test_rules_of_very_many_cutoffs_are_thinned_aloud(panel: Make, windows: Make) -> None:
    figure = plot_cross_validation(windows(panel("a", n=100), steps=2, n=61, step=1))
    assert figure.get_suptitle() == "one cutoff in 3 marked"
    assert sum(line.get_linestyle() == "--" for line in figure.axes[0].lines) == 21


def test_overlapping_windows_observe_each_stamp_once(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"), steps=6, n=3, step=2)
    (line,) = named(plot_cross_validation(frame), "observed")
    assert len(line.get_xdata()) == frame.ds.nunique() == 10
    assert named(plot_cross_validation(frame), "LSTM")[0].get_alpha() < 1


def test_what_lies_between_two_windows_is_not_invented(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"), steps=3, n=2, step=10)
    (line,) = named(plot_cross_validation(frame), "observed")
    assert np.flatnonzero(np.isnan(line.get_ydata())).tolist() == [3]
    (whole,) = named(plot_cross_validation(frame, history=panel("a")), "observed")
    np.testing.assert_array_equal(whole.get_ydata(), panel("a").y)


def test_history_is_cut_before_the_first_window(panel: Make, windows: Make) -> None:
    figure = plot_cross_validation(windows(panel("a"), n=2), history=panel("a"), max_history=4)
    assert len(named(figure, "observed")[0].get_ydata()) == 14
    assert figure.get_suptitle() == "only the last 4 points of the history"


def test_windows_of_one_step_are_visible(panel: Make, windows: Make) -> None:
    axes = plot_cross_validation(windows(panel("a"), steps=1, n=4, step=1), level=[]).axes[0]
    dots = [np.asarray(area.get_offsets()) for area in axes.collections if len(area.get_offsets()) == 4]
    assert len(dots) == 1


def test_row_order_does_not_matter_and_the_frame_stays(panel: Make, windows: Make) -> None:
    frame = windows(panel("a", "b")).sample(frac=1, random_state=3)
    before = frame.copy(deep=True)
    one, other = plot_cross_validation(frame), plot_cross_validation(frame.sort_values(["unique_id", "cutoff", "ds"]))
    pd.testing.assert_frame_equal(frame, before)
    for at in range(2):
        np.testing.assert_array_equal(named(one, "LSTM", at)[0].get_ydata(), named(other, "LSTM", at)[0].get_ydata())


def test_plotly_draws_the_same(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"), steps=5, n=3)
    figure = plot_cross_validation(frame, backend="plotly")
    (line,) = [trace for trace in figure.data if trace.name == "LSTM"]
    np.testing.assert_array_equal(line.y, named(plot_cross_validation(frame), "LSTM")[0].get_ydata())
    assert len(figure.layout.shapes) == 3


def test_advice_of_each_error_works(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"))
    with pytest.raises(DataError, match=r"must have a column cutoff, got .* Pass the result of `cross_validate` or `compare`"):
        plot_cross_validation(frame.drop(columns="cutoff"))
    with pytest.raises(ParameterError, match="Pass level=95 to `predict`, `cross_validate` or `compare`"):
        plot_cross_validation(frame, level=95)
    with pytest.raises(DataError, match="Pass the result of `predict` or `cross_validate`"):
        plot_cross_validation(frame[["unique_id", "ds", "cutoff", "y"]])


def test_refusals(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"))
    with pytest.raises(DataError, match="cutoff"):
        plot_cross_validation(frame.drop(columns="cutoff"))
    with pytest.raises(DataError, match="it lacks y"):
        plot_cross_validation(frame.drop(columns="y"))
    with pytest.raises(DataError, match="repeats"):
        plot_cross_validation(pd.concat([frame, frame[3:4]]))
    with pytest.raises(ParameterError, match="Did you mean 'LSTM"):
        plot_cross_validation(frame, models="LSTMM")
    with pytest.raises(ParameterError, match="Unknown backend"):
        plot_cross_validation(frame, backend="bokeh")  # type: ignore[arg-type]
