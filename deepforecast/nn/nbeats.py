"""N-BEATS: blocks that each explain a part of the window and bring a part of the forecast.

Oreshkin, Carpov, Chapados, Bengio 2020, "N-BEATS: Neural basis expansion analysis for interpretable time series forecasting";
covariates as in Olivares et al. 2023 (NBEATSx): every block is told of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import DirectBody
from deepforecast.nn.mlp import MLP, covariates_width, flatten_covariates

STACK_KINDS = ("generic", "trend", "season")


@dataclass(frozen=True)
class Basis:
    """The curves a block may draw over the window, (length, curves), and as many over the steps ahead, (horizon, curves)."""

    backcast: Tensor
    forecast: Tensor


class NBEATSBody(DirectBody):
    """Stacks of blocks. What a block explains of the window is taken off before the next one; what all forecast is added up.

    `stacks`: the kind of each. A "generic" stack has `blocks` blocks of their own weights and no basis; one of "trend"
    (polynomials up to `degree`) or "season" (harmonics of `period` rows, of the horizon without one) runs one block as often.
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
        super().__init__()
        block_list: list[Block] = []
        self.block_order: list[tuple[str, int]] = []  # stack and block, in the order they are run
        for name, stack in zip(number_duplicates(stacks), stacks, strict=True):
            basis = None if stack == "generic" else _basis(stack, sizes, degree, period)
            for number in range(blocks):
                if basis is None or number == 0:
                    final = len(self.block_order) + 1 == len(stacks) * blocks  # nothing comes after it
                    block_list.append(Block(sizes, hidden_sizes, basis, dropout, has_backcast=not final))
                self.block_order.append((name, len(block_list) - 1))
        self.blocks = nn.ModuleList(block_list)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        return reduce(torch.add, (forecast for _, forecast in self._forecasts(inputs)))

    def components(self, inputs: Inputs) -> dict[str, Tensor]:
        """What each stack brings, (B, horizon, width); `features` is their sum."""
        components: dict[str, Tensor] = {}
        for name, forecast in self._forecasts(inputs):
            components[name] = components[name] + forecast if name in components else forecast
        return components

    def _forecasts(self, inputs: Inputs) -> Iterator[tuple[str, Tensor]]:
        """Block by block: the name of its stack and its part of the forecast."""
        residual, covariates = inputs.y, flatten_covariates(inputs)
        for name, number in self.block_order:
            backcast, forecast = self.blocks[number](residual, covariates)
            yield name, forecast
            if backcast is not None:
                residual = (residual - backcast) * inputs.observed  # of what was not seen nothing is left to explain


class Block(nn.Module):
    """Hidden layers, then the weights of the curves of its basis; without a basis the values themselves.

    `explains`: whether there is a block after it, for which something of the window is taken off.
    """

    backcast_basis: Tensor
    forecast_basis: Tensor

    def __init__(
        self, sizes: InputSizes, hidden_sizes: Sequence[int], basis: Basis | None = None, dropout: float = 0.0, has_backcast: bool = True
    ) -> None:
        super().__init__()
        self.shape = (sizes.horizon, sizes.out_features) if basis is None else (basis.forecast.shape[1], sizes.out_features)
        self.length = 0 if not has_backcast else sizes.input_size if basis is None else basis.backcast.shape[1]
        self.has_basis = basis is not None
        if basis is not None:
            self.register_buffer("backcast_basis", basis.backcast, persistent=False)
            self.register_buffer("forecast_basis", basis.forecast, persistent=False)
        width_in, width_out = sizes.input_size + covariates_width(sizes), self.length + self.shape[0] * self.shape[1]
        self.mlp = MLP(width_in, hidden_sizes, width_out, dropout)

    def forward(self, residual: Tensor, covariates: Sequence[Tensor] = ()) -> tuple[Tensor | None, Tensor]:
        """Of what is left of the window, (B, L), and all that is told besides, each (B, n): what is explained, (B, L), and the
        forecast, (B, horizon, width)."""
        coefficients: Tensor = self.mlp(torch.cat([residual, *covariates], dim=1) if covariates else residual)
        backcast = coefficients[:, : self.length] if self.length else None
        forecast = coefficients[:, self.length :].view(-1, *self.shape)
        if not self.has_basis:
            return backcast, forecast
        return None if backcast is None else backcast @ self.backcast_basis.T, self.forecast_basis @ forecast


def number_duplicates(names: Sequence[str]) -> list[str]:
    """Names that occur more than once, numbered from 1.

    >>> number_duplicates(["trend", "season", "trend"])
    ['trend_1', 'season', 'trend_2']
    """
    counts, occurrences = Counter(names), Counter[str]()
    unique_names = []
    for name in names:
        occurrences[name] += 1
        unique_names.append(f"{name}_{occurrences[name]}" if counts[name] > 1 else name)
    return unique_names


def polynomials(times: Tensor, degree: int) -> Tensor:
    """Powers 0 to `degree` of times (n,): (n, degree + 1)."""
    return times.unsqueeze(1) ** torch.arange(degree + 1, device=times.device)


def harmonics(times: Tensor, period: float) -> Tensor:
    """Cosines and sines of 1, 2, .. cycles a period, up to one cycle every two rows, at times (n,) counted in rows.

    (n, curves). There is no constant, which is the trend's, and no sine of two rows a cycle, which is zero at every row.
    """
    cycles = torch.arange(1, max(int(period / 2), 1) + 1, device=times.device)
    angles = 2 * math.pi / period * times.unsqueeze(1) * cycles
    return torch.cat([angles.cos(), angles[:, : math.ceil(period / 2) - 1].sin()], dim=1)


def _basis(stack: str, sizes: InputSizes, degree: int, period: float | None) -> Basis:
    """Rows are counted from the cutoff: the window ends at -1, the first step ahead is 0."""
    length, horizon = sizes.input_size, sizes.horizon
    past, future = torch.arange(-length, 0, dtype=torch.float64), torch.arange(horizon, dtype=torch.float64)
    if stack == "trend":
        return Basis(polynomials(past / length, degree).float(), polynomials(future / horizon, degree).float())
    cycle = float(max(period or horizon, 2))
    return Basis(harmonics(past, cycle).float(), harmonics(future, cycle).float())
