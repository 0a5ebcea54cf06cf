"""xLSTM of sLSTM blocks: recurrent cells with exponential gates in residual blocks.

Beck, Pöppel, Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter, Hochreiter (2024), "xLSTM:
Extended Long Short-Term Memory", arXiv:2405.04517.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import InputSizes
from deepforecast.nn.layers import Dropout
from deepforecast.nn.recurrent import StatesDirect

if TYPE_CHECKING:
    from jaxtyping import Float

N_GATES = 4
"""Input gate, forget gate, cell input and output gate, in this order."""


@dataclass(frozen=True)
class XLSTMOptions:
    """Options of the blocks.

    Parameters
    ----------
    hidden_size : int, default 64
        Width of the blocks.
    n_layers : int, default 1
        Number of blocks.
    n_heads : int, default 4
        Heads of a cell, a divisor of `hidden_size`.
    dim_feedforward : int, optional
        Width of the feed-forward network; None: 4/3 of `hidden_size`, as in the paper.
    kernel_size : int, default 4
        Kernel size of the causal convolution before the input and forget gates.
    dropout : float, default 0.0
        Dropout on the output of each sublayer.
    """

    hidden_size: int = 64
    n_layers: int = 1
    n_heads: int = 4
    dim_feedforward: int | None = None
    kernel_size: int = 4
    dropout: float = 0.0


def slstm_step(
    gates: Float[Tensor, "4 heads batch dim"],
    cell: Float[Tensor, "heads batch dim"],
    normalizer: Float[Tensor, "heads batch dim"],
    stabilizer: Float[Tensor, "heads batch dim"],
) -> tuple[
    Float[Tensor, "heads batch dim"],
    Float[Tensor, "heads batch dim"],
    Float[Tensor, "heads batch dim"],
    Float[Tensor, "heads batch dim"],
]:
    """Return hidden, cell, normalizer and stabilizer state of the next step (equations 8 to 17):

        c_t = f c_{t-1} + i tanh(z),  n_t = f n_{t-1} + i,  h_t = sigmoid(o) c_t / n_t

    with i = exp(i~) and f = sigmoid(f~), both divided by exp(m_t), m_t = max(log f + m_{t-1}, i~), which
    keeps them at most 1 and cancels in c_t / n_t. So no gradient flows through m_t.
    """
    input_gate, forget_gate, cell_input, output_gate = gates.unbind(0)
    log_forget = F.logsigmoid(forget_gate) + stabilizer
    stabilizer = torch.maximum(log_forget, input_gate).detach()
    input_weight = torch.exp(input_gate - stabilizer)
    forget_weight = torch.exp(log_forget - stabilizer)
    cell = forget_weight * cell + input_weight * torch.tanh(cell_input)
    normalizer = forget_weight * normalizer + input_weight  # at least 1: one of the weights is 1
    return torch.sigmoid(output_gate) * cell / normalizer, cell, normalizer, stabilizer


class SLSTM(nn.Module):
    """sLSTM layer, (batch, steps, width) -> (batch, steps, width).

    The gates have block-diagonal weights, one block per head, for the inputs and for the hidden state.
    The inputs of the input and forget gates pass a causal convolution per channel and SiLU first. The
    output is normalised per head (group normalisation without offset).

    Parameters
    ----------
    options : XLSTMOptions
    exponent : float
        Exponent of the power law of the initial biases of the forget gates, from 5 to -7 within a head.
    """

    def __init__(self, options: XLSTMOptions, exponent: float) -> None:
        super().__init__()
        width, self.n_heads = options.hidden_size, options.n_heads
        dim = width // self.n_heads
        self.convolution = nn.Conv1d(width, width, options.kernel_size, groups=width)
        # Input and forget gate read the convolution, cell input and output gate the inputs themselves.
        scale = math.sqrt(2 / (5 * width))  # as in the authors' code
        self.convolved_weight = nn.Parameter(scale * torch.randn(2, self.n_heads, dim, dim))
        self.input_weight = nn.Parameter(scale * torch.randn(2, self.n_heads, dim, dim))
        self.recurrent_weight = nn.Parameter(torch.zeros(N_GATES, self.n_heads, dim, dim))
        bias = torch.zeros(N_GATES, self.n_heads, dim)
        bias[1] = 5 - 12 * torch.linspace(0, 1, dim) ** exponent
        self.bias = nn.Parameter(bias)
        self.norm_weight = nn.Parameter(torch.ones(width))
        self.drop = Dropout(options.dropout)

    def forward(
        self, inputs: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "batch time width"]:
        """Apply the layer to a sequence, from a zero state."""
        padded = F.pad(inputs.transpose(1, 2), (self.convolution.kernel_size[0] - 1, 0))
        convolved = F.silu(self.convolution(padded)).transpose(1, 2)
        # Gates of all steps in two products, (4, heads, time * batch, dim).
        gates = torch.cat(
            [
                self._heads(convolved) @ self.convolved_weight,
                self._heads(inputs) @ self.input_weight,
            ]
        )
        gates = gates + self.bias.unsqueeze(2)
        n_windows, n_steps, width = inputs.shape
        hidden = self._run(gates.view(N_GATES, self.n_heads, n_steps, n_windows, -1))
        hidden = self.drop(hidden.permute(2, 1, 0, 3).flatten(2))
        normalized = F.group_norm(hidden.flatten(0, 1), self.n_heads, self.norm_weight)
        return normalized.view(n_windows, n_steps, width)

    def _heads(
        self, inputs: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "heads time_batch dim"]:
        """Split the last axis into heads, with the windows of a time step next to each other."""
        split = inputs.reshape(*inputs.shape[:2], self.n_heads, -1)
        return split.permute(2, 1, 0, 3).flatten(1, 2)

    def _run(
        self, gates: Float[Tensor, "4 heads time batch dim"]
    ) -> Float[Tensor, "heads time batch dim"]:
        """Return the hidden states of all steps, given the part of the gates from the inputs."""
        # The gates of a step are contiguous, and the products of all gates and heads one batch of them.
        flat_gates = gates.flatten(0, 1).transpose(0, 1).contiguous()
        weight = self.recurrent_weight.flatten(0, 1)
        hidden = gates.new_zeros(gates[0, :, 0].shape)
        cell, normalizer = hidden, hidden
        stabilizer = torch.full_like(hidden, -torch.inf)  # so that the first forget gate is 0
        steps = []
        for step_gates in flat_gates.unbind(0):
            total = torch.baddbmm(step_gates, hidden.repeat(N_GATES, 1, 1), weight)
            state = slstm_step(total.view(N_GATES, *cell.shape), cell, normalizer, stabilizer)
            hidden, cell, normalizer, stabilizer = state
            steps.append(hidden)
        return torch.stack(steps, dim=1)


class XLSTMBlock(nn.Module):
    """Residual block with post up-projection (figure 10 of the paper):

        x = x + SLSTM(norm(x)),  x = x + W_down (gelu(W_gate norm(x)) * W_up norm(x))

    Linear maps and normalisations have no offsets.
    """

    def __init__(self, options: XLSTMOptions, exponent: float) -> None:
        super().__init__()
        width = options.hidden_size
        dim_feedforward = options.dim_feedforward or math.ceil(4 * width / 3)
        self.norms = nn.ModuleList([nn.LayerNorm(width, bias=False) for _ in range(2)])
        self.cell = SLSTM(options, exponent)
        self.up = nn.Linear(width, 2 * dim_feedforward, bias=False)
        self.down = nn.Linear(dim_feedforward, width, bias=False)
        self.drop = Dropout(options.dropout)

    def forward(
        self, inputs: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "batch time width"]:
        """Apply the cell, then the feed-forward network."""
        hidden: Tensor = inputs + self.cell(self.norms[0](inputs))
        gate, value = self.up(self.norms[1](hidden)).chunk(2, dim=-1)
        outputs: Tensor = hidden + self.drop(self.down(F.gelu(gate) * value))
        return outputs


class XLSTM(nn.Module):
    """Linear map of the inputs, residual blocks and a final normalisation.

    Parameters
    ----------
    width_in : int
    options : XLSTMOptions
    """

    def __init__(self, width_in: int, options: XLSTMOptions) -> None:
        super().__init__()
        self.output_size = options.hidden_size
        if options.hidden_size % options.n_heads:
            raise ParameterError(
                f"`hidden_size` must be divisible by `n_heads`, got hidden_size={options.hidden_size} and "
                f"n_heads={options.n_heads}.",
                hint=f"Set hidden_size={-(-options.hidden_size // options.n_heads) * options.n_heads}.",
                parameter="hidden_size",
            )
        self.embedding = nn.Linear(width_in, options.hidden_size)
        # Memories become shorter from block to block.
        exponents = [0.3 + 1.3 * index / max(options.n_layers - 1, 1) for index in range(options.n_layers)]
        self.blocks = nn.Sequential(*[XLSTMBlock(options, exponent) for exponent in exponents])
        self.norm = nn.LayerNorm(options.hidden_size, bias=False)

    def forward(
        self, inputs: Float[Tensor, "batch time past_features"]
    ) -> Float[Tensor, "batch time output_size"]:
        """Return the outputs of all time steps."""
        outputs: Tensor = self.norm(self.blocks(self.embedding(inputs)))
        return outputs


class XLSTMBody(StatesDirect):
    """sLSTM blocks over the window, and the decoder of `RecurrentDirect`.

    Parameters
    ----------
    sizes : InputSizes
    options : XLSTMOptions
    season, decoder_layers, decoder_size, skip_hidden_sizes
        See `StatesDirect`.
    """

    over_time: ClassVar[bool] = True

    def __init__(
        self,
        sizes: InputSizes,
        options: XLSTMOptions,
        season: int | None = None,
        decoder_layers: int = 1,
        decoder_size: int = 64,
        skip_hidden_sizes: Sequence[int] | None = None,
    ) -> None:
        encoder = XLSTM(sizes.past_features, options)
        super().__init__(
            sizes, encoder, options.dropout, season, decoder_layers, decoder_size, skip_hidden_sizes
        )

    def encode(
        self, features: Float[Tensor, "batch time past_features"]
    ) -> tuple[Float[Tensor, "batch time output_size"], Float[Tensor, "batch output_size"]]:
        """Return the outputs of all time steps and that of the last one."""
        states = self.encoder(features)
        return states, states[:, -1]
