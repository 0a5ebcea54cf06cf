"""Forecasts by multiple seasonal-trend decomposition with loess (MSTL)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import Not, param, refuse_unused_parameters
from deepforecast.core.preprocessing import refuse_out_of_domain
from deepforecast.core.registry import Capabilities, get, register
from deepforecast.core.seasonality import warn_short_series
from deepforecast.core.state import LearnedState, State, check_integers
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, ParameterError
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
    """Multiple seasonal-trend decomposition by loess, and any model for the seasonally adjusted series.

    Seasons are removed by loess, the seasonally adjusted series is forecast by `trend_model`, and
    the last cycle of each season is repeated.

    One season is decomposed by STL, several by MSTL (hourly data: day and week), the shortest
    first, in two rounds. Missing values are interpolated for the decomposition, season by season,
    and stay missing for the model. With season_length="auto" a season of which a series has
    fewer than two cycles is left out for that series, with a warning.

    `update` continues the seasons of the fit, as does predict(frame=...) on histories that begin
    with the rows of the fit; any other history is decomposed again, with the parameters of the
    trend model unchanged. `fitted_values` forecasts each row with seasons estimated from the rows
    before its cycle (in long series every few cycles, at most 50 times); the first two cycles have
    no fitted values.

    Intervals are those of the trend model times sqrt((1 + k / n) / (1 - k / n)) for the k degrees
    of freedom of the seasons, computed as the trace of their smoothers. They treat the form of the
    trend model as known, and with few cycles they are too narrow.

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
        help="number of time steps per season, or a list of several; 1: no season; 'auto': inferred from the"
        " frequency of the data",
    )
    trend_model: Forecaster | None = param(
        default=None,
        help="local model of the seasonally adjusted series; None: AutoETS(season_length=1)",
    )
    seasonal_window: int | list[int] | None = param(
        default=None, at_least=3, needs={"season_length": Not(1)},
        help="odd length of the seasonal loess window in cycles, one number for all seasons or a list with one per season;"
        " None: 11, 15, 19, ...",
    )
    trend_window: int | list[int] | None = param(
        default=None, at_least=3, needs={"season_length": Not(1)},
        help="odd number of rows in the trend loess window, above the season_length, for all seasons or a"
        " list for each; None: 1.5 * season / (1 - 1.5 / seasonal_window)",
    )
    seasonal_degree: Literal[0, 1] = param(
        default=0, search=(0, 1), needs={"season_length": Not(1)},
        help="degree of the local polynomial of the seasonal loess; 0: constant, 1: linear",
    )
    robust: bool = param(
        default=False, search=(False, True), needs={"season_length": Not(1)},
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
        """Copy of the trend model with the horizon and name of this model."""
        model = get("AutoETS")(season_length=1) if self.trend_model is None else self.trend_model
        return model.clone(horizon=self.default_horizon, missing="auto", alias=self.name)

    def _smoothers(self) -> Smoothers:
        return Smoothers(
            self.seasonal_window, self.trend_window, degrees=(self.seasonal_degree, 1, 1), robust=self.robust
        )

    def _min_observations(self, panel: Panel) -> int:
        inner = self._inner()
        self._check_trend_model(inner)
        lengths = resolve_season_lengths(self.season_length, panel, self.name)
        n_for_seasons = MIN_CYCLES * self._required_season(lengths) if lengths else 1
        return max(inner._min_observations(panel), n_for_seasons)

    def _check_trend_model(self, inner: Forecaster) -> None:
        """Raise a `ParameterError` if the trend model is global, calibrates intervals, or has unused parameters."""
        if inner.calibrates:
            raise ParameterError(
                f"`trend_model` must not calibrate intervals, got {type(inner).__name__} with conformal intervals.",
                hint="Set "
                "intervals=None there, and intervals='conformal' in MSTL.",
                parameter="trend_model",
            )
        if not inner.capabilities.by_series:
            raise ParameterError(
                f"`trend_model` must be a local model, fitted to each series separately, got {type(inner).__name__}.",
                hint="Use "
                "a statistical model, such as AutoETS().",
                parameter="trend_model",
            )
        if isinstance(inner, Statistical):
            refuse_unused_parameters(inner.clone(alias=type(inner).__name__))

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Decompose, and fit the trend model to the seasonally adjusted series."""
        lengths = resolve_season_lengths(self.season_length, panel, self.name)
        warn_short_series(panel, max(lengths, default=1), self.name, MIN_CYCLES * max(lengths, default=1))
        _, seasons = decompose_panel(panel, lengths, self._smoothers())
        inner = self._inner()._fit(self._deseasonalize(panel, seasons), monitor)
        deviation_factor = interval_widening(lengths, panel.observed, panel.lengths, self._smoothers())
        seasonal_arrays = {**_inner_model.last_cycles(panel, lengths, seasons), "deviation_factor": deviation_factor}
        return with_seasons(inner, seasonal_arrays, HistoryChecksum.from_panel(panel), panel)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """Continue the state, or start from other histories.

        Histories that begin with the rows that the state has seen continue it with their further rows; others are
        decomposed again.
        """
        checksums = HistoryChecksum.from_learned(learned)
        if not from_start:
            return self._continue(learned, checksums, panel)
        n_known_rows = checksums.matching_rows(panel)  # -1 for other histories
        restarted, continuing = np.flatnonzero(n_known_rows < 0), np.flatnonzero(n_known_rows >= 0)
        groups = [self._restart(learned.take(restarted), panel.take(restarted))] if len(restarted) else []
        if len(continuing):
            continued = panel.take(continuing)
            groups.append(
                self._continue(
                    learned.take(continuing),
                    checksums.take(continuing),
                    continued.between(n_known_rows[continuing], continued.lengths),
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
        """Repeat the learned seasons over the rows that follow, and update the trend model; series without rows stay."""
        selected = np.flatnonzero(panel.lengths > 0)
        if not len(selected):
            return learned
        new_rows = panel.take(selected) if len(selected) < len(panel) else panel
        selected_learned = learned.take(selected)
        y, next_seasons = _inner_model.continue_seasons(selected_learned, new_rows)
        inner = self._inner()._advance(inner_learned(selected_learned), new_rows.with_target(y), False)
        seasonal_arrays = {**next_seasons, **_fit_constants(selected_learned)}
        return learned.put(selected, with_seasons(inner, seasonal_arrays, checksums.take(selected).extend(new_rows), None))

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        self._inner()._deserialize(inner_learned(learned), foreign)  # checks only
        check_integers(learned, "history_checksum", *RANGES)
        return learned

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        inner_forecast = self._inner()._forecast(inner_learned(learned), steps, future)
        return ShiftedForecast(
            WidenedForecast(inner_forecast, learned["deviation_factor"]), _inner_model.forecast_season_sum(learned, steps)
        )

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        paths = self._inner()._simulate(inner_learned(learned), steps, samples, seed, future)
        inner_mean = self._inner()._forecast(inner_learned(learned), steps, future).mean[:, None, :]
        paths = inner_mean + (paths - inner_mean) * learned["deviation_factor"][:, None, None]
        return np.asarray(paths + _inner_model.forecast_season_sum(learned, steps)[:, None, :])

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return {
            **self._inner()._explain(inner_learned(learned), steps, future),
            **_inner_model.forecast_seasons(learned, steps),
        }

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        """One-step-ahead forecasts; see `one_step_forecasts`. Raise a `CapabilityError` if the trend model has none."""
        inner = self._inner()
        if not isinstance(inner, Statistical):
            raise CapabilityError(
                f"`trend_model` must be a statistical model to compute fitted values, got {type(inner).__name__}.",
                hint="Use, for "
                "example, AutoETS().",
                parameter="trend_model",
            )
        lengths, inner_state = resolve_season_lengths(self.season_length, panel, self.name), inner_learned(learned)
        if not lengths:
            return inner._fitted(inner_state, panel)
        return one_step_forecasts(
            panel,
            lengths,
            first_row=MIN_CYCLES * self._required_season(lengths),
            decompose_seasons=lambda histories: decompose_panel(histories, lengths, self._smoothers())[1],
            forecast_adjusted=lambda histories, series: inner._fitted(inner_state.take(series), histories),
        )

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        inner = self._inner()
        if not isinstance(inner, Statistical):
            raise CapabilityError(
                f"`trend_model` must be a statistical model to have a table of parameters, got {type(inner).__name__}.",
                hint="Use, "
                "for example, SES().",
                parameter="trend_model",
            )
        return inner._parameter_columns(inner_learned(learned), state)

    def _required_season(self, lengths: tuple[int, ...]) -> int:
        """Length of the longest season of which each series must have two cycles.

        The shortest one if they are inferred from the frequency, as the others are then optional.
        """
        return lengths[0] if self.season_length == "auto" else lengths[-1]


def _fit_constants(learned: LearnedState) -> dict[str, Any]:
    """The arrays of MSTL itself that are set in fit and that `update` does not change."""
    return {name: learned[name] for name in ("deviation_factor", "constant_covariates") if name in learned.by_series}
