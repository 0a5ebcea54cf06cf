"""The TCN forecaster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._base import NeuralForecaster
from deepforecast.models.neural._shared_parameters import StatesDecoder

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.tcn import TCNBody


@register
class TCN(StatesDecoder, NeuralForecaster):
    """Temporal convolutional network: residual blocks of dilated causal convolutions.

    Each block has two convolutions over the past, whose dilation doubles from block to block, and a
    skip connection, y = relu(f(f(x)) + x) with f(x) = relu(w * x + b). All steps of the horizon are
    computed at once from the outputs of the last block, as by `LSTM` with output="direct".

    Measured coverage of 80 % intervals at defaults: M1 monthly 80 %, NN5 daily 71 %, EPF Nord Pool
    hourly 83 % (benchmarks/bench_coverage.py).

    See Also
    --------
    LSTM : Recurrent network with the same decoder.

    References
    ----------
    Bai, Kolter, Koltun (2018), "An empirical evaluation of generic convolutional and recurrent
    networks for sequence modeling", arXiv:1803.01271.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> TCN(horizon=7, hidden_size=8, max_steps=20).fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    hidden_size: int = param(
        default=32, at_least=1, low=16, high=128, log=True, expensive=True,
        help="number of channels of each convolution",
    )
    n_layers: int | None = param(
        default=None, at_least=1, at_most=12, low=2, high=6, expensive=True,
        help="number of residual blocks, of two convolutions each; None: as many as the last output needs to depend on the "
        "whole window",
    )
    kernel_size: int = param(default=3, at_least=2, low=2, high=7, help="kernel size of the convolutions, in time steps")
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability",
    )
    weight_norm: bool = param(default=True, help="whether to apply weight normalization to the convolutions")

    learning_example: ClassVar[dict[str, Any]] = {
        **NeuralForecaster.learning_example, "max_steps": 400, "hidden_size": 16, "weight_decay": 0.01, "batch_size": 64,
        "skip_hidden_sizes": [],  # in a few hundred steps, the convolutions learn past covariates next to a linear map of y only
    }  # fmt: skip

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """A small network for the contract checks."""
        return [{"input_size": 14, "max_steps": 10, "batch_size": 32, "hidden_size": 8, "decoder_size": 16}]

    def _body(self, sizes: InputSizes) -> TCNBody:
        from deepforecast.nn.tcn import TCNBody, TCNOptions, required_layers  # imports torch

        options = TCNOptions(
            hidden_size=self.hidden_size,
            n_layers=self.n_layers or required_layers(sizes.input_size, self.kernel_size),
            kernel_size=self.kernel_size,
            dropout=self.dropout,
            weight_norm=self.weight_norm,
        )
        return TCNBody(sizes, options, season=sizes.season, **self._decoder_options())
