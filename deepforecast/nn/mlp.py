"""Multilayer perceptron, and the body that maps the flattened inputs by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.layers import Dropout
from deepforecast.nn.layers import normalization as make_normalization
from deepforecast.nn.network import DirectBody

if TYPE_CHECKING:
    from jaxtyping import Float

ACTIVATIONS = ("relu", "leaky_relu", "elu", "gelu", "silu", "tanh")


class MLP(nn.Module):
    """Multilayer perceptron, (batch, width_in) -> (batch, width_out).

    Each hidden layer is followed by normalisation, activation and dropout; the last layer is
    linear.

    Parameters
    ----------
    width_in : int
    hidden_sizes : sequence of int
        Widths of the hidden layers; empty: a linear map.
    width_out : int
    dropout : float, default 0.0
    activation : str, default "relu"
        One of `ACTIVATIONS`.
    normalization : str, optional
        See `normalization`.
    """

    def __init__(
        self,
        width_in: int,
        hidden_sizes: Sequence[int],
        width_out: int,
        dropout: float = 0.0,
        activation: str = "relu",
        normalization: str | None = None,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in hidden_sizes:
            layers += [
                nn.Linear(width_in, width),
                *_hidden_modules(width, dropout, activation, normalization),
            ]
            width_in = width
        self.layers = nn.Sequential(*layers, nn.Linear(width_in, width_out))

    def forward(self, x: Float[Tensor, "batch width_in"]) -> Float[Tensor, "batch width_out"]:
        """Apply the layers."""
        mapped: Tensor = self.layers(x)
        return mapped


class MLPBody(DirectBody):
    """A multilayer perceptron from the flattened window and covariates to all steps at once.

    Parameters
    ----------
    sizes : InputSizes
    hidden_sizes : sequence of int, default (512, 512, 512)
    dropout : float, default 0.0
    activation : str, default "relu"
    normalization : str, optional
    """

    def __init__(
        self,
        sizes: InputSizes,
        hidden_sizes: Sequence[int] = (512, 512, 512),
        dropout: float = 0.0,
        activation: str = "relu",
        normalization: str | None = None,
    ) -> None:
        super().__init__()
        self.shape = (sizes.horizon, sizes.out_features)
        width_in = sizes.input_size + covariates_width(sizes)
        width_out = sizes.horizon * sizes.out_features
        self.mlp = MLP(width_in, hidden_sizes, width_out, dropout, activation, normalization)

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        covariates = flatten_covariates(inputs)
        raw: Tensor = self.mlp(
            torch.cat([inputs.y, *covariates], dim=1) if covariates else inputs.y
        )
        return raw.view(-1, *self.shape)


def flatten_covariates(inputs: Inputs) -> list[Float[Tensor, "batch _"]]:
    """Return past, future and static covariates, each flattened, without empty ones.

    The mask of observed values is left out: on M4, with short histories and with a fifth of the
    values hidden, forecasts are more accurate without it (it mainly encodes the length of the
    series).
    """
    covariates = (inputs.past.flatten(1), inputs.future.flatten(1), inputs.static)
    return [covariate for covariate in covariates if covariate.shape[1]]


def covariates_width(sizes: InputSizes) -> int:
    """Return the total width of `flatten_covariates`."""
    return sizes.input_size * sizes.past + sizes.horizon * sizes.future + sizes.static


def _hidden_modules(
    width: int, dropout: float, activation: str, normalization: str | None
) -> list[nn.Module]:
    """Return the modules after the linear map of a hidden layer: normalisation, activation, dropout."""
    modules: list[nn.Module] = []
    if normalization is not None:
        modules.append(make_normalization(normalization, width))
    modules.append(_activation(activation))
    if dropout:
        modules.append(Dropout(dropout))
    return modules


def _activation(name: str) -> nn.Module:
    """Return the activation function of this name as a module; it may overwrite its input."""
    module: nn.Module
    if name in ("relu", "leaky_relu", "elu"):  # in place: their gradients need the output only
        module = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU}[name](inplace=True)
    else:
        module = {"gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}[name]()
    return module
