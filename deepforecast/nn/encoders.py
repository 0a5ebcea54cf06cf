"""Encoders of a window for a recurrent decoder: an output per time step, and the decoder's initial
state.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from deepforecast.nn.body import State
from deepforecast.nn.convolutional import Convolutional, ConvolutionalOptions
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions

N_WAVELENGTHS = 8
"""Number of wavelengths of the time encoding."""


class RecurrentEncoder(nn.Module):
    """Recurrent encoder; its final state is the initial state of the decoder.

    If it is bidirectional, a linear map merges the two states of each layer. `kernel_size` is not
    used; it is a parameter so that both encoders have the same signature.
    """

    def __init__(self, width_in: int, layers: RecurrentOptions, kernel_size: int = 0) -> None:
        super().__init__()
        self.layers = Recurrent(width_in, layers)
        n_bridges = _n_states(layers) if layers.bidirectional else 0
        self.bridges = nn.ModuleList(
            [nn.Linear(2 * layers.hidden_size, layers.hidden_size) for _ in range(n_bridges)]
        )

    def forward(self, features: Tensor) -> tuple[Tensor, State]:
        """Encode (batch, steps, width_in) to outputs (batch, steps, output_size) and the decoder's
        initial state.
        """
        encoded, state = self.layers(features)
        if self.bridges:
            # The states of a layer alternate: forward, backward.
            pairs = zip(state[::2], state[1::2], strict=True)
            state = tuple(
                bridge(torch.cat(pair, dim=-1))
                for bridge, pair in zip(self.bridges, pairs, strict=True)
            )
        return encoded, state


class ConvolutionalEncoder(nn.Module):
    """Convolutional encoder; linear maps of its last output give the initial state of the decoder."""

    def __init__(self, width_in: int, layers: RecurrentOptions, kernel_size: int) -> None:
        super().__init__()
        options = ConvolutionalOptions(
            layers.hidden_size, layers.n_layers, kernel_size, layers.dropout
        )
        self.layers, self.decoder = Convolutional(width_in, options), layers
        self.bridge = nn.Linear(layers.hidden_size, _n_states(layers) * layers.hidden_size)

    def forward(self, features: Tensor) -> tuple[Tensor, State]:
        """Encode (batch, steps, width_in) to outputs (batch, steps, hidden_size) and the decoder's
        initial state.
        """
        encoded = cast(Tensor, self.layers(features))
        state = torch.tanh(self.bridge(encoded[:, -1]))
        return encoded, tuple(state.chunk(_n_states(self.decoder), dim=-1))


def time_encoding(input_size: int, horizon: int) -> tuple[Tensor, Tensor]:
    """Return sines and cosines of the positions of the window and of the horizon.

    Positions are counted from the cutoff: 0 is the last time step of the window. The wavelengths
    are log-spaced from 4 steps to twice the total length. Shapes: (input_size, 2 * N_WAVELENGTHS)
    and (horizon, 2 * N_WAVELENGTHS).
    """
    max_wavelength = 2 * (input_size + horizon)
    wavelengths = torch.logspace(math.log10(4), math.log10(max(max_wavelength, 8)), N_WAVELENGTHS)
    angles = 2 * math.pi * torch.arange(1 - input_size, horizon + 1).unsqueeze(1) / wavelengths
    encoding = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return encoding[:input_size], encoding[input_size:]


def _n_states(layers: RecurrentOptions) -> int:
    """Return the number of tensors in a decoder state: one per layer, two for an LSTM."""
    return layers.n_layers * (2 if layers.cell == "lstm" else 1)
