"""DLinear and NLinear beside the papers' own words, row by row, forward and gradient."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.linear import RANK, DLinearBody, NLinearBody, moving_average
from deepforecast.nn.network import DirectBody
from tests.nn.bodies import FULL, PLAIN, keeps_the_rules, rows, seeded, shuffled, some_inputs

LOCATED = replace(PLAIN, location_slice=slice(0, 1))
SPREAD = replace(FULL, location_slice=slice(1, 2))  # a location between two other features


def plain_trend(y: Tensor, kernel: int) -> Tensor:
    """Padded with its ends, then averaged window by window."""
    reach = kernel // 2
    padded = torch.cat([y[:, :1].repeat(1, reach), y, y[:, -1:].repeat(1, reach)], dim=1)
    return torch.stack([padded[:, row : row + kernel].mean(1) for row in range(y.shape[1])], dim=1)


def plain_outputs(body: DLinearBody | NLinearBody, hidden: Tensor, inputs: Inputs, sizes: InputSizes) -> Tensor:
    """Locations from the first entries of hidden, the other features from the last ones; covariates added."""
    outputs = body.outputs
    assert outputs.past_map is not None
    assert outputs.future_map is not None
    hidden = hidden + torch.cat([*inputs.past.unbind(1), inputs.static], dim=1) @ outputs.past_map.weight.T
    located = list(range(sizes.out_features))[sizes.location_slice or slice(None)]
    raw = hidden.new_zeros(len(hidden), sizes.horizon, sizes.out_features)
    for step in range(sizes.horizon):
        for rank, feature in enumerate(located):
            raw[:, step, feature] = hidden[:, step * len(located) + rank]
        others = [feature for feature in range(sizes.out_features) if feature not in located]
        for rank, feature in enumerate(others):
            assert outputs.others is not None
            row = step * len(others) + rank
            raw[:, step, feature] = hidden[:, -RANK:] @ outputs.others.weight[row] + outputs.others.bias[row]
    return raw + torch.stack([inputs.future[:, step] @ outputs.future_map.weight.T for step in range(sizes.horizon)], dim=1)


def plain_dlinear(body: DLinearBody, inputs: Inputs, kernel: int, sizes: InputSizes) -> Tensor:
    smooth = plain_trend(inputs.y, kernel)
    hidden = smooth @ body.trend.weight.T + (inputs.y - smooth) @ body.remainder.weight.T + body.remainder.bias
    return plain_outputs(body, hidden, inputs, sizes)


def plain_nlinear(body: NLinearBody, inputs: Inputs, located: list[float], sizes: InputSizes) -> Tensor:
    last = torch.stack([y[seen > 0][-1] for y, seen in zip(inputs.y, inputs.observed, strict=True)]).unsqueeze(1)
    hidden = ((inputs.y - last) * inputs.observed) @ body.window.weight.T + body.window.bias
    return plain_outputs(body, hidden, inputs, sizes) + last.unsqueeze(1) * torch.tensor(located)


def agree(body: DirectBody, inputs: Inputs, plain: Tensor) -> None:
    """Forward and gradient, to 1e-6 in double precision of both."""
    weights = list(body.parameters())
    found = body.features(inputs)
    assert torch.allclose(found, plain, atol=1e-6, rtol=0)
    turned = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
    ours, theirs = (torch.autograd.grad((one * turned).sum(), weights) for one in (found, plain))
    assert all(torch.allclose(one, other, atol=1e-6, rtol=0) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("windows", [1, 5])
@pytest.mark.parametrize("kernel", [1, 3, 25])
@pytest.mark.parametrize("sizes", [FULL, SPREAD])
def test_dlinear_is_the_papers(windows: int, kernel: int, sizes: InputSizes) -> None:
    body = shuffled(seeded(lambda: DLinearBody(sizes, kernel=kernel))).double()
    inputs = some_inputs(sizes, windows, dtype=torch.float64)
    agree(body, inputs, plain_dlinear(body, inputs, kernel, sizes))


@pytest.mark.parametrize(
    ("location", "located"),
    [(None, [0.0, 0.0, 0.0]), (slice(0, 1), [1.0, 0.0, 0.0]), (slice(1, 3), [0.0, 1.0, 1.0]), (slice(0, 3), [1.0, 1.0, 1.0])],
)
def test_nlinear_is_the_papers(location: slice | None, located: list[float]) -> None:
    sizes = replace(FULL, location_slice=location)
    body = shuffled(seeded(lambda: NLinearBody(sizes))).double()
    inputs = some_inputs(sizes, dtype=torch.float64)
    inputs.observed[2, -3:] = 0.0  # the last value seen is not the last row
    inputs.y[2, -3:] = 0.0
    agree(body, inputs, plain_nlinear(body, inputs, located, sizes))


def test_nlinear_moves_with_the_level() -> None:
    body, inputs = shuffled(seeded(lambda: NLinearBody(LOCATED))), some_inputs(LOCATED)
    higher = Inputs((inputs.y + 8.0) * inputs.observed, inputs.observed, inputs.past, inputs.future, inputs.static)
    assert torch.allclose(body.features(higher), body.features(inputs) + 8.0, atol=1e-4)


def test_where_nothing_was_seen_nlinear_is_its_bias() -> None:
    body, inputs = shuffled(seeded(lambda: NLinearBody(LOCATED))), some_inputs(LOCATED)
    none = Inputs(inputs.y * 0, inputs.observed * 0, inputs.past, inputs.future, inputs.static)
    assert torch.allclose(body.features(none), body.window.bias.view(1, 4, 1).expand(5, 4, 1))


@pytest.mark.parametrize(
    ("body", "location"), [(DLinearBody, None), (DLinearBody, slice(0, 1)), (NLinearBody, slice(0, 1))]
)
def test_linear_bodies_keep_the_rules(body: type[DLinearBody], location: slice | None) -> None:
    keeps_the_rules(lambda sizes: body(replace(sizes, location_slice=location)))


@pytest.mark.parametrize("body", [DLinearBody, NLinearBody])
def test_quantiles_do_not_multiply_the_weights(body: type[DLinearBody]) -> None:
    """The weights of 14 more features are those of `RANK` locations and of the low-rank map."""
    sizes = InputSizes(96, 24, 15, past=6, future=6, location_slice=slice(7, 8))

    def n_weights(sizes: InputSizes) -> int:
        return sum(weight.numel() for weight in body(sizes).parameters())

    points = n_weights(replace(sizes, out_features=1, location_slice=slice(0, 1)))
    assert n_weights(sizes) < 1.7 * points
    assert n_weights(replace(sizes, location_slice=None)) > 14 * points  # a head without locations: full matrices


def test_covariates_begin_without_effect() -> None:
    body, inputs = seeded(lambda: DLinearBody(FULL)), some_inputs(FULL)
    bare = Inputs(inputs.y, inputs.observed, inputs.past * 0, inputs.future * 0, inputs.static * 0)
    assert torch.equal(body.features(inputs), body.features(bare))


def test_a_step_ahead_has_its_own_covariates() -> None:
    body, inputs = shuffled(seeded(lambda: DLinearBody(FULL))), some_inputs(FULL)
    future = inputs.future.clone()
    future[:, 2] += 1.0
    change = body.features(Inputs(inputs.y, inputs.observed, inputs.past, future, inputs.static)) - body.features(inputs)
    assert (change[:, 2].abs() > 0.01).all()
    assert change[:, [0, 1, 3]].abs().max() < 1e-5


@pytest.mark.parametrize("sizes", [FULL, SPREAD])
def test_parts_are_the_whole(sizes: InputSizes) -> None:
    inputs = some_inputs(sizes)
    body = shuffled(seeded(lambda: DLinearBody(sizes)))
    parts = body.components(inputs)
    assert list(parts) == ["trend", "remainder", "covariates"]
    assert torch.allclose(sum(parts.values()), body.features(inputs), atol=1e-5)
    assert list(DLinearBody(PLAIN).components(some_inputs(PLAIN))) == ["trend", "remainder"]


@pytest.mark.parametrize(("length", "kernel"), [(1, 25), (4, 3), (60, 25)])
def test_the_average_by_hand(length: int, kernel: int) -> None:
    y = torch.randn(3, length, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(y @ moving_average(length, kernel).T, plain_trend(y, kernel), atol=1e-6)
    assert torch.allclose(moving_average(length, kernel).sum(1), torch.ones(length))


def test_the_average_is_not_saved() -> None:
    assert set(seeded(lambda: DLinearBody(PLAIN)).state_dict()) == {"trend.weight", "remainder.weight", "remainder.bias"}
    assert rows(some_inputs(PLAIN), 0, 1).y.shape == (1, 12)
