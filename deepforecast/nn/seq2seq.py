"""An encoder reads the window, a recurrent decoder takes the steps ahead in turn and looks back at what was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from deepforecast.nn.attention import Attention, AttentionOptions, self_attention, told
from deepforecast.nn.batch import Inputs, Sizes
from deepforecast.nn.body import Attended, Attending, State, Stepwise, stacked
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.encoding import ConvolutionalEncoder, RecurrentEncoder, waves
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions


@dataclass(frozen=True)
class Seq2SeqOptions:
    """What it is made of.

    `layers` are the decoder's and, without a `kernel_size`, the encoder's. `order`: a "bahdanau" decoder looks back with the
    state it has and then takes its step, a "luong" one takes the step first; `feeding`: what it made of one look enters the
    next step. `start`: the value before the first step is the "last" one seen, or "learned". `positions`: rows and steps are
    told where they stand. `self_attention`: rows that were read look at each other before anyone looks at them.
    """

    layers: RecurrentOptions
    attention: AttentionOptions | None
    kernel_size: int | None = None
    order: str = "luong"
    feeding: bool = False
    start: str = "last"
    positions: bool = False
    self_attention: bool = False


class Seq2SeqBody(Stepwise, Attending):
    """Sutskever, Vinyals, Le 2014 without attention; Bahdanau, Cho, Bengio 2015 and Luong, Pham, Manning 2015 with it.

    The state is keys, values and which rows are valid, all three the window's; then what is fed, if anything is, and the state
    of the decoder's layers.
    """

    shared: ClassVar[int] = 3
    over_time: ClassVar[bool] = True

    where: Tensor | None
    when: Tensor | None

    def __init__(self, sizes: Sizes, options: Seq2SeqOptions) -> None:
        super().__init__()
        layers, rows, width = options.layers, sizes.input_size, options.layers.hidden_size
        self.options = options
        behind, ahead = waves(rows, sizes.horizon) if options.positions else (None, None)
        self.register_buffer("where", behind, persistent=False)
        self.register_buffer("when", ahead, persistent=False)
        more = 0 if behind is None else behind.shape[-1]
        encoder = RecurrentEncoder if options.kernel_size is None else ConvolutionalEncoder
        self.encoder = encoder(sizes.rows + more, layers, options.kernel_size or 0)
        entering, self.attention, self.early, self.skip = 1 + sizes.ahead + more, None, False, None
        self.combine: nn.Module | None = None
        if options.attention is not None:
            self.attention = Attention(options.attention, width, layers.width, rows)
            self.early = options.order == "bahdanau"
            self.skip = nn.Linear(sizes.rows + more, layers.width, bias=False)
            self.combine = nn.Linear(width + layers.width, width)
            entering += layers.width if self.early else width if options.feeding else 0
        self.decoder = Recurrent(entering, replace(layers, bidirectional=False))
        self.token = nn.Parameter(torch.zeros(())) if options.start == "learned" else None
        self.drop, self.out = Dropout(layers.dropout), nn.Linear(width, sizes.width)

    # -- step by step ----------------------------------------------------------------------------------------------------------

    def start(self, inputs: Inputs) -> State:
        """The window read, and the decoder's state at the cutoff."""
        return self._read(inputs)[0]

    def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        """What the head reads of the next step, (B * N, width), and the state after it."""
        read, _, state = self._step(state, previous, ahead, number)
        return self.out(self.drop(read)), state

    def teach(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """All steps with the values before them given: in one pass where no step waits for what the one before looked at."""
        read, _ = self._taught(self.start(inputs), inputs, previous)
        return cast(Tensor, self.out(self.drop(read)))

    def attended(self, inputs: Inputs, previous: Tensor) -> list[Attended]:
        """How the steps looked at the rows and, where they do, the rows at each other."""
        state, among = self._read(inputs)
        rows = torch.arange(1 - inputs.y.shape[1], 1, device=previous.device)
        found = [] if among is None else [Attended("self", 0, among.unsqueeze(1), rows, rows)]
        if self.attention is not None:
            _, weights = self._taught(state, inputs, previous)
            steps = torch.arange(1, previous.shape[1] + 1, device=previous.device)
            found.append(Attended("cross", 0, weights.unsqueeze(1), steps, rows))
        return found

    # -- how -------------------------------------------------------------------------------------------------------------------

    def _read(self, inputs: Inputs) -> tuple[State, Tensor | None]:
        """The state at the cutoff, and how the rows looked at each other."""
        rows, among = inputs.rows, None
        if self.where is not None:
            rows = torch.cat([rows, self.where.expand(len(rows), -1, -1)], dim=-1)
        encoded, state = self.encoder(rows)
        if self.attention is None or self.skip is None:
            nothing = rows[:, :0]
            return (nothing, nothing, nothing, *state), None
        valid = told(inputs.seen)
        encoded = encoded + self.skip(rows)
        if self.options.self_attention:
            encoded, among = self_attention(encoded, valid)
        keys, values = self.attention.memory(self.drop(encoded))
        fed = (encoded.new_zeros(len(rows), self.decoder.width),) if self._feeds else ()
        return (keys, values, valid, *fed, *state), among

    @property
    def _feeds(self) -> bool:
        return self.attention is not None and self.options.feeding and not self.early

    def _step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, Tensor, State]:
        """What is read of a step, (B * N, D), how it looked, (B, N, L), and the state after it."""
        memory, own, context = state[: self.shared], state[self.shared :], None
        if self.token is not None and number == 0:
            previous = self.token.expand_as(previous)
        entering = [previous.unsqueeze(-1), ahead]
        if self.when is not None:
            entering.append(self.when[number].expand(len(previous), -1))
        weights = previous
        if self.early:
            context, weights = self._look(own[self.options.layers.n_layers - 1], memory)
            entering.append(context)
        elif self._feeds:
            entering.append(own[0])
            own = own[1:]
        out, own = self.decoder.step(torch.cat(entering, dim=-1), own)
        if self.attention is None:
            return out, weights, (*memory, *own)
        if context is None:
            context, weights = self._look(out, memory)
        read = self._combined(out, context)
        return read, weights, (*memory, *((read,) if self._feeds else ()), *own)

    def _look(self, asking: Tensor, memory: State) -> tuple[Tensor, Tensor]:
        """Context (B * N, V) and weights (B, N, L) of states (B * N, D)."""
        queries = asking.view(memory[0].shape[0], -1, asking.shape[-1])
        context, weights = cast(Attention, self.attention)(queries, *memory)
        return context.flatten(0, 1), weights

    def _combined(self, out: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(cast(nn.Module, self.combine)(torch.cat([out, context], dim=-1)))

    def _taught(self, state: State, inputs: Inputs, previous: Tensor) -> tuple[Tensor, Tensor]:
        """What is read of all steps, (B, horizon, D), and how they looked, (B, horizon, L)."""
        ahead = inputs.ahead[:, : previous.shape[1]]
        if not (self.early or self._feeds):
            return self._at_once(state, ahead, previous)
        read, looked = [], []
        for step in range(previous.shape[1]):
            one, weights, state = self._step(state, previous[:, step], ahead[:, step], step)
            read.append(one)
            looked.append(weights)
        return stacked(read), torch.cat(looked, dim=1)

    def _at_once(self, state: State, ahead: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        if self.token is not None:
            previous = torch.cat([self.token.expand(len(previous), 1), previous[:, 1:]], dim=1)
        entering = [previous.unsqueeze(-1), ahead]
        if self.when is not None:
            entering.append(self.when[: previous.shape[1]].expand(len(previous), -1, -1))
        out, _ = self.decoder(torch.cat(entering, dim=-1), state[self.shared :])
        if self.attention is None:
            return out, previous
        context, weights = self.attention(out, *state[: self.shared])
        return self._combined(out, context), weights
