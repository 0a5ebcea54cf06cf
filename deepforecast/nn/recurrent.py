"""Recurrent layers over the rows of a window: torch's own cells (cuDNN on a GPU), stacked, both ways, residual, normalised.

Windows are padded on the left, so nothing is packed: every window's last row is the cutoff, where its state is read, and the
rows of the padding say of themselves that nothing was `seen`, which the cells learn to pass over. (Packing needs lengths on
the CPU in each step and rules out tracing; it is made for padding on the right.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.body import State
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.normalization import normalization

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
"""Kinds of cell, each as torch has it. Its GRU multiplies by the reset gate after the matrix: tanh(XW + R * (HW + b))."""

MIN_FUSED_SIZE = 6_000
"""Numbers in a state from which, on a CPU, a step of an LSTM costs less as a sequence of one row (fused) than as a cell.

Measured with hidden sizes of 16, 64 and 128: a single window 28, 29, 32 us as a cell and 78, 81, 102 fused, but 256 windows 84,
210, 569 us as a cell and 91, 148, 281 fused.
"""


@dataclass(frozen=True)
class RecurrentOptions:
    """What the recurrent layers are.

    `dropout` acts on what a layer hands up to the next or to a decoder, never on the states passed on in time. `residual` adds
    what went into a layer to what comes out, from the second on (what goes into the first has another width). The
    normalisation acts on what comes out of each.
    """

    cell: str = "lstm"
    hidden_size: int = 64
    n_layers: int = 1
    bidirectional: bool = False
    dropout: float = 0.0
    residual: bool = False
    normalization: str | None = None
    nonlinearity: str = "tanh"  # or "relu"; of the plain cell "rnn" only

    @property
    def output_size(self) -> int:
        """How many numbers come out for each row."""
        return self.hidden_size * (2 if self.bidirectional else 1)


class Recurrent(nn.Module):
    """Recurrent layers: rows (B, L, D) -> what comes out of the last one (B, L, width), and the state after the last row.

    The state is flat: the hidden vectors (B, hidden_size) of all layers (forward, then backward, where both), then, of an LSTM,
    their memories in the same order. `read`: whether what comes out of the last layer is of use, or only the state is.
    """

    def __init__(self, width_in: int, options: RecurrentOptions, uses_output: bool = True) -> None:
        super().__init__()
        self.options, self.output_size = options, options.output_size
        # All layers are one call (on a GPU, one of cuDNN) wherever nothing has to come between them.
        self.stacked = options.normalization is None and not (options.residual and options.n_layers > 1)
        widths = [width_in] if self.stacked else [width_in, *[self.output_size] * (options.n_layers - 1)]
        self.cells = nn.ModuleList([_make_cells(width, options, options.n_layers if self.stacked else 1) for width in widths])
        names = [options.normalization] * (options.n_layers - 1) + [options.normalization if uses_output else None]
        self.norms = nn.ModuleList([normalization(name, self.output_size) for name in names])
        self.drop = Dropout(options.dropout)

    def forward(self, inputs: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """A whole sequence, from zeros or from a state."""
        packed_state = None if state is None else self._pack_state(state)
        if self.stacked:
            hidden, final_state = _run_cells(self.cells[0], inputs, packed_state)
            return hidden, _unpack_state(final_state)
        n_layers = len(self.norms)
        layer_states = None if packed_state is None else list(zip(*(tensor.chunk(n_layers) for tensor in packed_state), strict=True))
        final_states: list[State] = []

        def run(layer: int, layer_inputs: Tensor) -> Tensor:
            hidden, final_state = _run_cells(self.cells[layer], layer_inputs, None if layer_states is None else layer_states[layer])
            final_states.append(final_state)
            return hidden

        hidden = self._apply_layers(inputs, run)
        return hidden, _unpack_state(tuple(torch.cat(tensors) for tensors in zip(*final_states, strict=True)))

    def step(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """One row (B, D) after a state: what comes out (B, width), and the state after it. One direction only."""
        if self.options.bidirectional:
            raise ParameterError("A layer that reads in both directions cannot go step by step: set bidirectional=False.")
        if self._uses_fused_kernel(inputs):
            hidden, final_state = self(inputs.unsqueeze(1), state)
            return hidden.squeeze(1), final_state
        n_layers = len(self.norms)
        layer_states: list[State] = []

        def run(layer: int, layer_inputs: Tensor) -> Tensor:
            layer_states.append(_cell_step(self.options, layer_inputs, state[layer::n_layers], self._weights(layer)))
            return layer_states[-1][0]

        hidden = self._apply_layers(inputs, run)
        return hidden, tuple(tensor for tensors in zip(*layer_states, strict=True) for tensor in tensors)

    def _apply_layers(self, inputs: Tensor, run: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Layer after layer, with what comes between them. Normalised is what enters a layer, not what is passed round it."""
        hidden = run(0, inputs)
        for layer in range(1, len(self.norms)):
            layer_hidden = run(layer, self.drop(self.norms[layer - 1](hidden)))
            hidden = hidden + layer_hidden if self.options.residual else layer_hidden
        return cast(Tensor, self.norms[-1](hidden))

    def _pack_state(self, state: State) -> State:
        """The state as torch's layers take it: (layers * directions, B, hidden_size), one or two of them."""
        n_kinds = 2 if self.options.cell == "lstm" else 1
        n_layers = len(state) // n_kinds
        return tuple(torch.stack(state[index * n_layers : (index + 1) * n_layers]) for index in range(n_kinds))

    def _weights(self, layer: int) -> list[Tensor]:
        """Of one layer (of a single direction): from what comes in, from the state, and the bias of each."""
        cells = cast(nn.RNNBase, self.cells[0 if self.stacked else layer])
        return cast(list[Tensor], cells.all_weights[layer if self.stacked else 0])

    def _uses_fused_kernel(self, inputs: Tensor) -> bool:
        # Not while tracing: the size of the batch would become part of what is traced.
        is_lstm_on_cpu = self.options.cell == "lstm" and inputs.device.type == "cpu" and not torch.compiler.is_compiling()
        return is_lstm_on_cpu and inputs.shape[0] * self.options.hidden_size >= MIN_FUSED_SIZE


def _make_cells(width_in: int, options: RecurrentOptions, n_layers: int) -> nn.RNNBase:
    if options.cell not in CELLS:
        raise ParameterError(f"cell is one of {', '.join(map(repr, CELLS))}, got {format_value(options.cell)}.")
    more = {"nonlinearity": options.nonlinearity} if options.cell == "rnn" else {}
    return CELLS[options.cell](
        width_in,
        options.hidden_size,
        num_layers=n_layers,
        batch_first=True,
        bidirectional=options.bidirectional,
        dropout=options.dropout if n_layers > 1 else 0.0,  # torch drops between layers and warns where there is no between
        **more,
    )


def _run_cells(cells: nn.Module, inputs: Tensor, state: State | None) -> tuple[Tensor, State]:
    """A call of one of torch's layers, whose state is a tuple for an LSTM and a tensor else: here always a tuple."""
    initial_state = state if state is None or len(state) > 1 else state[0]
    hidden, final_state = cells(inputs, initial_state)
    return hidden, final_state if isinstance(final_state, tuple) else (final_state,)


def _unpack_state(state: State) -> State:
    return tuple(tensor for tensors in state for tensor in tensors.unbind(0))


def _cell_step(options: RecurrentOptions, inputs: Tensor, state: State, weights: list[Tensor]) -> State:
    """One step of one layer, without the layer around it: a fifth of its time for a single window. (h,) or (h, c)."""
    if options.cell == "lstm":
        return cast(State, torch.lstm_cell(inputs, state, *weights))
    if options.cell == "gru":
        return (torch.gru_cell(inputs, state[0], *weights),)
    plain = torch.rnn_tanh_cell if options.nonlinearity == "tanh" else torch.rnn_relu_cell
    return (plain(inputs, state[0], *weights),)
