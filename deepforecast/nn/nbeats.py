"""N-BEATS: residual stacks of blocks, each with a backcast of the window and a forecast.

Oreshkin, Carpov, Chapados, Bengio (2020), "N-BEATS: Neural basis expansion analysis for
interpretable time series forecasting", arXiv:1905.10437. Covariates enter every block as in NBEATSx
(Olivares et al. 2023, arXiv:2104.05522).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.mlp import MLP, covariates_width, flatten_covariates
from deepforecast.nn.network import DirectBody

if TYPE_CHECKING:
    from jaxtyping import Float

STACK_KINDS = ("generic", "trend", "season")


@dataclass(frozen=True)
class Basis:
    """Basis functions of a block over the window and over the horizon."""

    backcast: Float[Tensor, "time backcast_functions"]
    forecast: Float[Tensor, "horizon forecast_functions"]


class ResidualStacks(DirectBody):
    """Base class of stacks of blocks: x_{l+1} = x_l - backcast_l(x_l), forecast = sum of
    forecast_l(x_l).

    Parameters
    ----------
    blocks : sequence of Block
    block_order : sequence of (str, int)
        Name of the stack and index of the block, in order of evaluation; shared blocks are repeated.
    """

    def __init__(self, blocks: Sequence[Block], block_order: Sequence[tuple[str, int]]) -> None:
        super().__init__()
        self.blocks, self.block_order = nn.ModuleList(blocks), block_order

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        return reduce(torch.add, (forecast for _, forecast in self._forecasts(inputs)))

    def components(self, inputs: Inputs) -> dict[str, Float[Tensor, "batch horizon out_features"]]:
        """Return the forecast of each stack; their sum is `features`."""
        components: dict[str, Tensor] = {}
        for name, forecast in self._forecasts(inputs):
            components[name] = components[name] + forecast if name in components else forecast
        return components

    def _forecasts(
        self, inputs: Inputs
    ) -> Iterator[tuple[str, Float[Tensor, "batch horizon out_features"]]]:
        """Yield the stack's name and the forecast of each block."""
        residual = inputs.y
        covariates = flatten_covariates(inputs)
        for name, block_index in self.block_order:
            backcast, forecast = self.blocks[block_index](residual, covariates)
            yield name, forecast
            if backcast is not None:
                residual = (residual - backcast) * inputs.observed  # missing values have no residual


class NBEATSBody(ResidualStacks):
    """Stacks of N-BEATS blocks, see `ResidualStacks`.

    Parameters
    ----------
    sizes : InputSizes
    stacks : sequence of {"generic", "trend", "season"}
        Kinds of the stacks. "generic": no basis, each block has its own weights; "trend"
        (polynomials) and "season" (harmonics): the blocks of the stack share their weights.
    blocks : int, default 3
        Blocks per stack.
    hidden_sizes : sequence of int, default (256, 256, 256)
        Hidden layers of a block.
    degree : int, default 2
        Degree of the polynomials.
    period : float, optional
        Period of the harmonics in time steps; None: the horizon.
    dropout : float, default 0.0
    """

    def __init__(
        self,
        sizes: InputSizes,
        stacks: Sequence[str] = ("generic",),
        blocks: int = 3,
        hidden_sizes: Sequence[int] = (256, 256, 256),
        degree: int = 2,
        period: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        block_list: list[Block] = []
        block_order: list[tuple[str, int]] = []
        for name, stack in zip(number_duplicates(stacks), stacks, strict=True):
            basis = None if stack == "generic" else _basis(stack, sizes, degree, period)
            for index in range(blocks):
                if basis is None or index == 0:
                    is_last = len(block_order) + 1 == len(stacks) * blocks
                    block_list.append(
                        Block(sizes, hidden_sizes, basis, dropout, has_backcast=not is_last)
                    )
                block_order.append((name, len(block_list) - 1))
        super().__init__(block_list, block_order)


class Block(nn.Module):
    """A multilayer perceptron whose outputs are the coefficients of the basis, or the values if there
    is no basis.

    The last block has no backcast, as no block follows that needs it. With `pooling` the perceptron
    sees the pooled window.
    """

    backcast_basis: Tensor
    forecast_basis: Tensor

    def __init__(
        self,
        sizes: InputSizes,
        hidden_sizes: Sequence[int],
        basis: Basis | None = None,
        dropout: float = 0.0,
        has_backcast: bool = True,
        pooling: Pooling | None = None,
    ) -> None:
        super().__init__()
        n_forecast = sizes.horizon if basis is None else basis.forecast.shape[1]
        n_backcast = sizes.input_size if basis is None else basis.backcast.shape[1]
        self.shape = (n_forecast, sizes.out_features)  # of the forecast's coefficients
        self.length = n_backcast if has_backcast else 0  # number of the backcast's coefficients
        self.has_basis = basis is not None
        if basis is not None:
            self.register_buffer("backcast_basis", basis.backcast, persistent=False)
            self.register_buffer("forecast_basis", basis.forecast, persistent=False)
        self.pooling = pooling
        window_width = sizes.input_size if pooling is None else pooling.output_size
        width_in = window_width + covariates_width(sizes)
        width_out = self.length + self.shape[0] * self.shape[1]
        self.mlp = MLP(width_in, hidden_sizes, width_out, dropout)

    def forward(
        self,
        residual: Float[Tensor, "batch time"],
        covariates: Sequence[Float[Tensor, "batch _"]] = (),
    ) -> tuple[Float[Tensor, "batch time"] | None, Float[Tensor, "batch horizon out_features"]]:
        """Return backcast and forecast.

        Parameters
        ----------
        residual : Tensor
            The window minus the backcasts of the previous blocks.
        covariates : sequence of Tensor

        Returns
        -------
        backcast : Tensor, or None
        forecast : Tensor
        """
        window = residual if self.pooling is None else self.pooling(residual)
        coefficients: Tensor = self.mlp(
            torch.cat([window, *covariates], dim=1) if covariates else window
        )
        backcast = coefficients[:, : self.length] if self.length else None
        forecast = coefficients[:, self.length :].view(-1, *self.shape)
        if not self.has_basis:
            return backcast, forecast
        return (
            None if backcast is None else backcast @ self.backcast_basis.T,
            self.forecast_basis @ forecast,
        )


class Pooling(nn.Module):
    """Largest or mean value of consecutive parts of a window.

    The parts are counted back from the cutoff; the first one is shorter if `kernel_size` does not
    divide the window.

    Parameters
    ----------
    input_size : int
    kernel_size : int
        Length of a part in time steps.
    mode : {"max", "average"}, default "max"
    """

    weights: Float[Tensor, "time pooled"]  # of the mean

    def __init__(self, input_size: int, kernel_size: int, mode: str = "max") -> None:
        super().__init__()
        self.kernel_size, self.is_max = kernel_size, mode == "max"
        self.output_size = -(-input_size // kernel_size)
        self.n_padded = self.output_size * kernel_size - input_size
        if not self.is_max:
            part = (torch.arange(input_size) + self.n_padded) // kernel_size  # of each time step
            weights = functional.one_hot(part, self.output_size).float()
            self.register_buffer("weights", weights / weights.sum(0), persistent=False)

    def forward(self, window: Float[Tensor, "batch time"]) -> Float[Tensor, "batch pooled"]:
        """Pool each part to one value."""
        if not self.is_max:
            return window @ self.weights
        padded = functional.pad(window, (self.n_padded, 0), value=-math.inf)
        return functional.max_pool1d(padded.unsqueeze(1), self.kernel_size).squeeze(1)


def number_duplicates(names: Sequence[str]) -> list[str]:
    """Number names that occur more than once, from 1.

    Examples
    --------
    >>> number_duplicates(["trend", "season", "trend"])
    ['trend_1', 'season', 'trend_2']
    """
    counts, occurrences = Counter(names), Counter[str]()
    unique_names = []
    for name in names:
        occurrences[name] += 1
        unique_names.append(f"{name}_{occurrences[name]}" if counts[name] > 1 else name)
    return unique_names


def polynomials(times: Float[Tensor, "time"], degree: int) -> Float[Tensor, "time functions"]:
    """Return powers 0 to `degree` of the times."""
    return times.unsqueeze(1) ** torch.arange(degree + 1, device=times.device)


def harmonics(times: Float[Tensor, "time"], period: float) -> Float[Tensor, "time functions"]:
    """Return cos(2 pi k t / period) and sin(2 pi k t / period) for k = 1, 2, ... up to the Nyquist
    frequency.

    `times` are in time steps. There is no constant, which belongs to the trend, and no sine at the
    Nyquist frequency, which is 0 at every step.
    """
    orders = torch.arange(1, max(int(period / 2), 1) + 1, device=times.device)
    angles = 2 * math.pi / period * times.unsqueeze(1) * orders
    return torch.cat([angles.cos(), angles[:, : math.ceil(period / 2) - 1].sin()], dim=1)


def _basis(stack: str, sizes: InputSizes, degree: int, period: float | None) -> Basis:
    """Return the basis of a trend or seasonal stack.

    Times are counted from the cutoff: the window ends at -1, the horizon starts at 0. Those of
    polynomials are divided by the lengths of window and horizon.
    """
    length = sizes.input_size
    horizon = sizes.horizon
    past = torch.arange(-length, 0, dtype=torch.float64)
    future = torch.arange(horizon, dtype=torch.float64)
    if stack == "trend":
        return Basis(
            polynomials(past / length, degree).float(),
            polynomials(future / horizon, degree).float(),
        )
    longest_period = float(max(period or horizon, 2))
    return Basis(harmonics(past, longest_period).float(), harmonics(future, longest_period).float())
