"""TimeXer: patches of the target with a global token, which attends to one token per covariate.

Wang, Wu, Dong, Qin, Zhang, Liu, Qiu, Wang, Long (2024), arXiv:2402.19072; equations are those of this paper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes, input_variables
from deepforecast.nn.encoder_decoder import Decoder, DecoderLayer, Encoder
from deepforecast.nn.layers import Dropout
from deepforecast.nn.multihead import NO_MASK, AttentionMask, KeyValueProjection
from deepforecast.nn.network import DirectBody
from deepforecast.nn.patchtst import FlattenHead
from deepforecast.nn.transformer import PatchEmbedding, TransformerOptions

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class TimeXerLayer(DecoderLayer):
    """Self-attention among the patches and the global token, then attention from the global token alone to the
    covariates, then a feed-forward network (eq. 3 to 6). The global token is the last one.
    """

    def forward(
        self,
        steps: Float[Tensor, "batch tokens width"],
        keys: Float[Tensor, "batch heads keys dim"],
        values: Float[Tensor, "batch heads keys dim"],
        masks: tuple[AttentionMask, AttentionMask],
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
    ) -> Float[Tensor, "batch tokens width"]:
        """Map the patches and the global token; see `DecoderLayer.forward`."""

        def attend_to_covariates(hidden: Tensor) -> Tensor:
            """Return the change of the global token, and 0 for the patches."""
            attended = self.cross(hidden[:, -1:], keys, values, masks[1], attention_maps)
            return F.pad(attended, (0, 0, hidden.shape[1] - 1, 0))

        steps = self.sublayer(
            0, steps, lambda hidden: self.attention(hidden, masks[0], attention_maps)
        )
        return self.sublayer(2, self.sublayer(1, steps, attend_to_covariates), self.feedforward)


class CovariateTokens(nn.Module):
    """One token per column of covariates: a linear map of its values in the whole window, and for future
    covariates also over the horizon (eq. 2).

    The map is shared by the columns. Each has a learned vector besides, as a fitted network always has the same
    columns; without it, only their values would tell them apart.
    """

    known: Int[Tensor, "future"]
    unknown: Int[Tensor, "unknown"]

    def __init__(self, sizes: InputSizes, width: int, dropout: float) -> None:
        super().__init__()
        past, future, _ = (
            [(name, index) for name, n_columns in variables for index in range(n_columns)]
            for variables in input_variables(sizes)
        )
        known = [past.index(column) for column in future]  # the columns of the past that have a future
        unknown = [index for index in range(len(past)) if index not in known]
        self.register_buffer("known", torch.tensor(known, dtype=torch.int64), persistent=False)
        self.register_buffer("unknown", torch.tensor(unknown, dtype=torch.int64), persistent=False)
        self.known_projection = nn.Linear(sizes.input_size + sizes.horizon, width) if known else None
        self.unknown_projection = nn.Linear(sizes.input_size, width) if unknown else None
        self.identity = nn.Parameter(0.02 * torch.randn(len(past), width))
        self.drop = Dropout(dropout)

    def forward(self, inputs: Inputs) -> Float[Tensor, "batch columns width"]:
        """Return the tokens, those of the future covariates first."""
        tokens = []
        if self.known_projection is not None:
            values = torch.cat([inputs.past.index_select(2, self.known), inputs.future], dim=1)
            tokens.append(self.known_projection(values.transpose(1, 2)))
        if self.unknown_projection is not None:
            tokens.append(self.unknown_projection(inputs.past.index_select(2, self.unknown).transpose(1, 2)))
        return cast(Tensor, self.drop(torch.cat(tokens, dim=1) + self.identity))


class TimeXerBody(DirectBody):
    """TimeXer for one target; without covariates its layers are those of an encoder.

    Parameters
    ----------
    sizes : InputSizes
    options : TransformerOptions
        `patch_length` should equal `stride`, as in the paper. Positional encodings can be "sinusoidal",
        "learned" or None.
    head_dropout : float, default 0.0
        Dropout before the output layer.
    """

    def __init__(
        self, sizes: InputSizes, options: TransformerOptions, head_dropout: float = 0.0
    ) -> None:
        super().__init__()
        layer, n_layers = options.layer, options.encoder_layers
        self.embedding = PatchEmbedding(replace(sizes, past=0, future=0), options)
        self.over_time = self.embedding.patches.n_patches + 1
        self.global_token = nn.Parameter(torch.randn(1, 1, layer.d_model))
        self.covariates: CovariateTokens | None = None
        self.encoder: Encoder | Decoder
        if sizes.past:
            self.covariates = CovariateTokens(sizes, layer.d_model, layer.dropout)
            self.key_value_projection = KeyValueProjection(layer.d_model, layer.n_heads, n_layers)
            self.encoder = Decoder(layer, n_layers, TimeXerLayer)
        else:
            self.encoder = Encoder(layer, n_layers)
        self.head = FlattenHead(sizes, self.over_time, layer.d_model, head_dropout)

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        target = replace(inputs, past=inputs.past[:, :, :0])  # the patches have no covariates
        patches = self.embedding.add_positions(self.embedding.embed(target), target)
        global_token = self.embedding.drop(self.global_token.expand(patches.shape[0], -1, -1))
        tokens = torch.cat([patches, global_token], dim=1)
        bias = F.pad(self.embedding.padding(inputs), (0, 1))  # the global token is visible
        if self.covariates is None:
            tokens = self.encoder(tokens, AttentionMask(bias))
        else:
            memory = self.key_value_projection(self.covariates(inputs))
            tokens = self.encoder(tokens, memory, (AttentionMask(bias), NO_MASK))
        return cast(Tensor, self.head(tokens, bias, inputs))
