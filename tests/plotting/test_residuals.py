"""`plot_residuals`: the numbers behind the four panels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.stattools import acf

from deepforecast.data.columns import ModelColumns
from deepforecast.errors import DataError, ParameterError
from deepforecast.plotting import plot_residuals
from deepforecast.plotting.autocorrelation import autocorrelation, compute_residuals
from deepforecast.plotting.frames import open_frame

Make = Callable[..., pd.DataFrame]
MODEL = ModelColumns("LSTM")


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(0).normal(1.0, 2.0, 400)


def stems(axes: Any) -> np.ndarray:
    """The heights of the autocorrelation."""
    return np.asarray([area.get_offsets()[:, 1] for area in axes.collections if len(area.get_offsets()) > 1][-1])


def test_residuals_are_observed_minus_forecast_over_time(panel: Make, noise: np.ndarray, library: Callable[..., Any]) -> None:
    frame = panel("a", n=400).assign(M=lambda rows: rows.y - noise)
    over_time, density, correlation = plot_residuals(library(frame)).axes
    np.testing.assert_allclose(np.asarray(over_time.collections[0].get_offsets())[:, 1], noise)
    assert over_time.get_title(loc="left") == "Residuals of M"
    assert "Mean 0.9268, standard deviation 1.99" in density.get_title(loc="left")
    assert correlation.get_xlabel() == "lag"


def test_autocorrelation_is_that_of_statsmodels_with_its_bounds(panel: Make, noise: np.ndarray) -> None:
    frame = panel("a", n=400).assign(M=lambda rows: rows.y - noise)
    axes = plot_residuals(frame, lags=30).axes[2]
    np.testing.assert_allclose(stems(axes), acf(noise, nlags=30, fft=False)[1:], atol=1e-9)
    bounds = sorted(line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--")
    assert bounds == pytest.approx([-1.96 / 20, 1.96 / 20])


def test_autocorrelation_is_pooled_within_series(noise: np.ndarray) -> None:
    one, other = noise[:150], 100 + noise[150:]
    pooled = autocorrelation(np.concatenate([one, other]), np.repeat([0, 1], [150, 250]), 5)
    sums = [((part - part.mean()) ** 2).sum() for part in (one, other)]
    single = [acf(part, nlags=5, fft=False)[1:] for part in (one, other)]
    np.testing.assert_allclose(pooled, np.average(single, axis=0, weights=sums), atol=1e-12)


def test_missing_pairs_are_left_out() -> None:
    values = np.array([1.0, np.nan, -1.0, 1.0, -1.0])
    np.testing.assert_allclose(autocorrelation(values, np.zeros(5, dtype=int), 1), [-2 / 4])


def test_histogram_has_unit_area_and_the_line_is_normal(panel: Make, noise: np.ndarray) -> None:
    axes = plot_residuals(panel("a", n=400).assign(M=lambda rows: rows.y - noise)).axes[1]
    heights, edges, _ = axes.patches[0].get_data()
    assert float((heights * np.diff(edges)).sum()) == pytest.approx(1.0)
    (line,) = axes.lines
    x, density = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert float(density.sum() * (x[1] - x[0])) == pytest.approx(1.0, abs=0.01)
    assert x[np.argmax(density)] == pytest.approx(noise.mean(), abs=0.1)


def test_steps_count_from_each_cutoff_and_the_latest_cutoff_counts(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"), steps=4, n=3, step=2)  # the error is step * (-1)^window
    left = compute_residuals(open_frame(frame.sample(frac=1, random_state=0), "frame"), MODEL)
    assert left.steps is not None
    assert sorted(left.steps) == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    np.testing.assert_allclose(np.abs(left.values), left.steps)
    np.testing.assert_allclose(left.latest()[0], [1, 2, -1, -2, 1, 2, 3, 4])


def test_steps_are_drawn_with_their_quantiles(panel: Make, windows: Make) -> None:
    frame = windows(panel("a", n=60), steps=4, n=9, step=4)
    frame["LSTM"] = frame.y - np.arange(36) ** 2
    axes = plot_residuals(frame).axes
    assert len(axes) == 4
    thin, thick, dots = axes[3].collections
    expected = np.percentile((np.arange(36) ** 2).reshape(9, 4), [5, 25, 50, 75, 95], axis=0)
    np.testing.assert_allclose([path.vertices[:, 1] for path in thin.get_paths()], expected[[0, 4]].T)
    np.testing.assert_allclose([path.vertices[:, 1] for path in thick.get_paths()], expected[[1, 3]].T)
    np.testing.assert_allclose(np.asarray(dots.get_offsets())[:, 1], expected[2])


def test_series_are_brought_to_one_scale(panel: Make, noise: np.ndarray) -> None:
    frame = panel("a", "b", n=200)
    frame["M"] = frame.y - noise * np.repeat([1.0, 1000.0], 200)
    left = compute_residuals(open_frame(frame, "frame"), ModelColumns("M"))
    for code, part in enumerate((noise[:200], noise[200:])):
        np.testing.assert_allclose(left.values[left.codes == code], part / part.std())
    assert plot_residuals(frame).axes[0].get_ylabel() == "residual / standard deviation"
    assert plot_residuals(frame, ids="b").axes[0].get_ylabel() == "residual"


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_and_constant_residuals_are_drawn(panel: Make, rows: int) -> None:
    for error in (0.0, 3.0):
        figure = plot_residuals(panel("a", n=rows).assign(M=lambda frame, error=error: frame.y - error))
        figure.draw_without_rendering()
        assert len(figure.axes[0].collections[0].get_offsets()) == rows
        assert not figure.axes[1].lines  # there is no normal density without any spread


def test_plotly_draws_the_same(panel: Make, noise: np.ndarray) -> None:
    frame = panel("a", n=400).assign(M=lambda rows: rows.y - noise)
    figure = plot_residuals(frame, backend="plotly")
    np.testing.assert_allclose(figure.data[0].y, noise)
    assert figure.data[1].type == "bar"
    assert float((figure.data[1].y * figure.data[1].width).sum()) == pytest.approx(1.0)


def test_refusals(panel: Make, windows: Make) -> None:
    frame = windows(panel("a"), models=("LSTM", "ETS"))
    with pytest.raises(ParameterError, match=r"several models \(LSTM, ETS\). Pass for example model='LSTM'"):
        plot_residuals(frame)
    with pytest.raises(ParameterError, match="Did you mean 'ETS"):
        plot_residuals(frame, "ETSS")
    with pytest.raises(ParameterError, match="`lags` must be at least 1, got 0"):
        plot_residuals(frame, "ETS", lags=0)
    with pytest.raises(DataError, match="there are none for model LSTM"):
        plot_residuals(frame.assign(LSTM=np.nan), "LSTM")
    with pytest.raises(DataError, match="must be a non-empty DataFrame"):
        plot_residuals(frame[:0], "LSTM")
    with pytest.raises(DataError, match="numeric column for each model"):
        plot_residuals(panel("a"))
