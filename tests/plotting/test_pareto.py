"""`plot_pareto`: who is beaten by nobody."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.errors import DataError, ParameterError
from deepforecast.plotting import plot_pareto
from deepforecast.plotting.pareto import pareto_front

TABLE = pd.DataFrame(
    {
        "model": ["Naive", "ETS", "LSTM", "Slow", "Broken"],
        "metric": "MASE",
        "value": [2.0, 1.5, 1.0, 1.2, np.nan],
        "seconds": [0.0, 1.0, 60.0, 600.0, 3.0],
    }
)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_front_is_what_brute_force_finds(models: list[tuple[int, int]]) -> None:
    seconds, values = (np.array(side, dtype=float) for side in zip(*models, strict=True))
    front = pareto_front(seconds, values)
    beaten = {(s, v) for s, v in models for fast, good in models if fast <= s and good <= v and (fast, good) != (s, v)}
    assert {models[at] for at in front} == set(models) - beaten
    assert (np.diff(seconds[front]) > 0).all()


def test_front_is_a_stair_and_words_name_the_models(library: Callable[..., Any]) -> None:
    figure = plot_pareto(library(TABLE))
    axes = figure.axes[0]
    np.testing.assert_allclose(axes.lines[0].get_xdata(), [0.001, 1, 1, 60, 60])
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [2, 2, 1.5, 1.5, 1])
    assert {text.get_text() for text in axes.texts} == {"Naive", "ETS", "LSTM", "Slow"}
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "MASE"
    assert figure.get_suptitle() == "not shown (no value or no seconds): Broken"


def test_coverage_is_drawn_as_the_distance_from_its_level() -> None:
    table = TABLE.assign(metric="coverage-80", value=[0.5, 0.99, 0.79, 0.81, np.nan])
    axes = plot_pareto(table).axes[0]
    assert axes.get_ylabel() == "coverage-80, distance from 0.8"
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.3, 0.3, 0.19, 0.19, 0.01])


def test_seconds_of_one_size_need_no_logarithm() -> None:
    assert plot_pareto(TABLE[1:2]).axes[0].get_xscale() == "linear"


@pytest.mark.parametrize("count", [3, 5, 8, 12])
def test_no_word_lies_on_the_stair(count: int) -> None:
    names = ["Naive", "SeasonalNaive", "AutoETS", "Transformer_wide", "LSTM", "Theta", "DeepAR_large", "Drift", *"ABCD"]
    for seed in range(6):
        random = np.random.default_rng(seed)
        table = pd.DataFrame({"model": names[:count], "value": random.uniform(0.7, 2, count)})
        figure = plot_pareto(table.assign(seconds=10 ** random.uniform(-3, 3, count)))
        axes = figure.axes[0]
        figure.draw_without_rendering()
        stair = axes.transData.transform(axes.lines[0].get_xydata()) if axes.lines else np.empty((0, 2))
        for one, other in pairwise(stair):
            left, bottom, right, top = (*np.minimum(one, other), *np.maximum(one, other))
            for words in (text.get_window_extent() for text in axes.texts):
                assert not (words.x0 < right and left < words.x1 and words.y0 < top and bottom < words.y1)


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
def test_models_faster_than_a_thousandth_second_have_an_axis_of_their_size(backend: Any) -> None:
    figure = plot_pareto(TABLE[:3].assign(seconds=[0.0, 1e-5, 5e-4]), backend=backend)
    low, high = figure.layout.xaxis.range if backend == "plotly" else figure.axes[0].get_xlim()
    assert 0 < low < 0.001 < high < 0.002


def test_plotly_draws_the_same() -> None:
    figure = plot_pareto(TABLE, backend="plotly")
    np.testing.assert_allclose(figure.data[0].y, [2, 2, 1.5, 1.5, 1])
    assert [text for trace in figure.data if trace.mode == "markers" for text in trace.text] == [
        "Slow: 1.2 in 600 s",
        "Naive: 2 in 0.001 s",
        "ETS: 1.5 in 1 s",
        "LSTM: 1 in 60 s",
    ]
    assert figure.layout.xaxis.type == "log"


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="Pass for example metric='MASE'"):
        plot_pareto(pd.concat([TABLE, TABLE.assign(metric="MAE")]))
    with pytest.raises(DataError, match="must have the columns model, value, seconds, got model"):
        plot_pareto(TABLE.drop(columns="seconds"))
    with pytest.raises(DataError, match="but there is none"):
        plot_pareto(TABLE[4:])
    with pytest.raises(DataError, match="negative values: LSTM"):
        plot_pareto(TABLE.assign(seconds=[1.0, 1, -1, 1, 1]))
