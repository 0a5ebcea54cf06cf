"""Transformer bodies: an encoder over the window, and an autoregressive or direct decoder over the
horizon.

Vaswani et al. (2017), arXiv:1706.03762. The tokens of the window are time steps, or patches of
consecutive ones as in PatchTST (Nie et al. 2023, arXiv:2211.14730).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.encoder_decoder import Decoder, DecodingPosition, Encoder, LayerOptions
from deepforecast.nn.layers import Dropout
from deepforecast.nn.multihead import KeyValueProjection, padding_bias
from deepforecast.nn.network import AttentionBody, AttentionWeights, AutoregressiveBody, DirectBody, State
from deepforecast.nn.positions import PositionalEncoding, TokenPositions
from deepforecast.nn.recurrent import lagged_states, readout_lag

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Shaped


@dataclass(frozen=True)
class Patching:
    """Patches of `length` time steps every `stride` steps.

    The last patch ends at the last step of the window; the start of the window is zero-padded.

    Parameters
    ----------
    input_size : int
        Time steps per window.
    length : int, default 1
        Time steps per patch.
    stride : int, default 1
        Distance between patches, at most `length`.

    Examples
    --------
    >>> Patching(input_size=96, length=16, stride=8).n_patches, Patching(5, 2, 2).end_positions
    (12, (0, 2, 4))
    """

    input_size: int
    length: int = 1
    stride: int = 1

    def __post_init__(self) -> None:
        """Raise `ParameterError` if the stride is longer than a patch."""
        if self.stride > self.length:
            raise ParameterError(
                f"`stride` must be at most `patch_length`, or time steps would be skipped, got stride={self.stride} and "
                f"patch_length={self.length}.",
                hint=f"Use stride={self.length} or a larger patch_length.",
                parameter="stride",
            )

    @property
    def n_patches(self) -> int:
        """Number of patches per window."""
        return -(-self.input_size // self.stride)

    @property
    def first_end(self) -> int:
        """Index of the last time step of the first patch."""
        return self.input_size - 1 - (self.n_patches - 1) * self.stride

    @property
    def end_positions(self) -> tuple[int, ...]:
        """Indices of the last time steps of the patches."""
        return tuple(range(self.first_end, self.input_size, self.stride))

    def unfold(
        self, values: Float[Tensor, "batch time columns"]
    ) -> Float[Tensor, "batch patches patch_columns"]:
        """Cut time steps into patches; a patch has the values of its steps side by side."""
        if self.length == 1:
            return values
        return (
            F.pad(values, (0, 0, self.length - 1 - self.first_end, 0))
            .unfold(1, self.length, self.stride)
            .flatten(2)
        )

    def select_ends(
        self, values: Shaped[Tensor, "batch time *shape"]
    ) -> Shaped[Tensor, "batch patches *shape"]:
        """Select the last time step of each patch."""
        return values[:, self.first_end :: self.stride]


def default_patch_length(input_size: int) -> int:
    """Return a quarter of the window, at most 16 and at least 1.

    Examples
    --------
    >>> default_patch_length(336), default_patch_length(24), default_patch_length(3)
    (16, 6, 1)
    """
    return max(min(16, input_size // 4), 1)


def resolve_patch_length(patch_length: int | str, input_size: int, season: int = 1) -> int:
    """Return the patch length, the default for "auto"; raise `ParameterError` if it exceeds the window.

    A default of at least one season is rounded down to whole seasons.

    Examples
    --------
    >>> resolve_patch_length("auto", 168), resolve_patch_length("auto", 168, season=7)
    (16, 14)
    """
    default_length = default_patch_length(input_size)
    if default_length >= season:
        default_length -= default_length % season
    length = default_length if isinstance(patch_length, str) else patch_length
    if length > input_size:
        raise ParameterError(
            f"`patch_length` must be at most input_size, got patch_length={length} and "
            f"input_size={input_size}.",
            hint=f"Set patch_length={default_length}, or a larger input_size.",
            parameter="patch_length",
        )
    return length


@dataclass(frozen=True)
class TransformerOptions:
    """Options of the Transformer bodies.

    Parameters
    ----------
    layer : LayerOptions
    encoder_layers, decoder_layers : int, default 2
    positional_encoding : str, optional, default "sinusoidal"
        See `PositionalEncoding`.
    patch_length : int, default 1
        Time steps per token.
    stride : int, default 1
        Distance between tokens in time steps.
    final_norm : bool, default True
        Whether the output of the last encoder layer is normalised.
    """

    layer: LayerOptions = field(default_factory=LayerOptions)
    encoder_layers: int = 2
    decoder_layers: int = 2
    positional_encoding: str | None = "sinusoidal"
    patch_length: int = 1
    stride: int = 1
    final_norm: bool = True


class PatchEmbedding(nn.Module):
    """Patches of the window as tokens, with positional encoding.

    Padding before the start of a series is masked; later missing values are not, as their
    covariates are known.

    Parameters
    ----------
    sizes : InputSizes
    options : TransformerOptions
    future_positions : sequence of int, default ()
        Positions of the decoder's tokens.
    """

    def __init__(
        self, sizes: InputSizes, options: TransformerOptions, future_positions: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.width = options.layer.d_model
        self.patches = Patching(sizes.input_size, options.patch_length, options.stride)
        # Time steps from the cutoff: 0 is the last of the window, negative ones are before it.
        self.past_positions = tuple(
            end - sizes.input_size + 1 for end in self.patches.end_positions
        )
        # Per time step of a patch: the value, whether it is observed, and the past covariates.
        self.input_projection = nn.Linear(options.patch_length * (2 + sizes.past), self.width)
        self.static_projection = (
            nn.Linear(sizes.static, self.width, bias=False) if sizes.static else None
        )
        self.positions = PositionalEncoding(
            options.positional_encoding,
            TokenPositions(self.past_positions, tuple(future_positions)),
            self.width,
            options.layer.n_heads,
            sizes.cyclic_columns,  # of the calendar, for the encoding "calendar"
        )
        self.drop = Dropout(options.layer.dropout)

    def embed(self, inputs: Inputs) -> Float[Tensor, "batch tokens width"]:
        """Project the patches of the window to tokens without positions."""
        features = torch.cat(
            [inputs.y.unsqueeze(-1), inputs.observed.unsqueeze(-1), inputs.past], dim=-1
        )
        tokens = self.input_projection(self.patches.unfold(features))
        if self.static_projection is not None:
            tokens = tokens + self.static_projection(inputs.static).unsqueeze(1)
        return cast(Tensor, tokens)

    def add_positions(
        self, tokens: Float[Tensor, "batch tokens width"], inputs: Inputs
    ) -> Float[Tensor, "batch tokens width"]:
        """Add the positional encoding to tokens, with dropout."""
        columns = self.patches.select_ends(inputs.past)
        return cast(Tensor, self.drop(self.positions.add_to(tokens, columns, is_future=False)))

    def padding(self, inputs: Inputs) -> Float[Tensor, "batch 1 1 tokens"]:
        """Return the bias that masks padding.

        A patch is padding if its last time step is before the first observed value.
        """
        return padding_bias(self.patches.select_ends(inputs.observed.cumsum(1).clamp(max=1.0)))


class PatchEncoder(PatchEmbedding):
    """Encoder of the window: patches as tokens, positional encoding, encoder layers.

    Parameters
    ----------
    sizes : InputSizes
    options : TransformerOptions
    future_positions : sequence of int, default ()
        Positions of the decoder's tokens.
    """

    def __init__(
        self, sizes: InputSizes, options: TransformerOptions, future_positions: Sequence[int] = ()
    ) -> None:
        super().__init__(sizes, options, future_positions)
        self.encoder = Encoder(options.layer, options.encoder_layers, options.final_norm)

    def encode(
        self,
        inputs: Inputs,
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
    ) -> tuple[Float[Tensor, "batch tokens width"], Float[Tensor, "batch 1 1 tokens"]]:
        """Return the encoded tokens and the padding bias."""
        bias = self.padding(inputs)
        tokens = self.add_positions(self.embed(inputs), inputs)
        return self.encoder(tokens, self.positions.past_mask(bias), attention_maps), bias


class WindowEncoder(PatchEncoder):
    """A patch encoder that also projects its output to keys and values for every decoder layer."""

    def __init__(
        self, sizes: InputSizes, options: TransformerOptions, future_positions: Sequence[int]
    ) -> None:
        super().__init__(sizes, options, future_positions)
        self.key_value_projection = KeyValueProjection(
            self.width, options.layer.n_heads, options.decoder_layers
        )

    def forward(
        self,
        inputs: Inputs,
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
    ) -> tuple[list[Float[Tensor, "batch heads keys dim"]], Float[Tensor, "batch 1 1 keys"]]:
        """Return the keys and values of the decoder layers, and the padding bias.

        They are [keys of layer 1, values of layer 1, keys of layer 2, ...].
        """
        encoded, bias = self.encode(inputs, attention_maps)
        return self.key_value_projection(encoded, self.positions.rotation(is_future=False)), bias


class TransformerAutoregressive(AutoregressiveBody, AttentionBody):
    """Transformer with an autoregressive decoder: a step depends on the previous value, the steps
    before it and the window.

    Training is parallel over the steps with a causal mask. In forecasts the encoder runs once and
    the decoder uses a key-value cache. All past covariates of the last time step of the window are
    inputs of the first step, too. The state has the keys and values of the window, the padding bias
    and the context of the first step, all shared by paths, then one cache per layer.

    Parameters
    ----------
    sizes : InputSizes
    options : TransformerOptions
    """

    shared_state = 3

    def __init__(self, sizes: InputSizes, options: TransformerOptions) -> None:
        super().__init__()
        self.horizon = sizes.horizon
        self.window_encoder = WindowEncoder(sizes, options, range(1, sizes.horizon + 1))
        # The token of a step: the previous value, and the future and static covariates.
        self.step_projection = nn.Linear(1 + sizes.future_features, options.layer.d_model)
        self.first_step_projection = (
            nn.Linear(sizes.past, options.layer.d_model, bias=False) if sizes.past else None
        )
        self.decoder = Decoder(options.layer, options.decoder_layers)
        # How often the weights are used per window, see `ForecastNetwork.n_multiplications`.
        self.over_time = self.window_encoder.patches.n_patches
        self.out = nn.Linear(options.layer.d_model, sizes.out_features)

    def initial_state(self, inputs: Inputs) -> State:
        """Encode the window and return the state with empty caches."""
        memory, bias = self.window_encoder(inputs)
        n_windows, heads, _, width = memory[0].shape
        caches = [bias.new_empty(n_windows, 2, heads, 0, width) for _ in self.decoder.layers]
        return (torch.stack(memory, 1), bias, self._first_step_context(inputs), *caches)

    def step(
        self,
        state: State,
        previous: Float[Tensor, "paths"],
        future: Float[Tensor, "paths future_features"],
        step_index: int,
    ) -> tuple[Float[Tensor, "paths out_features"], State]:
        """Return the raw output of the next step and the next state.

        Without gradients the caches are written in place, so that a state can be continued only
        once.
        """
        memory, bias, first_step_context, *caches = state
        cache_size = step_index + 1 if torch.is_grad_enabled() else self.horizon
        token = self._tokens(previous.unsqueeze(1), future.unsqueeze(1), step_index).squeeze(1)
        if step_index == 0:
            token = (
                token.view(len(first_step_context), -1, token.shape[-1]) + first_step_context
            ).flatten(0, 1)
        masks = self.window_encoder.positions.step_masks(step_index, bias)
        hidden, new_caches = self.decoder.step(
            token, caches, memory.unbind(1), DecodingPosition(step_index, cache_size), masks
        )
        return self.out(hidden), (memory, bias, first_step_context, *new_caches)

    def forward_teacher_forced(
        self, inputs: Inputs, previous: Float[Tensor, "batch steps"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute all steps given the values before them, in one pass."""
        return cast(Tensor, self.out(self._decode(inputs, previous)))

    def attention_maps(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> list[AttentionWeights]:
        """Return the weights of every layer: within the window, within the horizon, and from the
        horizon to the window.
        """
        attention_maps: list[Tensor] = []
        self._decode(inputs, previous, attention_maps)
        steps = torch.arange(1, previous.shape[1] + 1)
        return label_attention_maps(
            attention_maps,
            len(self.window_encoder.encoder.layers),
            torch.tensor(self.window_encoder.past_positions),
            (steps, steps),
        )

    def _decode(
        self, inputs: Inputs, previous: Tensor, attention_maps: list[Tensor] | None = None
    ) -> Tensor:
        """Decode all steps in parallel given the values (batch, steps) before them, to (batch, steps,
        d_model).
        """
        memory, bias = self.window_encoder(inputs, attention_maps)
        n_steps = previous.shape[1]
        positions = self.window_encoder.positions
        masks = positions.future_mask(True, n_steps), positions.cross_mask(bias, n_steps)
        tokens = self._tokens(previous, inputs.future_features[:, :n_steps])
        tokens = torch.cat([tokens[:, :1] + self._first_step_context(inputs), tokens[:, 1:]], dim=1)
        return cast(Tensor, self.decoder(tokens, memory, masks, attention_maps))

    def _first_step_context(self, inputs: Inputs) -> Tensor:
        """Project the past covariates of the last time step, (batch, 1, d_model); 0 without any."""
        if self.first_step_projection is None:
            return inputs.y.new_zeros(len(inputs.y), 1, self.out.in_features)
        return cast(Tensor, self.first_step_projection(inputs.past[:, -1:]))

    def _tokens(self, previous: Tensor, future: Tensor, first_step: int = 0) -> Tensor:
        """Embed previous values (batch, n) and future features (batch, n, future), to (batch, n,
        d_model).
        """
        tokens = self.step_projection(torch.cat([previous.unsqueeze(-1), future], dim=-1))
        return cast(
            Tensor,
            self.window_encoder.drop(
                self.window_encoder.positions.add_to(tokens, future, True, first_step)
            ),
        )


class TransformerDirect(DirectBody, AttentionBody):
    """Transformer with a direct decoder: a token per patch of the horizon, without a causal mask.

    Inputs of a token are the future covariates of its steps and the values one season before (or
    `horizon` steps before, if no season fits into the window). Patches of the horizon do not
    overlap; the last one is cut at the end.

    Parameters
    ----------
    sizes : InputSizes
    options : TransformerOptions
    """

    def __init__(self, sizes: InputSizes, options: TransformerOptions) -> None:
        super().__init__()
        self.horizon = sizes.horizon
        self.lag = readout_lag(sizes, sizes.season)
        self.patch_length = min(options.patch_length, sizes.horizon)
        self.n_patches = -(-sizes.horizon // self.patch_length)
        # Position of the last step of each patch.
        self.last_steps = [
            min((index + 1) * self.patch_length, sizes.horizon) for index in range(self.n_patches)
        ]
        self.window_encoder = WindowEncoder(sizes, options, self.last_steps)
        self.step_projection = nn.Linear(
            self.patch_length * (2 + sizes.future_features), options.layer.d_model
        )
        self.decoder = Decoder(options.layer, options.decoder_layers)
        self.over_time = self.window_encoder.patches.n_patches
        self.out = nn.Linear(options.layer.d_model, self.patch_length * sizes.out_features)

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        raw = self.out(self._decode(inputs))
        return cast(
            Tensor, raw.reshape(raw.shape[0], self.n_patches * self.patch_length, -1)[:, : self.horizon]
        )

    def attention_maps(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> list[AttentionWeights]:
        """Return the weights of every layer: within the window, within the horizon, and from the
        horizon to the window. All steps of a patch share its weights.
        """
        attention_maps: list[Tensor] = []
        self._decode(inputs, attention_maps)
        patch_index = torch.arange(self.horizon, device=inputs.y.device) // self.patch_length
        n_encoder_layers = len(self.window_encoder.encoder.layers)
        attention_maps[n_encoder_layers:] = [
            weights[:, :, patch_index] for weights in attention_maps[n_encoder_layers:]
        ]
        steps = torch.arange(1, self.horizon + 1)
        return label_attention_maps(
            attention_maps,
            n_encoder_layers,
            torch.tensor(self.window_encoder.past_positions),
            (steps, torch.tensor(self.last_steps)),
        )

    def _decode(self, inputs: Inputs, attention_maps: list[Tensor] | None = None) -> Tensor:
        """Decode the tokens of the horizon, (batch, patches, d_model)."""
        memory, bias = self.window_encoder(inputs, attention_maps)
        positions = self.window_encoder.positions
        masks = positions.future_mask(False, self.n_patches), positions.cross_mask(bias, self.n_patches)
        return cast(Tensor, self.decoder(self._tokens(inputs), memory, masks, attention_maps))

    def _tokens(self, inputs: Inputs) -> Tensor:
        """Embed the horizon as tokens, (batch, patches, d_model)."""
        lagged_values = lagged_states(
            torch.stack([inputs.y, inputs.observed], dim=-1), self.lag, self.horizon
        )
        steps = F.pad(
            torch.cat([lagged_values, inputs.future_features], dim=-1),
            (0, 0, 0, self.n_patches * self.patch_length - self.horizon),
        )
        tokens = self.step_projection(steps.reshape(steps.shape[0], self.n_patches, -1))
        # Covariates at the last step of each patch.
        columns = torch.cat(
            [
                inputs.future[:, self.patch_length - 1 : self.horizon - 1 : self.patch_length],
                inputs.future[:, -1:],
            ],
            dim=1,
        )
        return cast(
            Tensor,
            self.window_encoder.drop(
                self.window_encoder.positions.add_to(tokens, columns, is_future=True)
            ),
        )


def label_attention_maps(
    attention_maps: list[Float[Tensor, "batch heads _ _"]],
    n_encoder_layers: int,
    past_steps: Int[Tensor, "past"],
    future_steps: tuple[Int[Tensor, "queries"], Int[Tensor, "keys"]],
) -> list[AttentionWeights]:
    """Convert weights to `AttentionWeights` with kind, layer and positions.

    `attention_maps` are those of the encoder layers, then two for each decoder layer: self-attention
    and attention to the window. `past_steps` are the positions of the tokens of the window,
    `future_steps` those of the horizon as queries and as keys.
    """
    maps = [
        AttentionWeights("self", layer, weights, past_steps, past_steps)
        for layer, weights in enumerate(attention_maps[:n_encoder_layers])
    ]
    for layer, (self_weights, cross_weights) in enumerate(
        zip(
            attention_maps[n_encoder_layers::2],
            attention_maps[n_encoder_layers + 1 :: 2],
            strict=True,
        )
    ):
        maps += [
            AttentionWeights("self", layer, self_weights, *future_steps),
            AttentionWeights("cross", layer, cross_weights, future_steps[0], past_steps),
        ]
    return maps
