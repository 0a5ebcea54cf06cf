"""An encoder reads the window, a recurrent decoder takes the steps ahead in turn and looks back at what was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from deepforecast.nn.attention import Attention, AttentionOptions, self_attention, valid_steps
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import AttentionBody, AttentionWeights, AutoregressiveBody, State, stack_steps
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.encoders import ConvolutionalEncoder, RecurrentEncoder, time_encoding
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions


@dataclass(frozen=True)
class Seq2SeqOptions:
    """What it is made of.

    `layers` are the decoder's and, without a `kernel_size`, the encoder's. `decoder`: a "bahdanau" decoder looks back with the
    state it has and then takes its step, a "luong" one takes the step first; `input_feeding`: what it made of one look enters the
    next step. `start_value`: the value before the first step is the "last" one seen, or "learned". `positional_encoding`: rows and steps are
    told where they stand. `self_attention`: rows that were read look at each other before anyone looks at them.
    """

    layers: RecurrentOptions
    attention: AttentionOptions | None
    kernel_size: int | None = None
    decoder: str = "luong"
    input_feeding: bool = False
    start_value: str = "last"
    positional_encoding: bool = False
    self_attention: bool = False


class Seq2SeqBody(AutoregressiveBody, AttentionBody):
    """Sutskever, Vinyals, Le 2014 without attention; Bahdanau, Cho, Bengio 2015 and Luong, Pham, Manning 2015 with it.

    The state is keys, values and which rows are valid, all three the window's; then what is fed, if anything is, and the state
    of the decoder's layers.
    """

    shared_state: ClassVar[int] = 3
    over_time: ClassVar[bool] = True

    past_encoding: Tensor | None
    future_encoding: Tensor | None

    def __init__(self, sizes: InputSizes, options: Seq2SeqOptions) -> None:
        super().__init__()
        layers, window_length, width = options.layers, sizes.input_size, options.layers.hidden_size
        self.options = options
        past_encoding, future_encoding = time_encoding(window_length, sizes.horizon) if options.positional_encoding else (None, None)
        self.register_buffer("past_encoding", past_encoding, persistent=False)
        self.register_buffer("future_encoding", future_encoding, persistent=False)
        encoding_size = 0 if past_encoding is None else past_encoding.shape[-1]
        encoder = RecurrentEncoder if options.kernel_size is None else ConvolutionalEncoder
        self.encoder = encoder(sizes.past_features + encoding_size, layers, options.kernel_size or 0)
        decoder_width, self.attention, self.attends_first, self.skip = 1 + sizes.future_features + encoding_size, None, False, None
        self.combine: nn.Module | None = None
        if options.attention is not None:
            self.attention = Attention(options.attention, width, layers.output_size, window_length)
            self.attends_first = options.decoder == "bahdanau"
            self.skip = nn.Linear(sizes.past_features + encoding_size, layers.output_size, bias=False)
            self.combine = nn.Linear(width + layers.output_size, width)
            decoder_width += layers.output_size if self.attends_first else width if options.input_feeding else 0
        self.decoder = Recurrent(decoder_width, replace(layers, bidirectional=False))
        self.start_token = nn.Parameter(torch.zeros(())) if options.start_value == "learned" else None
        self.drop, self.out = Dropout(layers.dropout), nn.Linear(width, sizes.out_features)

    # -- step by step ----------------------------------------------------------------------------------------------------------

    def initial_state(self, inputs: Inputs) -> State:
        """The window read, and the decoder's state at the cutoff."""
        return self._encode(inputs)[0]

    def step(self, state: State, previous: Tensor, future: Tensor, number: int) -> tuple[Tensor, State]:
        """What the head reads of the next step, (B * N, width), and the state after it."""
        readout, _, state = self._step(state, previous, future, number)
        return self.out(self.drop(readout)), state

    def forward_teacher_forced(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """All steps with the values before them given: in one pass where no step waits for what the one before looked at."""
        readouts, _ = self._decode_teacher_forced(self.initial_state(inputs), inputs, previous)
        return cast(Tensor, self.out(self.drop(readouts)))

    def attention_maps(self, inputs: Inputs, previous: Tensor) -> list[AttentionWeights]:
        """How the steps looked at the rows and, where they do, the rows at each other."""
        state, self_weights = self._encode(inputs)
        past_steps = torch.arange(1 - inputs.y.shape[1], 1, device=previous.device)
        attention_maps = [] if self_weights is None else [AttentionWeights("self", 0, self_weights.unsqueeze(1), past_steps, past_steps)]
        if self.attention is not None:
            _, weights = self._decode_teacher_forced(state, inputs, previous)
            steps = torch.arange(1, previous.shape[1] + 1, device=previous.device)
            attention_maps.append(AttentionWeights("cross", 0, weights.unsqueeze(1), steps, past_steps))
        return attention_maps

    # -- how -------------------------------------------------------------------------------------------------------------------

    def _encode(self, inputs: Inputs) -> tuple[State, Tensor | None]:
        """The state at the cutoff, and how the rows looked at each other."""
        features, self_weights = inputs.past_features, None
        if self.past_encoding is not None:
            features = torch.cat([features, self.past_encoding.expand(len(features), -1, -1)], dim=-1)
        encoded, state = self.encoder(features)
        if self.attention is None or self.skip is None:
            empty = features[:, :0]
            return (empty, empty, empty, *state), None
        valid = valid_steps(inputs.observed)
        encoded = encoded + self.skip(features)
        if self.options.self_attention:
            encoded, self_weights = self_attention(encoded, valid)
        keys, values = self.attention.keys_and_values(self.drop(encoded))
        fed_context = (encoded.new_zeros(len(features), self.decoder.output_size),) if self._feeds_input else ()
        return (keys, values, valid, *fed_context, *state), self_weights

    @property
    def _feeds_input(self) -> bool:
        return self.attention is not None and self.options.input_feeding and not self.attends_first

    def _step(self, state: State, previous: Tensor, future: Tensor, number: int) -> tuple[Tensor, Tensor, State]:
        """What is read of a step, (B * N, D), how it looked, (B, N, L), and the state after it."""
        memory, decoder_state, context = state[: self.shared_state], state[self.shared_state :], None
        if self.start_token is not None and number == 0:
            previous = self.start_token.expand_as(previous)
        decoder_inputs = [previous.unsqueeze(-1), future]
        if self.future_encoding is not None:
            decoder_inputs.append(self.future_encoding[number].expand(len(previous), -1))
        weights = previous
        if self.attends_first:
            context, weights = self._attend(decoder_state[self.options.layers.n_layers - 1], memory)
            decoder_inputs.append(context)
        elif self._feeds_input:
            decoder_inputs.append(decoder_state[0])
            decoder_state = decoder_state[1:]
        hidden, decoder_state = self.decoder.step(torch.cat(decoder_inputs, dim=-1), decoder_state)
        if self.attention is None:
            return hidden, weights, (*memory, *decoder_state)
        if context is None:
            context, weights = self._attend(hidden, memory)
        readout = self._combine(hidden, context)
        return readout, weights, (*memory, *((readout,) if self._feeds_input else ()), *decoder_state)

    def _attend(self, hidden: Tensor, memory: State) -> tuple[Tensor, Tensor]:
        """Context (B * N, V) and weights (B, N, L) of states (B * N, D)."""
        queries = hidden.view(memory[0].shape[0], -1, hidden.shape[-1])
        context, weights = cast(Attention, self.attention)(queries, *memory)
        return context.flatten(0, 1), weights

    def _combine(self, hidden: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(cast(nn.Module, self.combine)(torch.cat([hidden, context], dim=-1)))

    def _decode_teacher_forced(self, state: State, inputs: Inputs, previous: Tensor) -> tuple[Tensor, Tensor]:
        """What is read of all steps, (B, horizon, D), and how they looked, (B, horizon, L)."""
        future = inputs.future_features[:, : previous.shape[1]]
        if not (self.attends_first or self._feeds_input):
            return self._decode_parallel(state, future, previous)
        readouts, weight_steps = [], []
        for step in range(previous.shape[1]):
            readout, weights, state = self._step(state, previous[:, step], future[:, step], step)
            readouts.append(readout)
            weight_steps.append(weights)
        return stack_steps(readouts), torch.cat(weight_steps, dim=1)

    def _decode_parallel(self, state: State, future: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        if self.start_token is not None:
            previous = torch.cat([self.start_token.expand(len(previous), 1), previous[:, 1:]], dim=1)
        decoder_inputs = [previous.unsqueeze(-1), future]
        if self.future_encoding is not None:
            decoder_inputs.append(self.future_encoding[: previous.shape[1]].expand(len(previous), -1, -1))
        hidden, _ = self.decoder(torch.cat(decoder_inputs, dim=-1), state[self.shared_state :])
        if self.attention is None:
            return hidden, previous
        context, weights = self.attention(hidden, *state[: self.shared_state])
        return self._combine(hidden, context), weights
