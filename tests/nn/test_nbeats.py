"""N-BEATS: bases are their formulas, blocks are the paper's recursion, parts are the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.nbeats import NBEATSBody, harmonics, number_duplicates, polynomials
from tests.nn.bodies import FULL, keeps_the_rules, seeded, shuffled, some_inputs

STACKS = [("generic",), ("trend", "season"), ("generic", "trend", "generic")]


def nbeats(stacks: Sequence[str], sizes: InputSizes = FULL, blocks: int = 2, **options: float) -> NBEATSBody:
    return seeded(lambda: NBEATSBody(sizes, stacks, blocks, hidden_sizes=(16, 16), **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("stacks", STACKS)
def test_nbeats_keeps_the_rules(stacks: tuple[str, ...], blocks: int) -> None:
    keeps_the_rules(lambda sizes: NBEATSBody(sizes, stacks, blocks, hidden_sizes=(16, 16), dropout=0.1))


def test_polynomials_are_powers() -> None:
    found = polynomials(torch.tensor([-0.5, 0.0, 0.25]), 3)
    assert torch.allclose(found, torch.tensor([[1, -0.5, 0.25, -0.125], [1, 0, 0, 0], [1, 0.25, 0.0625, 0.015625]]))


@pytest.mark.parametrize(("period", "curves"), [(2, 1), (4, 3), (7, 6), (12, 11), (365.25, 364)])
def test_harmonics_are_cosines_and_sines(period: float, curves: int) -> None:
    times = torch.arange(-9, 5, dtype=torch.float64)
    found = harmonics(times, period)
    assert found.shape == (14, curves)
    cosines = [[math.cos(2 * math.pi * k * t / period) for k in range(1, int(period / 2) + 1)] for t in range(-9, 5)]
    sines = [[math.sin(2 * math.pi * k * t / period) for k in range(1, math.ceil(period / 2))] for t in range(-9, 5)]
    assert torch.allclose(found, torch.cat([torch.tensor(cosines), torch.tensor(sines)], dim=1).double(), atol=1e-6)


def test_harmonics_draw_every_season_of_zero_mean() -> None:
    basis = harmonics(torch.arange(12, dtype=torch.float64), 12)
    assert torch.linalg.matrix_rank(basis) == 11
    assert torch.allclose(basis.mean(0), torch.zeros(11, dtype=torch.float64), atol=1e-12)


def bases(kind: str, sizes: InputSizes) -> tuple[Tensor, Tensor]:
    """Of degree 2 and period 3, from their formulas."""
    behind, ahead = range(-sizes.input_size, 0), range(sizes.horizon)
    if kind == "trend":
        curves = [[(t / sizes.input_size) ** power for power in range(3)] for t in behind]
        return torch.tensor(curves), torch.tensor([[(t / sizes.horizon) ** power for power in range(3)] for t in ahead])
    angle = 2 * math.pi / 3
    return tuple(torch.tensor([[math.cos(angle * t), math.sin(angle * t)] for t in rows]) for rows in (behind, ahead))  # type: ignore[return-value]


def plain_block(body: NBEATSBody, number: int, kind: str, told: Tensor, sizes: InputSizes) -> tuple[Tensor | None, Tensor]:
    """One window (its numbers told in a row) through one block: what it explains, and (horizon, width)."""
    layers = [one for one in body.blocks[number].modules() if isinstance(one, nn.Linear)]
    for layer in layers[:-1]:
        told = torch.relu(layer.weight @ told + layer.bias)
    theta = layers[-1].weight @ told + layers[-1].bias
    if kind == "generic":
        behind, ahead = torch.eye(sizes.input_size), torch.eye(sizes.horizon)
    else:
        behind, ahead = bases(kind, sizes)
    last = len(theta) == ahead.shape[1] * sizes.out_features
    own = 0 if last else behind.shape[1]
    forecast = torch.stack([ahead @ theta[own + number :: sizes.out_features] for number in range(sizes.out_features)], dim=1)
    return (None if last else behind @ theta[:own]), forecast


def plain_nbeats(body: NBEATSBody, stacks: Sequence[str], blocks: int, inputs: Inputs, window: int) -> Tensor:
    sizes, number = FULL, -1
    left, seen = inputs.y[window], inputs.observed[window]
    others = [inputs.past[window].flatten(), inputs.future[window].flatten(), inputs.static[window]]
    total = torch.zeros(sizes.horizon, sizes.out_features)
    for kind in stacks:
        for block in range(blocks):
            number += 1 if kind == "generic" or block == 0 else 0
            explained, forecast = plain_block(body, number, kind, torch.cat([left, *others]), sizes)
            total = total + forecast
            left = (left - explained) * seen if explained is not None else left
    return total


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("stacks", STACKS)
def test_blocks_are_the_papers_recursion(stacks: tuple[str, ...], blocks: int) -> None:
    body, inputs = nbeats(stacks, blocks=blocks, period=3), some_inputs(FULL)
    plain = torch.stack([plain_nbeats(body, stacks, blocks, inputs, window) for window in range(5)])
    found = body.features(inputs)
    assert torch.allclose(found, plain, atol=1e-6, rtol=1e-5)
    weights = list(body.parameters())
    turned = torch.linspace(-1, 1, found.numel()).view_as(found)
    ours, theirs = (torch.autograd.grad((one * turned).sum(), weights) for one in (found, plain))
    assert all(torch.allclose(one, other, atol=1e-5, rtol=1e-5) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("stacks", STACKS)
def test_parts_are_the_whole(stacks: tuple[str, ...]) -> None:
    body, inputs = shuffled(nbeats(stacks)), some_inputs(FULL)
    parts = body.components(inputs)
    assert list(parts) == number_duplicates(stacks)
    assert torch.allclose(sum(parts.values()), body.features(inputs), atol=1e-4)


def test_trend_is_a_polynomial_and_season_repeats() -> None:
    sizes = InputSizes(input_size=12, horizon=8, out_features=2)
    body = shuffled(nbeats(("trend", "season"), sizes, period=4, degree=2))
    parts = {name: part.detach().double() for name, part in body.components(some_inputs(sizes)).items()}
    assert parts["trend"].diff(n=3, dim=1).abs().max() < 1e-4 < parts["trend"].diff(n=2, dim=1).abs().max()
    assert torch.allclose(parts["season"][:, 4:], parts["season"][:, :4], atol=1e-4)
    assert parts["season"][:, :4].sum(1).abs().max() < 1e-4 < parts["season"].abs().max()


def test_blocks_of_a_stack_with_a_basis_share_their_weights() -> None:
    assert len(nbeats(("trend", "season"), blocks=3).blocks) == 2
    assert len(nbeats(("generic",), blocks=3).blocks) == 3


def test_bases_are_not_saved_and_move_with_the_body() -> None:
    body = nbeats(("trend",))
    assert not [name for name in body.state_dict() if "basis" in name]
    assert body.to("meta").blocks[0].forecast_basis.device.type == "meta"
    assert body.blocks[0].forecast_basis.dtype == torch.float32


def test_what_is_hidden_does_not_matter() -> None:
    body, inputs = nbeats(("generic", "trend")), some_inputs(FULL)
    hidden = inputs.y + 5.0 * (1 - inputs.observed)
    other = Inputs(hidden, inputs.observed, inputs.past, inputs.future, inputs.static)
    given = Inputs(hidden * inputs.observed, inputs.observed, inputs.past, inputs.future, inputs.static)
    assert torch.equal(body.features(given), body.features(inputs))
    assert not torch.equal(body.features(other), body.features(inputs))  # hiding is the network's part, not the body's


def test_dropout_only_in_training() -> None:
    body, inputs = nbeats(("generic",), dropout=0.5), some_inputs(FULL)
    assert not torch.equal(seeded(lambda: body.features(inputs)), seeded(lambda: body.features(inputs), seed=1))
    body.eval()
    assert torch.equal(body.features(inputs), body.features(inputs))
