"""N-HiTS: residual stacks of blocks, each for a range of frequencies.

Challu, Olivares, Oreshkin, Garza, Mergenthaler-Canseco, Dubrawski (2023), "N-HiTS: Neural
Hierarchical Interpolation for Time Series Forecasting", AAAI 37, arXiv:2201.12886.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from deepforecast.nn.batch import InputSizes
from deepforecast.nn.nbeats import Basis, Block, Pooling, ResidualStacks

if TYPE_CHECKING:
    from jaxtyping import Float


class NHITSBody(ResidualStacks):
    """Stacks of N-HiTS blocks; block l of input x_l, the window minus all backcasts before it, is

        theta_l = MLP([pool_l(x_l), covariates])
        backcast_l = g(theta_l^b),  forecast_l = g(theta_l^f)

    with a multi-rate pooling of the window over `n_pool_kernel_size` steps (eq. 1) and with g, the
    interpolation between ceil(input_size / n_freq_downsample) values of the window and
    ceil(horizon / n_freq_downsample) values of the horizon, the knots (eq. 4).

    Parameters
    ----------
    sizes : InputSizes
    n_pool_kernel_size, n_freq_downsample : sequence of int
        Kernel of the pooling, and time steps per knot, of each stack.
    blocks : int, default 1
        Blocks per stack.
    hidden_sizes : sequence of int, default (512, 512)
        Hidden layers of a block.
    pooling_mode : {"max", "average"}, default "max"
    interpolation_mode : {"linear", "nearest", "cubic"}, default "linear"
    dropout : float, default 0.0

    Notes
    -----
    Kernels and time steps per knot are limited to the window and the horizon. The parts that are
    pooled end at the cutoff. Differences from the paper: covariates, which enter every block as they are.
    The authors' code interpolates the forecast only, and starts from the last value of the window,
    as the scalers "level" and "last" do here.
    """

    def __init__(
        self,
        sizes: InputSizes,
        n_pool_kernel_size: Sequence[int] = (2, 2, 1),
        n_freq_downsample: Sequence[int] = (4, 2, 1),
        blocks: int = 1,
        hidden_sizes: Sequence[int] = (512, 512),
        pooling_mode: str = "max",
        interpolation_mode: str = "linear",
        dropout: float = 0.0,
    ) -> None:
        n_blocks = blocks * len(n_freq_downsample)
        block_list: list[Block] = []
        block_order: list[tuple[str, int]] = []
        for kernel_size, downsample in zip(n_pool_kernel_size, n_freq_downsample, strict=True):
            name = f"stack_{len(block_list) // blocks + 1}"
            basis = _interpolation_basis(sizes, downsample, interpolation_mode)
            pooling = None
            if kernel_size > 1:
                pooling = Pooling(sizes.input_size, min(kernel_size, sizes.input_size), pooling_mode)
            for _ in range(blocks):
                is_last = len(block_list) + 1 == n_blocks
                block_order.append((name, len(block_list)))
                block_list.append(
                    Block(sizes, hidden_sizes, basis, dropout, not is_last, pooling)
                )
        super().__init__(block_list, block_order)


def interpolation(n_knots: int, length: int, mode: str = "linear") -> Float[Tensor, "length n_knots"]:
    """Return the matrix from values at the knots to those of all time steps.

    The knots are the centres of equal parts; beyond the first and the last one, values are constant.

    Examples
    --------
    >>> interpolation(2, 4) @ torch.tensor([0.0, 1.0])
    tensor([0.0000, 0.2500, 0.7500, 1.0000])
    """
    knots = torch.eye(n_knots)
    if mode == "cubic":  # torch has it for images: along the second axis
        image = functional.interpolate(knots[None, None], size=(n_knots, length), mode="bicubic")
        return image[0, 0].T.contiguous()
    return functional.interpolate(knots[None], size=length, mode=mode)[0].T.contiguous()


def _interpolation_basis(sizes: InputSizes, downsample: int, mode: str) -> Basis | None:
    """Return the basis with a knot per `downsample` time steps; None if every time step is a knot."""
    if downsample == 1:
        return None
    return Basis(
        interpolation(-(-sizes.input_size // downsample), sizes.input_size, mode),
        interpolation(-(-sizes.horizon // downsample), sizes.horizon, mode),
    )
