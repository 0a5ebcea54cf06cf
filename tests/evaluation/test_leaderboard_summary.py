"""The words of a leaderboard say what its numbers carry, and no more."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Drift, Mean, Naive, SeasonalNaive, compare
from deepforecast.errors import DataWarning
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.leaderboard_summary import title, undercoverage_notes, verdict
from tests.evaluation.boards import LastValue, seasonal

FRAME = seasonal()
BOARD = compare([Naive(), SeasonalNaive(), Drift()], FRAME, horizon=4, n_windows=2)


def with_pair(**values: Any) -> Leaderboard:
    """The board with another outcome of the best against the next."""
    found = BOARD.significance.copy()
    own = (found["model"] == "SeasonalNaive") & (found["against"] == "Naive")
    for name, value in values.items():
        found.loc[own, name] = value
    return replace(BOARD, significance=found)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"wins": 0.75, "p_value": 0.012},
            "The difference to Naive (3.172), the second, is significant: better in 75 %",
        ),
        ({"wins": 1.0, "p_value": 1e-9}, "better in 100 % of 12 series, p < 0.001."),
        ({"wins": 0.6, "p_value": 0.05}, "Naive (3.172) is second; the difference is not significant: better in 60 %"),
        ({"wins": 0.6, "p_value": 0.051}, "of 12 series, p = 0.051."),
        (
            {"wins": 0.3, "p_value": 0.01},
            "Naive (3.172) is second, although it wins in most series: the best is better in 30 %",
        ),
        ({"series": 0}, "Naive (3.172) is second; no series has scores of both, so the difference cannot be tested."),
        ({"series": 1}, "Naive (3.172) is second; the difference cannot be tested on one series."),
    ],
    ids=str,
)
def test_how_sure_the_best_is(values: dict[str, Any], said: str) -> None:
    told = verdict(with_pair(**values))
    assert told.startswith("SeasonalNaive is best by mase: 1.053 (95 % interval 0.8647 to 1.247). ")
    assert said in told


def test_headline_counts_and_names_the_metric_that_ranks() -> None:
    assert re.fullmatch(r"\d models, 12 series, horizon 4, 2 windows; ranked by MASE", BOARD.headline())
    alone = compare([Naive()], FRAME[FRAME["unique_id"] == "s0"], horizon=4, n_windows=1, metrics="smape")
    assert alone.headline() == "1 model, 1 series, horizon 4, 1 window; ranked by sMAPE"


def test_equal_models_are_level() -> None:
    board = compare([Naive(alias="A"), Naive(alias="B")], FRAME, horizon=4, n_windows=2)
    assert verdict(board).endswith("B (3.172) is tied with it.")
    assert title(board) == "A and B are tied"


def test_a_single_model_beats_nobody() -> None:
    alone = compare(Naive(), FRAME, horizon=4, n_windows=2)
    assert verdict(alone).endswith("No other model was compared.")
    assert title(alone) == "Naive"
    left = compare([Naive(), LastValue(how="fit")], FRAME, horizon=4, n_windows=2)
    assert verdict(left).endswith("All other models failed.")
    assert title(left) == "Naive leads"
    assert title(BOARD) == "SeasonalNaive leads"


def test_few_forecasts_are_not_judged_by_their_coverage() -> None:
    ds = pd.date_range("2015-01-01", periods=60, freq="MS")
    trend = pd.DataFrame({"unique_id": "a", "ds": ds, "y": np.arange(60.0)})
    board = compare(Mean(), trend, horizon=6, n_windows=4, level=80)
    assert board.table["coverage-80"].item() == 0
    assert undercoverage_notes(board) == []


def test_intervals_that_cover_far_too_little_are_reported_once_per_level() -> None:
    t = np.arange(60)
    ds = pd.date_range("2015-01-01", periods=60, freq="MS")
    trend = pd.DataFrame({"unique_id": "a", "ds": ds, "y": t + np.random.default_rng(0).normal(size=60)})
    with pytest.warns(DataWarning, match="cover less than") as caught:
        board = compare([Mean(), Drift()], trend, horizon=6, n_windows=5, level=[80, 95])
    messages = [str(warning.message) for warning in caught]
    assert messages == undercoverage_notes(board)
    assert [message[:50] for message in messages] == [
        "80 % prediction intervals cover less than 70 % of ",
        "95 % prediction intervals cover less than 85 % of ",
    ]
    assert "Mean (0 %)" in messages[0]
    assert "Mean (60 %)" in messages[1]
    assert "Drift" not in "".join(messages)
    assert all(message in board.text(10_000) for message in messages)


def test_a_single_window_is_judged_where_hardly_any_value_is_covered() -> None:
    ds = pd.date_range("2010-01-01", periods=100, freq="MS")
    trend = pd.DataFrame({"unique_id": "a", "ds": ds, "y": np.arange(100.0)})
    with pytest.warns(DataWarning, match="Mean \\(0 %\\)"):
        compare(Mean(), trend, horizon=40, n_windows=1, level=80)


def random_walk(seed: int, length: int = 150) -> pd.DataFrame:
    ds = pd.date_range("2000-01-01", periods=length, freq="MS")
    return pd.DataFrame({"unique_id": "a", "ds": ds, "y": np.random.default_rng(seed).normal(size=length).cumsum()})


def test_chance_is_not_reported_as_undercoverage(recwarn: pytest.WarningsRecorder) -> None:
    boards = [compare(Naive(), random_walk(seed), horizon=12, n_windows=3, level=80) for seed in range(60)]
    assert sum(board.table["coverage-80"].item() < 0.7 for board in boards) > 9
    assert sum(bool(undercoverage_notes(board)) for board in boards) <= 3  # Naive is the right model


@pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning")
def test_undercoverage_counts_actual_values_and_knows_conformal_intervals() -> None:
    trend = random_walk(0, 100).assign(y=lambda one: one.y + np.maximum(np.arange(100) - 50, 0) ** 2)
    trend.loc[99, "y"] = np.nan
    models = [Mean(), Naive(intervals="conformal"), LastValue(), SeasonalNaive()]
    first, second = undercoverage_notes(compare(models, trend, horizon=12, n_windows=4, level=80))
    assert " cover less than 70 % of 47 actual values of 1 series in 4 windows: " in first
    advice = {"Mean": "intervals='conformal'", "LastValue": "more calibration windows"}
    for model, hint in advice.items():
        (sentence,) = (one for one in (first, second) if f"{model} (" in one)
        assert sentence.endswith(f"Use {hint} or longer histories.")
    panel = pd.concat([trend.assign(unique_id=name) for name in "ab"])
    for horizon, n_windows, counts in ((12, 2, "2 series in 2 windows"), (24, 1, "2 series in 1 window")):
        (sentence,) = undercoverage_notes(compare([Mean()], panel, horizon=horizon, n_windows=n_windows, level=80))
        assert f" of 46 actual values of {counts}: Mean (0 %)" in sentence


@pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning")
@pytest.mark.parametrize(("coverage", "reported"), [(0.7, False), (0.699, True), (float("nan"), False)])
def test_undercoverage_begins_ten_points_below_the_level(coverage: float, reported: bool) -> None:
    board = compare([Naive()], FRAME, horizon=4, n_windows=2, level=80)
    board = replace(board, table=board.table.assign(**{"coverage-80": coverage}))
    assert bool(undercoverage_notes(board)) is reported
