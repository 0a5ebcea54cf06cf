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

from deepforecast.errors import ParameterError, shown
from deepforecast.nn.body import State
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.normalization import normalization

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
"""Kinds of cell, each as torch has it. Its GRU multiplies by the reset gate after the matrix: tanh(XW + R * (HW + b))."""

FUSED_FROM = 6_000
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
    def width(self) -> int:
        """How many numbers come out for each row."""
        return self.hidden_size * (2 if self.bidirectional else 1)


class Recurrent(nn.Module):
    """Recurrent layers: rows (B, L, D) -> what comes out of the last one (B, L, width), and the state after the last row.

    The state is flat: the hidden vectors (B, hidden_size) of all layers (forward, then backward, where both), then, of an LSTM,
    their memories in the same order. `read`: whether what comes out of the last layer is of use, or only the state is.
    """

    def __init__(self, width_in: int, options: RecurrentOptions, read: bool = True) -> None:
        super().__init__()
        self.options, self.width = options, options.width
        # All layers are one call (on a GPU, one of cuDNN) wherever nothing has to come between them.
        self.stacked = options.normalization is None and not (options.residual and options.n_layers > 1)
        widths = [width_in] if self.stacked else [width_in, *[self.width] * (options.n_layers - 1)]
        self.cells = nn.ModuleList([_cells(width, options, options.n_layers if self.stacked else 1) for width in widths])
        names = [options.normalization] * (options.n_layers - 1) + [options.normalization if read else None]
        self.norms = nn.ModuleList([normalization(name, self.width) for name in names])
        self.drop = Dropout(options.dropout)

    def forward(self, rows: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """A whole sequence, from zeros or from a state."""
        before = None if state is None else self._joined(state)
        if self.stacked:
            out, after = _run(self.cells[0], rows, before)
            return out, _flat(after)
        each = len(self.norms)
        parts = None if before is None else list(zip(*(one.chunk(each) for one in before), strict=True))
        found: list[State] = []

        def run(layer: int, entering: Tensor) -> Tensor:
            out, after = _run(self.cells[layer], entering, None if parts is None else parts[layer])
            found.append(after)
            return out

        out = self._through(rows, run)
        return out, _flat(tuple(torch.cat(kind) for kind in zip(*found, strict=True)))

    def step(self, row: Tensor, state: State) -> tuple[Tensor, State]:
        """One row (B, D) after a state: what comes out (B, width), and the state after it. One direction only."""
        if self.options.bidirectional:
            raise ParameterError("A layer that reads in both directions cannot go step by step: set bidirectional=False.")
        if self._fused(row):
            out, after = self(row.unsqueeze(1), state)
            return out.squeeze(1), after
        each = len(self.norms)
        found: list[State] = []

        def run(layer: int, entering: Tensor) -> Tensor:
            found.append(_cell_step(self.options, entering, state[layer::each], self._weights(layer)))
            return found[-1][0]

        out = self._through(row, run)
        return out, tuple(one for kind in zip(*found, strict=True) for one in kind)

    def _through(self, rows: Tensor, run: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Layer after layer, with what comes between them. Normalised is what enters a layer, not what is passed round it."""
        out = run(0, rows)
        for layer in range(1, len(self.norms)):
            fresh = run(layer, self.drop(self.norms[layer - 1](out)))
            out = out + fresh if self.options.residual else fresh
        return cast(Tensor, self.norms[-1](out))

    def _joined(self, state: State) -> State:
        """The state as torch's layers take it: (layers * directions, B, hidden_size), one or two of them."""
        kinds = 2 if self.options.cell == "lstm" else 1
        each = len(state) // kinds
        return tuple(torch.stack(state[kind * each : (kind + 1) * each]) for kind in range(kinds))

    def _weights(self, layer: int) -> list[Tensor]:
        """Of one layer (of a single direction): from what comes in, from the state, and the bias of each."""
        cells = cast(nn.RNNBase, self.cells[0 if self.stacked else layer])
        return cast(list[Tensor], cells.all_weights[layer if self.stacked else 0])

    def _fused(self, row: Tensor) -> bool:
        # Not while tracing: the size of the batch would become part of what is traced.
        many = self.options.cell == "lstm" and row.device.type == "cpu" and not torch.compiler.is_compiling()
        return many and row.shape[0] * self.options.hidden_size >= FUSED_FROM


def _cells(width_in: int, options: RecurrentOptions, n_layers: int) -> nn.RNNBase:
    if options.cell not in CELLS:
        raise ParameterError(f"cell is one of {', '.join(map(repr, CELLS))}, got {shown(options.cell)}.")
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


def _run(cells: nn.Module, rows: Tensor, before: State | None) -> tuple[Tensor, State]:
    """A call of one of torch's layers, whose state is a tuple for an LSTM and a tensor else: here always a tuple."""
    given = before if before is None or len(before) > 1 else before[0]
    out, after = cells(rows, given)
    return out, after if isinstance(after, tuple) else (after,)


def _flat(state: State) -> State:
    return tuple(one for kind in state for one in kind.unbind(0))


def _cell_step(options: RecurrentOptions, row: Tensor, state: State, weights: list[Tensor]) -> State:
    """One step of one layer, without the layer around it: a fifth of its time for a single window. (h,) or (h, c)."""
    if options.cell == "lstm":
        return cast(State, torch.lstm_cell(row, state, *weights))
    if options.cell == "gru":
        return (torch.gru_cell(row, state[0], *weights),)
    plain = torch.rnn_tanh_cell if options.nonlinearity == "tanh" else torch.rnn_relu_cell
    return (plain(row, state[0], *weights),)
