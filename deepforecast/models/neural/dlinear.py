"""DLinear: a linear map of the trend of the window and one of the rest."""

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
    """The window parted into a moving average and the rest, each mapped to the steps ahead by one matrix: no hidden layer.

    Hard to beat on long horizons of series with a steady season, and the fastest network to train. Zeng, Chen, Zhang, Xu 2022,
    "Are Transformers Effective for Time Series Forecasting?"

    Measured coverage of 80 % intervals at defaults: M1 monthly 84 %, NN5 daily 84 %, EPF Nord Pool
    hourly 82 % (benchmarks/bench_coverage.py).

    >>> from deepforecast.datasets import generate
    >>> DLinear(horizon=7, max_steps=20).fit(generate(2, 100)).predict().shape
    (14, 3)
    """

    warns_overfitting: ClassVar[bool] = False
    has_components: ClassVar[bool] = True

    moving_average: int = param(
        default=25, at_least=1, low=5, high=51,
        help="rows of the moving average that is the trend",
    )

    def _body(self, sizes: InputSizes) -> DLinearBody:
        from deepforecast.nn.linear import DLinearBody

        return DLinearBody(sizes, self.moving_average)
