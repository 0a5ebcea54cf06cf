"""Encoder and decoder with attention: in one pass as step by step, looking as a loop would, its memory the window's alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from deepforecast.nn.attention import AttentionOptions
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.network import AutoregressiveBody, repeat_paths, select_paths
from deepforecast.nn.recurrent import RecurrentOptions
from deepforecast.nn.scores import SCORES
from deepforecast.nn.seq2seq import Convolutional, ConvolutionalOptions, Seq2SeqBody, Seq2SeqOptions, time_encoding
from tests.nn.bodies import FULL, NothingOnTheCPU, seeded, some_inputs

SHORT = InputSizes(input_size=5, horizon=3, out_features=3, past=2, future=2, static=3)
ORDERS = ("bahdanau", "luong", "feeding")


def body(order: str = "luong", sizes: InputSizes = SHORT, layers: RecurrentOptions | None = None, **rest: Any) -> Seq2SeqBody:
    """In float64, with weights of a seed."""
    told = {"decoder": "luong" if order == "feeding" else order, "input_feeding": order == "feeding", **rest}
    attention = told.pop("attention", AttentionOptions())
    options = Seq2SeqOptions(layers or RecurrentOptions("gru", 6), attention, **told)
    return seeded(lambda: Seq2SeqBody(sizes, options)).double().eval()


def given(sizes: InputSizes = SHORT) -> tuple[Inputs, Tensor]:
    """Windows, and the values before each step."""
    drawn = torch.Generator().manual_seed(2)
    inputs = some_inputs(sizes, dtype=torch.float64)
    return inputs, torch.randn(len(inputs.y), sizes.horizon, generator=drawn, dtype=torch.float64)


EVERY = [
    dict(zip(("cell", "n_layers", "bidirectional", "kernel_size", "positional_encoding", "start_value"), one, strict=True))
    for one in [
        ("lstm", 1, False, None, False, "last"), ("gru", 2, True, None, True, "learned"), ("rnn", 2, False, 3, True, "last"),
        ("lstm", 2, True, None, False, "learned"), ("lstm", 1, False, 2, False, "learned"),
    ]
]  # fmt: skip


@pytest.mark.parametrize("options", EVERY, ids=str)
@pytest.mark.parametrize("order", [*ORDERS, None])
def test_taught_is_step_by_step_and_everything_learns(order: str | None, options: dict[str, Any]) -> None:
    layers = RecurrentOptions(options["cell"], 6, options["n_layers"], options["bidirectional"] and not options["kernel_size"])
    more = {name: options[name] for name in ("kernel_size", "positional_encoding", "start_value")}
    one = body(order or "luong", layers=layers, **more, **({} if order else {"attention": None}))
    inputs, previous = given()
    found = one.forward_teacher_forced(inputs, previous)
    torch.testing.assert_close(found, AutoregressiveBody.forward_teacher_forced(one, inputs, previous), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(one.forward_teacher_forced(inputs, previous[:, :2]), found[:, :2], atol=1e-6, rtol=1e-6)
    found.square().sum().backward()
    lost = [name for name, weight in one.named_parameters() if weight.grad is None or not weight.grad.abs().sum() > 0]
    assert not lost


def test_a_luong_step_by_hand() -> None:
    """s = cell(y, x); weights = softmax(s W h); read = tanh(C [s; context])."""
    one, (inputs, previous) = body(), given()
    assert one.attention is not None
    assert one.skip is not None
    assert one.combine is not None
    state = one.initial_state(inputs)
    found, _ = one.step(state, previous[:, 0], inputs.future_features[:, 0], 0)
    encoded, last = one.encoder.layers(inputs.past_features)
    encoded = encoded + one.skip(inputs.past_features)
    cell = one.decoder.cells[0]
    weights = next(one.attention.score.parameters())
    for window in range(5):
        row = torch.cat([previous[window, :1], inputs.future_features[window, 0]])
        s = torch.gru_cell(row[None], last[0][window : window + 1], *cell.all_weights[0])[0]
        there = [number for number in range(5) if bool(inputs.observed[window, : number + 1].any())]
        shares = torch.softmax(torch.stack([s @ (weights @ encoded[window, number]) for number in there]), 0)
        context = sum(share * encoded[window, number] for share, number in zip(shares, there, strict=True))
        read = torch.tanh(one.combine(torch.cat([s, context])))
        torch.testing.assert_close(found[window], one.out(read), atol=1e-9, rtol=1e-9)


def test_a_bahdanau_step_looks_with_the_state_before_it() -> None:
    one, (inputs, previous) = body("bahdanau"), given()
    state = one.initial_state(inputs)
    asked: list[Tensor] = []
    look = one._attend
    one._attend = lambda asking, memory: asked.append(asking) or look(asking, memory)  # type: ignore[method-assign, func-returns-value]
    one.step(state, previous[:, 0], inputs.future_features[:, 0], 0)
    assert torch.equal(asked[0], state[3])


def test_what_is_fed_is_what_was_read() -> None:
    one, (inputs, previous) = body("feeding"), given()
    first = one.initial_state(inputs)
    assert (first[3] == 0).all()
    out, state = one.step(first, previous[:, 0], inputs.future_features[:, 0], 0)
    torch.testing.assert_close(one.out(state[3]), out)
    other = (*state[:3], state[3] + 1, *state[4:])
    plain, moved = (one.step(now, previous[:, 1], inputs.future_features[:, 1], 1)[0] for now in (state, other))
    assert ((moved - plain).abs().amax(1) > 1e-4).all()


@pytest.mark.parametrize("order", [*ORDERS, None])
def test_weights_are_those_of_the_steps(order: str | None) -> None:
    one = body(order or "luong", **({} if order else {"attention": None}))
    inputs, previous = given()
    found = one.attention_maps(inputs, previous)
    if order is None:
        assert found == []
        return
    (cross,) = found
    assert (cross.kind, cross.layer, cross.weights.shape) == ("cross", 0, (5, 1, 3, 5))
    assert (cross.queries.tolist(), cross.keys.tolist()) == ([1, 2, 3], [-4, -3, -2, -1, 0])
    torch.testing.assert_close(cross.weights.sum(-1), torch.ones(5, 1, 3, dtype=torch.float64))
    assert (cross.weights[0, :, :, :2] == 0).all(), "rows before the first value"
    assert (cross.weights[1] > 0).all(), "a value missing later on"
    state = one.initial_state(inputs)
    for step in range(3):
        _, weights, state = one._step(state, previous[:, step], inputs.future_features[:, step], step)
        torch.testing.assert_close(cross.weights[:, 0, step : step + 1], weights)


def test_rows_that_look_at_each_other_are_told_too() -> None:
    one, (inputs, previous) = body(self_attention=True), given()
    among, _ = one.attention_maps(inputs, previous)
    assert (among.kind, among.weights.shape) == ("self", (5, 1, 5, 5))
    torch.testing.assert_close(among.weights.sum(-1), torch.ones(5, 1, 5, dtype=torch.float64))
    moved = one.forward_teacher_forced(inputs, previous) - body().forward_teacher_forced(inputs, previous)
    assert moved.abs().max() > 1e-4


@pytest.mark.parametrize("order", ORDERS)
def test_the_memory_belongs_to_the_window_and_paths_to_themselves(order: str) -> None:
    one, (inputs, _) = body(order), given()
    state = repeat_paths(one.initial_state(inputs), one.shared_state, 3)
    assert [len(part) for part in state[:3]] == [5] * 3
    assert {len(part) for part in state[3:]} == {15}
    values, ahead = torch.randn(15, generator=torch.Generator().manual_seed(5), dtype=torch.float64), inputs.future_features
    out, after = one.step(state, values, ahead[:, 0].repeat_interleave(3, 0), 0)
    order_of = torch.arange(14, -1, -1).view(5, 3).flip(0).flatten()  # each window's paths turned round
    again, _ = one.step(select_paths(after, one.shared_state, order_of), values, ahead[:, 1].repeat_interleave(3, 0), 1)
    for path in range(3):
        alone, later = one.step(one.initial_state(inputs), values[path::3], ahead[:, 0], 0)
        torch.testing.assert_close(alone, out[path::3])
        turned, _ = one.step(later, values[2 - path :: 3], ahead[:, 1], 1)
        torch.testing.assert_close(turned, again[2 - path :: 3])


@pytest.mark.parametrize("order", [*ORDERS, None])
@pytest.mark.parametrize("kernel_size", [None, 3])
def test_a_history_of_nothing_is_finite(order: str | None, kernel_size: int | None) -> None:
    one = body(order or "luong", kernel_size=kernel_size, **({} if order else {"attention": None}))
    inputs, previous = given()
    empty = replace(inputs, y=inputs.y * 0, observed=inputs.observed * 0, past=inputs.past * 0)
    found = one.forward_teacher_forced(empty, previous)
    found.sum().backward()
    assert found.isfinite().all()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in one.parameters())


def test_each_input_enters_where_it_belongs() -> None:
    """What is known ahead of a step moves it and those after it; past and static columns move the rows that are read."""
    one, (inputs, previous) = body(sizes=FULL), given(FULL)
    plain = one.forward_teacher_forced(inputs, previous)
    for step in range(4):
        future = inputs.future.clone()
        future[:, step] += 3.0
        moved = (one.forward_teacher_forced(replace(inputs, future=future), previous) - plain).abs().amax((0, 2)) > 1e-6
        assert moved.tolist() == [number >= step for number in range(4)]
    keys = one.initial_state(inputs)[0]
    for name in ("y", "past", "static", "observed"):
        other = replace(inputs, **{name: getattr(inputs, name) + 1.0})
        assert (one.initial_state(other)[0] - keys).abs().amax((1, 2)).min() > 1e-4


def test_a_learned_start_replaces_the_first_value_alone() -> None:
    one, (inputs, previous) = body(start_value="learned"), given()
    assert one.start_token is not None
    with torch.no_grad():
        one.start_token.fill_(0.7)
    torch.testing.assert_close(
        one.forward_teacher_forced(inputs, previous), one.forward_teacher_forced(inputs, previous + torch.tensor([[9.0, 0, 0]]))
    )
    plain = body()
    plain.load_state_dict({name: value for name, value in one.state_dict().items() if name != "start_token"})
    said = torch.cat([torch.full((5, 1), 0.7, dtype=torch.float64), previous[:, 1:]], dim=1)
    torch.testing.assert_close(one.forward_teacher_forced(inputs, previous), plain.forward_teacher_forced(inputs, said))


def test_places_are_told_apart() -> None:
    behind, ahead = time_encoding(200, 24)
    both = torch.cat([behind, ahead])
    assert both.shape == (224, 16)
    apart = torch.cdist(both, both) + 9 * torch.eye(224)
    assert apart.min() > 0.5


def test_a_convolution_is_its_plain_loop_and_reaches_further_with_every_layer() -> None:
    layers = seeded(lambda: Convolutional(2, ConvolutionalOptions(4, 2, 3))).double()
    rows = torch.randn(1, 9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = [layers.input_projection(row) for row in rows[0]]
    for number, convolved in enumerate(layers.layers):
        apart, before = 2**number, found
        found = []
        for place in range(9):
            total = convolved.bias.clone()
            for tap, there in enumerate((place - apart, place, place + apart)):
                if 0 <= there < 9:
                    total = total + convolved.weight[:, :, tap] @ before[there]
            found.append((before[place] + total[:4] * total[4:].sigmoid()) * 0.5**0.5)
    torch.testing.assert_close(layers(rows)[0], torch.stack(found))
    moved = (layers(rows + torch.eye(9, dtype=torch.float64)[4].view(1, 9, 1)) - layers(rows)).abs().amax((0, 2)) > 1e-9
    assert moved.tolist() == [1 <= place <= 7 for place in range(9)]


@pytest.mark.parametrize("name", list(SCORES))
def test_on_another_device_nothing_is_left_behind(name: str) -> None:
    for order, kernel_size in product(ORDERS, (None, 3)):
        attention = AttentionOptions(name, True, True, 2, True)
        one = body(
            order, FULL, attention=attention, kernel_size=kernel_size, positional_encoding=True, start_value="learned"
        ).to("meta")
        inputs = Inputs(*(getattr(given(FULL)[0], field).to("meta") for field in ("y", "observed", "past", "future", "static")))
        previous = given(FULL)[1].to("meta")
        with NothingOnTheCPU():
            one.forward_teacher_forced(inputs, previous).sum().backward()
            one.attention_maps(inputs, previous)
