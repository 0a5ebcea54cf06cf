"""Faithfulness: the forecast changes where the rows it depends on are masked, and not where others are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deepforecast import LSTM, Naive, WindowMean
from deepforecast.core.forecast import AttentionMap
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.panel import Panel
from deepforecast.datasets import generate
from deepforecast.errors import CapabilityError, NotFittedError, ParameterError
from deepforecast.evaluation.faithfulness import faithfulness, row_importance

ROWS = 20


class Honest(WindowMean):
    """Forecasts the mean of the last 4 values that are there, and says that it looks at these."""

    looks = slice(-4, None)

    @classmethod
    def made(cls, frame: Any) -> Forecaster:
        return cls(horizon=3, window=4).fit(frame)

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return replace(declared, explains=True)

    def _attention_maps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Sequence[AttentionMap]:
        count = len(learned.series or ())
        weights = np.full((count, 1, steps, ROWS), 0.01, dtype=np.float32)
        weights[..., self.looks] = 0.2
        rows, first = np.arange(1 - ROWS, 1), np.full(count, 1 - ROWS)
        return [AttentionMap("cross", 0, 0, weights, np.arange(1, steps + 1), rows, first)]


class Pretending(Honest):
    """Says that it looks at the oldest ones."""

    looks = slice(0, 4)


def panel(series: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ids, days = [f"s{number}" for number in range(series)], pd.date_range("2024-01-01", periods=30)
    return pd.DataFrame({"unique_id": np.repeat(ids, 30), "ds": np.tile(days, series),
                         "y": rng.normal(size=(series, 30)).cumsum(axis=1).reshape(-1)})  # fmt: skip


def test_the_forecast_changes_with_the_rows_it_hangs_on() -> None:
    honest, pretending = (faithfulness(kind.made(panel()), panel(), share=0.2) for kind in (Honest, Pretending))
    assert list(honest.columns) == ["unique_id", "rows", "most", "least", "random"]
    assert honest.unique_id.tolist() == ["s0", "s1", "s2"]
    assert honest.rows.tolist() == [4] * 3
    assert (honest.most > 0).all()
    assert (honest.least == 0).all()
    assert 0 < honest.random.mean() < honest.most.mean()
    assert (pretending.most == 0).all()
    np.testing.assert_allclose(pretending.random, honest.random)


def test_a_change_is_in_deviations_of_the_values_seen() -> None:
    frame = panel(1)
    found = faithfulness(Honest.made(frame), frame, share=0.2)
    y = frame.y.to_numpy()
    wanted = abs(y[-4:].mean() - y[-8:-4].mean()) / y[-ROWS:].std()
    assert found.most[0] == pytest.approx(wanted)
    larger = frame.assign(y=1e6 * frame.y)
    assert faithfulness(Honest.made(larger), larger, share=0.2).most[0] == pytest.approx(wanted)
    flat = frame.assign(y=3.0)
    assert faithfulness(Honest.made(flat), flat).most[0] == 0


def test_histories_stay_as_they_are_and_no_word_is_said_of_what_is_hidden() -> None:
    frame = panel()
    model, before = Honest.made(frame), frame.copy(deep=True)
    forecast = model.predict()
    faithfulness(model, frame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(model.predict(), forecast)
    first, again, other = (faithfulness(model, frame, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first.random, other.random)
    assert isinstance(faithfulness(model, pl.from_pandas(frame)), pl.DataFrame)


def test_a_patch_shares_its_weight_among_its_rows() -> None:
    weights = np.zeros((1, 2, 3, 3), dtype=np.float32)
    weights[..., 0], weights[..., 1], weights[:, 0, :, 2] = 0.2, 0.3, 1.0
    rows = np.array([-8, -4, 0])
    known = Panel.from_frame(panel(1).iloc[:11])
    hidden = known.with_target(np.where(np.arange(11) == 9, np.nan, known.y))
    found = row_importance([AttentionMap("cross", 0, 0, weights, np.arange(1, 4), rows, np.array([-10]))], hidden, "It")
    np.testing.assert_allclose(found[0], [np.nan, *[0.2 / 4] * 3, *[0.3 / 4] * 4, *[0.5 / 4] * 2, np.nan, 0.5 / 4], rtol=1e-6)


def test_self_attention_of_the_steps_counts_where_there_is_no_other() -> None:
    known, rows = Panel.from_frame(panel(1)), np.arange(-3, 1)
    encoder = AttentionMap("self", 0, 0, np.full((1, 1, 4, 4), 0.25, dtype=np.float32), rows, rows, np.array([-3]))
    with pytest.raises(CapabilityError, match="no attention to past observations"):
        row_importance([], known, "It")
    np.testing.assert_allclose(row_importance([encoder], known, "It")[0], [0.25] * 4, rtol=1e-6)
    weights = np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32).reshape(1, 1, 1, 4)
    steps = replace(encoder, weights=weights, queries=np.array([1]))
    np.testing.assert_allclose(row_importance([encoder, steps], known, "It")[0], [0.1, 0.2, 0.3, 0.4], rtol=1e-6)


@pytest.mark.parametrize("share", [0, 0.6, True, "much", float("nan")])
def test_a_share_that_most_and_least_cannot_both_have(share: Any) -> None:
    with pytest.raises(ParameterError, match=r"`share` must be a number above 0 and at most 0.5"):
        faithfulness(Honest.made(panel()), panel(), share=share)


def test_models_that_do_not_look() -> None:
    with pytest.raises(CapabilityError, match="LSTM has no attention"):
        faithfulness(LSTM(horizon=2, input_size=5, max_steps=1, hidden_size=4).fit(generate(2, 40)), generate(2, 40))
    with pytest.raises(NotFittedError):
        faithfulness(Naive(horizon=2), panel())
