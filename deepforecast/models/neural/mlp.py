"""The MLP forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._base import NeuralForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.mlp import MLPBody


@register
class MLP(NeuralForecaster):
    """Multilayer perceptron on the flattened window.

    The window and all covariates are concatenated to one vector, and fully connected hidden layers
    map it to all steps of the horizon at once.

    Measured coverage of 80 % intervals at defaults: M1 monthly 78 %, NN5 daily 75 %, EPF Nord Pool
    hourly 79 % (benchmarks/bench_coverage.py).

    See Also
    --------
    NBEATS : Residual stacks of fully connected blocks.
    DLinear : Linear maps without hidden layers.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> MLP(horizon=7, hidden_sizes=[32], max_steps=20).fit(generate(2, 100)).predict().shape
    (14, 3)
    """

    hidden_sizes: Sequence[int] = param(
        default=(512, 512, 512), at_least=1, search=((128, 128), (256, 256, 256), (512, 512, 512)),
        help="number of units of each hidden layer",
    )
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability",
    )
    activation: Literal["relu", "gelu", "silu", "tanh"] = param(
        default="relu", help="activation function of the hidden layers",
    )
    normalization: Literal["layer", "batch", "rms"] | None = param(
        default=None, help="normalization after each hidden layer; None: no normalization",
    )

    def _body(self, sizes: InputSizes) -> MLPBody:
        from deepforecast.nn.mlp import MLPBody  # imports torch

        return MLPBody(sizes, self.hidden_sizes, self.dropout, self.activation, self.normalization)
