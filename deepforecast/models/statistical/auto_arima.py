"""ARIMA models with automatic order selection."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.arrays import design_matrix
from deepforecast.core.params import Not, param
from deepforecast.core.registry import register
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import format_list, warn
from deepforecast.models.statistical._arma_errors import ArimaFamily
from deepforecast.models.statistical._order_search import Search, SearchOptions, choose_differences, choose_fourier_terms
from deepforecast.models.statistical._scaled_series import Fit, Order, ScaledSeries
from deepforecast.models.statistical._seasons import MIN_CYCLES, Smoothers, decompose_panel, resolve_season_lengths

APPROXIMATION_LENGTH = 10_000
"""Series with more rows are searched by conditional likelihood; the best order is fitted by exact likelihood."""


@register
class AutoARIMA(ArimaFamily):
    """ARIMA with the order chosen by AICc, and Fourier terms for long seasons.

    The seasonal difference is chosen by the strength of the season, the others by repeated
    unit-root tests. A stepwise search over the remaining orders compares exact likelihoods
    (`stepwise=False`: all orders with up to `max_order` coefficients). Future covariates are
    regressors.

    Seasons of `fourier_from` or more steps, and all seasons but the shortest, are modelled by Fourier
    terms with ARIMA errors, whose number is chosen by AICc; a series of hourly data takes well under a
    second. Seasons of which a series has less than two cycles are left out for that series, with a
    warning. Orders with a root within 1 % of the unit circle (of seasonal polynomials in B^m) are
    rejected.

    Intervals are those of `ARIMA`. They treat the chosen order as known and are therefore too narrow:
    on monthly M4 series 95 % intervals cover 91 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 57 %, M1 monthly
    67 %, NN5 daily 88 % (benchmarks/bench_coverage.py; 100 series of each set).

    See Also
    --------
    ARIMA : A given order.

    References
    ----------
    Hyndman, R. J. and Khandakar, Y. (2008). Automatic time series forecasting: The forecast package
    for R. *Journal of Statistical Software* 27(3). doi:10.18637/jss.v027.i03

    Examples
    --------
    >>> from deepforecast import datasets
    >>> model = AutoARIMA(horizon=3).fit(datasets.load("air_passengers"))
    >>> model.parameters()["order"].tolist()
    ['(2,1,1)(0,1,0)[12]']
    """

    season_length: int | list[int] | Literal["auto"] = param(
        default="auto", at_least=1,
        help="number of time steps per season, or a list of several; 1: no season; 'auto': inferred from the"
        " frequency of the data",
    )
    d: int | None = param(
        default=None, at_least=0, at_most=3, help="number of ordinary differences; None: chosen by `unit_root_test`",
    )
    seasonal_d: int | None = param(
        default=None, at_least=0, at_most=2, needs={"season_length": Not(1)},
        help="number of seasonal differences; None: chosen by the strength of the seasonal component",
    )
    max_p: int = param(default=5, at_least=0, at_most=20, help="largest autoregressive order p")
    max_q: int = param(default=5, at_least=0, at_most=20, help="largest moving average order q")
    max_seasonal_p: int = param(
        default=2, at_least=0, at_most=5, needs={"season_length": Not(1)}, help="largest seasonal autoregressive order P",
    )
    max_seasonal_q: int = param(
        default=2, at_least=0, at_most=5, needs={"season_length": Not(1)}, help="largest seasonal moving average order Q",
    )
    max_d: int = param(
        default=2, at_least=0, at_most=3, needs={"d": None},
        help="largest number of ordinary differences that `unit_root_test` may choose",
    )
    max_seasonal_d: int = param(
        default=1, at_least=0, at_most=2, needs={"seasonal_d": None, "season_length": Not(1)},
        help="largest number of seasonal differences that may be chosen automatically",
    )
    max_order: int = param(
        default=5, at_least=0, needs={"stepwise": False}, help="largest p + q + P + Q",
    )
    stepwise: bool = param(
        default=True, help="whether to search stepwise from the best order to its neighbours; False: all orders",
    )
    constant: bool = param(
        default=True, help="whether to also try models with a mean, or with a drift after one difference",
    )
    criterion: Literal["aicc", "aic", "bic"] = param(
        default="aicc", search=("aicc", "bic"), help="information criterion that selects the order",
    )
    unit_root_test: Literal["kpss", "adf"] = param(
        default="kpss", search=("kpss", "adf"), needs={"d": None},
        help="unit-root test that chooses the number of ordinary differences",
    )
    approximation: bool | Literal["auto"] = param(
        default="auto", help="whether to compare orders by conditional likelihood; 'auto': for series of more than 10,000 rows",
    )
    fourier_from: int = param(
        default=24, at_least=2, needs={"season_length": Not(1)},
        help="smallest season_length that is modelled by Fourier terms instead of seasonal lags",
    )
    max_harmonics: int = param(
        default=12, at_least=1, at_most=100, needs={"season_length": Not(1)},
        help="largest number of harmonics per season that is modelled by Fourier terms",
    )

    coverage_slow: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"season_length": 7}, {"season_length": [3, 7], "fourier_from": 5, "stepwise": False, "max_order": 2}]

    def _min_observations(self, panel: Panel) -> int:
        self._season_lengths(panel)  # raises if they are invalid
        n_columns = design_matrix(panel.covariates).shape[1] if panel.covariates else 0
        return n_columns + 4 + (self.d or 0)

    def _season_lengths(self, panel: Panel) -> tuple[int, ...]:
        return resolve_season_lengths(self.season_length, panel, self.name)

    def _short_season(self, panel: Panel) -> int:
        lengths = self._season_lengths(panel)
        return lengths[0] if lengths and lengths[0] < self.fourier_from else 1

    def _fourier_terms(self, panel: Panel) -> list[tuple[int, int]]:
        short_season = self._short_season(panel)
        long_seasons = [length for length in self._season_lengths(panel) if length != short_season]
        return [(length, min(length // 2, self.max_harmonics)) for length in long_seasons]

    def _max_coefficients_and_states(self, panel: Panel) -> tuple[int, int]:
        season = self._short_season(panel)
        seasonal_p, seasonal_q, seasonal_d = self.max_seasonal_p, self.max_seasonal_q, self._seasonal_d_limit()
        if season == 1:
            seasonal_p, seasonal_q, seasonal_d = 0, 0, 0
        n_differences = self.max_d if self.d is None else self.d
        n_ar_states = self.max_p + season * (seasonal_p + seasonal_d) + n_differences
        n_ma_states = self.max_q + season * seasonal_q + 1
        return self.max_p + self.max_q + seasonal_p + seasonal_q, max(n_ar_states, n_ma_states)

    def _seasonal_d_limit(self) -> int:
        return self.max_seasonal_d if self.seasonal_d is None else self.seasonal_d

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        """Fit; warn of series with fewer than two cycles of a season."""
        lengths = self._season_lengths(panel)
        short_series = np.flatnonzero(panel.observed < MIN_CYCLES * max(lengths, default=0))
        if len(short_series):
            lacking_seasons = [length for length in lengths if panel.observed[short_series].min() < MIN_CYCLES * length]
            warn(
                f"{self.name}: seasons of {format_list(lacking_seasons)} steps require at least {MIN_CYCLES} cycles of "
                f"values; they are left out for series {panel.series.labels(short_series)}. Pass longer series or a "
                "smaller season_length.", subject=self.name
            )
        return super()._fit(panel, monitor)

    def _shared_values(self, panel: Panel) -> dict[str, Any]:
        return {"fourier_terms": [list(term) for term in self._fourier_terms(panel)]}

    def _seasonal_strengths(self, panel: Panel) -> Floats:
        """Seasonal strength of each series by an STL decomposition; NaN for series with too few cycles.

        0 for the others if it is not needed: without a season, or with a given `seasonal_d`.
        """
        from deepforecast.kernels.unit_roots import seasonal_strength

        season = self._short_season(panel)
        strengths = np.full(len(panel), np.nan)
        long_enough = np.flatnonzero(panel.observed > MIN_CYCLES * season)
        if season == 1 or self.seasonal_d is not None or not len(long_enough):
            return np.where(panel.observed > MIN_CYCLES * season, 0.0, np.nan)
        testable = panel.take(long_enough)
        trend, seasons = decompose_panel(testable, [season], Smoothers())
        for position, series_index in enumerate(long_enough):
            rows = slice(testable.indptr[position], testable.indptr[position + 1])
            values, remainder = testable.y[rows], testable.y[rows] - trend[rows] - seasons[0][rows]
            is_observed = ~np.isnan(values)
            strengths[series_index] = seasonal_strength(seasons[0][rows][is_observed], remainder[is_observed])
        return strengths

    def _fit_series(
        self,
        y: Floats,
        columns: Floats,
        n_regressors: int,
        seasonal_strength: float,
        season: int,
        fourier_terms: Any,
    ) -> tuple[ScaledSeries, Fit, Ints]:
        """Choose differences, Fourier terms and the ARMA orders of one series, in this order."""
        if np.isnan(seasonal_strength):
            season = 1
        series = ScaledSeries.from_values(y, columns[:, :n_regressors])
        seasonal_d = self._choose_seasonal_d(seasonal_strength) if season > 1 else 0
        used_columns = np.arange(n_regressors)
        usable_terms = _usable_terms(fourier_terms, int((~np.isnan(y)).sum()), first_column=n_regressors)
        if usable_terms:
            all_columns = np.concatenate([used_columns, *usable_terms])
            n_differences = self._choose_differences(ScaledSeries.from_values(y, columns[:, all_columns]), seasonal_d, season)
            n_harmonics = choose_fourier_terms(
                y,
                columns[:, used_columns],
                [columns[:, season_columns] for season_columns in usable_terms],
                Order((1, 2), n_differences, (1, 2), (0, seasonal_d, 0), season, constant=False),
                self.criterion,
            )
            chosen_columns = [term[: 2 * n] for term, n in zip(usable_terms, n_harmonics, strict=True)]
            used_columns = np.concatenate([used_columns, *chosen_columns])
            series = ScaledSeries.from_values(y, columns[:, used_columns])
        else:
            n_differences = self._choose_differences(series, seasonal_d, season)
        search = Search(series, self._search_options(len(y)), n_differences, seasonal_d, season)
        return series, search.run(), used_columns

    def _choose_seasonal_d(self, seasonal_strength: float) -> int:
        """The given number of seasonal differences, or one if the season is strong, within `max_seasonal_d`."""
        from deepforecast.kernels.unit_roots import STRONG_SEASON

        seasonal_d = int(seasonal_strength > STRONG_SEASON) if self.seasonal_d is None else self.seasonal_d
        return min(seasonal_d, self._seasonal_d_limit())

    def _choose_differences(self, series: ScaledSeries, seasonal_d: int, season: int) -> int:
        """The given number of ordinary differences, or that of the unit-root tests."""
        if self.d is not None:
            return self.d
        return choose_differences(series, seasonal_d, season, self.unit_root_test, self.max_d)

    def _search_options(self, n_rows: int) -> SearchOptions:
        """Options of the order search of a series of this length."""
        return SearchOptions(
            max_orders=(self.max_p, self.max_q, self.max_seasonal_p, self.max_seasonal_q),
            max_sum=self.max_order,
            stepwise=self.stepwise,
            criterion=self.criterion,
            constant=self.constant,
            conditional=n_rows > APPROXIMATION_LENGTH if self.approximation == "auto" else bool(self.approximation),
            difference_perfect_fits=self.d is None and self.max_d > 0,
        )


def _usable_terms(fourier_terms: list[tuple[int, int]], n_observed: int, first_column: int) -> list[Ints]:
    """Column indices of the Fourier terms of each season of which the series has at least two cycles.

    Harmonics with the frequency of an earlier season, and seasons without any other, are left out.
    `fourier_terms`: (season, n_harmonics); `first_column`: index of their first column.
    """
    usable_columns, frequencies = [], set()
    for season, n_harmonics in fourier_terms:
        columns = []
        for harmonic in range(1, n_harmonics + 1):
            frequency = round(harmonic / season, 12)
            if frequency not in frequencies and n_observed >= MIN_CYCLES * season:
                frequencies.add(frequency)
                columns += [first_column + 2 * harmonic - 2, first_column + 2 * harmonic - 1]
        first_column += 2 * n_harmonics
        if columns:
            usable_columns.append(np.array(columns, np.int64))
    return usable_columns
