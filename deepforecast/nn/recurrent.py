"""Recurrent layers and bodies: LSTM, GRU and plain RNN, with a direct or an autoregressive forecast.

`Recurrent` stacks the layers: bidirectional, residual, normalised. `RecurrentDirect` reads the inputs
of each step of the horizon from two hidden states of the window; in `RecurrentAutoregressive` a
decoder continues from the final state of an encoder of the window.

Windows are padded on the left, so that every window ends at the cutoff, where the final state is
taken. Sequences are not packed: one of the inputs is the mask of observed values, from which the
layers learn to ignore the padding. (Packing needs the lengths on the CPU at every step, prevents
tracing, and assumes padding on the right.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.layers import Dropout, normalization
from deepforecast.nn.mlp import MLP
from deepforecast.nn.network import AutoregressiveBody, DirectBody, State

if TYPE_CHECKING:
    from jaxtyping import Float

MIN_FUSED_SIZE = 6_000
"""Size of a state (batch * hidden_size) from which an LSTM step on a CPU is faster as a fused
sequence of length 1 than as a cell.

Measured with hidden sizes 16, 64 and 128: one window takes 28, 29, 32 us as a cell and 78, 81, 102
us fused; 256 windows take 84, 210, 569 us as a cell and 91, 148, 281 us fused.
"""


class ResetBeforeGRU(nn.GRU):
    """GRU of Cho et al. (2014), arXiv:1406.1078, with the weights, inputs and outputs of `nn.GRU` (batch_first).

    The reset gate is applied before the matrix product, n = tanh(W x + U (r * h) + b), and not
    after it as in torch, n = tanh(W x + r * (U h + b)).
    """

    def forward(  # type: ignore[override]
        self,
        inputs: Float[Tensor, "batch time width"],
        state: Float[Tensor, "cells batch hidden_size"] | None = None,
    ) -> tuple[Float[Tensor, "batch time output_size"], Float[Tensor, "cells batch hidden_size"]]:
        """Return the outputs and the final state, with one cell per layer and direction."""
        n_directions = 2 if self.bidirectional else 1
        final_states = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                inputs = F.dropout(inputs, self.dropout, self.training)
            outputs = []
            for direction in range(n_directions):
                index = layer * n_directions + direction
                weight_ih, weight_hh, bias_ih, bias_hh = self.all_weights[index]
                hidden = inputs.new_zeros(len(inputs), self.hidden_size) if state is None else state[index]
                projected = F.linear(inputs, weight_ih, bias_ih)  # all steps in one product
                hidden_states = []
                for step in projected.unbind(1)[:: -1 if direction else 1]:
                    hidden = _reset_before_step(step, hidden, weight_hh, bias_hh)
                    hidden_states.append(hidden)
                outputs.append(torch.stack(hidden_states[:: -1 if direction else 1], dim=1))
                final_states.append(hidden)
            inputs = torch.cat(outputs, dim=-1)
        return inputs, torch.stack(final_states)


def _reset_before_step(
    projected: Float[Tensor, "batch gates"],
    hidden: Float[Tensor, "batch hidden_size"],
    weight_hh: Float[Tensor, "gates hidden_size"],
    bias_hh: Float[Tensor, "gates"],
) -> Float[Tensor, "batch hidden_size"]:
    """Return the next state; `projected` is W x + b of the three gates."""
    n_gates = 2 * hidden.shape[-1]  # columns of the reset and update gates
    gates = torch.sigmoid(projected[:, :n_gates] + F.linear(hidden, weight_hh[:n_gates], bias_hh[:n_gates]))
    reset, update = gates.chunk(2, dim=-1)
    candidate = torch.tanh(
        projected[:, n_gates:] + F.linear(reset * hidden, weight_hh[n_gates:], bias_hh[n_gates:])
    )
    return candidate + update * (hidden - candidate)  # (1 - z) n + z h


LAYERS: dict[tuple[str, str], Callable[..., nn.RNNBase]] = {
    ("lstm", "after"): nn.LSTM,
    ("gru", "after"): nn.GRU,
    ("gru", "before"): ResetBeforeGRU,
    ("rnn", "after"): nn.RNN,
}
"""Layers by the options `cell` and `reset`."""


@dataclass(frozen=True)
class RecurrentOptions:
    """Options of the recurrent layers.

    Parameters
    ----------
    cell : {"lstm", "gru", "rnn"}, default "lstm"
        LSTM (Hochreiter and Schmidhuber 1997, doi:10.1162/neco.1997.9.8.1735, with the forget gate
        of Gers et al. 2000), GRU (Cho et al. 2014, arXiv:1406.1078) or Elman's RNN (1990).
    hidden_size : int, default 64
    n_layers : int, default 1
    bidirectional : bool, default False
    dropout : float, default 0.0
        Dropout on the outputs of a layer, not on the recurrent state.
    residual : bool, default False
        Whether the input of a layer is added to its output, from the second layer on.
    normalization : str, optional
        Normalisation of the output of each layer, see `normalization`.
    nonlinearity : {"tanh", "relu"}, default "tanh"
        Activation function of the cell "rnn".
    reset : {"after", "before"}, default "after"
        Whether the reset gate of the cell "gru" is applied after or before the matrix product.
    """

    cell: str = "lstm"
    hidden_size: int = 64
    n_layers: int = 1
    bidirectional: bool = False
    dropout: float = 0.0
    residual: bool = False
    normalization: str | None = None
    nonlinearity: str = "tanh"
    reset: str = "after"

    @property
    def output_size(self) -> int:
        """Width of the output per time step."""
        return self.hidden_size * (2 if self.bidirectional else 1)


class Recurrent(nn.Module):
    """Recurrent layers, (batch, steps, width_in) -> outputs (batch, steps, output_size) and the
    final state.

    The state is a flat tuple: the hidden vectors (batch, hidden_size) of all layers (forward, then
    backward), then, for an LSTM, their cell states in the same order.

    Parameters
    ----------
    width_in : int
    options : RecurrentOptions
    uses_output : bool, default True
        Whether the output is used, or only the state; the last normalisation is left out then.
    """

    def __init__(self, width_in: int, options: RecurrentOptions, uses_output: bool = True) -> None:
        super().__init__()
        self.options, self.output_size = options, options.output_size
        # If there is nothing between the layers, one torch module (one cuDNN call) runs all of them.
        self.stacked = options.normalization is None and not (
            options.residual and options.n_layers > 1
        )
        if self.stacked:
            cells = [_make_cells(width_in, options, options.n_layers)]
        else:
            input_widths = [width_in, *[self.output_size] * (options.n_layers - 1)]
            cells = [_make_cells(width, options, 1) for width in input_widths]
        self.cells = nn.ModuleList(cells)
        last_normalization = options.normalization if uses_output else None
        names = [options.normalization] * (options.n_layers - 1) + [last_normalization]
        self.norms = nn.ModuleList([normalization(name, self.output_size) for name in names])
        self.drop = Dropout(options.dropout)

    def forward(
        self, inputs: Float[Tensor, "batch time width"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch time output_size"], State]:
        """Process a sequence from a state; None: zeros. Return the outputs and the final state."""
        packed_state = None if state is None else self._pack_state(state)
        if self.stacked:
            hidden, final_state = _run_cells(self.cells[0], inputs, packed_state)
            return hidden, tuple(tensor for tensors in final_state for tensor in tensors.unbind(0))
        n_layers = len(self.norms)
        layer_states = None
        if packed_state is not None:
            layer_states = list(zip(*(tensor.chunk(n_layers) for tensor in packed_state), strict=True))
        final_states: list[State] = []

        def run(layer: int, layer_inputs: Tensor) -> Tensor:
            hidden, final_state = _run_cells(
                self.cells[layer],
                layer_inputs,
                None if layer_states is None else layer_states[layer],
            )
            final_states.append(final_state)
            return hidden

        hidden = self._apply_layers(inputs, run)
        return hidden, tuple(
            tensor
            for tensors in zip(*final_states, strict=True)
            for tensor in torch.cat(tensors).unbind(0)
        )

    def step(
        self, inputs: Float[Tensor, "paths width"], state: State
    ) -> tuple[Float[Tensor, "paths output_size"], State]:
        """Process one time step from a state; return the output and the next state.

        Raises `ParameterError` for bidirectional layers.
        """
        if self.options.bidirectional:
            raise ParameterError(
                "Layers that process a window in both directions cannot process single steps.",
                hint="Set bidirectional=False."
            )
        if self._uses_fused_kernel(inputs):
            hidden, final_state = self(inputs.unsqueeze(1), state)
            return hidden.squeeze(1), final_state
        n_layers = len(self.norms)
        layer_states: list[State] = []

        def run(layer: int, layer_inputs: Tensor) -> Tensor:
            layer_states.append(
                _cell_step(self.options, layer_inputs, state[layer::n_layers], self._weights(layer))
            )
            return layer_states[-1][0]

        hidden = self._apply_layers(inputs, run)
        return hidden, tuple(
            tensor for tensors in zip(*layer_states, strict=True) for tensor in tensors
        )

    def _apply_layers(self, inputs: Tensor, run: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Return the output of the last layer, with `run(layer, inputs)` for the recurrent layers.

        Between the layers are normalisation and dropout; residual connections bypass both.
        """
        hidden = run(0, inputs)
        for layer in range(1, len(self.norms)):
            layer_hidden = run(layer, self.drop(self.norms[layer - 1](hidden)))
            hidden = hidden + layer_hidden if self.options.residual else layer_hidden
        return cast(Tensor, self.norms[-1](hidden))

    def _pack_state(self, state: State) -> State:
        """Stack the state as torch's layers take it: one or two tensors (layers * directions,
        batch, hidden_size).
        """
        n_kinds = 2 if self.options.cell == "lstm" else 1
        n_layers = len(state) // n_kinds
        return tuple(
            torch.stack(state[index * n_layers : (index + 1) * n_layers])
            for index in range(n_kinds)
        )

    def _weights(self, layer: int) -> list[Tensor]:
        """Return the weights of a unidirectional layer: W_ih, W_hh, b_ih, b_hh."""
        cells = cast(nn.RNNBase, self.cells[0 if self.stacked else layer])
        return cast(list[Tensor], cells.all_weights[layer if self.stacked else 0])

    def _uses_fused_kernel(self, inputs: Tensor) -> bool:
        """Return whether a step (batch, width_in) is faster as a sequence, see `MIN_FUSED_SIZE`."""
        # Not while tracing: the batch size would be traced as a constant.
        is_lstm_on_cpu = (
            self.options.cell == "lstm"
            and inputs.device.type == "cpu"
            and not torch.compiler.is_compiling()
        )
        return is_lstm_on_cpu and inputs.shape[0] * self.options.hidden_size >= MIN_FUSED_SIZE


def _make_cells(width_in: int, options: RecurrentOptions, n_layers: int) -> nn.RNNBase:
    """Return one of torch's recurrent modules with `n_layers` layers."""
    if (options.cell, options.reset) not in LAYERS:
        raise ParameterError(
            f"`cell` and `reset` must be one of {', '.join(map(str, LAYERS))}, got "
            f"{format_value((options.cell, options.reset))}.",
            parameter="cell",
            value=options.cell,
        )
    keywords = {"nonlinearity": options.nonlinearity} if options.cell == "rnn" else {}
    return LAYERS[options.cell, options.reset](
        width_in,
        options.hidden_size,
        num_layers=n_layers,
        batch_first=True,
        bidirectional=options.bidirectional,
        dropout=options.dropout if n_layers > 1 else 0.0,  # torch warns if there is one layer only
        **keywords,
    )


def _run_cells(cells: nn.Module, inputs: Tensor, state: State | None) -> tuple[Tensor, State]:
    """Call one of torch's layers, with a tuple as state for every cell."""
    initial_state = state if state is None or len(state) > 1 else state[0]
    hidden, final_state = cells(inputs, initial_state)
    return hidden, final_state if isinstance(final_state, tuple) else (final_state,)


def _cell_step(
    options: RecurrentOptions, inputs: Tensor, state: State, weights: list[Tensor]
) -> State:
    """Compute the next state of one layer by torch's functional cell, whose first tensor is the output.

    For a single window this takes a fifth of the time of the module.
    """
    if options.cell == "lstm":
        return cast(State, torch.lstm_cell(inputs, state, *weights))
    if options.reset == "before":
        weight_ih, weight_hh, bias_ih, bias_hh = weights
        projected = F.linear(inputs, weight_ih, bias_ih)
        return (_reset_before_step(projected, state[0], weight_hh, bias_hh),)
    if options.cell == "gru":
        return (torch.gru_cell(inputs, state[0], *weights),)
    rnn_cell = torch.rnn_tanh_cell if options.nonlinearity == "tanh" else torch.rnn_relu_cell
    return (rnn_cell(inputs, state[0], *weights),)


class StatesDirect(DirectBody):
    """Base class of bodies that compute all steps from the outputs of an encoder of the window.

    Inputs of step h are the state (the encoder's output) one season before it (the last season is
    repeated), or `horizon` steps before it if no season fits into the window, the final state, its
    future covariates, and a bias per step.

    Parameters
    ----------
    sizes : InputSizes
    encoder : nn.Module
        Module with the attribute `output_size`, the width of a state.
    dropout : float
    season : int, optional
        Season length in time steps.
    decoder_layers : int, default 1
    decoder_size : int, default 64
        Width of the decoder layers.
    skip_hidden_sizes : sequence of int, optional
        Hidden layers of an MLP of the window itself, see `SkipMLP`; empty: a linear map; None: no skip
        connection.

    Notes
    -----
    On seasons of length 12 with random shapes plus a random walk, with 48 time steps and 18 steps
    ahead, an LSTM with this decoder reaches the error of the seasonal naive forecast (0.352) after 50
    batches. With the states `horizon` steps before, this takes 400 to 600 batches; with the final
    state alone the error is 0.457 after 2,000 batches.
    """

    def __init__(
        self,
        sizes: InputSizes,
        encoder: nn.Module,
        dropout: float,
        season: int | None = None,
        decoder_layers: int = 1,
        decoder_size: int = 64,
        skip_hidden_sizes: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.horizon = sizes.horizon
        self.lag = readout_lag(sizes, season)
        self.encoder = encoder
        state_size = cast(int, encoder.output_size)
        widths = [decoder_size] * decoder_layers + [sizes.out_features]
        self.step_projection = nn.Linear(state_size + sizes.future_features, widths[0])
        # Separate from `step_projection`, to be computed once per window instead of once per step.
        self.state_projection = nn.Linear(state_size, widths[0], bias=False)
        self.step_bias = nn.Parameter(torch.zeros(sizes.horizon, widths[0]))
        self.drop = Dropout(dropout)
        layers = [
            nn.Linear(in_features, out_features) for in_features, out_features in pairwise(widths)
        ]
        self.decoder = nn.Sequential(
            *[module for layer in layers for module in (nn.ReLU(), Dropout(dropout), layer)]
        )
        self.skip = (
            None
            if skip_hidden_sizes is None
            else SkipMLP(sizes, state_size, skip_hidden_sizes, dropout)
        )

    @abstractmethod
    def encode(
        self, features: Float[Tensor, "batch time past_features"]
    ) -> tuple[Float[Tensor, "batch time output_size"], Float[Tensor, "batch output_size"]]:
        """Return the states of all time steps and the final state."""

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        states, final_state = self.encode(inputs.past_features)
        step_inputs = torch.cat(
            [self.drop(lagged_states(states, self.lag, self.horizon)), inputs.future_features],
            dim=-1,
        )
        final_state = self.drop(final_state)
        raw = cast(
            Tensor,
            self.decoder(
                self.step_projection(step_inputs)
                + self.state_projection(final_state).unsqueeze(1)
                + self.step_bias
            ),
        )
        return raw if self.skip is None else raw + self.skip(inputs, final_state)


class RecurrentDirect(StatesDirect):
    """Recurrent layers over the window, and a decoder that computes all steps from their states.

    Parameters
    ----------
    sizes : InputSizes
    options : RecurrentOptions
    season, decoder_layers, decoder_size, skip_hidden_sizes
        See `StatesDirect`.
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
        encoder = Recurrent(sizes.past_features, options)
        super().__init__(
            sizes, encoder, options.dropout, season, decoder_layers, decoder_size, skip_hidden_sizes
        )
        self.options = options

    def encode(
        self, features: Float[Tensor, "batch time past_features"]
    ) -> tuple[Float[Tensor, "batch time output_size"], Float[Tensor, "batch output_size"]]:
        """Return the states of all time steps and the final state; that of the backward direction is
        the one at the first time step.
        """
        states, _ = self.encoder(features)
        if not self.options.bidirectional:
            return states, states[:, -1]
        half = self.options.hidden_size
        return states, torch.cat([states[:, -1, :half], states[:, 0, half:]], dim=-1)


class SkipMLP(nn.Module):
    """MLP of the window, the final state and the future covariates, added to the location features
    of each step.

    It is added to all features if none is a location. Without it all information about the window
    would be in the few dozen numbers of a state. Static covariates are not inputs: with few values
    per column it would overfit to them.
    """

    def __init__(
        self, sizes: InputSizes, state_size: int, hidden_sizes: Sequence[int], dropout: float
    ) -> None:
        super().__init__()
        location_slice = sizes.location_slice or slice(0, sizes.out_features)
        self.pad = (location_slice.start, sizes.out_features - location_slice.stop)
        self.shape = (sizes.horizon, location_slice.stop - location_slice.start)
        width_in = sizes.input_size + state_size + sizes.horizon * sizes.future
        self.mlp = MLP(width_in, hidden_sizes, self.shape[0] * self.shape[1], dropout)

    def forward(
        self, inputs: Inputs, final_state: Float[Tensor, "batch output_size"]
    ) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps, 0 except for the locations."""
        features = torch.cat([inputs.y, final_state, inputs.future.flatten(1)], dim=1)
        skip: Tensor = self.mlp(features).view(-1, *self.shape)
        return nn.functional.pad(skip, self.pad)


def readout_lag(sizes: InputSizes, season: int | None) -> int:
    """Return the lag, in time steps, of the state that is an input of a step of the horizon.

    It is a season if one fits into the window, otherwise the horizon, at most the window.

    Examples
    --------
    >>> sizes = InputSizes(input_size=48, horizon=18, out_features=1)
    >>> readout_lag(sizes, season=12), readout_lag(sizes, season=None)
    (12, 18)
    """
    if season and 1 < season <= sizes.input_size:
        return season
    return min(sizes.horizon, sizes.input_size)


def lagged_states(
    states: Float[Tensor, "batch time dim"], lag: int, horizon: int
) -> Float[Tensor, "batch horizon dim"]:
    """Return for each step of the horizon the state `lag`, or a multiple of it, time steps before.

    These are the last `lag` states, repeated.

    Examples
    --------
    >>> lagged_states(torch.arange(5.0).view(1, 5, 1), lag=2, horizon=5).flatten().tolist()
    [3.0, 4.0, 3.0, 4.0, 3.0]
    """
    recent = states[:, states.shape[1] - lag :]
    n_repeats = -(-horizon // lag)
    return recent[:, :horizon] if n_repeats == 1 else recent.repeat(1, n_repeats, 1)[:, :horizon]


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
        self,
        state: State,
        previous: Float[Tensor, "paths"],
        future: Float[Tensor, "paths future_features"],
        step_index: int,
    ) -> tuple[Float[Tensor, "paths out_features"], State]:
        """Return the raw output of the next step and the next state."""
        hidden, state = self.decoder.step(
            torch.cat([previous.unsqueeze(-1), future], dim=-1), state
        )
        return self.out(self.drop(hidden)), state

    def forward_teacher_forced(
        self, inputs: Inputs, previous: Float[Tensor, "batch steps"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute all steps given the values before them, in one call of the layers.

        The result equals that of single steps, except for batch normalisation in training, which
        uses the statistics of each call.
        """
        decoder_inputs = torch.cat(
            [previous.unsqueeze(-1), inputs.future_features[:, : previous.shape[1]]], dim=-1
        )
        hidden, _ = self.decoder(decoder_inputs, self.initial_state(inputs))
        return cast(Tensor, self.out(self.drop(hidden)))
