"""ARIMA models of a given order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.core.arrays import design_matrix
from deepforecast.core.params import Not, param
from deepforecast.core.registry import Capabilities, register
from deepforecast.core.seasonality import resolve_season
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.models.statistical._arma_errors import ArimaFamily
from deepforecast.models.statistical._scaled_series import Fit, Order, ScaledSeries

MAX_D, MAX_SEASONAL_D, MAX_LAG = 3, 2, 500


@register
class ARIMA(ArimaFamily):
    """Seasonal ARIMA of a given order, (p, d, q)(P, D, Q)_m, with regressors.

        phi(B) Phi(B^m) (1 - B)^d (1 - B^m)^D (y - constant - x'beta) = theta(B) Theta(B^m) e

    Estimated by exact maximum likelihood within the stationary and invertible region. Missing
    values are handled by the Kalman filter. Future covariates are the regressors x; an intervention
    is a column of zeros and ones. A list of lags instead of p or q restricts the polynomial to
    these lags: q=[1, 4].

    Partial autocorrelations are bounded by 1 - 1e-7 in absolute value. As the likelihood may have
    several maxima, the search has many starts; on 500 competition series its likelihood is never
    below that of statsmodels.

    Intervals use Student's t with n - k degrees of freedom. The variance at step h is
    sigma^2 ((1 + p / n) v_h + x' (X'X)^-1 x), where v_h is the variance for known coefficients of
    the ARIMA, p their number, and X the filtered columns of mean, drift and regressors, whose
    estimation error is thus exact. With 30 values of
    an AR(1), an 80 % interval far ahead covers about 76 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 64 %, M1 quarterly 67 %, M1 monthly
    75 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    See Also
    --------
    AutoARIMA : Chooses the order.

    References
    ----------
    Box, G. E. P. and Jenkins, G. M. (1970). *Time Series Analysis: Forecasting and Control*.

    Harvey, A. C. (1989). *Forecasting, Structural Time Series Models and the Kalman Filter*,
    section 3.3. doi:10.1017/CBO9781107049994

    Examples
    --------
    >>> from deepforecast import datasets
    >>> model = ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1), horizon=3).fit(datasets.load("air_passengers"))
    >>> model.predict()["ARIMA"].round(0).tolist()
    [447.0, 422.0, 454.0]
    """

    order: tuple[int | list[int], int, int | list[int]] = param(
        default=(1, 1, 1), at_least=0, at_most=MAX_LAG,
        search=((0, 1, 1), (1, 1, 0), (1, 1, 1), (2, 1, 1), (0, 1, 2), (2, 1, 2), (1, 0, 1)),
        help="(p, d, q): autoregressive order, number of differences, moving average order; p and q may be lists of"
        " lags",
    )  # fmt: skip
    seasonal_order: tuple[int, int, int] = param(
        default=(0, 0, 0), at_least=0, at_most=MAX_LAG, search=((0, 0, 0), (0, 1, 1), (1, 0, 1)),
        help="(P, D, Q): seasonal autoregressive order, number of seasonal differences, seasonal moving average"
        " order",
    )  # fmt: skip
    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, needs={"seasonal_order": Not((0, 0, 0))}, off=1,
        help="number of time steps per season; 1: no season; 'auto': inferred from the frequency of the data",
    )
    constant: bool | Literal["auto"] = param(
        default="auto",
        help="whether to estimate a mean, or a drift with one difference; 'auto': only without"
        " differences",
    )
    method: Literal["exact", "conditional"] = param(
        default="exact", needs={"engine": "kernels"},
        help="likelihood that is maximized; 'exact', or 'conditional' on presample values of zero",
    )
    engine: Literal["kernels", "statsmodels"] = param(
        default="kernels",
        help="implementation of the estimation; 'kernels': this library, 'statsmodels': its SARIMAX",
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{}, {"order": (1, 0, 0), "seasonal_order": (0, 1, 1), "season_length": 7}]

    def _narrow(self, declared: Capabilities) -> Capabilities:
        order = self._requested_order(1)
        return replace(declared, shift_equivariant=bool(order.n_lost or order.constant))

    def _min_observations(self, panel: Panel) -> int:
        order = self._requested_order(self._short_season(panel))
        self._check_order(order)
        n_columns = design_matrix(panel.covariates).shape[1] if panel.covariates else 0
        n_regression = int(order.constant) + n_columns
        return order.n_lost + max(order.n_coefficients + n_regression + 2, order.longest_lag + 1)

    def _check_order(self, order: Order) -> None:
        """Raise a `ParameterError` if the order cannot be estimated."""
        if order.d > MAX_D or order.seasonal[1] > MAX_SEASONAL_D:
            raise ParameterError(
                f"`order` must have at most {MAX_D} differences and `seasonal_order` at most {MAX_SEASONAL_D}, got "
                f"order={self.order}, seasonal_order={self.seasonal_order}.",
                hint="Use one or two differences in total.",
                parameter="order",
            )
        if order.longest_lag > MAX_LAG:
            raise ParameterError(
                f"The longest lag of `order` and `seasonal_order` together must be at most {MAX_LAG} (the cost grows "
                f"with its cube), got {order.longest_lag}.",
                hint="Use AutoARIMA, which models long seasons by Fourier terms.",
                parameter="order",
            )
        for name, lags in (("p", order.ar), ("q", order.ma)):
            if len(set(lags)) < len(lags) or min(lags, default=1) < 1:
                raise ParameterError(
                    f"`order`: the lags listed for {name} must be different and at least 1, got "
                    f"{format_value(list(lags))}.",
                    hint=f"Pass each lag once, or the number {name}={max(lags, default=1)} for all lags "
                    "up to it.",
                    parameter="order",
                )
        if order.constant and order.d + order.seasonal[1] > 1:
            raise ParameterError(
                f"constant=True requires at most one difference, got order={self.order}, "
                f"seasonal_order={self.seasonal_order}.",
                hint="Use constant=False, or fewer differences.",
                parameter="constant",
            )
        if any(order.seasonal) and order.season < 2:
            raise ParameterError(
                f"`season_length` must be above 1 for seasonal_order={self.seasonal_order}, got {order.season}.",
                hint="Pass "
                "`season_length` (12 for monthly data), or omit `seasonal_order`.",
                parameter="season_length", value=self.season_length,
            )

    def _requested_order(self, season: int) -> Order:
        """The `Order` of the parameters; it is not checked."""
        p, n_differences, q = self.order
        lag_lists = isinstance(p, (list, tuple)), isinstance(q, (list, tuple))
        lags = [order if isinstance(order, (list, tuple)) else range(1, order + 1) for order in (p, q)]
        ar, ma = (tuple(sorted(map(int, lags_of_polynomial))) for lags_of_polynomial in lags)
        seasonal_p, seasonal_d, seasonal_q = (int(order) for order in self.seasonal_order)
        constant = n_differences + seasonal_d == 0 if self.constant == "auto" else bool(self.constant)
        return Order(
            ar=ar,
            d=int(n_differences),
            ma=ma,
            seasonal=(seasonal_p, seasonal_d, seasonal_q),
            season=season,
            constant=constant,
            lag_lists=lag_lists,
        )

    def _short_season(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length") if any(self.seasonal_order) else 1

    def _max_coefficients_and_states(self, panel: Panel) -> tuple[int, int]:
        order = self._requested_order(self._short_season(panel))
        return order.n_coefficients, order.n_states

    def _order(self, row: Ints, season: int) -> Order:
        return self._requested_order(season)

    def _fit_series(
        self,
        y: Floats,
        columns: Floats,
        n_regressors: int,
        seasonal_strength: float,
        season: int,
        fourier_terms: Any,
    ) -> tuple[ScaledSeries, Fit, Ints]:
        """Fit the requested order by statsmodels, or from many starts; all columns are used."""
        series, order = ScaledSeries.from_values(y, columns), self._requested_order(season)
        used_columns = np.arange(n_regressors)
        if self.engine == "statsmodels":
            from deepforecast.models.statistical._sarimax import fit_sarimax

            return series, fit_sarimax(series, order), used_columns
        fits = series.fit_many_starts(order, conditional=self.method == "conditional")
        return series, fits[0], used_columns
