"""xLSTM: cells equal the equations of the paper without stabilizer, blocks a plain loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError
from deepforecast.nn.xlstm import SLSTM, XLSTM, XLSTMBlock, XLSTMBody, XLSTMOptions, slstm_step
from tests.nn.bodies import FULL, keeps_the_rules, seeded, shuffled, some_inputs

SMALL = XLSTMOptions(hidden_size=6, n_layers=2, n_heads=2, kernel_size=3)


def plain_cell(layer: SLSTM, inputs: Tensor) -> Tensor:
    """Hidden states (time, width) of one window (time, width) by equations 8 to 14, which have no stabilizer."""
    n_steps, width = inputs.shape
    dim, kernel_size = width // layer.n_heads, layer.convolution.kernel_size[0]
    hidden, cell, normalizer = (torch.zeros(width, dtype=inputs.dtype) for _ in range(3))
    states = []
    for step in range(n_steps):
        convolved = layer.convolution.bias.clone()  # type: ignore[union-attr]
        for lag in range(kernel_size):
            if step >= lag:
                convolved = convolved + layer.convolution.weight[:, 0, kernel_size - 1 - lag] * inputs[step - lag]
        convolved = F.silu(convolved)
        gates = []
        for gate in range(4):  # input, forget, cell input, output
            source = convolved if gate < 2 else inputs[step]
            weight = (layer.convolved_weight if gate < 2 else layer.input_weight)[gate % 2]
            parts = []
            for head in range(layer.n_heads):
                part = slice(head * dim, (head + 1) * dim)
                recurrent = hidden[part] @ layer.recurrent_weight[gate, head]
                parts.append(source[part] @ weight[head] + recurrent + layer.bias[gate, head])
            gates.append(torch.cat(parts))
        input_gate, forget_gate = gates[0].exp(), torch.sigmoid(gates[1])
        cell = forget_gate * cell + input_gate * torch.tanh(gates[2])
        normalizer = forget_gate * normalizer + input_gate
        hidden = torch.sigmoid(gates[3]) * cell / normalizer
        states.append(hidden)
    return torch.stack(states)


def plain_layer(layer: SLSTM, inputs: Tensor) -> Tensor:
    """The normalised hidden states of one window."""
    dim = inputs.shape[1] // layer.n_heads
    heads = [
        (head - head.mean(1, keepdim=True)) / (head.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
        for head in plain_cell(layer, inputs).split(dim, dim=1)
    ]
    return torch.cat(heads, dim=1) * layer.norm_weight


def plain_block(block: XLSTMBlock, inputs: Tensor) -> Tensor:
    def norm(hidden: Tensor, weight: Tensor) -> Tensor:
        centred = hidden - hidden.mean(1, keepdim=True)
        return centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt() * weight

    hidden = inputs + plain_layer(block.cell, norm(inputs, block.norms[0].weight))  # type: ignore[arg-type]
    normed = norm(hidden, block.norms[1].weight)  # type: ignore[arg-type]
    gate, value = (normed @ block.up.weight.T).chunk(2, dim=1)
    return hidden + (0.5 * gate * (1 + torch.erf(gate / 2**0.5)) * value) @ block.down.weight.T


def randomized(make: type[nn.Module], *args: object) -> nn.Module:
    return shuffled(make(*args).double())  # type: ignore[arg-type]


@pytest.mark.parametrize("n_heads", [1, 2, 6])
@pytest.mark.parametrize("kernel_size", [1, 3])
def test_block_equals_the_equations_and_so_do_its_gradients(n_heads: int, kernel_size: int) -> None:
    block = randomized(XLSTMBlock, replace(SMALL, n_heads=n_heads, kernel_size=kernel_size), 1.0)
    inputs = torch.randn(3, 7, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    outputs = block(inputs)
    expected = torch.stack([plain_block(block, window) for window in inputs])  # type: ignore[arg-type]
    torch.testing.assert_close(outputs, expected, atol=1e-9, rtol=1e-9)
    sources = [inputs, *block.parameters()]
    gradients = (torch.autograd.grad(values.cos().sum(), sources) for values in (outputs, expected))
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-8, rtol=1e-8)


def test_large_gates_are_finite_where_the_plain_equations_are_not() -> None:
    gates = torch.tensor([200.0, -200.0, 0.5, 0.0]).view(4, 1, 1, 1)
    zeros = torch.zeros(1, 1, 1)
    state = slstm_step(gates, zeros, zeros, torch.full_like(zeros, -torch.inf))
    assert not gates[0].exp().isfinite().all()
    torch.testing.assert_close(state[0].item(), 0.5 * torch.tanh(torch.tensor(0.5)).item())
    # An input gate of exp(-200) leaves nothing of the first value, and the new one cannot displace the old state.
    tiny = slstm_step(torch.tensor([-200.0, 200.0, -0.5, 0.0]).view(4, 1, 1, 1), *state[1:])
    torch.testing.assert_close(tiny[0], state[0])
    # Larger input gates revise what was stored, which sigmoid gates cannot.
    revised = slstm_step(torch.tensor([230.0, 200.0, -0.5, 0.0]).view(4, 1, 1, 1), *tiny[1:])
    torch.testing.assert_close(revised[0], -state[0])


def test_number_of_parameters() -> None:
    """An sLSTM block of the authors' example (github.com/NX-AI/xlstm): width 128, 4 heads, kernel 4, factor 1.3.

    The factor gives 166.4, rounded up to a multiple of 64: 192. Convolution 128 * 4 + 128 = 640, gates of the inputs
    4 * 4 * 32 * 32 = 16,384, recurrent ones as many, biases 4 * 128 = 512, group normalisation 128, two layer normalisations
    256, feed-forward network 3 * 128 * 192 = 73,728. Together 108,032.
    """
    options = XLSTMOptions(hidden_size=128, n_layers=1, n_heads=4, dim_feedforward=192)
    n_parameters = 640 + 2 * 16_384 + 512 + 128 + 256 + 73_728
    assert sum(weight.numel() for weight in XLSTMBlock(options, 1.0).parameters()) == n_parameters == 108_032
    # Linear map of 5 features with offsets, and the last normalisation.
    layers = XLSTM(5, replace(options, n_layers=2))
    assert sum(weight.numel() for weight in layers.parameters()) == 2 * n_parameters + 128 * 5 + 128 + 128
    # 4/3 of the width by default, rounded up.
    assert XLSTMBlock(XLSTMOptions(hidden_size=64), 1.0).down.in_features == 86


def test_outputs_do_not_depend_on_later_time_steps() -> None:
    layers = shuffled(XLSTM(4, SMALL)).eval()  # type: ignore[arg-type]
    inputs = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    outputs = layers(inputs)
    for step in range(6):
        changed = inputs.clone()
        changed[:, step] += 1.0
        moved = (layers(changed) - outputs).abs().amax((0, 2)) > 1e-6
        assert moved.tolist() == [other >= step for other in range(6)]


def test_forget_gates_begin_with_memories_of_all_lengths() -> None:
    blocks = XLSTM(4, replace(SMALL, hidden_size=16)).blocks
    for block, exponent in zip(blocks, (0.3, 1.6), strict=True):
        bias = block.cell.bias.detach()  # type: ignore[union-attr,operator]
        assert bias[[0, 2, 3]].abs().sum() == 0
        expected = torch.tensor([5 - 12 * (index / 7) ** exponent for index in range(8)])
        torch.testing.assert_close(bias[1], expected.repeat(2, 1))
        assert block.cell.recurrent_weight.abs().sum() == 0  # type: ignore[union-attr,operator]


def test_body_keeps_the_rules() -> None:
    options = replace(SMALL, dropout=0.1)
    keeps_the_rules(lambda sizes: shuffled(XLSTMBody(sizes, options, decoder_size=8, skip_hidden_sizes=(7,))))  # type: ignore[arg-type,return-value]


def test_dropout_acts_in_training_only() -> None:
    body, inputs = seeded(lambda: XLSTMBody(FULL, replace(SMALL, dropout=0.5))), some_inputs(FULL)
    one, other = (seeded(lambda: body.features(inputs), seed) for seed in (0, 1))
    assert not torch.equal(one, other)
    body.eval()
    assert torch.equal(body.features(inputs), body.features(inputs))


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ParameterError, match=r"`hidden_size` must be divisible by `n_heads`.*Set hidden_size=8\."):
        XLSTM(4, replace(SMALL, n_heads=4))
