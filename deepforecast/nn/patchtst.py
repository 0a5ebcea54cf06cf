"""PatchTST: a Transformer encoder over patches of the window, and a linear map of all its outputs.

Nie, Nguyen, Sinthong, Kalagnanam (2023), arXiv:2211.14730.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.layers import Dropout
from deepforecast.nn.linear import OutputMap, hidden_width
from deepforecast.nn.network import AttentionBody, AttentionWeights, DirectBody
from deepforecast.nn.transformer import PatchEncoder, TransformerOptions

if TYPE_CHECKING:
    from jaxtyping import Float


class FlattenHead(nn.Module):
    """Linear map of all tokens at once to the locations of all steps; see `OutputMap` for the other features.

    Padding is 0. Future covariates have a linear effect on their step; past and static ones must be in
    the tokens.

    Parameters
    ----------
    sizes : InputSizes
    n_tokens, width : int
        Number and width of the tokens.
    dropout : float, default 0.0
        Dropout on the tokens.
    """

    def __init__(self, sizes: InputSizes, n_tokens: int, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.drop = Dropout(dropout)
        self.linear = nn.Linear(n_tokens * width, hidden_width(sizes))
        self.outputs = OutputMap(replace(sizes, past=0, static=0))

    def forward(
        self,
        tokens: Float[Tensor, "batch tokens width"],
        bias: Float[Tensor, "batch 1 1 tokens"],
        inputs: Inputs,
    ) -> Float[Tensor, "batch horizon out_features"]:
        """Map the tokens to all steps; the bias is that of the attention: 0, or -inf for padding."""
        visible = tokens * (bias.flatten(1) == 0).unsqueeze(-1)
        return cast(Tensor, self.outputs(self.linear(self.drop(visible.flatten(1))), inputs))


class PatchTSTBody(DirectBody, AttentionBody):
    """Encoder of the patches z, and the forecast W flatten(z) + b for all steps at once.

    Parameters
    ----------
    sizes : InputSizes
    options : TransformerOptions
    head_dropout : float, default 0.0
        Dropout on flatten(z).
    """

    def __init__(
        self, sizes: InputSizes, options: TransformerOptions, head_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.window_encoder = PatchEncoder(sizes, options)
        self.over_time = self.window_encoder.patches.n_patches
        self.head = FlattenHead(sizes, self.over_time, options.layer.d_model, head_dropout)

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        encoded, bias = self.window_encoder.encode(inputs)  # (batch, patches, d_model)
        return cast(Tensor, self.head(encoded, bias, inputs))

    def attention_maps(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> list[AttentionWeights]:
        """Return the weights of every layer, among the patches of the window."""
        attention_maps: list[Tensor] = []
        self.window_encoder.encode(inputs, attention_maps)
        positions = torch.tensor(self.window_encoder.past_positions)
        return [
            AttentionWeights("self", layer, weights, positions, positions)
            for layer, weights in enumerate(attention_maps)
        ]
