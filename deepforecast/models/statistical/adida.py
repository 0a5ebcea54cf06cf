"""The aggregate-disaggregate intermittent demand approach."""

from __future__ import annotations

from typing import Literal

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._demand import ALPHA_BOUNDS
from deepforecast.models.statistical._temporal_aggregation import TemporalAggregation, mean_interval


@register
class ADIDA(TemporalAggregation):
    """Aggregate-disaggregate method for intermittent demand (ADIDA).

    Demand is summed over blocks as long as the mean interval between demands, the sums are forecast
    by simple exponential smoothing, and the forecast is spread evenly over the rows of a block. The
    smoothing parameter minimizes squared errors between 0.1 and 0.3; the level starts at the first
    sum. Blocks end with the series; rows before the first full block are left out. New rows change
    the forecast when they complete a block. A series without any demand is forecast as 0.

    Intervals are computed as in `TSB`, with the demand probability of `Croston`.

    Measured coverage of 80 % intervals at defaults: M5 daily (300 items) 90 %
    (benchmarks/bench_coverage.py).

    See Also
    --------
    IMAPA : Mean over several aggregation levels.
    Croston : Smooths demand sizes and intervals.
    TSB : Smooths demand sizes and probabilities.

    References
    ----------
    Nikolopoulos, K., Syntetos, A. A., Boylan, J. E., Petropoulos, F. and Assimakopoulos, V. (2011).
    An aggregate-disaggregate intermittent demand approach (ADIDA) to forecasting. *Journal of the
    Operational Research Society* 62. doi:10.1057/jors.2010.32

    Examples
    --------
    >>> import pandas as pd
    >>> y = [0.0, 4.0, 0.0, 4.0, 0.0, 4.0]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "y": y})
    >>> ADIDA(horizon=1).fit(frame).predict()
              ds  ADIDA
    0 2024-01-07    2.0
    """

    aggregation: int | Literal["auto"] = param(
        default="auto", at_least=1, help="number of rows per block; 'auto': mean interval between demands",
    )
    alpha: float | None = param(
        default=None, above=0, at_most=1, low=0.02, high=0.7, log=True,
        help="smoothing parameter of the block sums; None: estimated",
    )

    def _rows_per_block(self, panel: Panel) -> Ints:
        n_rows = mean_interval(panel) if self.aggregation == "auto" else np.full(len(panel), self.aggregation)
        return n_rows.astype(np.int64)[:, None]

    def _alpha_bounds(self) -> tuple[float, float]:
        return ALPHA_BOUNDS if self.alpha is None else (self.alpha, self.alpha)
