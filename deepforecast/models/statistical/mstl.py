"""Forecasts by multiple seasonal-trend decomposition with loess (MSTL)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.integer_bounds import check_integers
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.preprocessing import refuse_out_of_domain
from deepforecast.core.registry import get, register
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState, State
from deepforecast.core.unused_parameters import NO_SEASON, refuse_unused_parameters
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.models._seasonality import warn_short_series
from deepforecast.models.statistical import _inner_model
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._checksums import RANGES, HistoryChecksum
from deepforecast.models.statistical._fitted_values import one_step_forecasts
from deepforecast.models.statistical._inner_model import inner_learned, with_seasons
from deepforecast.models.statistical._intervals import WidenedForecast
from deepforecast.models.statistical._offset_forecast import ShiftedForecast
from deepforecast.models.statistical._seasons import (
    MIN_CYCLES,
    Smoothers,
    decompose_panel,
    interval_widening,
    resolve_season_lengths,
)


@register
class MSTL(Statistical):
    """Multiple seasonal-trend decomposition by loess, and any model for the rest.

    Seasons are removed by loess, the seasonally adjusted series is forecast by `trend_model`, and
    the last cycle of each season is repeated.

    One season is decomposed by STL, several by MSTL (hourly data: day and week), the shortest
    first, in two rounds. Missing values are interpolated for the decomposition, season by season,
    and stay missing for the model. A series with less than two cycles of a season that follows from
    the frequency is decomposed without it, with a warning.

    `update` continues the seasons of the fit, as does predict(frame=...) on histories that begin
    with the rows of the fit; any other history is decomposed again, with the parameters of the
    trend model unchanged. `fitted_values` forecasts each row by seasons estimated from the rows
    before its cycle (in long series every few cycles, at most 50 times); the first two cycles have
    none.

    Intervals are those of the trend model times sqrt((1 + k / n) / (1 - k / n)) for the k degrees
    of freedom of the seasons, by the trace of their smoothers. They take the form of the trend
    model as known, and with few cycles they are too narrow.

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 68 %, M1 monthly
    75 %, M4 hourly (100 series) 89 %, NN5 daily 92 % (benchmarks/bench_coverage.py).

    See Also
    --------
    decompose : The decomposition alone.

    References
    ----------
    Bandara, K., Hyndman, R. J. and Bergmeir, C. (2021). MSTL: A seasonal-trend decomposition
    algorithm for time series with multiple seasonal patterns. arXiv:2107.13462

    Examples
    --------
    >>> from deepforecast import Drift, datasets
    >>> model = MSTL(horizon=3, trend_model=Drift()).fit(datasets.load("air_passengers"))
    >>> model.predict(level=80).columns.tolist()
    ['unique_id', 'ds', 'MSTL', 'MSTL-lo-80', 'MSTL-hi-80']
    """

    coverage_process: ClassVar[str] = "decomposition"

    season_length: int | list[int] | Literal["auto"] = param(
        default="auto", at_least=1,
        help="number of time steps per season, or a list of several; 'auto': by the frequency",
    )
    trend_model: Forecaster | None = param(
        default=None,
        help="model of the seasonally adjusted series; None: AutoETS(season_length=1)",
    )
    seasonal_window: int | list[int] | None = param(
        default=None, at_least=3,
        help="odd number of cycles in the seasonal loess window, one or one per season; None: 11, 15,"
        " 19, ...",
    )
    trend_window: int | list[int] | None = param(
        default=None, at_least=3,
        help="odd number of rows in the trend loess window, above the season, one or one per season;"
        " None: 1.5 * season / (1 - 1.5 / seasonal_window)",
    )
    seasonal_degree: Literal[0, 1] = param(
        default=0, search=(0, 1), help="degree of the seasonal loess",
    )
    robust: bool = param(
        default=False, search=(False, True),
        help="whether to downweight outliers in the decomposition",
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"season_length": 7}, {"season_length": [3, 7], "trend_model": get("Naive")(), "robust": True}]

    def _narrow(self, declared: Capabilities) -> Capabilities:
        inner: Capabilities = self._inner().capabilities
        return replace(inner, new_values="heard", precision=max(inner.precision, 1e-6))

    def _inner(self) -> Forecaster:
        """The trend model as it is fitted here."""
        model = get("AutoETS")(season_length=1) if self.trend_model is None else self.trend_model
        return model.clone(horizon=self.default_horizon, missing="auto", alias=self.name)

    def _smoothers(self) -> Smoothers:
        return Smoothers(
            self.seasonal_window, self.trend_window, degrees=(self.seasonal_degree, 1, 1), robust=self.robust
        )

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.season_length == NO_SEASON:
            for name in ("seasonal_window", "trend_window", "seasonal_degree", "robust"):
                yield name, "without a season. Pass a season_length above 1, or leave it out"

    def _min_observations(self, panel: Panel) -> int:
        inner = self._inner()
        if inner.calibrates or not inner.capabilities.by_series:
            raise ParameterError(
                f"`trend_model` must be a local model without calibrated intervals, got {type(inner).__name__}. Use "
                "another model, or set intervals='conformal' in MSTL instead."
            )
        if isinstance(inner, Statistical):
            refuse_unused_parameters(inner.clone(alias=type(inner).__name__), inner._idle())
        lengths = resolve_season_lengths(self.season_length, panel, self.name)
        return max(inner._min_observations(panel), MIN_CYCLES * self._required_season(lengths) if lengths else 1)

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        lengths = resolve_season_lengths(self.season_length, panel, self.name)
        warn_short_series(panel, max(lengths, default=1), self.name, MIN_CYCLES * max(lengths, default=1))
        _, seasons = decompose_panel(panel, lengths, self._smoothers())
        inner = self._inner()._fit(self._deseasonalize(panel, seasons), monitor)
        estimation_factor = interval_widening(lengths, panel.observed, panel.lengths, self._smoothers())
        seasonal_arrays = {**_inner_model.last_cycles(panel, lengths, seasons), "wider": estimation_factor}
        return with_seasons(inner, seasonal_arrays, HistoryChecksum.from_panel(panel), panel)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        checksums = HistoryChecksum.from_learned(learned)
        if not fresh:
            return self._continue(learned, checksums, panel)
        count = checksums.matching_rows(panel)
        restarted, continuing = np.flatnonzero(count < 0), np.flatnonzero(count >= 0)
        groups = [self._restart(learned.take(restarted), panel.take(restarted))] if len(restarted) else []
        if len(continuing):
            continued = panel.take(continuing)
            groups.append(
                self._continue(
                    learned.take(continuing),
                    checksums.take(continuing),
                    continued.between(count[continuing], continued.lengths),
                )
            )
        joined = groups[0] if len(groups) == 1 else groups[0].join(groups[1])
        return replace(joined.take(np.argsort(np.concatenate([restarted, continuing]))), history=panel)

    def _deseasonalize(self, panel: Panel, seasons: Floats) -> Panel:
        """The seasonally adjusted panel, checked against the domain of the trend model."""
        deseasonalized, inner = panel.with_target(panel.y - seasons.sum(axis=0)), self._inner()
        refuse_out_of_domain(inner.clone(alias=f"{type(inner).__name__} of the seasonally adjusted series"), deseasonalized)
        return deseasonalized

    def _restart(self, learned: LearnedState, panel: Panel) -> LearnedState:
        """Decompose another history; the trend model keeps its parameters."""
        lengths = resolve_season_lengths(self.season_length, panel, self.name)
        _, seasons = decompose_panel(panel, lengths, self._smoothers())
        inner = self._inner()._advance(inner_learned(learned), self._deseasonalize(panel, seasons), True)
        seasonal_arrays = {**_inner_model.last_cycles(panel, lengths, seasons), **_fit_constants(learned)}
        return with_seasons(inner, seasonal_arrays, HistoryChecksum.from_panel(panel), None)

    def _continue(self, learned: LearnedState, checksums: HistoryChecksum, panel: Panel) -> LearnedState:
        """Continue the seasons of the fit over the rows that follow."""
        selected = np.flatnonzero(panel.lengths > 0)
        if not len(selected):
            return learned
        rows, selected_learned = panel.take(selected) if len(selected) < len(panel) else panel, learned.take(selected)
        y, next_seasons = _inner_model.continue_seasons(selected_learned, rows)
        inner = self._inner()._advance(inner_learned(selected_learned), rows.with_target(y), False)
        return learned.put(
            selected,
            with_seasons(
                inner, {**next_seasons, **_fit_constants(selected_learned)}, checksums.take(selected).extend(rows), None
            ),
        )

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        self._inner()._deserialize(inner_learned(learned), foreign)  # checks only
        check_integers(learned, "known", *RANGES)
        return learned

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        inner_forecast = self._inner()._forecast(inner_learned(learned), steps, future)
        return ShiftedForecast(
            WidenedForecast(inner_forecast, learned["wider"]), _inner_model.forecast_season_sum(learned, steps)
        )

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        paths = self._inner()._simulate(inner_learned(learned), steps, samples, seed, future)
        inner_mean = self._inner()._forecast(inner_learned(learned), steps, future).mean[:, None, :]
        paths = inner_mean + (paths - inner_mean) * learned["wider"][:, None, None]
        return np.asarray(paths + _inner_model.forecast_season_sum(learned, steps)[:, None, :])

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return {
            **self._inner()._explain(inner_learned(learned), steps, future),
            **_inner_model.forecast_seasons(learned, steps),
        }

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        inner = self._inner()
        if not isinstance(inner, Statistical):
            raise CapabilityError(
                f"{type(inner).__name__} cannot compute fitted values. Use another trend_model, such as AutoETS."
            )
        lengths, inner_state = resolve_season_lengths(self.season_length, panel, self.name), inner_learned(learned)
        if not lengths:
            return inner._fitted(inner_state, panel)
        return one_step_forecasts(
            panel,
            lengths,
            MIN_CYCLES * self._required_season(lengths),
            lambda rows: decompose_panel(rows, lengths, self._smoothers())[1],
            lambda rows, numbers: inner._fitted(inner_state.take(numbers), rows),
        )

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        inner = self._inner()
        if not isinstance(inner, Statistical):
            raise CapabilityError(f"{type(inner).__name__} has no table of parameters. Use another trend_model, such as SES.")
        return inner._parameter_columns(inner_learned(learned), state)

    def _required_season(self, lengths: tuple[int, ...]) -> int:
        """The season of which each series must have two cycles.

        Longer ones by frequency are optional.
        """
        return lengths[0] if self.season_length == "auto" else lengths[-1]


def _fit_constants(learned: LearnedState) -> dict[str, Any]:
    """The arrays that `update` does not change."""
    return {name: learned[name] for name in ("wider", "unvaried") if name in learned.by_series}
