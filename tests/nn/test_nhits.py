"""N-HiTS: pooling, interpolation and blocks equal the equations of the paper, written as loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.nbeats import Pooling
from deepforecast.nn.nhits import NHITSBody, interpolation
from tests.nn.bodies import FULL, keeps_the_rules, seeded, some_inputs

RATES = ((5, 2, 1), (3, 2, 1))  # pooling and downsampling; 5 and 3 do not divide the window of 12 and the horizon of 4


@pytest.mark.parametrize("mode", ["max", "average"])
def test_nhits_keeps_the_rules(mode: str) -> None:
    keeps_the_rules(
        lambda sizes: NHITSBody(sizes, *RATES, blocks=2, hidden_sizes=(16, 16), pooling_mode=mode, dropout=0.1)
    )


def plain_pooling(window: Tensor, kernel_size: int, mode: str) -> Tensor:
    """Pooled parts of one window, counted back from its end."""
    pooled, end = [], len(window)
    while end > 0:
        part = window[max(end - kernel_size, 0) : end]
        pooled.insert(0, part.max() if mode == "max" else part.mean())
        end -= kernel_size
    return torch.stack(pooled)


@pytest.mark.parametrize("mode", ["max", "average"])
@pytest.mark.parametrize("kernel_size", [1, 3, 5, 12])
def test_pooling_takes_parts_that_end_at_the_cutoff(kernel_size: int, mode: str) -> None:
    windows = some_inputs(FULL).y - 2.0  # negative: a maximum over padding with zeros would be 0
    expected = torch.stack([plain_pooling(window, kernel_size, mode) for window in windows])
    pooling = Pooling(12, kernel_size, mode)
    assert pooling.output_size == expected.shape[1]
    torch.testing.assert_close(pooling(windows), expected)


def knot_positions(n_knots: int, length: int) -> np.ndarray:
    """Centres of equal parts of the time steps 0 to length - 1."""
    return (np.arange(n_knots) + 0.5) * length / n_knots - 0.5


@pytest.mark.parametrize(("n_knots", "length"), [(1, 4), (2, 4), (4, 12), (3, 7), (7, 7)])
def test_interpolation_is_piecewise_linear_between_the_knots(n_knots: int, length: int) -> None:
    values = np.random.default_rng(0).normal(size=n_knots)
    expected = np.interp(np.arange(length), knot_positions(n_knots, length), values)
    interpolated = interpolation(n_knots, length) @ torch.from_numpy(values).float()
    np.testing.assert_allclose(interpolated.numpy(), expected, atol=1e-6)


def test_interpolation_to_the_nearest_and_by_cubics() -> None:
    values = torch.tensor([1.0, -2.0, 4.0])
    assert (interpolation(3, 6, "nearest") @ values).tolist() == [1, 1, -2, -2, 4, 4]
    expected = functional.interpolate(values.expand(1, 1, 3, 3), size=(3, 7), mode="bicubic")[0, 0, 1]
    torch.testing.assert_close(interpolation(3, 7, "cubic") @ values, expected)
    assert not torch.allclose(interpolation(3, 7, "cubic"), interpolation(3, 7), atol=1e-2)


def plain_values(theta: np.ndarray, length: int) -> np.ndarray:
    return np.interp(np.arange(length), knot_positions(len(theta), length), theta)


def plain_nhits(body: NHITSBody, blocks: int, inputs: Inputs, window: int, mode: str) -> np.ndarray:
    """The forecast of one window, (horizon, out_features), block by block."""
    residual, observed = inputs.y[window], inputs.observed[window].numpy()
    covariates = [inputs.past[window].flatten(), inputs.future[window].flatten(), inputs.static[window]]
    total = np.zeros((FULL.horizon, FULL.out_features))
    for index, block in enumerate(body.blocks):
        pool, downsample = (rates[index // blocks] for rates in RATES)
        hidden = torch.cat([plain_pooling(residual, pool, mode), *covariates])
        layers = [module for module in block.modules() if isinstance(module, nn.Linear)]
        for layer in layers[:-1]:
            hidden = torch.relu(layer.weight @ hidden + layer.bias)
        theta = (layers[-1].weight @ hidden + layers[-1].bias).detach().numpy()
        n_backcast = -(-FULL.input_size // downsample) if index + 1 < len(body.blocks) else 0
        knots = theta[n_backcast:].reshape(-(-FULL.horizon // downsample), FULL.out_features)
        for feature in range(FULL.out_features):
            total[:, feature] += plain_values(knots[:, feature], FULL.horizon)
        if n_backcast:
            backcast = plain_values(theta[:n_backcast], FULL.input_size)
            residual = torch.from_numpy((residual.numpy() - backcast) * observed).float()
    return total


@pytest.mark.parametrize("mode", ["max", "average"])
@pytest.mark.parametrize("blocks", [1, 2])
def test_stacks_are_the_recursion_of_the_paper(blocks: int, mode: str) -> None:
    body = seeded(lambda: NHITSBody(FULL, *RATES, blocks=blocks, hidden_sizes=(16, 16), pooling_mode=mode))
    inputs = some_inputs(FULL)
    expected = np.stack([plain_nhits(body, blocks, inputs, window, mode) for window in range(5)])
    np.testing.assert_allclose(body.features(inputs).detach().numpy(), expected, atol=1e-5)


def test_components_are_the_stacks_and_sum_to_the_forecast() -> None:
    body, inputs = seeded(lambda: NHITSBody(FULL, *RATES, blocks=2, hidden_sizes=(16,))), some_inputs(FULL)
    components = body.components(inputs)
    assert list(components) == ["stack_1", "stack_2", "stack_3"]
    torch.testing.assert_close(sum(components.values()), body.features(inputs))


def test_rates_beyond_window_and_horizon_give_one_value() -> None:
    body = seeded(lambda: NHITSBody(FULL, (100, 1), (100, 1), hidden_sizes=(4,)))
    coarse = body.components(some_inputs(FULL))["stack_1"]
    assert body.blocks[0].pooling.output_size == 1
    assert torch.equal(coarse, coarse[:, :1].expand_as(coarse))
    assert coarse.abs().min() > 0


def test_parameter_count_of_the_configuration_of_the_paper() -> None:
    # ETTm2, horizon 96 in the search space of the authors' code (nhits_multivariate.py): window 5 * 96, pooling 16, 8, 1, time
    # steps per knot 24, 12, 1, one block of 2 layers of 512 units per stack. Weights and biases of a block with n inputs and
    # m outputs: 513 m + 512 n + 512 + 512 * 512 + 512. Inputs are 480 / 16 = 30, 60 and 480; outputs 480 / 24 + 96 / 24 = 24,
    # 40 + 8 = 48 and, without the backcast of the last block, 96.
    body = NHITSBody(InputSizes(480, 96, 1), (16, 8, 1), (24, 12, 1))
    hidden = 512 * (30 + 60 + 480) + 3 * (512 + 512 * 512 + 512)
    count = hidden + 513 * (24 + 48 + 96)
    assert sum(weight.numel() for weight in body.parameters()) == count == 1_167_528
    # The authors' code has no knots of the backcast, and one of the last block: 480 more outputs each, 1,875,468 weights.
    assert hidden + 513 * (3 * 480 + 4 + 8 + 96) == 1_875_468
