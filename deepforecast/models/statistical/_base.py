"""Base class of statistical models, which estimate each series by itself.

`LearnedState.by_series` holds parameters, the state before the first row and the state after the
last row. Array shapes follow from the parameters of the model and the season, never from the data,
so that the arrays of series fitted separately can be concatenated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.arrays import constant_values, warn_constant_in_fit
from deepforecast.core.fitted_values import fitted_frame, require_training_data
from deepforecast.core.forecast import refuse_duplicate_columns, validate_horizon
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Monitor
from deepforecast.core.parallel import map_chunks
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState, State
from deepforecast.data import frames
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, warn
from deepforecast.models.statistical._diagnostics import residual_tests


class Statistical(Forecaster):
    """Base class of statistical models.

    `seconds_per_value`: approximate seconds to fit one value; decides how series are shared among
    threads.
    """

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 1e-6
    warm_up_params: ClassVar[dict[str, Any]] = {}  # see evaluation.warm_up

    def fitted_values(self, frame: Frame | None = None, *, static: Frame | None = None) -> Frame:
        """Compute one-step-ahead forecasts of the training data or of other histories.

        Parameters
        ----------
        frame : DataFrame, optional
            Histories to forecast. None: the training data, without rows added by `update`.
        static : DataFrame, optional
            Static covariates of the series in `frame`.

        Returns
        -------
        DataFrame
            The id, time and target columns, and the forecast of each row from the rows before it;
            NaN at the start, and after missing values for some models.
        """
        state = self._state_for_frame(frame, static)
        panel = require_training_data(self.name, state.learned)
        return fitted_frame(self.name, panel, self._fitted(state.learned, panel))

    def parameters(self) -> Frame:
        """Return the estimated parameters, one row per series."""
        state = self.fitted_state()
        columns: dict[str, Any] = {}
        if state.series.columns.id is not None and state.series.ids is not None:
            columns[state.series.columns.id] = state.series.ids
        return frames.build(state.series.library, columns | self._parameter_columns(state.learned, state))

    def residual_diagnostics(
        self, frame: Frame | None = None, lags: int | None = None, *, static: Frame | None = None
    ) -> Frame:
        """Test whether the residuals are white noise, homoscedastic and normal.

        Residuals are the errors that the model assumes to be white noise: relative errors with
        multiplicative errors, those of transformed values with `box_cox`. Missing residuals are
        left out.

        Parameters
        ----------
        frame : DataFrame, optional
            Histories to test. None: the training data, without rows added by `update`.
        lags : int, optional
            Number of lags of the Ljung-Box test. None: 10, or two seasons for seasonal data, but at
            most a fifth of the number of residuals.
        static : DataFrame, optional
            Static covariates of the series in `frame`.

        Returns
        -------
        DataFrame
            One row per series and `test` with `statistic`, `p_value` and `lags`. A small p-value
            rejects the null hypothesis: no autocorrelation (ljung_box), equal variances in the
            first and the last third (heteroscedasticity; `lags` is their number of residuals),
            or normality (jarque_bera). NaN, with a warning, if there are too few residuals.
        """
        if lags is not None:
            validate_horizon(lags, name="lags")
        state = self._state_for_frame(frame, static)
        panel = require_training_data(self.name, state.learned)
        tests = residual_tests(self._innovations(state.learned, panel), panel.indptr, lags, self._diagnostic_season(panel))
        short_series = np.flatnonzero(np.isnan(np.stack([test[0] for test in tests.values()])).any(axis=0))
        if len(short_series):
            warn(
                f"{self.name}: too few residuals for some tests of series {panel.series.labels(short_series)}; their "
                "results are NaN. Pass longer histories.",
                subject=self.name,
            )
        return frames.build(panel.series.library, self._diagnostic_columns(panel, tests))

    def _innovations(self, learned: LearnedState, panel: Panel) -> Floats:
        """The errors of the rows that the model assumes to be white noise."""
        return np.asarray(panel.y - self._fitted(learned, panel))

    def _diagnostic_columns(self, panel: Panel, tests: Mapping[str, tuple[Any, Any, Any]]) -> dict[str, Any]:
        """Columns of `residual_diagnostics`, one row per series and test.

        `tests`: statistics, p-values and lags of all series, by name of the test.
        """
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
        """Number of time steps of the longest season of the model, which sets the default number of lags; 1: none."""
        season = getattr(self, "season_length", 1)
        if season == "auto":
            default_seasons = seasons(panel.calendar.frequency)
            return default_seasons[0] if default_seasons else 1
        return int(max(season) if isinstance(season, (list, tuple)) else season)

    def _add_covariate_facts(self, learned: LearnedState, panel: Panel) -> LearnedState:
        """Add the values of covariates that are constant in fit, for warnings when they change."""
        if not panel.series.columns.future:
            return learned
        return replace(learned, by_series={**learned.by_series, "constant_covariates": constant_values(panel)})

    def _check_future(self, state: State, future: Mapping[str, Covariate]) -> None:
        if future and "constant_covariates" in state.learned.by_series:
            warn_constant_in_fit(self.name, state.learned["constant_covariates"], future, state.series)

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Fit slices of the series by `_estimate` in threads, and join the results."""
        chunks = map_chunks(
            lambda chunk: self._estimate(_select_series(panel, chunk)),
            len(panel),
            cost=panel.lengths * self.seconds_per_value,
        )
        joined = chunks[0] if len(chunks) == 1 else _concatenate(chunks)
        return replace(joined, history=panel)

    # -- hooks of subclasses ----------------------------------------------------------------------

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """The columns of `parameters`."""
        raise CapabilityError(f"{type(self).__name__} has no table of parameters.", hint="Use the arrays in state_.learned.")

    def _estimate(self, panel: Panel) -> LearnedState:
        """Fit all series of a panel; called in threads for slices of the training data."""
        raise NotImplementedError

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        """One-step-ahead forecasts of the rows, from the state before the first row."""
        raise NotImplementedError


def _select_series(panel: Panel, chunk: slice) -> Panel:
    return panel if chunk.stop - chunk.start == len(panel) else panel.take(np.arange(chunk.start, chunk.stop))


def _concatenate(chunks: list[LearnedState]) -> LearnedState:
    """Join the states of slices of the series; shared values are those of the first slice."""
    names = chunks[0].by_series
    return replace(chunks[0], by_series={name: np.concatenate([chunk.by_series[name] for chunk in chunks]) for name in names})
