"""The Teunter-Syntetos-Babai method."""

from __future__ import annotations

from typing import Any

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import LearnedState, State
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._demand import (
    PROBABILITY,
    Intermittent,
    fit_demand,
    mask_before_demand,
    update_demand,
    zero_if_unknown,
)

SIZE_BOUNDS, PROBABILITY_BOUNDS = (0.1, 0.3), (0.01, 0.3)  # of estimated smoothing parameters


@register
class TSB(Intermittent):
    """Teunter-Syntetos-Babai method for intermittent demand that may become obsolete.

    Demand size and demand probability are smoothed separately: z' = z + a (size - z) at each
    demand, and p' = p + b (d - p) in each period, where d is 1 in periods with demand and 0
    otherwise. The forecast z p falls while there is no demand, whereas that of `Croston` stays
    constant. Parameters that are None minimize squared one-step errors: a of the sizes between 0.1 and
    0.3, b of the probability between 0.01 and 0.3. Any value other than 0 is a demand; missing values are
    skipped; a series without any demand is forecast as 0.

    The forecast distribution is discrete: 0 and the last 100 demand sizes, with equal weights times
    the demand probability, tilted as little as possible so that the mean is the forecast. Intervals
    thus contain 0 where the data do, and have integer bounds where the data are integers.

    Measured coverage of 80 % intervals at defaults: M5 daily (300 items) 90 %
    (benchmarks/bench_coverage.py).

    See Also
    --------
    Croston : Smooths intervals instead of probabilities.

    References
    ----------
    Teunter, R. H., Syntetos, A. A. and Babai, M. Z. (2011). Intermittent demand: Linking
    forecasting to inventory obsolescence. *European Journal of Operational Research* 214.
    doi:10.1016/j.ejor.2011.05.018

    Examples
    --------
    >>> import pandas as pd
    >>> y = [0.0, 4.0, 0.0, 4.0, 0.0, 0.0]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "y": y})
    >>> TSB(horizon=1, alpha_size=0.2, alpha_probability=0.5).fit(frame).predict()
              ds    TSB
    0 2024-01-07  0.625
    """

    alpha_size: float | None = param(
        default=None, above=0, at_most=1, low=0.02, high=0.5, log=True,
        help="smoothing parameter of demand sizes; None: estimated",
    )
    alpha_probability: float | None = param(
        default=None, above=0, at_most=1, low=0.02, high=0.5, log=True,
        help="smoothing parameter of the demand probability; None: estimated",
    )  # fmt: skip

    def _estimate(self, panel: Panel) -> LearnedState:
        alphas, default_bounds = (self.alpha_size, self.alpha_probability), (SIZE_BOUNDS, PROBABILITY_BOUNDS)
        bounds = [default if alpha is None else (alpha, alpha) for alpha, default in zip(alphas, default_bounds, strict=True)]
        return LearnedState(fit_demand(panel, PROBABILITY, bounds))

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        state = update_demand(panel, PROBABILITY, learned["alpha"], None if from_start else learned)
        return LearnedState(state, history=panel if from_start else None)

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        return {"alpha_size": learned["alpha"][:, 0], "alpha_probability": learned["alpha"][:, 1]}

    def _rate(self, learned: LearnedState) -> Floats:
        state = learned["state"]
        return zero_if_unknown(state[:, 0] * state[:, 1])

    def _occurrence(self, learned: LearnedState) -> Floats:
        return zero_if_unknown(learned["state"][:, 1])

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        from deepforecast.kernels.intermittent import filter_levels

        size, probability = filter_levels(panel.y, panel.indptr, PROBABILITY, learned["alpha"])
        return mask_before_demand(size * probability, panel)
