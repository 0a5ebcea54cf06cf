"""Layers one behind the other, and the body that puts everything it is told through them at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import DirectBody
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.normalization import normalization as normalization_named

ACTIVATIONS = ("relu", "leaky_relu", "elu", "gelu", "silu", "tanh")


class MLP(nn.Module):
    """Hidden layers of given sizes, then a linear one: (B, width_in) to (B, width_out).

    After each hidden layer come the normalization, the activation and the dropout; after the last, nothing.
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
        for size in hidden_sizes:
            layers += [nn.Linear(width_in, size), *_hidden_modules(size, dropout, activation, normalization)]
            width_in = size
        self.layers = nn.Sequential(*layers, nn.Linear(width_in, width_out))

    def forward(self, x: Tensor) -> Tensor:
        """(B, width_in) to (B, width_out)."""
        mapped: Tensor = self.layers(x)
        return mapped


class MLPBody(DirectBody):
    """The window and all covariates, flattened and put through hidden layers to all steps at once."""

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
        width_in, width_out = sizes.input_size + covariates_width(sizes), sizes.horizon * sizes.out_features
        self.mlp = MLP(width_in, hidden_sizes, width_out, dropout, activation, normalization)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        covariates = flatten_covariates(inputs)
        raw: Tensor = self.mlp(torch.cat([inputs.y, *covariates], dim=1) if covariates else inputs.y)
        return raw.view(-1, *self.shape)


def flatten_covariates(inputs: Inputs) -> list[Tensor]:
    """What a window tells besides its values, each part flattened to (B, n): past, future and static covariates, where any are.

    Which values were seen is left out: on M4, with short histories and with a fifth of all values hidden, forecasts are better
    without it (what it tells first is how long a series is). A value that is missing stands at the place of the scaling.
    """
    covariates = (inputs.past.flatten(1), inputs.future.flatten(1), inputs.static)
    return [covariate for covariate in covariates if covariate.shape[1]]


def covariates_width(sizes: InputSizes) -> int:
    """How many numbers `flatten_covariates` holds a window."""
    return sizes.input_size * sizes.past + sizes.horizon * sizes.future + sizes.static


def _hidden_modules(size: int, dropout: float, activation: str, normalization: str | None) -> list[nn.Module]:
    """What follows a hidden layer; what would do nothing is left out, for each costs a call."""
    modules: list[nn.Module] = []
    if normalization is not None:
        modules.append(normalization_named(normalization, size))
    modules.append(_activation(activation))
    if dropout:
        modules.append(Dropout(dropout))
    return modules


def _activation(name: str) -> nn.Module:
    """In place where the gradient needs only the result: a buffer less to fill a layer."""
    module: nn.Module
    if name in ("relu", "leaky_relu", "elu"):
        module = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU}[name](inplace=True)
    else:
        module = {"gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}[name]()
    return module
