"""Patches are stretches of time steps, counted back from the last; bodies of the Transformer."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.encoder_decoder import LayerOptions
from deepforecast.nn.network import AutoregressiveBody, repeat_paths, select_paths
from deepforecast.nn.transformer import (
    Patching,
    TransformerAutoregressive,
    TransformerDirect,
    TransformerOptions,
    default_patch_length,
)
from tests.nn.bodies import FULL, PLAIN, NothingOnTheCPU, keeps_the_rules, seeded, some_inputs


@pytest.mark.parametrize(("rows", "length", "stride"), [(12, 4, 2), (13, 4, 2), (12, 1, 1), (12, 5, 5), (3, 3, 2), (7, 4, 4)])
def test_they_are_the_stretches_that_end_there(rows: int, length: int, stride: int) -> None:
    patches, values = Patching(rows, length, stride), torch.arange(2.0 * rows * 3).view(2, rows, 3) + 1
    found = patches.unfold(values)
    assert found.shape == (2, patches.n_patches, 3 * length)
    assert patches.end_positions[-1] == rows - 1
    for patch, end in enumerate(patches.end_positions):
        one = found[:, patch].view(2, *((length, 3) if length == 1 else (3, length)))
        for back in range(length):
            here = one[:, length - 1 - back] if length == 1 else one[:, :, length - 1 - back]
            assert torch.equal(here, values[:, end - back] if end >= back else torch.zeros(2, 3))
    assert torch.equal(patches.select_ends(values), values[:, list(patches.end_positions)])


def test_every_row_is_in_one() -> None:
    for rows in range(1, 40):
        length = default_patch_length(rows)
        patches = Patching(rows, length, max(length // 2, 1))
        covered = {row for end in patches.end_positions for row in range(end - length + 1, end + 1)}
        assert covered >= set(range(rows))


def test_gaps_between_them_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"got stride=3 and patch_length=2\. Use stride=2"):
        Patching(12, 2, 3)


KINDS = ("sinusoidal", "learned", "rotary", "alibi", "calendar", None)
ROUND = replace(FULL, cyclic_columns=((0, 0),))


def options(positions: str | None = "sinusoidal", patch: int = 1, **layer: Any) -> TransformerOptions:
    told = LayerOptions(**{"d_model": 16, "n_heads": 4, "dim_feedforward": 24, **layer})
    return TransformerOptions(told, 2, 2, positions, patch, max(patch // 2, 1))


def stepwise(sizes: InputSizes = FULL, **given: Any) -> TransformerAutoregressive:
    return seeded(lambda: TransformerAutoregressive(sizes, options(**given)))


def direct(sizes: InputSizes = FULL, **given: Any) -> TransformerDirect:
    return seeded(lambda: TransformerDirect(sizes, options(**given)))


def before(inputs: Inputs, horizon: int = 4) -> Tensor:
    return torch.randn(len(inputs.y), horizon, generator=torch.Generator().manual_seed(2), dtype=inputs.y.dtype)


@pytest.mark.parametrize("positions", KINDS)
def test_taught_at_once_is_step_by_step(positions: str | None) -> None:
    inputs = some_inputs(ROUND)
    for patch, norm_first in product((1, 4), (True, False)):
        body = stepwise(ROUND, positions=positions, patch=patch, norm_first=norm_first, dropout=0.1).eval()
        expected = body.forward_teacher_forced(inputs, before(inputs))
        torch.testing.assert_close(
            AutoregressiveBody.forward_teacher_forced(body, inputs, before(inputs)), expected, atol=1e-6, rtol=1e-5
        )
        with torch.inference_mode():
            torch.testing.assert_close(
                AutoregressiveBody.forward_teacher_forced(body, inputs, before(inputs)), expected, atol=1e-6, rtol=1e-5
            )
        two = body.forward_teacher_forced(inputs, before(inputs)[:, :2])
        torch.testing.assert_close(two, expected[:, :2], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_so_are_its_gradients(positions: str) -> None:
    body, inputs = stepwise(positions=positions, patch=4).double(), some_inputs(FULL, dtype=torch.float64)
    weights = list(body.parameters())
    taught = torch.autograd.grad(body.forward_teacher_forced(inputs, before(inputs)).square().sum(), weights)
    looped = torch.autograd.grad(
        AutoregressiveBody.forward_teacher_forced(body, inputs, before(inputs)).square().sum(), weights
    )
    for one, other in zip(taught, looped, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)
        assert one.abs().sum() > 0


@pytest.mark.parametrize("positions", KINDS)
def test_direct_it_keeps_the_rules(positions: str | None) -> None:
    for patch, normalization in ((1, "layer"), (3, "rms"), (5, "batch")):
        def make(sizes: InputSizes, patch: int = patch, normalization: str = normalization) -> TransformerDirect:
            kind = positions if sizes.past or positions != "calendar" else None
            sizes = replace(sizes, cyclic_columns=((0, 0),)) if sizes.past else sizes
            return TransformerDirect(sizes, options(kind, patch, normalization=normalization))

        keeps_the_rules(make)


def test_in_turn_every_field_is_of_use_and_every_weight_learns() -> None:
    for sizes in (PLAIN, FULL):
        body, inputs = stepwise(sizes, patch=4, dropout=0.1), some_inputs(sizes)
        body.forward_teacher_forced(inputs, before(inputs)).square().sum().backward()
        for name, weight in body.named_parameters():
            assert weight.grad.abs().sum() > 0, name
    body.eval()
    for field in ("y", "past", "future", "static"):
        other = replace(inputs, **{field: getattr(inputs, field) + 1.0})
        assert (
            body.forward_teacher_forced(other, before(inputs)) - body.forward_teacher_forced(inputs, before(inputs))
        ).abs().amax((1, 2)).min() > 1e-4, field


def test_a_value_moves_the_steps_after_it_alone() -> None:
    body, inputs = stepwise().eval(), some_inputs(FULL)
    told = before(inputs)
    for step in range(4):
        other = told.clone()
        other[:, step] += 1.0
        moved = (body.forward_teacher_forced(inputs, other) - body.forward_teacher_forced(inputs, told)).abs().amax(
            (0, 2)
        ) > 1e-5
        assert moved.tolist() == [one >= step for one in range(4)]


def moved(body: Any, inputs: Inputs, window: int, row: int) -> float:
    """By how much a window's forecast moves when a covariate of one of its rows does."""
    past = inputs.past.clone()
    past[window, row] += 5.0
    told = before(inputs)
    with torch.no_grad():
        one, two = (
            body.forward_teacher_forced(given, told) if isinstance(body, AutoregressiveBody) else body.features(given)
            for given in (inputs, replace(inputs, past=past))
        )
    return float((one - two)[window].abs().max())


@pytest.mark.parametrize("positions", ["sinusoidal", "alibi"])
def test_padding_is_not_seen_and_what_is_missing_inside_is(positions: str) -> None:
    inputs = some_inputs(FULL)  # the first window begins with two missing rows, the second misses one in the middle
    seen = inputs.observed.clone()
    seen[0, :8] = 0.0
    short = replace(inputs, y=inputs.y * seen, observed=seen)
    for patch, make in product((1, 4), (stepwise, direct)):
        body = make(positions=positions, patch=patch).eval()
        assert moved(body, inputs, 1, 6) > 1e-4
        assert moved(body, inputs, 0, 2) > 1e-4
        assert moved(body, short, 0, 3) == 0.0
        if patch == 1:
            assert moved(body, inputs, 0, 0) == moved(body, inputs, 0, 1) == 0.0


def test_a_history_of_nothing_but_padding_is_finite() -> None:
    inputs = some_inputs(FULL)
    empty = replace(inputs, y=inputs.y * 0, observed=inputs.observed * 0)
    for positions, normalization in product(("sinusoidal", "alibi", "rotary"), ("layer", "batch", "rms")):
        for body in (stepwise(positions=positions, normalization=normalization), direct(positions=positions, patch=4)):
            found = (
                body.forward_teacher_forced(empty, before(empty))
                if isinstance(body, AutoregressiveBody)
                else body.features(empty)
            )
            assert found.isfinite().all()
            found.square().sum().backward()
            assert all(weight.grad.isfinite().all() for weight in body.parameters())


def test_paths_go_on_beside_each_other_from_keys_that_are_not_repeated() -> None:
    body, inputs, count = stepwise(patch=4, positions="alibi").eval(), some_inputs(FULL), 3
    told = torch.randn(5, count, 4, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        state = repeat_paths(body.initial_state(inputs), body.shared_state, count)
        assert [one.shape[0] for one in state] == [5, 5, 5, 15, 15]
        found = []
        for step in range(4):
            ahead = inputs.future_features[:, step].repeat_interleave(count, 0)
            raw, state = body.step(state, told[:, :, step].flatten(), ahead, step)
            found.append(raw)
        assert [one.shape[0] for one in state] == [5, 5, 5, 15, 15]
        together = torch.stack(found, 1).view(5, count, 4, -1)
        for path in range(count):
            torch.testing.assert_close(
                together[:, path], body.forward_teacher_forced(inputs, told[:, path]), atol=1e-6, rtol=1e-5
            )


def test_paths_may_be_chosen_among() -> None:
    body, inputs = stepwise().eval(), some_inputs(FULL, windows=3)
    told = before(inputs)
    with torch.inference_mode():
        _, state = body.step(body.initial_state(inputs), told[:, 0], inputs.future_features[:, 0], 0)
        order = torch.tensor([0, 0, 1, 1, 2, 2])
        state = select_paths(state, body.shared_state, order)
        ahead = inputs.future_features[order, 1]
        values = torch.linspace(-1, 1, 6)
        raw, _ = body.step(state, values, ahead, 1)
        for place, window in enumerate(order.tolist()):
            given = torch.cat([told[:, :1], values[place].expand(3, 1)], dim=1)
            torch.testing.assert_close(raw[place], body.forward_teacher_forced(inputs, given)[window, 1], atol=1e-6, rtol=1e-5)


def test_the_encoder_runs_once_and_a_step_computes_one_row() -> None:
    body, inputs, seen = stepwise().eval(), some_inputs(FULL), list[int]()
    runs: list[int] = []
    body.window_encoder.encoder.register_forward_hook(lambda *_: runs.append(1))
    body.decoder.layers[0].attention.in_proj.register_forward_hook(lambda _, given, __: seen.append(given[0].numel() // 16))
    with torch.inference_mode():
        AutoregressiveBody.forward_teacher_forced(body, inputs, before(inputs))
    assert (len(runs), seen) == (1, [5, 5, 5, 5])


def test_weights_add_up_and_say_whose_rows_they_are() -> None:
    inputs = some_inputs(FULL)
    for body, count in ((stepwise(patch=4).eval(), 4), (direct(patch=3).eval(), 2)):
        found = body.attention_maps(inputs, before(inputs))
        assert [(one.kind, one.layer) for one in found] == [
            ("self", 0), ("self", 1), ("self", 0), ("cross", 0), ("self", 1), ("cross", 1)
        ]  # fmt: skip
        for one in found:
            assert one.weights.shape == (5, 4, len(one.queries), len(one.keys))
            torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]), atol=1e-6, rtol=0)
        assert (
            found[0].queries.tolist()
            == found[0].keys.tolist()
            == found[3].keys.tolist()
            == list(body.window_encoder.past_positions)
        )
        assert found[0].keys.tolist()[-1] == 0
        assert found[2].queries.tolist() == found[3].queries.tolist() == [1, 2, 3, 4]
        assert found[2].keys.tolist() == ([1, 2, 3, 4] if count == 4 else [3, 4])
        early = (torch.tensor(body.window_encoder.past_positions) < -9).nonzero().flatten()  # the first window begins at row -9
        assert (found[3].weights[0, :, :, early] == 0).all()


def test_in_turn_on_another_device_nothing_is_left_behind() -> None:
    for positions in ("learned", "rotary", "alibi"):
        body = stepwise(ROUND, positions=positions, patch=4).to("meta")
        given = some_inputs(ROUND)
        inputs = Inputs(*(getattr(given, name).to("meta") for name in ("y", "observed", "past", "future", "static")))
        told = before(given).to("meta")
        with NothingOnTheCPU():
            assert body.forward_teacher_forced(inputs, told).device.type == "meta"
            assert AutoregressiveBody.forward_teacher_forced(body, inputs, told).device.type == "meta"
            with torch.no_grad():
                assert AutoregressiveBody.forward_teacher_forced(body, inputs, told).device.type == "meta"
