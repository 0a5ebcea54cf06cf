"""Points by greedy and most probable paths, beam search, temperature and top-p, through the public methods."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor

import deepforecast
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.nn.batch import Batch, Inputs
from deepforecast.nn.heads.bins import BinnedHead
from deepforecast.nn.heads.registry import HEADS
from tests.models.neural.test_predict import HORIZON, panel

WORDS = 4


def fitted(name: str = "LSTM", **rest: Any) -> Any:
    small: dict[str, Any] = {"horizon": HORIZON, "input_size": 24, "max_steps": 5, "hidden_size": 8, "head": "bins"}
    if name == "LSTM":
        small["output"] = "autoregressive"
    return getattr(deepforecast, name)(**{**small, **rest}).fit(panel(3, 120))


def array(found: pd.DataFrame, column: str, *shape: int) -> np.ndarray:
    return found[column].to_numpy().reshape(*shape)


def inputs_of(model: Any, y: Tensor) -> Inputs:
    """Windows (B, L) of a model without columns, as its body sees them."""
    empty = y.new_zeros(len(y), max(y.shape[1], model.horizon), 0)
    past, future = empty[:, : y.shape[1]], empty[:, : model.horizon]
    static, scale = empty[:, 0], y[:, :1]
    batch = Batch(y, past.float(), future.float(), static.float(), past.long(), future.long(), static.long(), scale, scale)
    inputs: Inputs = model.network_.inputs(batch)[0]
    return inputs


@pytest.fixture
def few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary that can be enumerated."""
    monkeypatch.setitem(HEADS, "bins", partial(BinnedHead, WORDS, -2.0, 2.0, "uniform"))


@pytest.mark.parametrize("rest", [{"output": "autoregressive"}, {"output": "direct"}])
def test_beam_search_finds_all_paths_where_it_can_hold_them(few_words: None, rest: dict[str, Any]) -> None:
    model = fitted(horizon=3, max_steps=30, **rest)
    count = WORDS**3
    for width, there in ((count, count), (1000, count), (5, 5)):
        found = model.beam_search(width)
        assert list(found.columns) == ["unique_id", "ds", "path", "value", "log_probability"]
        paths, chance = array(found, "value", 3, there, 3), array(found, "log_probability", 3, there, 3)
        assert (array(found, "path", 3, there, 3) == np.arange(there)[None, :, None]).all()
        assert (np.diff(chance, axis=1) <= 0).all()
        assert (np.ptp(chance, axis=2) == 0).all()
        assert all(len(np.unique(one, axis=0)) == there for one in paths)
        if there == count:
            np.testing.assert_allclose(np.exp(chance[:, :, 0]).sum(axis=1), 1.0, atol=1e-6)
            best = paths[:, 0]
    np.testing.assert_allclose(array(model.set_params(decoding="beam", beam_width=count).predict(), "LSTM", 3, 3), best)
    shorter = model.beam_search(count, 2)
    np.testing.assert_allclose(np.exp(array(shorter, "log_probability", 3, WORDS**2, 2)[:, :, 0]).sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("rest", [{"output": "autoregressive"}, {"output": "direct"}])
def test_beyond_the_horizon_learned_paths_go_on_from_their_own_ends(few_words: None, rest: dict[str, Any]) -> None:
    """Each path's probability, taken together block by block from forecasts after its own values."""
    model = fitted(horizon=2, max_steps=30, scaler="standard", calendar=None, **rest)
    history = panel(3, 120)
    whole = model.beam_search(WORDS**4, 4)
    paths, chance = array(whole, "value", 3, -1, 4), array(whole, "log_probability", 3, -1, 4)[:, :, 0]
    assert paths.shape[1] == WORDS**4
    np.testing.assert_allclose(np.exp(chance).sum(axis=1), 1.0, atol=1e-6)
    first = model.beam_search(WORDS**2)
    start, begun = array(first, "value", 3, -1, 2), array(first, "log_probability", 3, -1, 2)[:, :, 0]
    for series, number in product(range(3), (0, 3, 100)):
        mine = history[history.unique_id == f"s{series:04d}"]
        more = pd.DataFrame({"unique_id": mine.unique_id.iloc[:2], "y": paths[series, number, :2],
                             "ds": mine.ds.max() + pd.to_timedelta([1, 2], "D")})  # fmt: skip
        after = model.beam_search(WORDS**2, frame=pd.concat([mine, more]))
        then, going = array(after, "value", -1, 2), array(after, "log_probability", -1, 2)[:, 0]
        which = np.abs(start[series] - paths[series, number, :2]).sum(axis=1).argmin()
        that = np.abs(then - paths[series, number, 2:]).sum(axis=1)
        assert that.min() < 1e-4
        assert chance[series, number] == pytest.approx(begun[series, which] + going[that.argmin()], abs=1e-4)


def test_paths_are_those_of_their_series_in_any_library() -> None:
    model = fitted()
    whole = model.beam_search(4)
    alone = model.beam_search(4, frame=panel(3, 120)[lambda one: one.unique_id == "s0001"])
    pd.testing.assert_frame_equal(alone, whole[whole.unique_id == "s0001"].reset_index(drop=True), atol=1e-6)
    found = fitted().fit(pl.from_pandas(panel(2, 100))).beam_search(2)
    assert isinstance(found, pl.DataFrame)
    assert found.shape == (2 * 2 * HORIZON, 5)


def test_paths_stay_within_bounds() -> None:
    found = fitted(bounds=(-1.0, 1.0)).beam_search(3)
    assert found["value"].between(-1, 1).all()


def test_a_greedy_point_is_the_path_in_which_each_step_is_told_the_one_before() -> None:
    model = fitted(head="normal", decoding="greedy", scaler="none", calendar=None)
    found = array(model.predict(HORIZON + 4), "LSTM", 3, HORIZON + 4)
    with torch.no_grad():
        network, told = model.network_, torch.tensor(panel(3, 120).y.to_numpy().reshape(3, 120)[:, -24:])

        def block(y: Tensor) -> Tensor:
            inputs = inputs_of(model, y)
            state, previous, path = network.initial_state(inputs), inputs.y[:, -1], []
            for step in range(HORIZON):
                raw, state = network.step(state, previous, inputs.future_features[:, step], step)
                previous = raw[:, 0]
                path.append(previous)
            return torch.stack(path, dim=1).double()

        first = block(told)
        second = block(torch.cat([told, first], dim=1)[:, -24:])
    np.testing.assert_allclose(found, torch.cat([first, second], dim=1)[:, : HORIZON + 4].numpy(), atol=1e-5)


@pytest.mark.parametrize("decoding", ["greedy", "beam"])
def test_the_way_to_the_point_moves_no_band(decoding: str) -> None:
    model = fitted(max_steps=40, intervals="uncalibrated")
    by_paths = model.predict(HORIZON + 2, level=[50, 80])
    found = model.set_params(decoding=decoding).predict(HORIZON + 2, level=[50, 80])
    pd.testing.assert_frame_equal(found.drop(columns="LSTM"), by_paths.drop(columns="LSTM"))
    assert not np.allclose(found["LSTM"], by_paths["LSTM"])
    assert np.allclose(model.predict(3)["LSTM"], found.groupby("unique_id").head(3)["LSTM"]) == (decoding == "greedy")


def test_steps_at_once_have_a_most_probable_path_but_no_greedy_one() -> None:
    model = fitted(output="direct", decoding="beam")
    assert np.allclose(model.predict()["LSTM"], model.beam_search(1)["value"])
    with pytest.raises(ParameterError, match=r"predicts all steps at once.*output='autoregressive'"):
        fitted(output="direct", decoding="greedy")


@pytest.mark.parametrize("output", ["autoregressive", "direct"])
def test_draws_stay_with_what_is_likely(output: str) -> None:
    model = fitted(output=output, max_steps=60, batch_size=128, learning_rate=0.02)

    def width(**said: float) -> tuple[float, float]:
        model.set_params(**{"temperature": 1.0, "top_p": 1.0, **said})
        band, paths = model.predict(level=80), model.simulate(50)
        drawn = array(paths, "LSTM", 3, 50, HORIZON)
        return float((band["LSTM-hi-80"] - band["LSTM-lo-80"]).mean()), float(np.ptp(drawn, axis=1).mean())

    plain = width()
    for said in ({"temperature": 0.5}, {"top_p": 0.5}):
        assert all(one < 0.9 * other for one, other in zip(width(**said), plain, strict=True)), said
    assert width(temperature=2.0)[0] > 1.2 * plain[0]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"decoding": "beam"}, "decoding='beam' cannot be used with head='normal'"),
        ({"temperature": 0.5}, "temperature=0.5 has no effect with head='normal'.*Set head='bins'"),
        ({"top_p": 0.5}, "top_p=0.5 has no effect with head='normal'"),
        (
            {"head": "bins", "beam_width": 3},
            "beam_width=3 has no effect with decoding='sample'. Set decoding='beam', or omit `beam_width`",
        ),
    ],
)
def test_what_can_have_no_effect_is_refused_with_the_way_out(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fitted(**{"head": "normal", **said})


def test_how_paths_are_made_changes_no_fit_but_calibrated_bands() -> None:
    model = fitted()
    model.temperature = 0.5
    assert model.__sklearn_is_fitted__()
    calibrated = fitted(intervals="conformal", head="point", max_steps=1)
    assert calibrated.__sklearn_is_fitted__()
    assert not calibrated.set_params(decoding="greedy").__sklearn_is_fitted__()


def test_other_heads_have_no_countable_paths() -> None:
    with pytest.raises(CapabilityError, match=r"requires head='bins'; LSTM has head='normal'.*or use `simulate` to draw paths"):
        fitted(head="normal").beam_search(3)


def test_a_point_alone_is_drawn_from_nothing() -> None:
    model = fitted(head="point", decoding="greedy")
    greedy = model.predict()
    pd.testing.assert_frame_equal(model.set_params(decoding="sample").predict(), greedy)
