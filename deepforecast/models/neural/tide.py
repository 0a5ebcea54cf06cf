"""The TiDE forecaster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._base import NeuralForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.tide import TiDEBody


@register
class TiDE(NeuralForecaster):
    """TiDE, time-series dense encoder: residual perceptrons with a decoder of each time step.

    The covariates of each time step are projected to a few numbers. A dense encoder and decoder map
    the window, all projections and the static covariates to a vector per step of the horizon, and a
    temporal decoder maps this vector and the projected covariates of the step to the output. A
    linear map of the window is added.

    Measured coverage of 80 % intervals at defaults: M1 monthly 78 %, NN5 daily 77 %, EPF Nord Pool
    hourly 81 % (benchmarks/bench_coverage.py).

    See Also
    --------
    MLP : Fully connected layers on all inputs at once.
    DLinear : Linear maps without hidden layers.

    References
    ----------
    Das, Kong, Leach, Mathur, Sen, Yu (2023), "Long-term forecasting with TiDE: Time-series dense
    encoder", TMLR, arXiv:2304.08424.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> TiDE(horizon=7, hidden_size=32, max_steps=20).fit(generate(2, 100)).predict().shape
    (14, 3)
    """

    coverage_slow: ClassVar[bool] = True

    hidden_size: int = param(
        default=256, at_least=1, low=64, high=1024, log=True, expensive=True,
        help="number of units of the layers of encoder and decoder",
    )
    encoder_layers: int = param(default=1, at_least=1, low=1, high=3, help="number of residual blocks of the encoder")
    decoder_layers: int = param(default=1, at_least=1, low=1, high=3, help="number of residual blocks of the decoder")
    decoder_output_dim: int = param(
        default=16, at_least=1, low=4, high=32, log=True, help="length of the decoder's output per time step of the horizon",
    )
    temporal_decoder_dim: int = param(
        default=64, at_least=1, low=16, high=128, log=True, help="number of hidden units of the temporal decoder",
    )
    temporal_width: int = param(
        default=4, at_least=1, help="length of the projected covariates of a time step",
    )
    temporal_hidden_size: int = param(
        default=64, at_least=1, help="number of hidden units of the projection of the covariates",
    )
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability",
    )
    normalization: Literal["layer", "batch", "rms"] | None = param(
        default=None, search=(None, "layer"), help="normalization of the output of each residual block; None: no normalization",
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """A small network for the contract checks."""
        return [{"input_size": 14, "max_steps": 12, "batch_size": 32, "hidden_size": 32}]

    def _body(self, sizes: InputSizes) -> TiDEBody:
        from deepforecast.nn.tide import TiDEBody, TiDEOptions  # imports torch

        return TiDEBody(
            sizes,
            TiDEOptions(
                hidden_size=self.hidden_size,
                encoder_layers=self.encoder_layers,
                decoder_layers=self.decoder_layers,
                decoder_output_dim=self.decoder_output_dim,
                temporal_decoder_dim=self.temporal_decoder_dim,
                temporal_width=self.temporal_width,
                temporal_hidden_size=self.temporal_hidden_size,
                dropout=self.dropout,
                normalization=self.normalization,
            ),
        )
