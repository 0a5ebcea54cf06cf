"""Attention through the public methods: weights as data, memory that paths share, forecasts that stay as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import deepforecast
from deepforecast import Conformal
from deepforecast.core import forecast
from deepforecast.errors import DataError
from tests.models.neural.test_decoding import inputs_of
from tests.models.neural.test_predict import HORIZON, panel

ROWS = 16
KEYS = ["unique_id", "ds", "cutoff", "step", "kind", "layer", "head"]
MODELS: dict[str, dict[str, Any]] = {
    "Seq2Seq": {"hidden_size": 8}, "Seq2Seq-self": {"hidden_size": 8, "attention": "additive", "decoder": "bahdanau",
                                                    "self_attention": True},
    "Transformer": {"d_model": 8, "n_heads": 2, "n_layers": 2, "patch_length": 4, "stride": 2},
    "Transformer-in-turn": {"d_model": 8, "n_heads": 2, "n_layers": 2, "patch_length": 1, "output": "autoregressive"},
}  # fmt: skip


def fitted(name: str, **rest: Any) -> Any:
    kind = getattr(deepforecast, name.partition("-")[0])
    said = {"horizon": HORIZON, "input_size": ROWS, "max_steps": 5, "batch_size": 32, **MODELS[name], **rest}
    return kind(**said).fit(panel(3, 100))


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_every_query_add_up_to_one(name: str) -> None:
    model = fitted(name)
    for steps in (HORIZON - 2, HORIZON, 2 * HORIZON + 1):
        found = model.explain(steps)
        np.testing.assert_allclose(found.groupby(KEYS).weight.sum(), 1.0, atol=1e-5)
        cross = found[found.kind == "cross"]
        ends = cross[["unique_id", "ds"]].drop_duplicates().reset_index(drop=True)
        pd.testing.assert_frame_equal(ends, model.predict(steps)[["unique_id", "ds"]], check_dtype=False)
        assert (cross.lag <= cross.cutoff).all()
        assert (cross.step >= 1).all()
        assert (found.ds - found.cutoff == pd.to_timedelta(found.step, "D")).all()
        assert found.cutoff.nunique() == -(-steps // HORIZON)
        if "turn" in name:
            assert (found[(found.kind == "self") & (found.step > 0) & (found.lag > found.ds)].weight == 0).all()
    own = found[found.kind == "self"]
    assert (own.step <= 0).any() == (name != "Seq2Seq")


@pytest.mark.parametrize("name", MODELS)
def test_they_are_those_of_the_forecast_that_feeds_itself(name: str) -> None:
    model = fitted(name, scaler="none", calendar=None, **({} if name == "Transformer" else {"decoding": "greedy"}))
    path = model.predict()[model.name].to_numpy().reshape(3, HORIZON)
    found = model.explain()
    history = torch.tensor(panel(3, 100).y.to_numpy().reshape(3, 100)[:, -ROWS:])
    with torch.no_grad():
        inputs = inputs_of(model, history)
        before = torch.cat([history[:, -1:], torch.tensor(path)[:, :-1]], dim=1).float()
        looked = model.network_.body.attention_maps(inputs, before)
    for one in looked:
        part = found[(found.kind == one.kind) & (found.layer == one.layer)]
        part = part[(part.step > 0) == bool((one.queries > 0).any())]
        weight = part.weight.to_numpy().reshape(one.weights.shape)
        np.testing.assert_allclose(weight, one.weights.numpy(), atol=1e-5)
        rows = ((part.lag - part.cutoff).dt.days).to_numpy().reshape(one.weights.shape)
        assert (rows == one.keys.numpy()).all()


@pytest.mark.parametrize("name", MODELS)
def test_beyond_the_horizon_learned_it_looks_at_its_own_forecast(name: str) -> None:
    model = fitted(name, calendar=None, **({} if name == "Transformer" else {"decoding": "greedy"}))
    whole = model.explain(HORIZON + 3)
    history = panel(3, 100)
    own = pd.concat([history, model.predict().rename(columns={model.name: "y"})], ignore_index=True)
    after = model.explain(3, frame=own)
    later = whole[whole.cutoff > history.ds.max()].reset_index(drop=True)
    assert set(later.step) >= {1, 2, 3}
    pd.testing.assert_frame_equal(later, after, atol=1e-5, check_dtype=False)


@pytest.mark.parametrize("name", MODELS)
def test_what_lies_before_a_short_series_is_not_looked_at(name: str) -> None:
    model, short = fitted(name), panel(2, 7)
    found = model.explain(frame=short)
    if name != "Transformer":  # whose first patch may begin before the series
        assert found.lag.min() == short.ds.min()
    np.testing.assert_allclose(found.groupby(KEYS).weight.sum(), 1.0, atol=1e-5)


def test_many_weights_are_refused_before_they_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, many = fitted("Transformer-in-turn"), panel(70, 30)
    passes: list[int] = []
    attended = type(model.network_.body).attention_maps
    monkeypatch.setattr(type(model.network_.body), "attention_maps", lambda *given: passes.append(1) or attended(*given))
    rows = len(model.explain(frame=panel(10, 30)))
    passes.clear()
    monkeypatch.setattr(forecast, "MAX_ATTENTION_ROWS", 2 * rows)
    with pytest.raises(DataError, match=f"Transformer would have {7 * rows:,} for 70 series.*about 20 here"):
        model.explain(frame=many)
    assert passes == [1]
    assert len(model.explain(frame=many[many.unique_id < "s0020"])) == 2 * rows


def test_without_attention_the_contributions_of_the_columns_are_returned() -> None:
    found = fitted("Seq2Seq", attention=None).explain()
    assert list(found) == ["unique_id", "ds", "component", "value"]
    assert set(found.component) == {"baseline", "y", "calendar", "rest"}


def test_a_model_around_it_shows_the_same() -> None:
    wrapped = Conformal(fitted("Seq2Seq").clone(), n_windows=2).fit(panel(2, 60))
    inner = fitted("Seq2Seq").clone().fit(panel(2, 60))
    pd.testing.assert_frame_equal(wrapped.explain(), inner.explain())


@pytest.mark.parametrize("name", ["Seq2Seq", "Transformer-in-turn"])
def test_what_was_read_is_not_repeated_for_paths_or_beams(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(name, head="bins", intervals="uncalibrated")  # factors need the distribution of each step, too
    body, seen = type(model.network_.body), []
    step, start = body.step, body.initial_state
    monkeypatch.setattr(body, "step", lambda self, state, previous, *rest: (
        seen.append((len(state[0]), len(previous))) or step(self, state, previous, *rest)
    ))  # fmt: skip
    starts: list[int] = []
    monkeypatch.setattr(body, "initial_state", lambda self, inputs: starts.append(len(inputs.y)) or start(self, inputs))
    model.simulate(50)
    rows = starts[0]  # three series, and what they are filled up to
    assert 3 <= rows <= 8
    assert seen == [(rows, rows * 50)] * HORIZON
    assert len(starts) == 1
    seen.clear()
    model.beam_search(7)
    rows = starts[1]
    assert seen == [(rows, rows), *[(rows, 7 * rows)] * (HORIZON - 1)]
    assert len(starts) == 2


@pytest.mark.parametrize("name", ["Seq2Seq", "Transformer-in-turn"])
def test_steps_in_turn_give_what_all_at_once_would(name: str) -> None:
    """The cache of the steps equals attention computed again over all of them."""
    model = fitted(name, scaler="none", calendar=None, decoding="greedy", head="normal")
    path = torch.tensor(model.predict()[model.name].to_numpy().reshape(3, HORIZON))
    history = torch.tensor(panel(3, 100).y.to_numpy().reshape(3, 100)[:, -ROWS:])
    with torch.no_grad():
        inputs = inputs_of(model, history)
        before = torch.cat([history[:, -1:], path[:, :-1]], dim=1).float()
        at_once = model.network_.body.forward_teacher_forced(inputs, before)[..., 0]
    np.testing.assert_allclose(at_once.numpy(), path.numpy(), atol=1e-5)


def test_beams_go_on_from_their_own_paths_and_memory() -> None:
    """The probability of each path found is that of telling the network this path."""
    for name in ("Seq2Seq", "Transformer-in-turn"):
        model = fitted(name, scaler="none", calendar=None, head="bins", max_steps=40)
        found = model.beam_search(6)
        paths, chance = (found[one].to_numpy().reshape(3, 6, HORIZON) for one in ("value", "log_probability"))
        history = torch.tensor(panel(3, 100).y.to_numpy().reshape(3, 100)[:, -ROWS:])
        with torch.no_grad():
            inputs = inputs_of(model, history)
            for rank in range(6):
                path = torch.tensor(paths[:, rank]).float()
                raw = model.network_.body.forward_teacher_forced(
                    inputs, torch.cat([history[:, -1:].float(), path[:, :-1]], dim=1)
                )
                codes = model.network_.head.encode(path)
                told = raw.double().log_softmax(-1).gather(-1, codes[..., None])[..., 0].sum(1)
                np.testing.assert_allclose(chance[:, rank, 0], told.numpy(), atol=1e-4)
