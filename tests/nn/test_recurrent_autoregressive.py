"""One step after the other: taught in one call it is what it is step by step."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from deepforecast.nn import recurrent
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.network import AutoregressiveBody
from deepforecast.nn.recurrent import RecurrentAutoregressive, RecurrentOptions
from tests.nn.bodies import FULL, seeded, some_inputs

CELLS = ["lstm", "gru", "rnn"]
SHORT = InputSizes(input_size=4, horizon=3, out_features=3, past=2, future=2, static=3)


def before(inputs: Inputs, horizon: int = 4) -> Tensor:
    return torch.randn(len(inputs.y), horizon, generator=torch.Generator().manual_seed(2))


def made(options: RecurrentOptions, sizes: InputSizes = FULL) -> RecurrentAutoregressive:
    return seeded(lambda: RecurrentAutoregressive(sizes, options))


@pytest.mark.parametrize("fused_from", [1, 10**9])
@pytest.mark.parametrize("cell", CELLS)
def test_taught_at_once_is_step_by_step(cell: str, fused_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "MIN_FUSED_SIZE", fused_from)
    inputs = some_inputs(SHORT)
    for n_layers, bidirectional, residual in product((1, 2), (False, True), (False, True)):
        for normalization in (None, "layer", "batch"):
            body = made(RecurrentOptions(cell, 6, n_layers, bidirectional, 0.1, residual, normalization), SHORT).eval()
            expected = AutoregressiveBody.forward_teacher_forced(body, inputs, before(inputs, 3))
            torch.testing.assert_close(body.forward_teacher_forced(inputs, before(inputs, 3)), expected, atol=1e-6, rtol=1e-6)
            two = body.forward_teacher_forced(inputs, before(inputs, 3)[:, :2])
            torch.testing.assert_close(two, expected[:, :2], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_so_are_its_gradients(cell: str) -> None:
    inputs = some_inputs(FULL)
    body = made(RecurrentOptions(cell, 6, 2, True, 0.0, True, "layer")).double()
    exact = Inputs(*(getattr(inputs, name).double() for name in ("y", "observed", "past", "future", "static")))
    weights = list(body.parameters())
    for taught, looped in zip(
        torch.autograd.grad(body.forward_teacher_forced(exact, before(inputs).double()).square().sum(), weights),
        torch.autograd.grad(
            AutoregressiveBody.forward_teacher_forced(body, exact, before(inputs).double()).square().sum(), weights
        ),
        strict=True,
    ):
        torch.testing.assert_close(taught, looped, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_every_sum_of_options_trains(cell: str) -> None:
    for n_layers, bidirectional, residual, dropout in product((1, 2, 3), (False, True), (False, True), (0.0, 0.3)):
        for normalization in (None, "layer", "batch"):
            options = RecurrentOptions(cell, 4, n_layers, bidirectional, dropout, residual, normalization)
            sizes = SHORT if residual else replace(SHORT, past=0, future=0, static=0)
            body, inputs = made(options, sizes), some_inputs(sizes)
            found = seeded(lambda body=body, inputs=inputs: body.forward_teacher_forced(inputs, before(inputs, 3)))
            assert found.shape == (5, 3, 3)
            assert found.isfinite().all()
            found.square().sum().backward()
            assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in body.parameters())


@pytest.mark.parametrize("cell", CELLS)
def test_a_covariate_of_a_step_moves_it_and_those_after_it(cell: str) -> None:
    inputs = some_inputs(FULL)
    body = made(RecurrentOptions(cell, 16)).eval()
    for step in range(4):
        future = inputs.future.clone()
        future[:, step] += 3.0
        other = body.forward_teacher_forced(replace(inputs, future=future), before(inputs))
        moved = (other - body.forward_teacher_forced(inputs, before(inputs))).abs().amax((0, 2)) > 1e-5
        assert moved.tolist() == [one >= step for one in range(4)]


@pytest.mark.parametrize("cell", CELLS)
def test_a_bridge_leads_from_both_states_of_a_layer_to_one(cell: str) -> None:
    body, inputs = made(RecurrentOptions(cell, 6, 2, bidirectional=True)), some_inputs(FULL)
    _, both = body.encoder(inputs.past_features)
    for way in (0, 1):
        with torch.no_grad():
            for bridge in body.bridges:
                bridge.weight.copy_(torch.eye(12)[way * 6 : way * 6 + 6])
                bridge.bias.zero_()
        torch.testing.assert_close(body.initial_state(inputs), both[way::2])


def test_what_the_value_before_was_is_told() -> None:
    inputs, body = some_inputs(FULL), made(RecurrentOptions(hidden_size=16)).eval()
    state = body.initial_state(inputs)
    one, _ = body.step(state, inputs.y[:, -1], inputs.future_features[:, 0], 0)
    other, _ = body.step(state, inputs.y[:, -1] + 1, inputs.future_features[:, 0], 0)
    assert ((one - other).abs().amax(1) > 1e-3).all()


def test_windows_go_on_by_themselves() -> None:
    """States may be repeated and reordered by window, as sample paths and beams do."""
    inputs = some_inputs(FULL)
    for cell in CELLS:
        body = made(RecurrentOptions(cell, 6, 2, bidirectional=True)).eval()
        state, order = body.initial_state(inputs), torch.tensor([3, 3, 0])
        out, after = body.step(state, inputs.y[:, -1], inputs.future_features[:, 0], 0)
        picked = tuple(one[order] for one in state)
        fewer, later = body.step(picked, inputs.y[order, -1], inputs.future_features[order, 0], 0)
        torch.testing.assert_close(fewer, out[order])
        torch.testing.assert_close(later, tuple(one[order] for one in after))


def test_in_training_with_batch_normalisation_a_single_window_goes_through() -> None:
    inputs, body = some_inputs(FULL, windows=1), made(RecurrentOptions(hidden_size=6, normalization="batch"))
    found, _ = body.step(body.initial_state(inputs), inputs.y[:, -1], inputs.future_features[:, 0], 0)
    assert found.isfinite().all()


def test_a_history_of_nothing_but_padding_is_finite() -> None:
    inputs = some_inputs(FULL)
    empty = replace(inputs, y=inputs.y * 0, observed=inputs.observed * 0, past=inputs.past * 0)
    for cell, normalization in product(CELLS, (None, "layer", "batch")):
        body = made(RecurrentOptions(cell, 6, 2, normalization=normalization))
        for now in (body.train(), body.eval()):
            assert now.forward_teacher_forced(empty, before(inputs)).isfinite().all()


def test_on_another_device_nothing_is_left_behind() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        for options in (RecurrentOptions("lstm", 2, 2, True, 0.1, True, "batch"), RecurrentOptions("gru", 2)):
            with torch.device("meta"):  # only while building: what the body builds has to follow its inputs by itself
                body = RecurrentAutoregressive(InputSizes(3, 2, 3, 2, 2, 3), options)
                inputs = Inputs(*(torch.empty(shape) for shape in ((5, 3), (5, 3), (5, 3, 2), (5, 2, 2), (5, 3))))
                previous = torch.empty(5, 2)
            for found in (
                body.forward_teacher_forced(inputs, previous),
                AutoregressiveBody.forward_teacher_forced(body, inputs, previous),
            ):
                found.sum().backward()
                assert {one.device.type for one in (found, *(weight.grad for weight in body.parameters()))} == {"meta"}
