"""The Temporal Fusion Transformer forecaster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._base import NeuralForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.tft import TFTBody


@register
class TFT(NeuralForecaster):
    """Temporal Fusion Transformer: variable selection, LSTM encoder and decoder, interpretable attention.

    At every time step the variables xi_1 .. xi_V are transformed and weighted,

        xi = sum_j v_j GRN_j(xi_j),    v = softmax(GRN(xi_1, .., xi_V; c_s)),
        GRN(a; c) = LayerNorm(a + GLU(W_1 ELU(W_2 a + W_3 c + b_2) + b_1)),

    where the context c_s comes from the static variables. An LSTM encodes the window and continues over
    the horizon; each step of the horizon then attends to the window and to the steps before it, with
    one matrix of weights for all heads. Every layer has a gated residual connection.

    `explain()` returns the attention weights (kind "self", the mean of the heads) and the weights of
    the variables (kind "past variables", "future variables" and "static variables", column
    `variable`).

    Differences from the paper: the target is a variable with a mask of missing values; the position
    relative to the cutoff and, with `seasonal_lag`, the value one season before are further known
    variables; without static covariates the contexts are left out; time steps before the start of a
    series are masked in the attention; the quantiles are those of `head`. Weights are initialized as in
    the official code (Glorot, forget gates open).

    Measured coverage of 80 % intervals at defaults: M1 monthly 79 %, NN5 daily 78 %, EPF Nord Pool
    hourly 82 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Seq2Seq : Recurrent encoder and decoder with attention.
    Transformer : Attention without recurrent layers.

    References
    ----------
    Lim, Arık, Loeff, Pfister (2021), "Temporal fusion transformers for interpretable multi-horizon
    time series forecasting", International Journal of Forecasting 37(4),
    doi:10.1016/j.ijforecast.2021.03.012, arXiv:1912.09363.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> model = TFT(horizon=7, d_model=8, calendar=["day_of_week"], max_steps=20).fit(generate(2, 100))
    >>> weights = model.explain()
    >>> sorted(set(weights.loc[weights["kind"] == "future variables", "variable"]))
    ['day_of_week', 'lag', 'position']
    """

    coverage_slow: ClassVar[bool] = True

    d_model: int = param(
        default=32, at_least=1, search=(16, 32, 64, 128), help="number of units of all layers",
    )
    n_heads: int = param(
        default=4, at_least=1, search=(1, 4), help="number of attention heads",
    )
    lstm_layers: int = param(
        default=1, at_least=1, low=1, high=2, expensive=True, help="number of layers of the LSTM encoder and decoder",
    )
    dropout: float = param(
        default=0.1, at_least=0, below=1, low=0.0, high=0.5, help="dropout probability before each gate",
    )
    seasonal_lag: bool = param(
        default=True,
        help="whether the value one season (or, without a season, one horizon) before each step of the horizon is a future "
        "variable, 'lag', which the paper does not have",
    )

    learning_example: ClassVar[dict[str, Any]] = {
        **NeuralForecaster.learning_example, "max_steps": 300, "d_model": 16, "batch_size": 64, "dropout": 0.0,
        # The checks have four short series: without dates to overfit to, and with a loss that rare effects change more.
        "calendar": None, "head": "point", "loss": "mse",
    }  # fmt: skip

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        return [{"input_size": 14, "max_steps": 10, "batch_size": 32, "d_model": 8, "n_heads": 2}]

    @property
    def has_attention(self) -> bool:
        """Whether the model has attention weights, for `explain`."""
        return True

    def _body(self, sizes: InputSizes) -> TFTBody:
        from deepforecast.nn.tft import TFTBody, TFTOptions

        return TFTBody(sizes, TFTOptions(self.d_model, self.n_heads, self.lstm_layers, self.dropout, self.seasonal_lag))
