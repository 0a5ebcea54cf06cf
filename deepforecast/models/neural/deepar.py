"""The DeepAR forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._autoregressive import AutoregressiveForecaster
from deepforecast.nn.names import Head, HeadName, Scaler

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.deepar import DeepARBody


@register
class DeepAR(AutoregressiveForecaster):
    """Autoregressive recurrent network: the same cells read the window and the horizon.

    The inputs of a step are the previous value, values of the season before, and the covariates of the
    step; its output gives the distribution of its value,

        h_t = LSTM(h_{t-1}, [z_{t-1}, z_{t-l} for the lags l, x_t]),  z_t ~ p(z | W h_t + b)

    In training all inputs are the true values, and the loss includes the steps of the window; forecasts
    are sample paths. The scaler of the paper is scaler="mean_abs"; the default is more accurate where
    values lie far from 0 (M1 monthly: MASE 1.13 instead of 1.28). Past covariates enter
    at the step after theirs; after the cutoff the cells have them in their state only. For counts set
    head="negative_binomial".

    Unlike in the paper, all windows are sampled with the same probability, the scale is not an input
    (so forecasts are scale-equivariant), and there is no embedding of the series.

    Measured coverage of 80 % intervals at defaults: M1 monthly 82 %, NN5 daily 80 %, EPF Nord Pool
    hourly 78 % (benchmarks/bench_coverage.py).

    See Also
    --------
    LSTM : The same cells with a direct forecast.
    Seq2Seq : Recurrent encoder and a decoder of its own, with attention.

    References
    ----------
    Salinas, Flunkert, Gasthaus, Januschowski (2020), "DeepAR: Probabilistic forecasting with
    autoregressive recurrent networks", International Journal of Forecasting 36(3),
    doi:10.1016/j.ijforecast.2019.07.001, arXiv:1704.04110.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> DeepAR(horizon=7, hidden_size=8, max_steps=20).fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    cell: Literal["lstm", "gru", "rnn"] = param(default="lstm", help="recurrent cell")
    hidden_size: int = param(
        default=64, at_least=1, low=16, high=256, log=True, expensive=True,
        help="number of units per recurrent layer",
    )
    n_layers: int = param(
        default=2, at_least=1, low=1, high=3, expensive=True, help="number of stacked recurrent layers",
    )
    dropout: float = param(
        default=0.1, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability of the outputs of the layers",
    )
    lags: Sequence[int] | Literal["auto"] = param(
        default="auto", at_least=1,
        help="lags of the values that are inputs of a step in addition to the previous value; 'auto': a season, one step "
        "less and one more",
    )
    teacher_forcing: Literal["constant", "linear", "inverse_sigmoid", "free"] = param(
        default="constant",
        help="schedule of teacher forcing in training; 'constant': always, 'free': never, 'linear' and "
        "'inverse_sigmoid': decaying probability"
    )
    head: HeadName | Head = param(default="student_t")
    scaler: Scaler = param(default="standard")

    learning_example: ClassVar[dict[str, Any]] = {
        **AutoregressiveForecaster.learning_example, "max_steps": 600, "hidden_size": 32, "n_layers": 1, "dropout": 0.0
    }  # fmt: skip

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        small: dict[str, Any] = {"input_size": 14, "max_steps": 10, "batch_size": 32, "hidden_size": 8}
        return [small, {**small, "cell": "gru", "n_layers": 1, "lags": [2], "head": "quantiles"}]

    def _body(self, sizes: InputSizes) -> DeepARBody:
        from deepforecast.nn.deepar import DeepARBody, seasonal_lags
        from deepforecast.nn.recurrent import RecurrentOptions

        options = RecurrentOptions(self.cell, self.hidden_size, self.n_layers, dropout=self.dropout)
        lags = seasonal_lags(sizes.season) if isinstance(self.lags, str) else self.lags
        return DeepARBody(sizes, options, lags)
