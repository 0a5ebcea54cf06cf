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

from deepforecast.nn.batch import Inputs, Sizes
from deepforecast.nn.body import Direct
from deepforecast.nn.perceptron import Perceptron, surroundings, surroundings_width

KINDS = ("generic", "trend", "season")


@dataclass(frozen=True)
class Basis:
    """The curves a block may draw over the window, (length, curves), and as many over the steps ahead, (horizon, curves)."""

    behind: Tensor
    ahead: Tensor


class NBEATSBody(Direct):
    """Stacks of blocks. What a block explains of the window is taken off before the next one; what all forecast is added up.

    `stacks`: the kind of each. A "generic" stack has `blocks` blocks of their own weights and no basis; one of "trend"
    (polynomials up to `degree`) or "season" (harmonics of `period` rows, of the horizon without one) runs one block as often.
    """

    def __init__(
        self,
        sizes: Sizes,
        stacks: Sequence[str] = ("generic",),
        blocks: int = 3,
        hidden: Sequence[int] = (256, 256, 256),
        degree: int = 2,
        period: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        made: list[Block] = []
        self.way: list[tuple[str, int]] = []  # stack and block, in the order they are run
        for name, kind in zip(numbered(stacks), stacks, strict=True):
            basis = None if kind == "generic" else _basis(kind, sizes, degree, period)
            for number in range(blocks):
                if basis is None or number == 0:
                    final = len(self.way) + 1 == len(stacks) * blocks  # nothing comes after it
                    made.append(Block(sizes, hidden, basis, dropout, explains=not final))
                self.way.append((name, len(made) - 1))
        self.blocks = nn.ModuleList(made)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        return reduce(torch.add, (forecast for _, forecast in self._forecasts(inputs)))

    def parts(self, inputs: Inputs) -> dict[str, Tensor]:
        """What each stack brings, (B, horizon, width); `features` is their sum."""
        found: dict[str, Tensor] = {}
        for name, forecast in self._forecasts(inputs):
            found[name] = found[name] + forecast if name in found else forecast
        return found

    def _forecasts(self, inputs: Inputs) -> Iterator[tuple[str, Tensor]]:
        """Block by block: the name of its stack and its part of the forecast."""
        left, around = inputs.y, surroundings(inputs)
        for name, number in self.way:
            explained, forecast = self.blocks[number](left, around)
            yield name, forecast
            if explained is not None:
                left = (left - explained) * inputs.seen  # of what was not seen nothing is left to explain


class Block(nn.Module):
    """Hidden layers, then the weights of the curves of its basis; without a basis the values themselves.

    `explains`: whether there is a block after it, for which something of the window is taken off.
    """

    behind: Tensor
    ahead: Tensor

    def __init__(
        self, sizes: Sizes, hidden: Sequence[int], basis: Basis | None = None, dropout: float = 0.0, explains: bool = True
    ) -> None:
        super().__init__()
        self.shape = (sizes.horizon, sizes.width) if basis is None else (basis.ahead.shape[1], sizes.width)
        self.length = 0 if not explains else sizes.input_size if basis is None else basis.behind.shape[1]
        self.drawn = basis is not None
        if basis is not None:
            self.register_buffer("behind", basis.behind, persistent=False)
            self.register_buffer("ahead", basis.ahead, persistent=False)
        width_in, width_out = sizes.input_size + surroundings_width(sizes), self.length + self.shape[0] * self.shape[1]
        self.perceptron = Perceptron(width_in, hidden, width_out, dropout)

    def forward(self, left: Tensor, around: Sequence[Tensor] = ()) -> tuple[Tensor | None, Tensor]:
        """Of what is left of the window, (B, L), and all that is told besides, each (B, n): what is explained, (B, L), and the
        forecast, (B, horizon, width)."""
        found: Tensor = self.perceptron(torch.cat([left, *around], dim=1) if around else left)
        explained = found[:, : self.length] if self.length else None
        forecast = found[:, self.length :].view(-1, *self.shape)
        if not self.drawn:
            return explained, forecast
        return None if explained is None else explained @ self.behind.T, self.ahead @ forecast


def numbered(names: Sequence[str]) -> list[str]:
    """Names that occur more than once, numbered from 1.

    >>> numbered(["trend", "season", "trend"])
    ['trend_1', 'season', 'trend_2']
    """
    often, met = Counter(names), Counter[str]()
    found = []
    for name in names:
        met[name] += 1
        found.append(f"{name}_{met[name]}" if often[name] > 1 else name)
    return found


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


def _basis(kind: str, sizes: Sizes, degree: int, period: float | None) -> Basis:
    """Rows are counted from the cutoff: the window ends at -1, the first step ahead is 0."""
    length, horizon = sizes.input_size, sizes.horizon
    behind, ahead = torch.arange(-length, 0, dtype=torch.float64), torch.arange(horizon, dtype=torch.float64)
    if kind == "trend":
        return Basis(polynomials(behind / length, degree).float(), polynomials(ahead / horizon, degree).float())
    cycle = float(max(period or horizon, 2))
    return Basis(harmonics(behind, cycle).float(), harmonics(ahead, cycle).float())
