"""Encoder-decoder: recurrent or convolutional encoders, a recurrent decoder with attention over the window.

Sutskever, Vinyals, Le (2014), arXiv:1409.3215, without attention; Bahdanau, Cho, Bengio (2015),
arXiv:1409.0473, and Luong, Pham, Manning (2015), arXiv:1508.04025, with it. An encoder has an output
per time step and the initial state of the decoder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.nn.attention import Attention, AttentionOptions, self_attention, valid_steps
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.layers import Dropout
from deepforecast.nn.network import AttentionBody, AttentionWeights, AutoregressiveBody, State, stack_steps
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions

if TYPE_CHECKING:
    from jaxtyping import Float

N_WAVELENGTHS = 8
"""Number of wavelengths of the time encoding."""


@dataclass(frozen=True)
class ConvolutionalOptions:
    """Sizes of the layers; layer l has kernels of `kernel_size` time steps with dilation 2^l."""

    hidden_size: int = 64
    n_layers: int = 1
    kernel_size: int = 3
    dropout: float = 0.0


class Convolutional(nn.Module):
    """Residual gated convolutions (GLU), (batch, steps, width_in) -> (batch, steps, hidden_size).

    Layer l has dilation 2^l. As all steps lie in the past, kernels are centred on their step, with
    zero padding at both ends of the window.

    References
    ----------
    Gehring, Auli, Grangier, Yarats, Dauphin (2017), "Convolutional Sequence to Sequence Learning",
    arXiv:1705.03122.
    """

    def __init__(self, width_in: int, options: ConvolutionalOptions) -> None:
        super().__init__()
        self.options = options
        self.input_projection = nn.Linear(width_in, options.hidden_size)
        self.layers = nn.ModuleList([
            nn.Conv1d(options.hidden_size, 2 * options.hidden_size, options.kernel_size, dilation=2**layer)
            for layer in range(options.n_layers)
        ])  # fmt: skip
        self.drop = Dropout(options.dropout)

    def forward(
        self, inputs: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "batch time hidden_size"]:
        """Return the output of the last layer."""
        hidden = self.input_projection(inputs).transpose(1, 2)
        for layer, convolution in enumerate(self.layers):
            padding = (self.options.kernel_size - 1) * 2**layer
            padded = F.pad(self.drop(hidden), (padding // 2, padding - padding // 2))
            # sqrt(1/2) keeps the variance of the sum constant over the layers (Gehring et al., section 3.5).
            hidden = (hidden + F.glu(convolution(padded), dim=1)) * 0.5**0.5
        encoded: Tensor = hidden.transpose(1, 2)
        return encoded


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

    def forward(
        self, features: Float[Tensor, "batch time width"]
    ) -> tuple[Float[Tensor, "batch time output_size"], State]:
        """Return the outputs of all time steps and the decoder's initial state."""
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

    def forward(
        self, features: Float[Tensor, "batch time width"]
    ) -> tuple[Float[Tensor, "batch time output_size"], State]:
        """Return the outputs of all time steps and the decoder's initial state."""
        encoded = cast(Tensor, self.layers(features))
        state = torch.tanh(self.bridge(encoded[:, -1]))
        return encoded, tuple(state.chunk(_n_states(self.decoder), dim=-1))


def time_encoding(
    input_size: int, horizon: int
) -> tuple[Float[Tensor, "time waves"], Float[Tensor, "horizon waves"]]:
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
        layers = options.layers
        hidden_size = layers.hidden_size
        self.options = options
        past_encoding, future_encoding = None, None
        if options.positional_encoding:
            past_encoding, future_encoding = time_encoding(sizes.input_size, sizes.horizon)
        self.register_buffer("past_encoding", past_encoding, persistent=False)
        self.register_buffer("future_encoding", future_encoding, persistent=False)
        encoding_size = 0 if past_encoding is None else past_encoding.shape[-1]
        encoder_width = sizes.past_features + encoding_size
        encoder_class = RecurrentEncoder if options.kernel_size is None else ConvolutionalEncoder
        self.encoder = encoder_class(encoder_width, layers, options.kernel_size or 0)
        decoder_width = 1 + sizes.future_features + encoding_size
        self.attends_before_step = options.attention is not None and options.decoder == "bahdanau"
        self.attention: Attention | None = None
        self.skip: nn.Module | None = None  # from the inputs to the outputs of the encoder
        self.combine: nn.Module | None = None  # of decoder output and context
        if options.attention is not None:
            self.attention = Attention(options.attention, hidden_size, layers.output_size, sizes.input_size)
            self.skip = nn.Linear(encoder_width, layers.output_size, bias=False)
            self.combine = nn.Linear(hidden_size + layers.output_size, hidden_size)
            if self.attends_before_step:
                decoder_width += layers.output_size
            elif options.input_feeding:
                decoder_width += hidden_size
        self.decoder = Recurrent(decoder_width, replace(layers, bidirectional=False))
        self.start_token = (
            nn.Parameter(torch.zeros(())) if options.start_value == "learned" else None
        )
        self.drop = Dropout(layers.dropout)
        self.out = nn.Linear(hidden_size, sizes.out_features)

    def initial_state(self, inputs: Inputs) -> State:
        """Encode the window and return the decoder's state at the cutoff."""
        return self._encode(inputs)[0]

    def step(
        self,
        state: State,
        previous: Float[Tensor, "paths"],
        future: Float[Tensor, "paths future_features"],
        step_index: int,
    ) -> tuple[Float[Tensor, "paths out_features"], State]:
        """Return the raw output of the next step and the next state."""
        readout, _, state = self._step(state, previous, future, step_index)
        return self.out(self.drop(readout)), state

    def forward_teacher_forced(
        self, inputs: Inputs, previous: Float[Tensor, "batch steps"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute all steps given the values before them.

        One pass is enough unless the recurrent step has an attention output as input.
        """
        readouts, _ = self._decode_teacher_forced(self.initial_state(inputs), inputs, previous)
        return cast(Tensor, self.out(self.drop(readouts)))

    def attention_maps(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> list[AttentionWeights]:
        """Return the weights of the self-attention within the window and of the attention from the
        horizon to the window, as far as the body has them.
        """
        state, self_weights = self._encode(inputs)
        past_steps = torch.arange(1 - inputs.y.shape[1], 1, device=previous.device)
        attention_maps: list[AttentionWeights] = []
        if self_weights is not None:
            attention_maps.append(
                AttentionWeights("self", 0, self_weights.unsqueeze(1), past_steps, past_steps)
            )
        if self.attention is not None:
            _, weights = self._decode_teacher_forced(state, inputs, previous)
            steps = torch.arange(1, previous.shape[1] + 1, device=previous.device)
            attention_maps.append(
                AttentionWeights("cross", 0, weights.unsqueeze(1), steps, past_steps)
            )
        return attention_maps

    def _encode(self, inputs: Inputs) -> tuple[State, Tensor | None]:
        """Return the state at the cutoff, see the class, and the self-attention weights (batch, steps,
        steps) or None.
        """
        features = inputs.past_features
        self_weights = None
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
        if self._feeds_input:
            initial_readout = encoded.new_zeros(len(features), self.decoder.output_size)
            return (keys, values, valid, initial_readout, *state), self_weights
        return (keys, values, valid, *state), self_weights

    @property
    def _feeds_input(self) -> bool:
        """Whether the attentional output of a step is an input of the next one."""
        return self.attention is not None and self.options.input_feeding and not self.attends_before_step

    def _step(
        self, state: State, previous: Tensor, future: Tensor, step_index: int
    ) -> tuple[Tensor, Tensor, State]:
        """Return output (batch * N, hidden_size), attention weights (batch, N, steps) and the next
        state; without attention the second is meaningless.
        """
        memory = state[: self.shared_state]  # keys, values and mask of the window
        decoder_state = state[self.shared_state :]
        context = None
        if self.start_token is not None and step_index == 0:
            previous = self.start_token.expand_as(previous)
        decoder_inputs = [previous.unsqueeze(-1), future]
        if self.future_encoding is not None:
            decoder_inputs.append(self.future_encoding[step_index].expand(len(previous), -1))
        weights = previous  # placeholder if there is no attention
        if self.attends_before_step:
            # The query is the hidden vector of the last layer.
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
        if self._feeds_input:
            return readout, weights, (*memory, readout, *decoder_state)
        return readout, weights, (*memory, *decoder_state)

    def _attend(self, hidden: Tensor, memory: State) -> tuple[Tensor, Tensor]:
        """Return context (batch * N, dim) and weights (batch, N, steps) for hidden states (batch *
        N, hidden_size).
        """
        queries = hidden.view(memory[0].shape[0], -1, hidden.shape[-1])
        context, weights = cast(Attention, self.attention)(queries, *memory)
        return context.flatten(0, 1), weights

    def _combine(self, hidden: Tensor, context: Tensor) -> Tensor:
        """Compute the attentional output tanh(W [hidden; context]) (Luong et al. 2015, eq. 5)."""
        return torch.tanh(cast(nn.Module, self.combine)(torch.cat([hidden, context], dim=-1)))

    def _decode_teacher_forced(
        self, state: State, inputs: Inputs, previous: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs (batch, horizon, hidden_size) and attention weights (batch, horizon,
        steps) of all steps.
        """
        future = inputs.future_features[:, : previous.shape[1]]
        if not (self.attends_before_step or self._feeds_input):
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
        """`_decode_teacher_forced` in one pass, for decoders whose inputs are known in advance."""
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
