"""The NLinear forecaster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepforecast.core.registry import register
from deepforecast.models.neural._base import NEURAL, NeuralForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.linear import NLinearBody


@register
class NLinear(NeuralForecaster):
    """Linear forecaster on the window relative to its last value.

    The last value is subtracted from the window, one matrix maps the differences to all steps of
    the horizon, and the last value is added again. The forecast follows shifts of the level. Static
    covariates are not supported, as they could only change that level.

    Measured coverage of 80 % intervals at defaults: M1 monthly 86 %, NN5 daily 79 %, EPF Nord Pool
    hourly 78 % (benchmarks/bench_coverage.py).

    See Also
    --------
    DLinear : Linear maps of a trend and a remainder.

    References
    ----------
    Zeng, Chen, Zhang, Xu (2023), "Are Transformers effective for time series forecasting?", AAAI
    37, doi:10.1609/aaai.v37i9.26317.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> NLinear(horizon=7, max_steps=20).fit(generate(2, 100)).predict().shape
    (14, 3)
    """

    capabilities = replace(NEURAL, static=False)

    def _body(self, sizes: InputSizes) -> NLinearBody:
        from deepforecast.nn.linear import NLinearBody  # imports torch

        return NLinearBody(sizes)
