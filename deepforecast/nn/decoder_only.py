"""Decoder-only Transformer: a causal stack of layers over the patches of the window and the horizon.

Radford et al. (2019), "Language Models are Unsupervised Multitask Learners" (GPT-2), for time series:
a token is a patch of P time steps, and its output the distribution of the P steps after it. With
x_i the values of patch i, c_i its covariates, s those of the series and p_i its position,

    h_i = W [x_i, observed_i] + C [c_i, future covariates of patch i + 1] + S s + p_i
    raw of patch i + 1 = O stack(h_1 .. h_i)_i

The segment memory is that of Transformer-XL (Dai et al. 2019, arXiv:1901.02860).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.encoder_decoder import DecodingPosition, Encoder, LayerOptions
from deepforecast.nn.layers import Dropout
from deepforecast.nn.multihead import AttentionMask, padding_bias
from deepforecast.nn.network import AttentionBody, AttentionWeights, AutoregressiveBody, State
from deepforecast.nn.positions import PositionalEncoding, TokenPositions
from deepforecast.nn.transformer import Patching

if TYPE_CHECKING:
    from jaxtyping import Float

RELATIVE_ENCODINGS = ("rotary", "alibi")
"""Positional encodings that depend on the distance of two tokens alone."""


@dataclass(frozen=True)
class DecoderOnlyOptions:
    """Options of the decoder-only body.

    Parameters
    ----------
    layer : LayerOptions
    n_layers : int, default 2
    positional_encoding : str, optional, default "rotary"
        See `PositionalEncoding`.
    patch_length : int, default 1
        Time steps per token.
    segment_length : int, optional
        Tokens per segment; None: all tokens are one segment.
    memory_segments : int, default 1
        Number of segments before its own that a token attends to.
    """

    layer: LayerOptions = field(default_factory=LayerOptions)
    n_layers: int = 2
    positional_encoding: str | None = "rotary"
    patch_length: int = 1
    segment_length: int | None = None
    memory_segments: int = 1

    def __post_init__(self) -> None:
        """Raise `ParameterError` if segments have absolute positions."""
        if self.segment_length is not None and self.positional_encoding not in RELATIVE_ENCODINGS:
            raise ParameterError(
                "`segment_length` requires relative positions, positional_encoding='rotary' or 'alibi', got "
                f"positional_encoding={self.positional_encoding!r}.",
                hint="Set positional_encoding='rotary', or leave out `segment_length`.",
                parameter="positional_encoding",
            )


class DecoderOnlyBody(AutoregressiveBody, AttentionBody):
    """Causal Transformer over patches; the steps of a patch are predicted at once.

    Training is parallel over the patches and predicts those of the window, too. In forecasts the
    window is computed once, and each completed patch of the horizon is one more token, with a
    key-value cache. Past covariates are 0 in patches of the horizon unless they are known there; the
    last patch of the window ends at the cutoff and its start is padded with zeros. Patches before
    the first observed value are masked.

    The state has the embedded covariates and positions of the patches of the horizon, shared by
    paths; then the padding bias, the output for the steps of the current patch, the last P values,
    and one cache per layer.

    Parameters
    ----------
    sizes : InputSizes
    options : DecoderOnlyOptions
    """

    shared_state = 1
    predicts_window = True
    known_columns: Tensor  # (future,) int64, columns of the past covariates
    causal_bias: Tensor  # (1, 1, tokens, tokens): 0 for earlier tokens of the same segment, else -inf
    memory_bias: Tensor  # (1, 1, tokens, tokens): 0 for tokens of the segments remembered

    def __init__(self, sizes: InputSizes, options: DecoderOnlyOptions) -> None:
        super().__init__()
        self.sizes = sizes
        self.patch_length = length = options.patch_length
        self.block_length = min(length, sizes.horizon)
        self.patches = Patching(sizes.input_size, length, length)
        self.n_window = self.patches.n_patches
        self.n_horizon = -(-sizes.horizon // length)  # the last one is an output only
        self.over_time = self.n_tokens = self.n_window + self.n_horizon - 1
        width = options.layer.d_model
        # A patch has the position of its last time step, counted from the cutoff.
        self.token_positions = tuple(length * (i + 1 - self.n_window) for i in range(self.n_tokens))
        self.value_projection = nn.Linear(2 * length, width)
        n_covariates = sizes.past + sizes.future
        self.covariate_projection = (
            nn.Linear(n_covariates * length, width, bias=False) if n_covariates else None
        )
        self.static_projection = (
            nn.Linear(sizes.static, width, bias=False) if sizes.static else None
        )
        self.positions = PositionalEncoding(
            options.positional_encoding,
            TokenPositions(self.token_positions, ()),
            width,
            options.layer.n_heads,
            sizes.cyclic_columns,
        )
        self.drop = Dropout(options.layer.dropout)
        self.layers = Encoder(options.layer, options.n_layers)
        self.out = nn.Linear(width, length * sizes.out_features)
        self.has_memory = options.segment_length is not None
        self._register_masks(options.segment_length or self.n_tokens, options.memory_segments)
        self.register_buffer(
            "known_columns", torch.tensor(sizes.known_columns, dtype=torch.int64), persistent=False
        )

    def initial_state(self, inputs: Inputs) -> State:
        """Compute the tokens of the window and return the state at the cutoff."""
        embedding, bias = self._embed_covariates(inputs), self._padding_bias(inputs)
        caches: list[Tensor] = []
        values = self._window_values(inputs)
        hidden = self._forward(values, embedding, bias, caches=caches)[:, -1]
        last_values = inputs.y.new_zeros(len(inputs.y), self.patch_length)
        return (embedding[:, self.n_window :], bias, self.out(hidden), last_values, *caches)

    def step(
        self,
        state: State,
        previous: Float[Tensor, "paths"],
        future: Float[Tensor, "paths future_features"],
        step_index: int,
    ) -> tuple[Float[Tensor, "paths out_features"], State]:
        """Return the raw output of the next step and the next state.

        Only the first step of a patch computes something: the token of the patch before it. Without
        gradients the caches are written in place, so that a state can be continued only once.
        """
        embedding, bias, raw, values, *caches = state
        values = torch.cat([values[:, 1:], previous.unsqueeze(1)], dim=1)
        patch, step_of_patch = divmod(step_index, self.patch_length)
        if patch and not step_of_patch:
            token = self.value_projection(torch.cat([values, torch.ones_like(values)], dim=1))
            paths = token.view(len(embedding), -1, token.shape[1]) + embedding[:, patch - 1 : patch]
            index = self.n_window + patch - 1
            cache_size = index + 1 if torch.is_grad_enabled() else self.n_tokens
            mask = self._step_mask(bias, index)
            position = DecodingPosition(index, cache_size)
            hidden, caches = self.layers.step(self.drop(paths.flatten(0, 1)), caches, position, mask)
            raw = self.out(hidden)
        step_raw = raw.view(len(raw), self.patch_length, -1)[:, step_of_patch]
        return step_raw, (embedding, bias, raw, values, *caches)

    def forward_teacher_forced(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> Float[Tensor, "batch horizon out_features"]:
        """Compute all steps given the values before them, in one pass."""
        return self.forward_all_positions(inputs, previous)[:, -previous.shape[1] :]

    def forward_all_positions(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute the steps of all patches but the first of the window, in one pass: the last
        (window patches - 1) * patch_length steps of the window, then those of the horizon.
        """
        raw = self.out(self._forward_all(inputs, previous))
        n_steps = (self.n_window - 1) * self.patch_length + previous.shape[1]
        return cast(Tensor, raw.view(len(raw), -1, self.sizes.out_features)[:, :n_steps])

    def attention_maps(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> list[AttentionWeights]:
        """Return the weights of every layer: of the patches of the window and of the steps of the
        horizon.

        A step of the horizon has those of the last patch before it, from which it is predicted; all
        steps of a patch share them.
        """
        weights: list[Tensor] = []
        self._forward_all(inputs, previous, weights)
        n_steps = previous.shape[1]
        steps = torch.arange(n_steps, device=inputs.y.device)
        tokens = torch.arange(self.n_window, device=inputs.y.device)
        rows = torch.cat([tokens, steps // self.patch_length + self.n_window - 1])
        keys = torch.tensor(self.token_positions[: weights[0].shape[2]])
        queries = torch.cat([keys[: self.n_window], torch.arange(1, n_steps + 1)])
        # With a segment memory every token is a key twice, see `AttentionMask`.
        summed = [w.view(*w.shape[:3], -1, len(keys)).sum(3) for w in weights]
        return [
            AttentionWeights("self", layer, w[:, :, rows], queries, keys)
            for layer, w in enumerate(summed)
        ]

    def _forward_all(
        self,
        inputs: Inputs,
        previous: Float[Tensor, "batch horizon"],
        attention_maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Compute the tokens of the window and of the horizon, given the value before each step."""
        n_patches = -(-previous.shape[1] // self.patch_length) - 1
        values = previous[:, 1 : n_patches * self.patch_length + 1]
        patches = values.reshape(len(values), n_patches, self.patch_length)
        horizon = torch.cat([patches, torch.ones_like(patches)], dim=2)
        return self._forward(
            torch.cat([self._window_values(inputs), horizon], dim=1),
            self._embed_covariates(inputs),
            self._padding_bias(inputs),
            attention_maps,
        )

    def _forward(
        self,
        values: Float[Tensor, "batch tokens values_and_mask"],
        embedding: Float[Tensor, "batch all_tokens d_model"],
        bias: Float[Tensor, "batch 1 1 all_tokens"],
        attention_maps: list[Tensor] | None = None,
        caches: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Compute the first tokens, from the values of their patches."""
        n = values.shape[1]
        padding = bias[..., :n]
        mask = self.positions.past_mask(self.causal_bias[:, :, :n, :n] + padding, first=0, stop=n)
        if self.has_memory:
            memory = self.positions.past_mask(self.memory_bias[:, :, :n, :n] + padding, first=0, stop=n)
            mask = replace(mask, memory_bias=memory.bias)
        tokens = self.drop(self.value_projection(values) + embedding[:, :n])
        return cast(Tensor, self.layers(tokens, mask, attention_maps, caches))

    def _window_values(self, inputs: Inputs) -> Float[Tensor, "batch patches values_and_mask"]:
        """Cut values and mask of the window into patches."""
        n_padding = self.n_window * self.patch_length - self.sizes.input_size
        values = F.pad(torch.stack([inputs.y, inputs.observed], dim=1), (n_padding, 0))
        return values.view(len(values), 2, self.n_window, -1).transpose(1, 2).flatten(2)

    def _embed_covariates(self, inputs: Inputs) -> Float[Tensor, "batch tokens d_model"]:
        """Embed covariates and positions of all tokens."""
        length, n_window = self.patch_length, self.n_window
        n_padding = n_window * length - self.sizes.input_size
        known = torch.cat([inputs.past.index_select(2, self.known_columns), inputs.future], dim=1)
        known = F.pad(known, (0, 0, n_padding, self.n_horizon * length - self.sizes.horizon))
        past = F.pad(inputs.past, (0, 0, n_padding, (self.n_horizon - 1) * length))
        begin, end = n_window * length, self.n_tokens * length  # patches of the horizon
        in_horizon = torch.zeros_like(past[:, begin:])
        in_horizon = in_horizon.index_copy(2, self.known_columns, known[:, begin:end])
        past = torch.cat([past[:, :begin], in_horizon], dim=1)
        embedding = inputs.y.new_zeros(len(past), self.n_tokens, self.out.in_features)
        if self.covariate_projection is not None:
            covariates = torch.cat([past, known[:, length:]], dim=2)
            embedding = self.covariate_projection(covariates.reshape(len(past), self.n_tokens, -1))
        if self.static_projection is not None:
            embedding = embedding + self.static_projection(inputs.static).unsqueeze(1)
        return self.positions.add_to(embedding, past[:, length - 1 :: length], is_future=False)

    def _padding_bias(self, inputs: Inputs) -> Float[Tensor, "batch 1 1 tokens"]:
        """Mask patches that end before the first observed value."""
        started = self.patches.select_ends(inputs.observed.cumsum(1).clamp(max=1.0))
        return padding_bias(F.pad(started, (0, self.n_horizon - 1), value=1.0))

    def _step_mask(self, bias: Float[Tensor, "paths 1 1 tokens"], index: int) -> AttentionMask:
        """Return the mask of a single token, which attends to itself and those before it."""
        row = self.causal_bias[:, :, index : index + 1]
        if self.has_memory:
            row = torch.maximum(row, self.memory_bias[:, :, index : index + 1])
        stop = index + 1
        return self.positions.past_mask((row + bias)[..., :stop], index, stop)

    def _register_masks(self, segment_length: int, memory_segments: int) -> None:
        """Register `causal_bias` and `memory_bias` as buffers."""
        index = torch.arange(self.n_tokens)
        segment = index // segment_length
        lag = segment.unsqueeze(1) - segment  # segments between query and key
        causal = (lag == 0) & (index.unsqueeze(1) >= index)
        remembered = (lag > 0) & (lag <= memory_segments)
        for name, visible in (("causal_bias", causal), ("memory_bias", remembered)):
            self.register_buffer(name, visible.float().log()[None, None], persistent=False)
