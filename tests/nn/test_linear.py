"""DLinear and NLinear beside the papers' own words, row by row, forward and gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import DirectBody
from deepforecast.nn.linear import DLinearBody, NLinearBody, moving_average
from tests.nn.bodies import FULL, PLAIN, keeps_the_rules, rows, seeded, shuffled, some_inputs


def plain_trend(y: Tensor, kernel: int) -> Tensor:
    """Padded with its ends, then averaged window by window."""
    reach = kernel // 2
    padded = torch.cat([y[:, :1].repeat(1, reach), y, y[:, -1:].repeat(1, reach)], dim=1)
    return torch.stack([padded[:, row : row + kernel].mean(1) for row in range(y.shape[1])], dim=1)


def plain_map(weight: Tensor, bias: Tensor | None, x: Tensor, sizes: InputSizes) -> Tensor:
    found = x.new_zeros(len(x), sizes.horizon, sizes.out_features)
    for step in range(sizes.horizon):
        for number in range(sizes.out_features):
            row = step * sizes.out_features + number
            found[:, step, number] = (x * weight[row]).sum(1) + (bias[row] if bias is not None else 0.0)
    return found


def plain_covariates(body: DLinearBody | NLinearBody, inputs: Inputs, sizes: InputSizes) -> Tensor:
    terms = body.covariates
    assert terms.past_map is not None
    assert terms.future_map is not None
    told = torch.cat([*inputs.past.unbind(1), inputs.static], dim=1)
    ahead = [inputs.future[:, step] @ terms.future_map.weight.T for step in range(sizes.horizon)]
    return plain_map(terms.past_map.weight, None, told, sizes) + torch.stack(ahead, dim=1)


def plain_dlinear(body: DLinearBody, inputs: Inputs, kernel: int) -> Tensor:
    smooth = plain_trend(inputs.y, kernel)
    found = plain_map(body.trend.weight, None, smooth, FULL)
    return found + plain_map(body.remainder.weight, body.remainder.bias, inputs.y - smooth, FULL)


def plain_nlinear(body: NLinearBody, inputs: Inputs, located: list[float]) -> Tensor:
    last = torch.stack([y[seen > 0][-1] for y, seen in zip(inputs.y, inputs.observed, strict=True)]).unsqueeze(1)
    found = plain_map(body.window.weight, body.window.bias, (inputs.y - last) * inputs.observed, FULL)
    return found + last.unsqueeze(1) * torch.tensor(located)


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
def test_dlinear_is_the_papers(windows: int, kernel: int) -> None:
    body = shuffled(seeded(lambda: DLinearBody(FULL, kernel=kernel))).double()
    inputs = some_inputs(FULL, windows, dtype=torch.float64)
    agree(body, inputs, plain_dlinear(body, inputs, kernel) + plain_covariates(body, inputs, FULL))


@pytest.mark.parametrize(
    ("location", "located"),
    [(None, [0.0, 0.0, 0.0]), (slice(0, 1), [1.0, 0.0, 0.0]), (slice(0, 3), [1.0, 1.0, 1.0])],
)
def test_nlinear_is_the_papers(location: slice | None, located: list[float]) -> None:
    body = shuffled(seeded(lambda: NLinearBody(FULL, location))).double()
    inputs = some_inputs(FULL, dtype=torch.float64)
    inputs.observed[2, -3:] = 0.0  # the last value seen is not the last row
    inputs.y[2, -3:] = 0.0
    agree(body, inputs, plain_nlinear(body, inputs, located) + plain_covariates(body, inputs, FULL))


def test_nlinear_moves_with_the_level() -> None:
    body, inputs = shuffled(seeded(lambda: NLinearBody(PLAIN, slice(0, 1)))), some_inputs(PLAIN)
    higher = Inputs((inputs.y + 8.0) * inputs.observed, inputs.observed, inputs.past, inputs.future, inputs.static)
    assert torch.allclose(body.features(higher), body.features(inputs) + 8.0, atol=1e-4)


def test_where_nothing_was_seen_nlinear_is_its_bias() -> None:
    body, inputs = shuffled(seeded(lambda: NLinearBody(PLAIN, slice(0, 1)))), some_inputs(PLAIN)
    none = Inputs(inputs.y * 0, inputs.observed * 0, inputs.past, inputs.future, inputs.static)
    assert torch.allclose(body.features(none), body.window.bias.view(1, 4, 1).expand(5, 4, 1))


@pytest.mark.parametrize("make", [DLinearBody, lambda sizes: NLinearBody(sizes, slice(0, 1))])
def test_linear_bodies_keep_the_rules(make: type[DLinearBody]) -> None:
    keeps_the_rules(make)


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


def test_parts_are_the_whole() -> None:
    inputs = some_inputs(FULL)
    body = shuffled(seeded(lambda: DLinearBody(FULL)))
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
