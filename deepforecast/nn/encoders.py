"""Encoders of a window for a recurrent decoder: a vector a row, and the state that the decoder goes on from."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from deepforecast.nn.body import State
from deepforecast.nn.convolutional import Convolutional, ConvolutionalOptions
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions

N_WAVELENGTHS = 8
"""Wavelengths by which rows are told where they stand."""


class RecurrentEncoder(nn.Module):
    """Recurrent layers; the decoder goes on from their state. Read both ways, linear maps bring two states to one.

    `kernel_size` is of no use here: both encoders are made alike.
    """

    def __init__(self, width_in: int, layers: RecurrentOptions, kernel_size: int = 0) -> None:
        super().__init__()
        self.layers = Recurrent(width_in, layers)
        states = _n_states(layers) if layers.bidirectional else 0
        self.bridges = nn.ModuleList([nn.Linear(2 * layers.hidden_size, layers.hidden_size) for _ in range(states)])

    def forward(self, rows: Tensor) -> tuple[Tensor, State]:
        """(B, L, D) -> (B, L, width), and the state after the last row."""
        encoded, state = self.layers(rows)
        if self.bridges:
            pairs = zip(state[::2], state[1::2], strict=True)  # forwards and backwards, layer by layer
            state = tuple(bridge(torch.cat(pair, dim=-1)) for bridge, pair in zip(self.bridges, pairs, strict=True))
        return encoded, state


class ConvolutionalEncoder(nn.Module):
    """Convolutions; linear maps of the last row make the state."""

    def __init__(self, width_in: int, layers: RecurrentOptions, kernel_size: int) -> None:
        super().__init__()
        options = ConvolutionalOptions(layers.hidden_size, layers.n_layers, kernel_size, layers.dropout)
        self.layers, self.decoder = Convolutional(width_in, options), layers
        self.bridge = nn.Linear(layers.hidden_size, _n_states(layers) * layers.hidden_size)

    def forward(self, rows: Tensor) -> tuple[Tensor, State]:
        """(B, L, D) -> (B, L, width), and the state after the last row."""
        encoded = cast(Tensor, self.layers(rows))
        state = torch.tanh(self.bridge(encoded[:, -1]))
        return encoded, tuple(state.chunk(_n_states(self.decoder), dim=-1))


def time_encoding(n_rows: int, n_steps: int) -> tuple[Tensor, Tensor]:
    """Sines and cosines of the number of each row (the last is 0) and of each step ahead (the first is 1): (rows, 2 WAVES) and
    (steps, 2 WAVES). The shortest wave is of 4 rows, the longest of twice all of them."""
    max_wavelength = 2 * (n_rows + n_steps)
    wavelengths = torch.logspace(math.log10(4), math.log10(max(max_wavelength, 8)), N_WAVELENGTHS)
    angles = 2 * math.pi * torch.arange(1 - n_rows, n_steps + 1).unsqueeze(1) / wavelengths
    encoding = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return encoding[:n_rows], encoding[n_rows:]


def _n_states(layers: RecurrentOptions) -> int:
    """Vectors in a state of the decoder."""
    return layers.n_layers * (2 if layers.cell == "lstm" else 1)
