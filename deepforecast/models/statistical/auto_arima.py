"""An ARIMA whose order is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.idle import NO_SEASON
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import say, some
from deepforecast.models.statistical._arima import ArimaFamily
from deepforecast.models.statistical._arima_search import Rules, Search, differences_of, waves_chosen
from deepforecast.models.statistical._arima_series import Fit, Order, Series
from deepforecast.models.statistical._regressors import design
from deepforecast.models.statistical._seasons import CYCLES, Smoothers, season_lengths, taken_apart

LONG_SERIES = 10_000
"""From so many rows on a search compares likelihoods given zeros before the first row; the order found is fitted exactly."""


@register
class AutoARIMA(ArimaFamily):
    """An ARIMA of the order that AICc finds best; of a long season Fourier terms beside it.

    Seasonal differences by the strength of the season, others by repeated unit-root tests, then a stepwise search over the
    rest with exact likelihoods (`stepwise=False`: all orders up to `max_order` coefficients). Columns known ahead are
    regressors. A season of `fourier_from` steps or more, and any second season, is a sum of waves whose number AICc chooses,
    with ARIMA errors: hourly data take well under a second. A season of which a series has less than two cycles is left out
    there and said. Orders with a root within 1 % of the unit circle, of seasonal polynomials counted in seasons, are passed
    over. Bands as in `ARIMA`; they take the order chosen as known, and are narrow for it: on monthly series of M4 those of 95 %
    hold 91 %.
    Reference: Hyndman & Khandakar (2008), Journal of Statistical Software 27(3).

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 57 %, M1 monthly
    67 %, NN5 daily 88 % (benchmarks/bench_coverage.py; 100 series of each set).

    >>> from deepforecast import datasets
    >>> model = AutoARIMA(horizon=3).fit(datasets.load("air_passengers"))
    >>> model.parameters()["order"].tolist()
    ['(2,1,1)(0,1,0)[12]']
    """

    season_length: int | list[int] | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which a season repeats, or several of them"
    )
    d: int | None = param(
        default=None, at_least=0, at_most=3, help="differences; tested if not given",
    )
    seasonal_d: int | None = param(
        default=None, at_least=0, at_most=2,
        help="seasonal differences; by the strength of the season",
    )
    max_p: int = param(default=5, at_least=0, at_most=20, help="most autoregressive coefficients")
    max_q: int = param(default=5, at_least=0, at_most=20, help="most moving average coefficients")
    max_seasonal_p: int = param(
        default=2, at_least=0, at_most=5, help="most seasonal autoregressive coefficients",
    )
    max_seasonal_q: int = param(
        default=2, at_least=0, at_most=5, help="most seasonal moving average coefficients",
    )
    max_d: int = param(default=2, at_least=0, at_most=3, help="most differences by test")
    max_seasonal_d: int = param(
        default=1, at_least=0, at_most=2, help="most seasonal differences by strength",
    )
    max_order: int = param(
        default=5, at_least=0, help="most coefficients together, in a search of all orders",
    )
    stepwise: bool = param(
        default=True, help="go from the best order to its neighbours; False: all orders",
    )
    constant: bool = param(
        default=True, help="look at orders with a mean, or a drift under one difference, too",
    )
    criterion: Literal["aicc", "aic", "bic"] = param(
        default="aicc", search=("aicc", "bic"), help="what orders are compared by",
    )
    unit_root_test: Literal["kpss", "adf"] = param(
        default="kpss", search=("kpss", "adf"), help="test for differences",
    )
    approximation: bool | Literal["auto"] = param(
        default="auto", help="search by the conditional likelihood; auto: long series",
    )
    fourier_from: int = param(
        default=24, at_least=2, help="seasons of so many steps are Fourier terms",
    )
    max_harmonics: int = param(
        default=12, at_least=1, at_most=100, help="most Fourier waves of a long season",
    )

    coverage_slow: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{"season_length": 7}, {"season_length": [3, 7], "fourier_from": 5, "stepwise": False, "max_order": 2}]

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.d is not None:
            for name in ("max_d", "unit_root_test"):
                yield name, f"beside d={self.d}. Leave d out to have it tested, or leave this out"
        if self.seasonal_d is not None:
            yield "max_seasonal_d", f"beside seasonal_d={self.seasonal_d}. Leave one of them out"
        if self.stepwise:
            yield "max_order", "in a stepwise search. Say stepwise=False, or bound each with max_p, max_q and so on"
        if self.season_length == NO_SEASON:
            for name in ("seasonal_d", "max_seasonal_p", "max_seasonal_q", "max_seasonal_d", "fourier_from", "max_harmonics"):
                yield name, "without a season. Give a season_length above 1, or leave it out"

    def _needs(self, panel: Panel) -> int:
        self._lengths(panel)
        columns = design(panel.covariates).shape[1] if panel.covariates else 0
        return columns + 4 + (self.d or 0)

    def _lengths(self, panel: Panel) -> tuple[int, ...]:
        return season_lengths(self.season_length, panel, self.name)

    def _short_season(self, panel: Panel) -> int:
        lengths = self._lengths(panel)
        return lengths[0] if lengths and lengths[0] < self.fourier_from else 1

    def _waves(self, panel: Panel) -> list[tuple[int, int]]:
        short = self._short_season(panel)
        return [(length, min(length // 2, self.max_harmonics)) for length in self._lengths(panel) if length != short]

    def _widths(self, panel: Panel) -> tuple[int, int]:
        season = self._short_season(panel)
        many_p, many_q, big_d = self.max_seasonal_p, self.max_seasonal_q, self._most_seasonal_d()
        if season == 1:
            many_p, many_q, big_d = 0, 0, 0
        d = self.max_d if self.d is None else self.d
        states = max(self.max_p + season * (many_p + big_d) + d, self.max_q + season * many_q + 1)
        return self.max_p + self.max_q + many_p + many_q, states

    def _most_seasonal_d(self) -> int:
        return self.max_seasonal_d if self.seasonal_d is None else self.seasonal_d

    def _fit(self, panel: Panel, monitor: Any) -> Learned:
        lengths = self._lengths(panel)
        short = np.flatnonzero(panel.observed < CYCLES * max(lengths, default=0))
        if len(short):
            lacking = [length for length in lengths if panel.observed[short].min() < CYCLES * length]
            say(
                f"{self.name} leaves a season out of which a series has less than {CYCLES} cycles (of {some(lacking)} steps): "
                f"series {panel.series.labels(short)}."
            )
        return super()._fit(panel, monitor)

    def _shared(self, panel: Panel) -> dict[str, Any]:
        return {"waves": [list(one) for one in self._waves(panel)]}

    def _hints(self, panel: Panel) -> Floats:
        """The strength of each series' short season; NaN where there are too few cycles to tell."""
        from deepforecast.kernels.unit_roots import strength

        season = self._short_season(panel)
        found = np.full(len(panel), np.nan)
        long = np.flatnonzero(panel.observed > CYCLES * season)
        if season == 1 or self.seasonal_d is not None or not len(long):
            return np.where(panel.observed > CYCLES * season, 0.0, np.nan)
        part = panel.take(long)
        trend, seasons = taken_apart(part, [season], Smoothers())
        for place, number in enumerate(long):
            rows = slice(part.indptr[place], part.indptr[place + 1])
            values, rest = part.y[rows], part.y[rows] - trend[rows] - seasons[0][rows]
            seen = ~np.isnan(values)
            found[number] = strength(seasons[0][rows][seen], rest[seen])
        return found

    def _one(self, y: Floats, columns: Floats, known: int, hint: float, season: int, waves: Any) -> tuple[Series, Fit, Ints]:
        from deepforecast.kernels.unit_roots import STRONG

        if np.isnan(hint):
            season = 1
        series = Series.of(y, columns[:, :known])
        strong = int(season > 1 and hint > STRONG) if self.seasonal_d is None else self.seasonal_d * int(season > 1)
        big_d = min(strong, self._most_seasonal_d())
        used = np.arange(known)
        usable = _usable(waves, int((~np.isnan(y)).sum()), known)
        if usable:
            every = np.concatenate([used, *usable])
            d = self._d(Series.of(y, columns[:, every]), big_d, season)
            base = Order((1, 2), d, (1, 2), (0, big_d, 0), season, False)
            counts = waves_chosen(y, columns[:, used], [columns[:, one] for one in usable], base, self.criterion)
            used = np.concatenate([used, *(one[: 2 * count] for one, count in zip(usable, counts, strict=True))])
            series = Series.of(y, columns[:, used])
        else:
            d = self._d(series, big_d, season)
        return series, Search(series, self._rules(len(y)), d, big_d, season).best_fit(), used

    def _d(self, series: Series, big_d: int, season: int) -> int:
        if self.d is not None:
            return self.d
        return differences_of(series, big_d, season, self.unit_root_test, self.max_d)

    def _rules(self, rows: int) -> Rules:
        most = (self.max_p, self.max_q, self.max_seasonal_p, self.max_seasonal_q)
        conditional = rows > LONG_SERIES if self.approximation == "auto" else bool(self.approximation)
        follows = self.d is None and self.max_d > 0
        return Rules(most, self.max_order, self.stepwise, self.criterion, self.constant, conditional, follows)


def _usable(waves: list[tuple[int, int]], rows: int, first: int) -> list[Ints]:
    """The columns of each season that a series has two cycles of, without waves that are another season's."""
    found, taken = [], set()
    for season, count in waves:
        columns = []
        for wave in range(1, count + 1):
            if (frequency := round(wave / season, 12)) not in taken and rows >= CYCLES * season:
                taken.add(frequency)
                columns += [first + 2 * wave - 2, first + 2 * wave - 1]
        first += 2 * count
        if columns:
            found.append(np.array(columns, np.int64))
    return found
