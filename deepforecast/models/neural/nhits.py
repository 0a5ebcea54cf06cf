"""The N-HiTS forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.errors import ParameterError
from deepforecast.models.neural._base import NeuralForecaster
from deepforecast.models.neural._shared_parameters import ResidualStackDefaults

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.nhits import NHITSBody


@register
class NHITS(ResidualStackDefaults, NeuralForecaster):
    """N-HiTS: residual stacks that forecast at different time scales, from coarse to fine.

    As in N-BEATS, each block outputs a backcast, which is subtracted from the input of the next
    block, and a forecast; the forecasts of all blocks are summed. A block sees maxima of
    `n_pool_kernel_size` time steps of its input, and outputs one value per `n_freq_downsample` time
    steps; the values in between are interpolated. So the blocks of a stack learn one range of
    frequencies with few weights. `explain()` returns the contribution of each stack.

    Measured coverage of 80 % intervals at defaults: M1 monthly 80 %, NN5 daily 70 %, EPF Nord Pool
    hourly 78 % (benchmarks/bench_coverage.py).

    See Also
    --------
    NBEATS : Residual stacks without pooling and interpolation.

    References
    ----------
    Challu, Olivares, Oreshkin, Garza, Mergenthaler-Canseco, Dubrawski (2023), "N-HiTS: Neural
    hierarchical interpolation for time series forecasting", AAAI 37, arXiv:2201.12886.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> NHITS(horizon=7, hidden_sizes=[32, 32], max_steps=20).fit(generate(2, 100)).predict().shape
    (14, 3)
    """

    coverage_slow: ClassVar[bool] = True

    n_pool_kernel_size: Sequence[int] = param(
        default=(2, 2, 1), at_least=1, search=((2, 2, 1), (1, 1, 1), (8, 4, 1), (16, 8, 1)),
        help="number of time steps pooled in the input of each stack, in order; 1: no pooling",
    )
    n_freq_downsample: Sequence[int] = param(
        default=(4, 2, 1), at_least=1, search=((4, 2, 1), (24, 12, 1), (60, 8, 1), (1, 1, 1)),
        help="number of time steps per interpolated value in the output of each stack, in order; 1: no interpolation",
    )
    blocks: int = param(default=1, at_least=1, low=1, high=3, help="number of blocks per stack")
    hidden_sizes: Sequence[int] = param(
        default=(512, 512), at_least=1, help="number of units of each hidden layer of a block",
    )
    pooling_mode: Literal["max", "average"] = param(default="max", help="pooling: maximum or mean of the time steps")
    interpolation_mode: Literal["linear", "nearest", "cubic"] = param(
        default="linear", help="interpolation between the values of the output",
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """A small network for the contract checks."""
        return [{"input_size": 14, "max_steps": 12, "batch_size": 32, "hidden_sizes": [64, 64]}]

    def _body(self, sizes: InputSizes) -> NHITSBody:
        """The stacks of blocks; raise `ParameterError` if the rates are not those of the same stacks."""
        from deepforecast.nn.nhits import NHITSBody  # imports torch

        n_stacks = len(self.n_freq_downsample)
        if not n_stacks or len(self.n_pool_kernel_size) != n_stacks:
            raise ParameterError(
                "`n_pool_kernel_size` and `n_freq_downsample` must have one number per stack, got "
                f"{len(self.n_pool_kernel_size)} and {n_stacks} numbers.",
                hint="Set e.g. n_pool_kernel_size=[2, 2, 1] and n_freq_downsample=[4, 2, 1].",
                parameter="n_pool_kernel_size", value=self.n_pool_kernel_size,
            )
        return NHITSBody(
            sizes,
            self.n_pool_kernel_size,
            self.n_freq_downsample,
            blocks=self.blocks,
            hidden_sizes=self.hidden_sizes,
            pooling_mode=self.pooling_mode,
            interpolation_mode=self.interpolation_mode,
            dropout=self.dropout,
        )
