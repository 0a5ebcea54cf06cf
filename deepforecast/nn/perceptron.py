"""Layers one behind the other, and the body that puts everything it is told through them at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, Sizes
from deepforecast.nn.body import Direct
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.normalization import normalization as normalization_named

ACTIVATIONS = ("relu", "leaky_relu", "elu", "gelu", "silu", "tanh")


class Perceptron(nn.Module):
    """Hidden layers of given sizes, then a linear one: (B, width_in) to (B, width_out).

    After each hidden layer come the normalization, the activation and the dropout; after the last, nothing.
    """

    def __init__(
        self,
        width_in: int,
        sizes: Sequence[int],
        width_out: int,
        dropout: float = 0.0,
        activation: str = "relu",
        normalization: str | None = None,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for size in sizes:
            layers += [nn.Linear(width_in, size), *_after(size, dropout, activation, normalization)]
            width_in = size
        self.layers = nn.Sequential(*layers, nn.Linear(width_in, width_out))

    def forward(self, x: Tensor) -> Tensor:
        """(B, width_in) to (B, width_out)."""
        found: Tensor = self.layers(x)
        return found


class MLPBody(Direct):
    """The window and all covariates, flattened and put through hidden layers to all steps at once."""

    def __init__(
        self,
        sizes: Sizes,
        hidden: Sequence[int] = (512, 512, 512),
        dropout: float = 0.0,
        activation: str = "relu",
        normalization: str | None = None,
    ) -> None:
        super().__init__()
        self.shape = (sizes.horizon, sizes.width)
        width_in, width_out = sizes.input_size + surroundings_width(sizes), sizes.horizon * sizes.width
        self.perceptron = Perceptron(width_in, hidden, width_out, dropout, activation, normalization)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        around = surroundings(inputs)
        found: Tensor = self.perceptron(torch.cat([inputs.y, *around], dim=1) if around else inputs.y)
        return found.view(-1, *self.shape)


def surroundings(inputs: Inputs) -> list[Tensor]:
    """What a window tells besides its values, each part flattened to (B, n): past, future and static covariates, where any are.

    Which values were seen is left out: on M4, with short histories and with a fifth of all values hidden, forecasts are better
    without it (what it tells first is how long a series is). A value that is missing stands at the place of the scaling.
    """
    covariates = (inputs.past.flatten(1), inputs.future.flatten(1), inputs.static)
    return [part for part in covariates if part.shape[1]]


def surroundings_width(sizes: Sizes) -> int:
    """How many numbers `surroundings` holds a window."""
    return sizes.input_size * sizes.past + sizes.horizon * sizes.future + sizes.static


def _after(size: int, dropout: float, activation: str, normalization: str | None) -> list[nn.Module]:
    """What follows a hidden layer; what would do nothing is left out, for each costs a call."""
    found: list[nn.Module] = []
    if normalization is not None:
        found.append(normalization_named(normalization, size))
    found.append(_activation(activation))
    if dropout:
        found.append(Dropout(dropout))
    return found


def _activation(name: str) -> nn.Module:
    """In place where the gradient needs only the result: a buffer less to fill a layer."""
    made: nn.Module
    if name in ("relu", "leaky_relu", "elu"):
        made = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU}[name](inplace=True)
    else:
        made = {"gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}[name]()
    return made
