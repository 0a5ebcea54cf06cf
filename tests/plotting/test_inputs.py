"""Objects that are no frames: what to pass in their place, which works."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from deepforecast import (
    MLP,
    Drift,
    GradientBoosting,
    Leaderboard,
    Naive,
    Transformer,
    WindowMean,
    compare,
    decompose,
    plot,
    tune,
)
from deepforecast.errors import DataError
from deepforecast.plotting import plot_attention, plot_components, plot_cross_validation, plot_pareto, plot_training
from deepforecast.tuning.result import TuningResult

HISTORY = pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=48, freq="MS"), "y": [i % 12 + i % 5 / 4 for i in range(48)]})
NAMES = {"plot": plot, "decompose": decompose, "plot_attention": plot_attention, "history": HISTORY}


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    return compare([Naive(), Drift()], HISTORY, horizon=3, n_windows=2)


@pytest.fixture(scope="module")
def result() -> TuningResult:
    return tune(WindowMean(), HISTORY, horizon=3, n_trials=2)


def refusal(plotter: Any, given: Any) -> str:
    with pytest.raises(DataError) as refused:
        plotter(given)
    return str(refused.value)


def followed(text: str, **names: Any) -> Any:
    """What the advice of a refusal gives."""
    start = max(text.rfind(words) + len(words) for words in ("Pass ", "Use "))
    return eval(text[start:].partition(" to plot ")[0].removesuffix("."), {**NAMES, **names})


def test_a_model_in_place_of_a_history() -> None:
    text = refusal(plot, model := Naive().fit(HISTORY))
    assert text.startswith("The history must be a pandas, polars or pyarrow DataFrame, got Naive(). Use plot(")
    assert len(followed(text, model=model).axes) == 1


def test_a_forecast_in_place_of_a_history() -> None:
    forecast = Naive(horizon=3).fit(HISTORY).predict()
    for plotter in (plot, plot_cross_validation):
        text = refusal(plotter, forecast)
        assert "Use plot(history, forecast) to plot forecasts" in text
        assert len(followed(text, forecast=forecast).axes) == 1


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (Drift(horizon=3), "got Drift(horizon=3). Pass model.explain()."),
        (MLP(horizon=3, max_steps=2), "Pass model.explain()."),
        (GradientBoosting(horizon=3), "This model has no components. Pass decompose(history)."),
        (Transformer(horizon=3, max_steps=2, d_model=8, n_heads=2), "Use plot_attention(model.explain()) to plot its attention."),
    ],
)
def test_a_model_in_place_of_its_components(model: Any, advice: str) -> None:
    model.fit(HISTORY)
    text = refusal(plot_components, model)
    assert text.endswith(advice)
    passed = followed(text, model=model)
    assert (plot_components(passed) if "Pass" in text else passed).axes


def test_only_models_with_attention_are_advised_to_explain_it() -> None:
    assert refusal(plot_attention, Naive()).endswith("Pass explain() of a model with attention, such as Transformer.")
    assert refusal(plot_attention, Transformer(horizon=3)).endswith("Pass model.explain().")


def test_the_result_of_a_search(result: TuningResult) -> None:
    for plotter in (plot, plot_pareto, plot_components, plot_training):
        text = refusal(plotter, result)
        assert text.endswith("got the result of a search. Use result.plot() to plot the search, or fit result.best_model.")
    assert result.plot() is not None


def test_a_leaderboard_in_place_of_a_training_report(board: Leaderboard) -> None:
    assert refusal(plot_training, board) == (
        "The report must be a fitted network or its `training_report_`, got a leaderboard. Pass a fitted network, such as LSTM."
    )
