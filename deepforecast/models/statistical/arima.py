"""An ARIMA of a given order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.models.baselines._base import resolve_season
from deepforecast.models.statistical._arma_errors import ArimaFamily
from deepforecast.models.statistical._regressors import design_matrix
from deepforecast.models.statistical._scaled_series import Fit, Order, ScaledSeries

MAX_D, MAX_SEASONAL_D, MAX_LAG = 3, 2, 500


@register
class ARIMA(ArimaFamily):
    """Past values and past errors, after differences, beside a regression: (p, d, q)(P, D, Q) with any regressors.

        phi(B) Phi(B^s) (1 - B)^d (1 - B^s)^D (y - constant - x'beta) = theta(B) Theta(B^s) e

    by exact maximum likelihood, stationary and invertible; missing values are stepped over. Columns known ahead are the
    regressors; so an intervention is a column of zeros and ones. A list of lags in place of p or q has those alone: q=[1, 4].
    Partial autocorrelations are at most 1 - 1e-7 in size, so that roots come as near to the unit circle as numbers allow. There
    may be several maxima: the search has many starts, and on 500 series of competitions it is nowhere below statsmodels'.
    Bands: Student's t with n - k degrees of freedom; the variance is sigma^2 ((1 + p / n) v_h + x' (X'X)^-1 x), v_h that of the
    ARIMA with its p coefficients known, and X what the filter leaves of the columns of mean, drift and regressors, whose error
    so counts exactly; with 30 values of an AR(1) an 80 % band far ahead holds about 76 %.
    Reference: Box & Jenkins (1970), Time Series Analysis; Harvey (1989), Forecasting, Structural Time Series Models, 3.3.

    Measured coverage of 80 % intervals at defaults: M1 yearly 64 %, M1 quarterly 67 %, M1 monthly
    75 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    >>> from deepforecast import datasets
    >>> model = ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1), horizon=3).fit(datasets.load("air_passengers"))
    >>> model.predict()["ARIMA"].round(0).tolist()
    [447.0, 422.0, 454.0]
    """

    order: tuple[int | list[int], int, int | list[int]] = param(
        default=(1, 1, 1), at_least=0, at_most=MAX_LAG,
        search=((0, 1, 1), (1, 1, 0), (1, 1, 1), (2, 1, 1), (0, 1, 2), (2, 1, 2), (1, 0, 1)),
        help="autoregressive order, differences, moving average order; or lists of lags",
    )  # fmt: skip
    seasonal_order: tuple[int, int, int] = param(
        default=(0, 0, 0), at_least=0, at_most=MAX_LAG, search=((0, 0, 0), (0, 1, 1), (1, 0, 1)),
        help="the same over seasons",
    )  # fmt: skip
    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats",
    )
    constant: bool | Literal["auto"] = param(
        default="auto",
        help="a mean, or a drift where there is one difference; auto: a mean without differences",
    )
    method: Literal["exact", "conditional"] = param(
        default="exact", help="likelihood: exact, or given zeros before it",
    )
    engine: Literal["kernels", "statsmodels"] = param(default="kernels", help="who estimates")

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{}, {"order": (1, 0, 0), "seasonal_order": (0, 1, 1), "season_length": 7}]

    def _narrow(self, declared: Capabilities) -> Capabilities:
        order = self._requested_order(1)
        return replace(declared, shift_equivariant=bool(order.n_lost or order.constant))

    def _idle(self) -> Iterator[tuple[str, str]]:
        if not any(self.seasonal_order):
            yield "season_length", "without a seasonal order. Give seasonal_order=(P, D, Q), or leave it out"
        if self.engine == "statsmodels":
            yield "method", "with engine='statsmodels', which has the exact likelihood. Leave one of them out"

    def _min_observations(self, panel: Panel) -> int:
        order = self._requested_order(self._short_season(panel))
        self._check(order)
        columns = design_matrix(panel.covariates).shape[1] if panel.covariates else 0
        return order.n_lost + max(order.n_coefficients + int(order.constant) + columns + 2, order.longest_lag + 1)

    def _check(self, order: Order) -> None:
        if order.d > MAX_D or order.seasonal[1] > MAX_SEASONAL_D:
            raise ParameterError(
                f"order takes at most {MAX_D} differences and seasonal_order at most {MAX_SEASONAL_D}: more make noise of "
                f"any series; got order={self.order}, seasonal_order={self.seasonal_order}. Take one or two in all."
            )
        if order.longest_lag > MAX_LAG:
            raise ParameterError(
                f"The longest lag of order and seasonal_order together is at most {MAX_LAG}, as the work grows with its cube; "
                f"got {order.longest_lag}. For a long season take AutoARIMA, which has waves for it."
            )
        for name, lags in (("p", order.ar), ("q", order.ma)):
            if len(set(lags)) < len(lags) or min(lags, default=1) < 1:
                raise ParameterError(
                    f"order: the lags in the list of {name} are different and at least 1; got {format_value(list(lags))}. "
                    f"All lags up to a number are that number: {name}={max(lags, default=1)}."
                )
        if order.constant and order.d + order.seasonal[1] > 1:
            raise ParameterError(
                f"constant=True is a drift under one difference; order={self.order} with seasonal_order={self.seasonal_order} "
                "takes more. Leave it out."
            )
        if any(order.seasonal) and order.season < 2:
            raise ParameterError(
                f"seasonal_order={self.seasonal_order} takes a season_length above 1; got {order.season}. Give season_length=, "
                "as 12 for months, or leave seasonal_order out."
            )

    def _requested_order(self, season: int) -> Order:
        p, n_differences, q = self.order
        lag_lists = isinstance(p, (list, tuple)), isinstance(q, (list, tuple))
        lags = [tuple(sorted(map(int, lag_argument if isinstance(lag_argument, (list, tuple)) else range(1, lag_argument + 1)))) for lag_argument in (p, q)]
        seasonal_p, seasonal_d, seasonal_q = (int(lag_argument) for lag_argument in self.seasonal_order)
        constant = n_differences + seasonal_d == 0 if self.constant == "auto" else bool(self.constant)
        return Order(lags[0], int(n_differences), lags[1], (seasonal_p, seasonal_d, seasonal_q), season, constant, lag_lists)

    def _short_season(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length") if any(self.seasonal_order) else 1

    def _max_sizes(self, panel: Panel) -> tuple[int, int]:
        order = self._requested_order(self._short_season(panel))
        return order.n_coefficients, order.n_states

    def _order(self, row: Ints, season: int) -> Order:
        return self._requested_order(season)

    def _fit_series(self, y: Floats, columns: Floats, n_regressors: int, seasonal_strength: float, season: int, fourier_terms: Any) -> tuple[ScaledSeries, Fit, Ints]:
        series, order, used_columns = ScaledSeries.from_values(y, columns), self._requested_order(season), np.arange(n_regressors)
        if self.engine == "statsmodels":
            from deepforecast.models.statistical._sarimax import fit_sarimax

            return series, fit_sarimax(series, order), used_columns
        return series, series.fit_many_starts(order, conditional=self.method == "conditional")[0], used_columns
