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
from deepforecast.errors import ParameterError, shown
from deepforecast.models.baselines._base import resolved_season
from deepforecast.models.statistical._arima import ArimaFamily
from deepforecast.models.statistical._arima_series import Fit, Order, Series
from deepforecast.models.statistical._regressors import design

MOST_D, MOST_SEASONAL_D, LONGEST = 3, 2, 500


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
        default=(1, 1, 1), at_least=0, at_most=LONGEST,
        search=((0, 1, 1), (1, 1, 0), (1, 1, 1), (2, 1, 1), (0, 1, 2), (2, 1, 2), (1, 0, 1)),
        help="autoregressive order, differences, moving average order; or lists of lags",
    )  # fmt: skip
    seasonal_order: tuple[int, int, int] = param(
        default=(0, 0, 0), at_least=0, at_most=LONGEST, search=((0, 0, 0), (0, 1, 1), (1, 0, 1)),
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
        order = self._given(1)
        return replace(declared, shift_equivariant=bool(order.lost or order.constant))

    def _idle(self) -> Iterator[tuple[str, str]]:
        if not any(self.seasonal_order):
            yield "season_length", "without a seasonal order. Give seasonal_order=(P, D, Q), or leave it out"
        if self.engine == "statsmodels":
            yield "method", "with engine='statsmodels', which has the exact likelihood. Leave one of them out"

    def _needs(self, panel: Panel) -> int:
        order = self._given(self._short_season(panel))
        self._check(order)
        columns = design(panel.covariates).shape[1] if panel.covariates else 0
        return order.lost + max(order.coefficients + int(order.constant) + columns + 2, order.longest + 1)

    def _check(self, order: Order) -> None:
        if order.d > MOST_D or order.seasonal[1] > MOST_SEASONAL_D:
            raise ParameterError(
                f"order takes at most {MOST_D} differences and seasonal_order at most {MOST_SEASONAL_D}: more make noise of "
                f"any series; got order={self.order}, seasonal_order={self.seasonal_order}. Take one or two in all."
            )
        if order.longest > LONGEST:
            raise ParameterError(
                f"The longest lag of order and seasonal_order together is at most {LONGEST}, as the work grows with its cube; "
                f"got {order.longest}. For a long season take AutoARIMA, which has waves for it."
            )
        for name, lags in (("p", order.ar), ("q", order.ma)):
            if len(set(lags)) < len(lags) or min(lags, default=1) < 1:
                raise ParameterError(
                    f"order: the lags in the list of {name} are different and at least 1; got {shown(list(lags))}. "
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

    def _given(self, season: int) -> Order:
        p, d, q = self.order
        free = isinstance(p, (list, tuple)), isinstance(q, (list, tuple))
        lags = [tuple(sorted(map(int, one if isinstance(one, (list, tuple)) else range(1, one + 1)))) for one in (p, q)]
        many_p, big_d, many_q = (int(one) for one in self.seasonal_order)
        constant = d + big_d == 0 if self.constant == "auto" else bool(self.constant)
        return Order(lags[0], int(d), lags[1], (many_p, big_d, many_q), season, constant, free)

    def _short_season(self, panel: Panel) -> int:
        return resolved_season(self.season_length, panel, self, "season_length") if any(self.seasonal_order) else 1

    def _widths(self, panel: Panel) -> tuple[int, int]:
        order = self._given(self._short_season(panel))
        return order.coefficients, order.size

    def _order(self, row: Ints, season: int) -> Order:
        return self._given(season)

    def _one(self, y: Floats, columns: Floats, known: int, hint: float, season: int, waves: Any) -> tuple[Series, Fit, Ints]:
        series, order, used = Series.of(y, columns), self._given(season), np.arange(known)
        if self.engine == "statsmodels":
            from deepforecast.models.statistical._sarimax import fitted

            return series, fitted(series, order), used
        return series, series.fits(order, conditional=self.method == "conditional")[0], used
