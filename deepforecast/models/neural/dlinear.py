"""The DLinear forecaster."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._base import NeuralForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.linear import DLinearBody


@register
class DLinear(NeuralForecaster):
    """Linear forecaster on a trend and remainder decomposition of the window.

    The window is decomposed into a moving average (the trend) and the remainder; each is mapped to
    all steps of the horizon by one matrix. There is no hidden layer. Strong on long horizons of
    series with a stable season, and the fastest network to train.

    Measured coverage of 80 % intervals at defaults: M1 monthly 85 %, NN5 daily 78 %, EPF Nord Pool
    hourly 79 % (benchmarks/bench_coverage.py).

    See Also
    --------
    NLinear : Linear map of the window relative to its last value.

    References
    ----------
    Zeng, Chen, Zhang, Xu (2023), "Are Transformers effective for time series forecasting?", AAAI
    37, doi:10.1609/aaai.v37i9.26317.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> DLinear(horizon=7, max_steps=20).fit(generate(2, 100)).predict().shape
    (14, 3)
    """

    has_components: ClassVar[bool] = True

    moving_average: int = param(
        default=25, at_least=1, low=5, high=51,
        help="length of the moving average that estimates the trend, in time steps",
    )

    def _body(self, sizes: InputSizes) -> DLinearBody:
        from deepforecast.nn.linear import DLinearBody  # imports torch

        return DLinearBody(sizes, self.moving_average)
