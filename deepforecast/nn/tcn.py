"""Temporal convolutional network: residual blocks of dilated causal convolutions.

Bai, Kolter, Koltun (2018), "An Empirical Evaluation of Generic Convolutional and Recurrent Networks
for Sequence Modeling", arXiv:1803.01271.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import InputSizes
from deepforecast.nn.layers import Dropout
from deepforecast.nn.recurrent import StatesDirect

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class TCNOptions:
    """Options of the convolutional layers.

    Parameters
    ----------
    hidden_size : int, default 32
        Channels of each convolution.
    n_layers : int, default 4
        Residual blocks; those of index l have dilation 2^l.
    kernel_size : int, default 3
    dropout : float, default 0.0
    weight_norm : bool, default True
        Whether the kernels are normalised, w = g v / ||v|| (Salimans and Kingma 2016,
        arXiv:1602.07868).
    """

    hidden_size: int = 32
    n_layers: int = 4
    kernel_size: int = 3
    dropout: float = 0.0
    weight_norm: bool = True

    @property
    def receptive_field(self) -> int:
        """Time steps that an output depends on, its own included: two convolutions per block."""
        n_steps: int = 1 + 2 * (self.kernel_size - 1) * (2**self.n_layers - 1)
        return n_steps


class CausalConvolution(nn.Module):
    """Dilated causal convolution, y_t = b + sum_i w_i x_{t - dilation i}, with zeros before the window.

    With `weight_norm` the kernel of an output channel is w = g v / ||v||, with weights g and v: torch's
    own parametrization cannot be pickled.
    """

    def __init__(self, n_in: int, n_out: int, dilation: int, options: TCNOptions) -> None:
        super().__init__()
        layer = nn.Conv1d(n_in, n_out, options.kernel_size)  # for its initial weights
        self.weight, self.bias = layer.weight, layer.bias
        norms = layer.weight.detach().flatten(1).norm(dim=1)
        self.scale = nn.Parameter(norms) if options.weight_norm else None
        self.dilation, self.n_padded = dilation, (options.kernel_size - 1) * dilation

    def forward(self, x: Float[Tensor, "batch n_in time"]) -> Float[Tensor, "batch n_out time"]:
        """Apply the convolution."""
        weight = self.weight
        if self.scale is not None:
            weight = weight * (self.scale / weight.flatten(1).norm(dim=1)).view(-1, 1, 1)
        padded = functional.pad(x, (self.n_padded, 0))  # an output does not depend on later steps
        return functional.conv1d(padded, weight, self.bias, dilation=self.dilation)


class ResidualBlock(nn.Module):
    """Two dilated causal convolutions with a skip connection,

        f(x) = dropout(relu(w * x + b)),  y = relu(f_2(f_1(x)) + x).

    The skip connection is a convolution of kernel size 1 where the number of channels changes.
    """

    def __init__(self, n_channels: int, dilation: int, options: TCNOptions) -> None:
        super().__init__()
        hidden_size = options.hidden_size
        self.convolutions = nn.ModuleList([
            CausalConvolution(n_in, hidden_size, dilation, options)
            for n_in in (n_channels, hidden_size)
        ])  # fmt: skip
        self.skip = nn.Conv1d(n_channels, hidden_size, 1) if n_channels != hidden_size else nn.Identity()
        self.drop = Dropout(options.dropout)

    def forward(
        self, x: Float[Tensor, "batch channels time"]
    ) -> Float[Tensor, "batch hidden_size time"]:
        """Apply the convolutions and add the skip connection."""
        hidden = x
        for convolution in self.convolutions:
            hidden = self.drop(functional.relu(convolution(hidden), inplace=True))
        return functional.relu(hidden + self.skip(x))


class TemporalConvolution(nn.Module):
    """Residual blocks with dilations 1, 2, 4, ..."""

    def __init__(self, width_in: int, options: TCNOptions) -> None:
        super().__init__()
        self.output_size = options.hidden_size
        widths = [width_in, *[options.hidden_size] * (options.n_layers - 1)]
        self.blocks = nn.Sequential(
            *[ResidualBlock(width, 2**layer, options) for layer, width in enumerate(widths)]
        )

    def forward(
        self, inputs: Float[Tensor, "batch time width_in"]
    ) -> Float[Tensor, "batch time hidden_size"]:
        """Return the outputs of all time steps."""
        outputs: Tensor = self.blocks(inputs.transpose(1, 2))
        return outputs.transpose(1, 2)


class TCNBody(StatesDirect):
    """Temporal convolutional network over the window, and the decoder of `RecurrentDirect`.

    Parameters
    ----------
    sizes : InputSizes
    options : TCNOptions
    season, decoder_layers, decoder_size, skip_hidden_sizes
        See `StatesDirect`.

    Notes
    -----
    Differences from the paper: torch's initial weights, and dropout of single numbers instead of whole
    channels, as in the authors' code.
    """

    def __init__(
        self,
        sizes: InputSizes,
        options: TCNOptions,
        season: int | None = None,
        decoder_layers: int = 1,
        decoder_size: int = 64,
        skip_hidden_sizes: Sequence[int] | None = None,
    ) -> None:
        encoder = TemporalConvolution(sizes.past_features, options)
        super().__init__(
            sizes, encoder, options.dropout, season, decoder_layers, decoder_size, skip_hidden_sizes
        )
        self.over_time = sizes.input_size  # how often the weights of most layers are used per window

    def encode(
        self, features: Float[Tensor, "batch time past_features"]
    ) -> tuple[Float[Tensor, "batch time output_size"], Float[Tensor, "batch output_size"]]:
        """Return the outputs of all time steps and that of the last one."""
        states = self.encoder(features)
        return states, states[:, -1]


def required_layers(length: int, kernel_size: int) -> int:
    """Return the number of residual blocks whose receptive field is at least `length` time steps.

    Examples
    --------
    >>> required_layers(29, 3), required_layers(30, 3)
    (3, 4)
    """
    n_layers = 1
    while kernel_size > 1 and TCNOptions(0, n_layers, kernel_size).receptive_field < length:
        n_layers += 1
    return n_layers
