"""What the classical models share: each series is estimated alone by a compiled kernel, many series at a time.

Statistical     `_estimate` learns a panel of some series; `_fitted` gives the one-step-ahead forecasts of a history

`LearnedState.by_series` holds parameters, the state before the first row and the state after the last; the shapes of its arrays
follow from the model's parameters and the season, never from the data, so that series fitted apart can stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import refuse_duplicate_columns, validate_horizon
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.parallel import map_chunks
from deepforecast.core.state import LearnedState, State
from deepforecast.core.unused_parameters import refuse_unused_parameters
from deepforecast.data import frames
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, DataError, warn
from deepforecast.models.statistical._diagnostics import residual_tests
from deepforecast.models.statistical._regressors import constant_values, warn_constant_in_fit


class Statistical(Forecaster):
    """A model of each series alone. `seconds_per_value`: about what a value of a history costs in a fit."""

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 1e-6
    warm_up_params: ClassVar[dict[str, Any]] = {}  # see evaluation.warm_up

    def fitted_values(self, frame: Frame | None = None, *, static: Frame | None = None) -> Frame:
        """The forecast of each row from the rows before it, beside the value: of the rows of the fit, or of these histories.

        NaN where the model has none: its start, and steps into a missing past. `update` adds no rows to those of the fit: give
        the whole histories.
        """
        state = self._state_for_frame(frame, static)
        panel = self._history(state.learned)
        columns: dict[str, Any] = {}
        names = panel.series.columns
        if names.id is not None and panel.series.ids is not None:
            columns[names.id] = panel.series.ids[panel.row_series]
        columns[names.time] = panel.series.time_column(panel.row_positions)
        refuse_duplicate_columns([names.target, self.name], columns)
        columns[names.target] = panel.y
        columns[self.name] = self._fitted(state.learned, panel)
        return frames.build(panel.series.library, columns)

    def parameters(self) -> Frame:
        """What was estimated, a row a series."""
        state = self.fitted_state()
        columns: dict[str, Any] = {}
        if state.series.columns.id is not None and state.series.ids is not None:
            columns[state.series.columns.id] = state.series.ids
        return frames.build(state.series.library, columns | self._parameter_columns(state.learned, state))

    def residual_diagnostics(
        self, frame: Frame | None = None, lags: int | None = None, *, static: Frame | None = None
    ) -> Frame:
        """Whether what the model left over is noise: a row for each series and `test`, with `statistic`, `p_value`, `lags`.

        A small `p_value` speaks against: ljung_box, residuals follow each other (`lags` of them; None: 10, or two seasons, at
        most a fifth of the residuals); heteroscedasticity, those of the last third are larger or smaller than those of the
        first (`lags`: how many make a third); jarque_bera, they are not normal. Of the rows of the fit (without those of
        `update`), or of these histories. Residuals are the errors that the model supposes to be noise: shares of the forecast
        where errors multiply, of transformed values with `box_cox`. Missing ones are left out; NaN, and said, where too few
        are left for a test.
        """
        if lags is not None:
            validate_horizon(lags, name="lags")
        state = self._state_for_frame(frame, static)
        panel = self._history(state.learned)
        tests = residual_tests(self._innovations(state.learned, panel), panel.indptr, lags, self._diagnostic_season(panel))
        short_series = np.flatnonzero(np.isnan(np.stack([test[0] for test in tests.values()])).any(axis=0))
        if len(short_series):
            warn(f"{self.name}: too few residuals for every test in series {panel.series.labels(short_series)}.")
        return frames.build(panel.series.library, self._diagnostic_columns(panel, tests))

    def _innovations(self, learned: LearnedState, panel: Panel) -> Floats:
        """The errors of each row that the model supposes to be noise."""
        return np.asarray(panel.y - self._fitted(learned, panel))

    def _diagnostic_columns(self, panel: Panel, tests: Mapping[str, tuple[Any, Any, Any]]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        names = panel.series.columns
        if names.id is not None and panel.series.ids is not None:
            columns[names.id] = panel.series.ids[np.repeat(np.arange(len(panel)), len(tests))]
        refuse_duplicate_columns(["test", "statistic", "p_value", "lags"], columns)
        columns["test"] = np.array(list(tests) * len(panel), dtype=object)
        for position, name in enumerate(("statistic", "p_value", "lags")):
            columns[name] = np.stack([test[position] for test in tests.values()], axis=-1).reshape(-1)
        return columns

    def _diagnostic_season(self, panel: Panel) -> int:
        """The season over two of which residuals may follow each other: the model's longest, 1 if it has none."""
        season = getattr(self, "season_length", 1)
        if season == "auto":
            default_seasons = seasons(panel.calendar.frequency)
            return default_seasons[0] if default_seasons else 1
        return int(max(season) if isinstance(season, (list, tuple)) else season)

    def _fit_panel(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        refuse_unused_parameters(self, self._idle())
        state = super()._fit_panel(panel, monitor)
        if not panel.series.columns.future:
            return state
        learned = state.learned
        return replace(state, learned=replace(learned, by_series={**learned.by_series, "unvaried": constant_values(panel)}))

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        covariates = super()._future_covariates(state, steps, future)
        if covariates and "unvaried" in state.learned.by_series:
            warn_constant_in_fit(self.name, state.learned["unvaried"], covariates, state.series)
        return covariates

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        chunks = map_chunks(
            lambda chunk: self._estimate(_select_series(panel, chunk)),
            len(panel),
            cost=panel.lengths * self.seconds_per_value,
        )
        joined = chunks[0] if len(chunks) == 1 else _concatenate(chunks)
        return replace(joined, history=panel)

    def _history(self, learned: LearnedState) -> Panel:
        if learned.history is None:
            raise DataError(
                f"{self.name} holds no history: it was loaded from a file, or some of its series were fitted and some only "
                "moved. Give the histories: frame=."
            )
        return learned.history

    # -- hooks of a model ------------------------------------------------------------------------------------------------------

    def _idle(self) -> Iterable[tuple[str, str]]:
        """Parameters that have no effect beside the others as they are: names, and why, with the way out."""
        return ()

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """The columns of `parameters`."""
        raise CapabilityError(f"{type(self).__name__} has no table of parameters. What it learned is in state_.learned.")

    def _estimate(self, panel: Panel) -> LearnedState:
        """Learn from a panel; called for slices of it, in threads."""
        raise NotImplementedError

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        """One-step-ahead forecasts of the rows of a panel, from the state before its first row."""
        raise NotImplementedError


def _select_series(panel: Panel, chunk: slice) -> Panel:
    """Some series that stand side by side; all of them are the panel itself, not a copy."""
    return panel if chunk.stop - chunk.start == len(panel) else panel.take(np.arange(chunk.start, chunk.stop))


def _concatenate(chunks: list[LearnedState]) -> LearnedState:
    first = chunks[0]
    return replace(first, by_series={name: np.concatenate([chunk.by_series[name] for chunk in chunks]) for name in first.by_series})
