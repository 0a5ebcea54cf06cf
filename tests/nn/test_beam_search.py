"""Beam search finds the most probable paths: all of them where all can be held, a plain loop's where not."""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.decoding import beam_search
from deepforecast.nn.heads.bins import BinnedHead
from deepforecast.nn.heads.registry import make_head
from deepforecast.nn.network import AutoregressiveBody, DirectBody, ForecastNetwork, State, first_input
from deepforecast.nn.recurrent import RecurrentAutoregressive, RecurrentOptions
from tests.nn.bodies import seeded, some_inputs

N, H = 3, 4
SIZES = InputSizes(input_size=12, horizon=H, out_features=N, past=2, future=2, static=1)
VALUES = torch.tensor([-1.0, 0.0, 1.0])


class Remembering(AutoregressiveBody):
    """Keeps what it knows of the window apart from its paths, which must not be repeated for them."""

    shared_state: ClassVar[int] = 1

    def __init__(self, sizes: InputSizes) -> None:
        super().__init__()
        self.mix, self.out = nn.Linear(sizes.past_features + 1 + sizes.future_features + 5, 5), nn.Linear(5, sizes.out_features)
        self.held: list[tuple[int, int]] = []

    def initial_state(self, inputs: Inputs) -> State:
        return inputs.past_features.mean(1), inputs.past_features.new_zeros(len(inputs.y), 5)

    def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        self.held.append((len(state[0]), len(previous)))
        memory = state[0].repeat_interleave(len(previous) // len(state[0]), 0)
        own = torch.tanh(self.mix(torch.cat([memory, previous[:, None], ahead, state[1]], dim=1)))
        return 3 * self.out(own), (state[0], own)


class Apart(DirectBody):
    """Steps that do not depend on each other."""

    def __init__(self, sizes: InputSizes) -> None:
        super().__init__()
        self.sizes, self.out = sizes, nn.Linear(sizes.input_size, sizes.horizon * sizes.out_features)

    def features(self, inputs: Inputs) -> Tensor:
        return 3 * self.out(inputs.y).view(-1, self.sizes.horizon, self.sizes.out_features)


class Garden(AutoregressiveBody):
    """The first step has a likelier way (0.6), but then nothing is sure (0.5, 0.5); after the other one is all but sure."""

    def initial_state(self, inputs: Inputs) -> State:
        return (inputs.y[:, -1:],)

    def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        if number == 0:
            chance = previous.new_tensor([0.6, 0.4]).expand(len(previous), 2)
        else:
            chance = torch.where(previous[:, None] < 0, previous.new_tensor([0.5, 0.5]), previous.new_tensor([0.01, 0.99]))
        return chance.log(), state


def network(body: Any, n: int = N, sizes: InputSizes = SIZES) -> ForecastNetwork:
    return ForecastNetwork(sizes, body, BinnedHead(n, -n / 2, n / 2, "uniform")).eval()


def recurrent(cell: str = "lstm") -> ForecastNetwork:
    options = RecurrentOptions(cell, 6, n_layers=2)
    made = network(seeded(lambda: RecurrentAutoregressive(SIZES, options)))
    with torch.no_grad():
        made.body.out.weight.mul_(8)
    return made


def every(net: ForecastNetwork, inputs: Inputs) -> list[list[tuple[float, tuple[float, ...]]]]:
    """All paths of each window with the logarithm of their probability, by `teach` alone; the likeliest first."""
    found: list[list[tuple[float, tuple[float, ...]]]] = [[] for _ in inputs.y]
    for codes in product(range(N), repeat=H):
        path = VALUES[list(codes)].expand(len(inputs.y), -1)
        before = torch.cat([first_input(inputs)[:, None], path[:, :-1]], dim=1)
        raw = (
            net.features(inputs)
            if isinstance(net.body, DirectBody)
            else net.autoregressive_body.forward_teacher_forced(inputs, before)
        )
        chance = raw.double().log_softmax(-1)
        total = sum(chance[:, step, code] for step, code in enumerate(codes))
        for window, one in enumerate(total.tolist()):
            found[window].append((one, tuple(VALUES[list(codes)].tolist())))
    return [sorted(one, reverse=True) for one in found]


def plain_beam(net: ForecastNetwork, inputs: Inputs, width: int) -> list[tuple[float, tuple[float, ...]]]:
    """Of one window, in plain Python: every path held is gone on from by itself, from its beginning."""
    held: list[tuple[float, tuple[float, ...]]] = [(0.0, ())]
    for step in range(H):
        ways = []
        for total, path in held:
            before = torch.tensor([[float(first_input(inputs)), *path, *[0.0] * H][:H]])
            chance = net.autoregressive_body.forward_teacher_forced(inputs, before)[0, step].double().log_softmax(-1)
            ways += [(total + float(one), (*path, float(value))) for one, value in zip(chance, VALUES, strict=True)]
        held = sorted(ways, reverse=True)[:width]
    return held


@pytest.mark.parametrize("make", [recurrent, lambda: recurrent("gru"), lambda: network(seeded(lambda: Remembering(SIZES))),
                                  lambda: network(seeded(lambda: Apart(SIZES)))])  # fmt: skip
@pytest.mark.parametrize("width", [N**H, 1000])
def test_all_paths_are_found_in_order_where_all_can_be_held(make: Any, width: int) -> None:
    net, inputs = make(), some_inputs(SIZES, windows=3)
    with torch.no_grad():
        found, wanted = beam_search(net, inputs, width, H), every(net, inputs)
    assert found.values.shape == (3, N**H, H)
    assert torch.allclose(found.log_probability.exp().sum(1), torch.ones(3, dtype=torch.float64), atol=1e-6)
    for window, paths in enumerate(wanted):
        assert torch.allclose(found.log_probability[window], torch.tensor([one for one, _ in paths]).double(), atol=1e-5)
        known = {path: one for one, path in paths}
        for path, one in zip(found.values[window].tolist(), found.log_probability[window].tolist(), strict=True):
            assert known[tuple(path)] == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_of_fewer_paths_those_that_a_plain_loop_holds(width: int) -> None:
    net, inputs = recurrent(), some_inputs(SIZES, windows=4)
    with torch.no_grad():
        found = beam_search(net, inputs, width, H)
        for window in range(4):
            one = Inputs(**{name: value[window : window + 1] for name, value in vars(inputs).items() if value is not None})
            wanted = plain_beam(net, one, width)
            assert found.values[window].tolist() == [list(path) for _, path in wanted]
            assert found.log_probability[window].tolist() == pytest.approx([total for total, _ in wanted], abs=1e-5)


@pytest.mark.parametrize("width", [1, 2, 7])
def test_where_steps_do_not_hang_together_any_width_is_exact(width: int) -> None:
    net, inputs = network(seeded(lambda: Apart(SIZES))), some_inputs(SIZES, windows=3)
    with torch.no_grad():
        found, wanted = beam_search(net, inputs, width, H), every(net, inputs)
    for window, paths in enumerate(wanted):
        assert found.log_probability[window].tolist() == pytest.approx([one for one, _ in paths[:width]], abs=1e-5)
        assert tuple(found.values[window, 0].tolist()) == paths[0][1]


def test_a_wider_beam_finds_what_the_next_step_alone_leads_away_from() -> None:
    sizes = InputSizes(input_size=12, horizon=2, out_features=2)
    net, inputs = network(Garden(), 2, sizes), some_inputs(sizes, windows=1)
    narrow, wide = (beam_search(net, inputs, width, 2) for width in (1, 2))
    assert narrow.log_probability.exp().item() == pytest.approx(0.3)
    assert wide.log_probability.exp()[0, 0].item() == pytest.approx(0.396)
    assert wide.values[0, 0].tolist() == [0.5, 0.5]


def test_what_belongs_to_the_window_is_not_repeated_for_its_paths() -> None:
    net, inputs = network(seeded(lambda: Remembering(SIZES))), some_inputs(SIZES, windows=3)
    with torch.no_grad():
        beam_search(net, inputs, 4, H)
    assert net.body.held == [(3, 3), (3, 9), (3, 12), (3, 12)]


def test_paths_go_on_from_windows_of_their_own() -> None:
    """Two windows a series, of which one is all but impossible: nothing goes on from it, and the other's memory goes along."""
    net, inputs = network(seeded(lambda: Remembering(SIZES))), some_inputs(SIZES, windows=6)
    same = inputs.future[::2].repeat_interleave(2, 0), inputs.static[::2].repeat_interleave(2, 0)
    inputs = Inputs(inputs.y, inputs.observed, inputs.past, *same)
    before = torch.tensor([[-900.0, -1.0], [-1.0, -900.0], [-2.0, -900.0]]).double()
    with torch.no_grad():
        found, alone = beam_search(net, inputs, 5, H, before), beam_search(net, inputs, 5, H)
    for series, window in enumerate((1, 2, 4)):
        assert found.origin[series].tolist() == [window] * 5
        assert torch.equal(found.values[series], alone.values[window])
        assert torch.allclose(found.log_probability[series], alone.log_probability[window] + before.max(1).values[series])


def test_other_heads_have_no_countable_paths() -> None:
    sizes = InputSizes(input_size=12, horizon=H, out_features=2)
    net = ForecastNetwork(sizes, Apart(sizes), make_head("normal"))
    with pytest.raises(ParameterError, match=r"requires head='bins', got 'normal'"):
        beam_search(net, some_inputs(sizes), 2, H)
