"""Encoder-decoder with a recurrent decoder and attention over the window.

Sutskever, Vinyals, Le (2014), arXiv:1409.3215, without attention; Bahdanau, Cho, Bengio (2015),
arXiv:1409.0473, and Luong, Pham, Manning (2015), arXiv:1508.04025, with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from deepforecast.nn.attention import Attention, AttentionOptions, self_attention, valid_steps
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import (
    AttentionBody,
    AttentionWeights,
    AutoregressiveBody,
    State,
    stack_steps,
)
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.encoders import ConvolutionalEncoder, RecurrentEncoder, time_encoding
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions


@dataclass(frozen=True)
class Seq2SeqOptions:
    """Options of `Seq2SeqBody`.

    Parameters
    ----------
    layers : RecurrentOptions
        Layers of the decoder and, without `kernel_size`, of the encoder.
    attention : AttentionOptions or None
        None: no attention.
    kernel_size : int, optional
        Kernel size of a convolutional encoder; None: a recurrent one.
    decoder : {"luong", "bahdanau"}, default "luong"
        "bahdanau": attention with the state before the recurrent step; "luong": after it.
    input_feeding : bool, default False
        Whether the attentional output of a step is an input of the next one (Luong et al. 2015,
        section 3.3); "luong" only.
    start_value : {"last", "learned"}, default "last"
        Input of the first step: the last observed value, or a learned number.
    positional_encoding : bool, default False
        Whether window and horizon get a sinusoidal time encoding.
    self_attention : bool, default False
        Whether the encoder outputs attend to each other first.
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
    """Encoder-decoder with optional attention.

    The state has keys, values and the mask of valid time steps, all three shared by the paths of a
    window; then the fed-back output if there is input feeding, and the state of the decoder layers.

    Parameters
    ----------
    sizes : InputSizes
    options : Seq2SeqOptions
    """

    shared_state: ClassVar[int] = 3
    over_time: ClassVar[bool] = True

    past_encoding: Tensor | None
    future_encoding: Tensor | None

    def __init__(self, sizes: InputSizes, options: Seq2SeqOptions) -> None:
        super().__init__()
        layers, window_length, width = options.layers, sizes.input_size, options.layers.hidden_size
        self.options = options
        past_encoding, future_encoding = (
            time_encoding(window_length, sizes.horizon)
            if options.positional_encoding
            else (None, None)
        )
        self.register_buffer("past_encoding", past_encoding, persistent=False)
        self.register_buffer("future_encoding", future_encoding, persistent=False)
        encoding_size = 0 if past_encoding is None else past_encoding.shape[-1]
        encoder = RecurrentEncoder if options.kernel_size is None else ConvolutionalEncoder
        self.encoder = encoder(
            sizes.past_features + encoding_size, layers, options.kernel_size or 0
        )
        decoder_width, self.attention, self.attends_first, self.skip = (
            1 + sizes.future_features + encoding_size,
            None,
            False,
            None,
        )
        self.combine: nn.Module | None = None
        if options.attention is not None:
            self.attention = Attention(options.attention, width, layers.output_size, window_length)
            self.attends_first = options.decoder == "bahdanau"
            self.skip = nn.Linear(
                sizes.past_features + encoding_size, layers.output_size, bias=False
            )
            self.combine = nn.Linear(width + layers.output_size, width)
            decoder_width += (
                layers.output_size if self.attends_first else width if options.input_feeding else 0
            )
        self.decoder = Recurrent(decoder_width, replace(layers, bidirectional=False))
        self.start_token = (
            nn.Parameter(torch.zeros(())) if options.start_value == "learned" else None
        )
        self.drop, self.out = Dropout(layers.dropout), nn.Linear(width, sizes.out_features)

    def initial_state(self, inputs: Inputs) -> State:
        """Encode the window and return the decoder's state at the cutoff."""
        return self._encode(inputs)[0]

    def step(
        self, state: State, previous: Tensor, future: Tensor, number: int
    ) -> tuple[Tensor, State]:
        """Return what the head reads of the next step, (batch * N, out_features), and the next
        state.
        """
        readout, _, state = self._step(state, previous, future, number)
        return self.out(self.drop(readout)), state

    def forward_teacher_forced(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """Compute all steps given the values before them; in one pass unless a step depends on the
        attention of the one before.
        """
        readouts, _ = self._decode_teacher_forced(self.initial_state(inputs), inputs, previous)
        return cast(Tensor, self.out(self.drop(readouts)))

    def attention_maps(self, inputs: Inputs, previous: Tensor) -> list[AttentionWeights]:
        """Return the attention from the horizon to the window, and that within the window if there
        is self-attention.
        """
        state, self_weights = self._encode(inputs)
        past_steps = torch.arange(1 - inputs.y.shape[1], 1, device=previous.device)
        attention_maps = (
            []
            if self_weights is None
            else [AttentionWeights("self", 0, self_weights.unsqueeze(1), past_steps, past_steps)]
        )
        if self.attention is not None:
            _, weights = self._decode_teacher_forced(state, inputs, previous)
            steps = torch.arange(1, previous.shape[1] + 1, device=previous.device)
            attention_maps.append(
                AttentionWeights("cross", 0, weights.unsqueeze(1), steps, past_steps)
            )
        return attention_maps

    def _encode(self, inputs: Inputs) -> tuple[State, Tensor | None]:
        """Return the state at the cutoff and the self-attention weights (batch, steps, steps) or
        None.
        """
        features, self_weights = inputs.past_features, None
        if self.past_encoding is not None:
            features = torch.cat(
                [features, self.past_encoding.expand(len(features), -1, -1)], dim=-1
            )
        encoded, state = self.encoder(features)
        if self.attention is None or self.skip is None:
            empty = features[:, :0]
            return (empty, empty, empty, *state), None
        valid = valid_steps(inputs.observed)
        encoded = encoded + self.skip(features)
        if self.options.self_attention:
            encoded, self_weights = self_attention(encoded, valid)
        keys, values = self.attention.keys_and_values(self.drop(encoded))
        fed_context = (
            (encoded.new_zeros(len(features), self.decoder.output_size),)
            if self._feeds_input
            else ()
        )
        return (keys, values, valid, *fed_context, *state), self_weights

    @property
    def _feeds_input(self) -> bool:
        return self.attention is not None and self.options.input_feeding and not self.attends_first

    def _step(
        self, state: State, previous: Tensor, future: Tensor, number: int
    ) -> tuple[Tensor, Tensor, State]:
        """Return output (batch * N, hidden_size), attention weights (batch, N, steps) and the next
        state.
        """
        memory, decoder_state, context = (
            state[: self.shared_state],
            state[self.shared_state :],
            None,
        )
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
        return (
            readout,
            weights,
            (*memory, *((readout,) if self._feeds_input else ()), *decoder_state),
        )

    def _attend(self, hidden: Tensor, memory: State) -> tuple[Tensor, Tensor]:
        """Return context (batch * N, dim) and weights (batch, N, steps) for hidden states (batch *
        N, hidden_size).
        """
        queries = hidden.view(memory[0].shape[0], -1, hidden.shape[-1])
        context, weights = cast(Attention, self.attention)(queries, *memory)
        return context.flatten(0, 1), weights

    def _combine(self, hidden: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(cast(nn.Module, self.combine)(torch.cat([hidden, context], dim=-1)))

    def _decode_teacher_forced(
        self, state: State, inputs: Inputs, previous: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs (batch, horizon, hidden_size) and attention weights (batch, horizon,
        steps) of all steps.
        """
        future = inputs.future_features[:, : previous.shape[1]]
        if not (self.attends_first or self._feeds_input):
            return self._decode_parallel(state, future, previous)
        readouts, weight_steps = [], []
        for step in range(previous.shape[1]):
            readout, weights, state = self._step(state, previous[:, step], future[:, step], step)
            readouts.append(readout)
            weight_steps.append(weights)
        return stack_steps(readouts), torch.cat(weight_steps, dim=1)

    def _decode_parallel(
        self, state: State, future: Tensor, previous: Tensor
    ) -> tuple[Tensor, Tensor]:
        if self.start_token is not None:
            previous = torch.cat(
                [self.start_token.expand(len(previous), 1), previous[:, 1:]], dim=1
            )
        decoder_inputs = [previous.unsqueeze(-1), future]
        if self.future_encoding is not None:
            decoder_inputs.append(
                self.future_encoding[: previous.shape[1]].expand(len(previous), -1, -1)
            )
        hidden, _ = self.decoder(torch.cat(decoder_inputs, dim=-1), state[self.shared_state :])
        if self.attention is None:
            return hidden, previous
        context, weights = self.attention(hidden, *state[: self.shared_state])
        return self._combine(hidden, context), weights
