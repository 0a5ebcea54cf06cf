"""TCN: convolutions are causal and equal the sums of the paper; the decoder is that of recurrent networks."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deepforecast.nn.tcn import ResidualBlock, TCNBody, TCNOptions, TemporalConvolution, required_layers
from tests.nn.bodies import FULL, keeps_the_rules, seeded, some_inputs

SMALL = TCNOptions(hidden_size=4, n_layers=3, kernel_size=2)


@pytest.mark.parametrize("weight_norm", [True, False])
def test_tcn_keeps_the_rules(weight_norm: bool) -> None:
    options = replace(SMALL, dropout=0.1, weight_norm=weight_norm)
    keeps_the_rules(lambda sizes: TCNBody(sizes, options, decoder_size=8, skip_hidden_sizes=(7,)))


def plain_convolution(convolution: torch.nn.Module, x: Tensor, dilation: int) -> Tensor:
    """F(s) = b + sum_i w_i x_{s - d i} (section 3.2), zeros before the window; x (channels, steps)."""
    weight, bias = convolution.weight, convolution.bias
    if getattr(convolution, "scale", None) is not None:  # w = g v / ||v|| per output channel
        norms = torch.stack([kernel.square().sum().sqrt() for kernel in weight])
        weight = (convolution.scale / norms).view(-1, 1, 1) * weight
    kernel_size, outputs = weight.shape[2], []
    for step in range(x.shape[1]):
        total = bias
        for lag in range(kernel_size):
            if step - dilation * lag >= 0:
                total = total + weight[:, :, kernel_size - 1 - lag] @ x[:, step - dilation * lag]
        outputs.append(total)
    return torch.stack(outputs, dim=1)


def plain_block(block: ResidualBlock, x: Tensor, dilation: int) -> Tensor:
    hidden = x
    for convolution in block.convolutions:
        hidden = plain_convolution(convolution, hidden, dilation).clamp(min=0)
    skip = x if isinstance(block.skip, torch.nn.Identity) else plain_convolution(block.skip, x, 1)
    return (hidden + skip).clamp(min=0)


@pytest.mark.parametrize("weight_norm", [True, False])
@pytest.mark.parametrize("kernel_size", [1, 2, 3])
def test_blocks_are_sums_of_the_past(kernel_size: int, weight_norm: bool) -> None:
    options = replace(SMALL, kernel_size=kernel_size, weight_norm=weight_norm)
    layers = seeded(lambda: TemporalConvolution(FULL.past_features, options))
    with torch.no_grad():
        for weight in layers.parameters():
            weight.mul_(1.5 if weight.dim() == 1 else 2)  # the scale of the kernels is not their norm
        features = some_inputs(FULL).past_features
        for window, outputs in zip(features, layers(features), strict=True):
            expected = window.T
            for index, block in enumerate(layers.blocks):
                expected = plain_block(block, expected, 2**index)  # type: ignore[arg-type]
            torch.testing.assert_close(outputs, expected.T, atol=1e-5, rtol=1e-4)


def test_outputs_depend_on_the_receptive_field_and_not_on_the_future() -> None:
    options = TCNOptions(hidden_size=16, n_layers=2, kernel_size=3)
    layers = seeded(lambda: TemporalConvolution(2, options))
    inputs = torch.randn(1, 40, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    layers(inputs)[0, 30].sum().backward()
    assert inputs.grad is not None
    used = inputs.grad[0].abs().sum(1).nonzero().flatten()
    assert used.max() == 30
    assert 30 - used.min() + 1 == options.receptive_field == 13


@pytest.mark.parametrize("kernel_size", [2, 3, 7])
def test_required_layers_cover_the_window_and_no_more(kernel_size: int) -> None:
    for length in (1, 2, 13, 96, 500):
        n_layers = required_layers(length, kernel_size)
        assert TCNOptions(1, n_layers, kernel_size).receptive_field >= length
        assert n_layers == 1 or TCNOptions(1, n_layers - 1, kernel_size).receptive_field < length


def test_decoder_reads_the_states_of_the_convolutions() -> None:
    body = seeded(lambda: TCNBody(FULL, SMALL, season=3, decoder_layers=0)).eval()
    inputs = some_inputs(FULL)
    with torch.no_grad():
        states = body.encoder(inputs.past_features)
        for step in range(FULL.horizon):
            lagged = states[:, 12 - 3 + step % 3]  # one season before, the last season repeated
            step_inputs = torch.cat([lagged, inputs.future[:, step], inputs.static], dim=1)
            expected = body.step_projection(step_inputs) + body.state_projection(states[:, 11]) + body.step_bias[step]
            torch.testing.assert_close(body.features(inputs)[:, step], expected)


def test_parameter_count_of_the_configuration_of_the_paper() -> None:
    # Sequential MNIST (table 1 of the paper: about 70,000 weights; appendix A: kernel size 7, 8 blocks of 25 units). The first
    # convolution has 25 * 7 weights of 1 input channel, the other 15 have 25 * 25 * 7; each has 25 biases and 25 norms; the first
    # skip connection has 25 + 25. With the output of 10 classes, 26 * 10 = 260, which is not part of the layers, this is 66,910.
    layers = TemporalConvolution(1, TCNOptions(hidden_size=25, n_layers=8, kernel_size=7))
    count = 25 * 7 + 15 * 25 * 25 * 7 + 16 * (25 + 25) + 25 + 25
    assert sum(weight.numel() for weight in layers.parameters()) == count == 66_650
