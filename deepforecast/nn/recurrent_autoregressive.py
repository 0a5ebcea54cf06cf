"""Autoregressive recurrent body: a decoder continues from the final state of an encoder of the window."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import AutoregressiveBody, State
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions


class RecurrentAutoregressive(AutoregressiveBody):
    """Recurrent encoder-decoder; inputs of a decoder step are the previous value and the future
    features.

    The decoder is unidirectional. If the encoder is bidirectional, a linear map merges the two
    states of each layer.

    Parameters
    ----------
    sizes : InputSizes
    options : RecurrentOptions
    """

    def __init__(self, sizes: InputSizes, options: RecurrentOptions) -> None:
        super().__init__()
        self.encoder = Recurrent(sizes.past_features, options, uses_output=False)
        self.decoder = Recurrent(1 + sizes.future_features, replace(options, bidirectional=False))
        n_states = options.n_layers * (2 if options.cell == "lstm" else 1)
        n_bridges = n_states if options.bidirectional else 0
        self.bridges = nn.ModuleList(
            [nn.Linear(2 * options.hidden_size, options.hidden_size) for _ in range(n_bridges)]
        )
        self.drop = Dropout(options.dropout)
        self.out = nn.Linear(self.decoder.output_size, sizes.out_features)

    def initial_state(self, inputs: Inputs) -> State:
        """Return the decoder's state at the cutoff, as a state of `Recurrent`."""
        _, state = self.encoder(inputs.past_features)
        if not self.bridges:
            return cast(State, state)
        pairs = zip(state[::2], state[1::2], strict=True)  # the states of a layer alternate: forward, backward
        return tuple(
            bridge(torch.cat(pair, dim=-1))
            for bridge, pair in zip(self.bridges, pairs, strict=True)
        )

    def step(
        self, state: State, previous: Tensor, future: Tensor, step_index: int
    ) -> tuple[Tensor, State]:
        """Return the raw output of the next step, (batch, out_features), and the next state."""
        hidden, state = self.decoder.step(
            torch.cat([previous.unsqueeze(-1), future], dim=-1), state
        )
        return self.out(self.drop(hidden)), state

    def forward_teacher_forced(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """Compute all steps given the values (batch, horizon) before them, in one call of the
        layers.

        The result equals that of single steps, except for batch normalisation in training, which
        uses the statistics of each call.
        """
        decoder_inputs = torch.cat(
            [previous.unsqueeze(-1), inputs.future_features[:, : previous.shape[1]]], dim=-1
        )
        hidden, _ = self.decoder(decoder_inputs, self.initial_state(inputs))
        return cast(Tensor, self.out(self.drop(hidden)))
