"""TiDE: dense encoder and decoder of the window and the covariates, and a decoder of each time step.

Das, Kong, Leach, Mathur, Sen, Yu (2023), "Long-term Forecasting with TiDE: Time-series Dense
Encoder", TMLR, arXiv:2304.08424.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.layers import Dropout, normalization
from deepforecast.nn.linear import location_features
from deepforecast.nn.network import DirectBody

if TYPE_CHECKING:
    from jaxtyping import Float


class ResidualBlock(nn.Module):
    """Multilayer perceptron with one hidden layer and a linear skip connection,

        y = norm(dropout(W_2 relu(W_1 x + b_1) + b_2) + W_3 x + b_3).
    """

    def __init__(
        self, width_in: int, hidden_size: int, width_out: int, dropout: float, norm: str | None = None
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(width_in, hidden_size)
        self.out = nn.Linear(hidden_size, width_out)
        self.skip = nn.Linear(width_in, width_out)
        self.drop = Dropout(dropout)
        self.norm = normalization(norm, width_out)

    def forward(self, x: Float[Tensor, "*batch width_in"]) -> Float[Tensor, "*batch width_out"]:
        """Apply the layers and add the skip connection."""
        hidden = functional.relu(self.hidden(x), inplace=True)
        return cast(Tensor, self.norm(self.drop(self.out(hidden)) + self.skip(x)))


@dataclass(frozen=True)
class TiDEOptions:
    """Sizes of TiDE.

    Parameters
    ----------
    hidden_size : int, default 256
        Width of the dense layers.
    encoder_layers, decoder_layers : int, default 1
        Residual blocks of encoder and decoder.
    decoder_output_dim : int, default 16
        Width of the decoder's output per time step of the horizon.
    temporal_decoder_dim : int, default 32
        Hidden width of the temporal decoder.
    temporal_width : int, default 4
        Width of the projected covariates of a time step.
    temporal_hidden_size : int, default 64
        Hidden width of the projection of covariates.
    dropout : float, default 0.0
    normalization : str, optional
        See `normalization`.
    """

    hidden_size: int = 256
    encoder_layers: int = 1
    decoder_layers: int = 1
    decoder_output_dim: int = 16
    temporal_decoder_dim: int = 32
    temporal_width: int = 4
    temporal_hidden_size: int = 64
    dropout: float = 0.0
    normalization: str | None = None


class TiDEBody(DirectBody):
    """TiDE; with the window y, the covariates x_t of time step t, static covariates a and residual
    blocks R:

        x~_t = R_1(x_t)                                        feature projection
        [d_1 .. d_H] = Decoder(Encoder([y, x~_1 .. x~_L+H, a]))  dense encoder and decoder
        forecast_h = R_2([d_h, x~_L+h]) + W_h y                temporal decoder, global skip connection

    Parameters
    ----------
    sizes : InputSizes
    options : TiDEOptions

    Notes
    -----
    Differences from the paper: covariates of the window (which include past covariates) and of the
    horizon have a projection each; the global skip connection maps to the locations only; the
    output of the temporal decoder is not normalised (a layer normalisation of the single output of the
    authors' code is constant); series have no embedding, unless as a static covariate.
    """

    def __init__(self, sizes: InputSizes, options: TiDEOptions) -> None:
        super().__init__()
        width, horizon, hidden = options.temporal_width, sizes.horizon, options.hidden_size
        self.step_shape = (horizon, options.decoder_output_dim)
        self.past_projection = _projection(sizes.past, options)
        self.future_projection = _projection(sizes.future, options)
        future_width = width if sizes.future else 0
        width_in = sizes.input_size + sizes.static + horizon * future_width
        if sizes.past:
            width_in += sizes.input_size * width
        widths = [width_in, *[hidden] * (options.encoder_layers + options.decoder_layers - 1)]
        widths.append(horizon * options.decoder_output_dim)
        self.dense = nn.Sequential(*[
            ResidualBlock(n_in, hidden, n_out, options.dropout, options.normalization)
            for n_in, n_out in pairwise(widths)
        ])  # fmt: skip
        self.temporal_decoder = ResidualBlock(
            options.decoder_output_dim + future_width,
            options.temporal_decoder_dim,
            sizes.out_features,
            options.dropout,
        )
        locations = location_features(sizes)
        self.location_shape = (horizon, locations.stop - locations.start)
        self.pad = (locations.start, sizes.out_features - locations.stop)
        self.skip = nn.Linear(sizes.input_size, self.location_shape[0] * self.location_shape[1])

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        encoder_inputs, projected = [inputs.y], []
        if self.past_projection is not None:
            encoder_inputs.append(self.past_projection(inputs.past).flatten(1))
        if self.future_projection is not None:
            projected.append(self.future_projection(inputs.future))  # (batch, horizon, temporal_width)
            encoder_inputs.append(projected[0].flatten(1))
        decoded = self.dense(torch.cat([*encoder_inputs, inputs.static], dim=1))
        steps = torch.cat([decoded.view(-1, *self.step_shape), *projected], dim=2)
        skip = self.skip(inputs.y).view(-1, *self.location_shape)
        return cast(Tensor, self.temporal_decoder(steps) + functional.pad(skip, self.pad))


def _projection(width_in: int, options: TiDEOptions) -> ResidualBlock | None:
    """Return the projection of the covariates of a time step; None without covariates."""
    if not width_in:
        return None
    return ResidualBlock(
        width_in,
        options.temporal_hidden_size,
        options.temporal_width,
        options.dropout,
        options.normalization,
    )
