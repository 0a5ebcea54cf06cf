"""Seq2Seq: what it takes and refuses, what a user adds, and that it looks where the answer is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from deepforecast import Seq2Seq
from deepforecast.datasets import generate
from deepforecast.errors import ParameterError
from deepforecast.nn.scores import SCORES, Score, score

pytestmark = pytest.mark.filterwarnings("ignore:.*after calibration")  # after 2 steps
SMALL: dict[str, Any] = {"horizon": 3, "input_size": 12, "hidden_size": 4, "max_steps": 2, "batch_size": 16}


def test_message_of_an_unknown_attention_score_lists_the_scores() -> None:
    with pytest.raises(ParameterError, match=r"`attention` must be None, 'additive', .* or 'gaussian', got 'foo'"):
        Seq2Seq(attention="foo")
    model = Seq2Seq()
    with pytest.raises(ParameterError, match="got 'foo'"):
        model.set_params(attention="foo")


@pytest.mark.parametrize("attention", [None, *SCORES])
def test_every_score_fits(attention: str | None) -> None:
    found = Seq2Seq(**SMALL, attention=attention, decoder="luong").fit(generate(2, 60)).predict(level=80)
    assert np.isfinite(found.iloc[:, 2:].to_numpy()).all()


def test_a_user_adds_a_score() -> None:
    @score("nearest")
    class Nearest(Score):
        def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
            return -torch.cdist(queries, keys, p=1)

    try:
        model = Seq2Seq(**SMALL, attention="nearest", bidirectional=True).fit(generate(2, 60))
        assert isinstance(model.network_.body.attention.score, Nearest)
        assert np.isfinite(model.predict()["Seq2Seq"]).all()
        with pytest.raises(ParameterError, match="'gaussian' or 'nearest', got"):
            Seq2Seq(attention="foo")
    finally:
        del SCORES["nearest"]
    with pytest.raises(ParameterError, match=r"got 'nearest'\. Import the module that registers your own score first"):
        Seq2Seq(attention="nearest")


def test_a_score_that_says_numbers_of_other_pairs_is_named() -> None:
    @score("turned")
    class Turned(Score):
        def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
            return keys @ queries.transpose(1, 2)

    try:
        with pytest.raises(ParameterError, match=r"here \(16, 3, 12\); that of Turned \(attention='turned'\) returned \(16, 12, 3\)"):
            Seq2Seq(**SMALL, attention="turned").fit(generate(2, 60))
    finally:
        del SCORES["turned"]


@pytest.mark.parametrize("given", [
    {"attention": None, "hard_attention": True}, {"attention": None, "attention_window": 3},
    {"attention": None, "decoder": "bahdanau"},
    {"attention": None, "separate_values": True}, {"attention": None, "learned_scale": True},
    {"attention": None, "self_attention": True}, {"attention": None, "input_feeding": True},
    {"decoder": "bahdanau", "input_feeding": True}, {"encoder": "convolutional", "bidirectional": True}, {"kernel_size": 5},
], ids=str)  # fmt: skip
def test_what_can_have_no_effect_is_refused_with_the_way_out(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"has no effect with .* Set .*, or omit `"):
        Seq2Seq(**SMALL, **given).fit(generate(1, 60))


@pytest.mark.parametrize("given", [
    {"teacher_forcing": "linear", "decoder": "bahdanau"},
    {"teacher_forcing": "inverse_sigmoid", "input_feeding": True}, {"teacher_forcing": "free"},
    {"start_value": "learned"}, {"encoder": "convolutional", "kernel_size": 2, "n_layers": 2},
    {"cell": "rnn", "bidirectional": True},
    {"attention_window": 2, "hard_attention": True},
    {"separate_values": True, "self_attention": True, "learned_scale": True}, {"positional_encoding": True},
], ids=str)  # fmt: skip
def test_every_option_changes_the_forecast(given: dict[str, Any]) -> None:
    frame = generate(2, 60)
    found, plain = (Seq2Seq(**SMALL, **more, head="point").fit(frame).predict()["Seq2Seq"] for more in (given, {}))
    assert np.isfinite(found).all()
    assert (found - plain).abs().max() > 1e-6


def copies(series: int, length: int, lag: int, seed: int) -> pd.DataFrame:
    """Noise that comes again after `lag` rows: the answer is `lag` rows back, and nowhere else."""
    noise = np.random.default_rng(seed).normal(size=(series, lag))
    y = np.tile(noise, (1, -(-length // lag)))[:, :length]
    ids = np.repeat(np.arange(series), length)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(length), series), "y": y.reshape(-1)})


def test_it_looks_where_the_answer_is() -> None:
    """A mask that hides the answer, a score that does not see it or values of other rows leave it guessing."""
    model = Seq2Seq(
        horizon=4,
        input_size=24,
        head="point",
        scaler="standard",
        positional_encoding=True,
        hidden_size=32,
        encoder="convolutional",
        kernel_size=1,
        max_steps=250,
        batch_size=32,
        learning_rate=1e-2,
    )
    model.fit(copies(200, 60, 18, seed=0))
    unseen = copies(50, 28, 18, seed=1)
    history, true = unseen[unseen.ds < 24], unseen[unseen.ds >= 24]["y"]
    error = np.abs(model.predict(frame=history)["Seq2Seq"].to_numpy() - true.to_numpy()).mean()
    assert error < 0.2, "of noise of deviation 1"
    looked = model.explain(frame=history)
    right = looked[looked["ds"] - looked["lag"] == 18]
    assert len(right) == 200
    assert right["weight"].mean() > 0.8
