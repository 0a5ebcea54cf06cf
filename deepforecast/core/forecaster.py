"""The contract every model keeps: public methods here, final; a family fills in the private hooks at the end.

Data go `fit: Panel.from_frame -> _fit`, `predict: state (or histories) -> _forecast -> frame`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar, Literal, Self

import numpy as np

from deepforecast.core import params
from deepforecast.core.capabilities import Capabilities, CapabilitiesDescriptor
from deepforecast.core.conformal import Calibration
from deepforecast.core.declarations import ParameterizedClass, collect_params
from deepforecast.core.docstrings import with_parameters
from deepforecast.core.finite_check import check_finite
from deepforecast.core.forecast import (
    Forecast,
    output_columns,
    refuse_duplicate_columns,
    validate_horizon,
    validate_levels,
    validate_quantiles,
)
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import param
from deepforecast.core.pickle_protocol import PickleProtocol
from deepforecast.core.plausibility import LIMITS, check_columns, check_paths, range_ratios
from deepforecast.core.scikit_learn import ScikitLearnProtocol, positional_target_error
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState, State
from deepforecast.data import frames
from deepforecast.data.calendar import PER_DAY
from deepforecast.data.calendar_grids import GRIDS
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.future_covariates import read_future_covariates
from deepforecast.data.panel import Panel
from deepforecast.data.target_leakage import warn_of_leakage
from deepforecast.errors import (
    CapabilityError,
    CollectedWarnings,
    ParameterError,
    collect_warnings,
    emit_warnings,
    format_list,
    not_fitted_error,
)


class Forecaster(ParameterizedClass, ScikitLearnProtocol, PickleProtocol):
    """Base of all models. Parameters are declared with `param`; the constructor only stores, what is learned is in `state_`."""

    capabilities: ClassVar[Any] = CapabilitiesDescriptor(Capabilities())
    accepts_any_value: ClassVar[bool] = True  # whether no instance has another domain than all real values
    always_calibrates: ClassVar[bool] = False  # bands made of the errors of rolling forecasts, without being asked for

    horizon: int | None = param(
        default=None, at_least=1, help="steps to forecast when predict is not told",
    )
    alias: str | None = param(
        default=None, help="name of the forecast column, in place of the class name",
    )
    missing: Literal["auto", "interpolate", "ffill", "zero"] = param(
        default="auto", help="what to do with missing values",
    )
    point: Literal["auto", "median", "mean"] = param(
        default="auto", help="which point of the distribution is the forecast",
    )
    intervals: Literal["conformal"] | None = param(
        default=None, help="calibrate bands on rolling forecasts during fit",
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        collect_params(cls)
        if "__doc__" in vars(cls) and cls.__doc__:
            cls.__doc__ = with_parameters(cls)
        if isinstance(vars(cls).get("capabilities"), Capabilities):
            cls.capabilities = CapabilitiesDescriptor(cls.capabilities)
        cls.accepts_any_value = cls.capabilities.domain == "real" and not hasattr(cls, "_narrow")

    def __init__(self, *args: Any, **values: Any) -> None:
        self.state_: State  # set by `fit`; annotated here, for in the class body it would be a parameter
        self.__dict__.update(params.resolve_values(type(self), args, values))

    # -- fitting and forecasting -------------------------------------------------------------------------------------------

    def fit(self, frame: Frame, *extra: Any, freq: Any = None, columns: Columns | Mapping[str, Any] | None = None,
            static: Frame | None = None) -> Self:  # fmt: skip
        """Learn from the whole frame; a second fit starts fresh. A fit that fails leaves the model as it was."""
        if extra:
            raise positional_target_error(type(self).__name__, extra)
        panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
        if panel.undeclared:
            warn_undeclared(panel.undeclared)
        if panel.series.columns.future:
            warn_of_leakage(panel)
        self.__dict__["state_"] = self._fit_panel(panel)
        return self

    def predict(
        self,
        horizon: int | None = None,
        *,
        frame: Frame | None = None,
        future: Frame | None = None,
        static: Frame | None = None,
        level: Any = None,
        quantiles: Any = None,
    ) -> Frame:
        """Forecast every series from its own end (or from the end of the histories in `frame`)."""
        steps = self._resolve_horizon(horizon)
        levels = [] if level is None else validate_levels(level)
        probabilities = [] if quantiles is None else validate_quantiles(quantiles)
        state = self.state_ if frame is None and static is None else self._state_for_frame(frame, static)
        forecast = self.forecast_from(state, steps, self._future_covariates(state, steps, future))
        columns = state.series.key_columns(state.series.calendar.next_positions(state.series.last, steps))
        model_columns = output_columns(forecast, self.name, self.point_kind, levels, probabilities)
        refuse_duplicate_columns(model_columns, columns)
        if not (range_ratios(model_columns, state.value_range, levels, probabilities) <= LIMITS).all():
            check_columns(model_columns, state, self, levels, probabilities)
        if len(model_columns) > 1 and state.calibration is None:
            self._warn_about_intervals(state)
        if np.ptp(state.series.last) > steps * state.series.calendar.step:
            state.series.warn_of_past_forecasts(self.name, steps)
        return frames.build(state.series.library, columns | model_columns)

    def simulate(
        self,
        n_samples: int,
        horizon: int | None = None,
        *,
        frame: Frame | None = None,
        future: Frame | None = None,
        static: Frame | None = None,
        seed: int = 0,
    ) -> Frame:
        """Sample paths, long: a row for each series, `sample` (from 0) and step. The same seed gives the same paths."""
        steps, samples = self._resolve_horizon(horizon), validate_horizon(n_samples, name="n_samples")
        if not self.capabilities.simulates:
            simulates_without = self.intervals is not None and self.clone(intervals=None).capabilities.simulates
            reason = f" with intervals={self.intervals!r}, only without: they correct its bands, not its paths" if simulates_without else ""
            suggestion = "`predict(level=...)` may give what you need."
            raise CapabilityError(f"{self.name} cannot simulate sample paths{reason}. {suggestion}")
        state = self._state_for_frame(frame, static)
        paths = self._simulate(state.learned_with_series, steps, samples, seed, self._future_covariates(state, steps, future))
        columns = state.series.key_columns(np.tile(state.series.calendar.next_positions(state.series.last, steps), (1, samples)))
        refuse_duplicate_columns(["sample", self.name], columns)
        columns["sample"] = np.tile(np.repeat(np.arange(samples), steps), len(state.series))
        columns[self.name] = check_paths(paths, state, self)
        state.series.warn_of_past_forecasts(self.name, steps)
        return frames.build(state.series.library, columns)

    def explain(
        self, horizon: int | None = None, *,
        frame: Frame | None = None, future: Frame | None = None, static: Frame | None = None,
    ) -> Frame:  # fmt: skip
        """The forecast taken apart, tidy: a row for each series, step and `component`, whose `value`s add up to the forecast;
        of a model with attention a row for each `weight`: see `core.explanations`."""
        from deepforecast.core.explanations import explain_forecast
        return explain_forecast(self, self._resolve_horizon(horizon), frame, future, static)

    def update(self, frame: Frame) -> Self:
        """Append observations to series known from fit: the state moves on, parameters stay.

        A model that takes missing values also takes rows that hold nothing else: time goes on, what is known stays.
        """
        from deepforecast.core.state_updates import append_observations

        self.state_ = self._update_and_warn(append_observations, frame)
        return self

    def fine_tune(self, frame: Frame, *, static: Frame | None = None, **options: Any) -> Self:
        """Go on learning from the parameters found, on these histories. Networks take freeze=, max_steps=, learning_rate=."""
        from deepforecast.core.state_updates import fine_tune_state
        self.state_ = self._update_and_warn(fine_tune_state, frame, static, options)
        return self

    def future_frame(self, horizon: int | None = None) -> Frame:
        """The ids and stamps a `future` frame has to cover; add the columns known ahead to it."""
        steps, series = self._resolve_horizon(horizon), self.state_.series
        return frames.build(series.library, series.key_columns(series.calendar.next_positions(series.last, steps)))

    def save(self, path: Any, *, allow_skops: bool = False) -> None:
        """Write the fitted model to one file, atomically; `deepforecast.load(path)` reads it. With `allow_skops` it may hold a
        regressor of any type, by skops; who loads it then names the types in `trusted`."""
        from deepforecast.core.model_file import save
        save(self, path, allow_skops)

    # -- parameters: scikit-learn's meaning ------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters; with `deep` those of wrapped models too, as `model__season_length`."""
        values = {name: getattr(self, name) for name in params.declared_params(type(self))}
        for name, value in list(values.items()) if deep else ():
            if isinstance(value, Forecaster):
                values |= {f"{name}__{inner}": inner_value for inner, inner_value in value.get_params().items()}
        return values

    def set_params(self, **values: Any) -> Self:
        """Change parameters, checked as on construction; all of them or, on an error, none.

        A change of what a fit depends on (all but `predict_params`) unfits the model: what it learned is not what its
        parameters say any more.
        """
        checked = params.change_values(self, values)
        previous = type(self)(**{name: getattr(self, name) for name in checked})
        self.__dict__.update(checked)
        if previous != self.clone(**{name: getattr(previous, name) for name in self.predict_params}):
            for name in ("state_", "_failure"):
                self.__dict__.pop(name, None)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name in params.declared_params(type(self)):
            self.set_params(**{name: value})
        else:
            object.__setattr__(self, name, value)

    def clone(self, **changes: Any) -> Self:
        """An unfitted copy with the same parameters, some of them changed."""
        values = {name: value.clone() if isinstance(value, Forecaster) else value for name, value in self.get_params(deep=False).items()}
        return type(self)(**{**values, **changes})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_params(False) == other.get_params(False)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return params.format_model(self)

    # -- for the engines -------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the forecast column."""
        return self.alias or type(self).__name__

    @property
    def point_kind(self) -> str:
        """"median" where a distribution is learned, else "mean", unless the user chose."""
        return self.point if self.point != "auto" else "median" if self.capabilities.learns_distribution else "mean"

    @property
    def predict_params(self) -> tuple[str, ...]:
        """Parameters that change no fit."""
        return ("horizon", "alias", "point")

    @property
    def default_horizon(self) -> int | None:
        """The steps to forecast where a call does not say."""
        return self.horizon

    @property
    def missing_method(self) -> str:
        """What is done with missing values; "auto": they stay missing."""
        return self.missing

    @property
    def calibrates(self) -> bool:
        """Whether a fit makes bands from the errors of rolling forecasts."""
        return self.always_calibrates or self.intervals is not None

    def fitted_state(self) -> State:
        """The state, or `NotFittedError`."""
        if "state_" not in self.__dict__:
            raise not_fitted_error(type(self).__name__, self.__dict__.get("_failure", ""))
        return self.state_

    def forecast_from(self, state: State, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """The forecast as arrays, with calibrated bands where there are; never a point that is not finite."""
        forecast = self._forecast(replace(state.learned, series=state.series), steps, future)
        point = forecast.point(self.point_kind)
        if not np.isfinite(point).all():
            check_finite(point, state, self.name)
        return state.calibration.forecast_around(point) if state.calibration is not None else forecast

    def _fit_panel(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        """Everything a fit does with a panel, without touching the model. What is handled is said once it has been."""
        has_covariates, complete_panel, collected = panel.covariates or panel.static, panel, CollectedWarnings()
        if has_covariates or not (panel.complete and self.accepts_any_value):
            from deepforecast.core.preprocessing import preprocess

            with collect_warnings(collected):
                complete_panel = preprocess(self, panel)
        calibrates = self.always_calibrates or self.intervals is not None
        min_observations = self._min_observations_to_fit(complete_panel) if calibrates else self._min_observations(complete_panel)
        if int((np.diff(complete_panel.indptr) if complete_panel.complete else complete_panel.observed).min()) < min_observations:
            from deepforecast.core.preprocessing import refuse_too_short_to_fit

            refuse_too_short_to_fit(self, complete_panel, min_observations)
        calibration = self._calibrate(panel) if calibrates else None  # before filling: each of its windows fills for itself
        learned = self._fit(complete_panel, monitor)
        if collected:
            emit_warnings(collected)
        categories = {name: covariate.categories for name, covariate in {**complete_panel.covariates, **complete_panel.static}.items()} if has_covariates else {}
        series, calendar, last = panel.series, panel.series.calendar, panel.series.last
        day = 1 if calendar.frequency.base in GRIDS else PER_DAY.get(calendar.time.unit, 1)  # the unit of time does not count
        time_fields = (*calendar.frequency, calendar.step / day, int(last[0]) // day, int(last[0]) % day / day)
        text_fields = (*(() if series.native_ids is None else series.native_ids), *time_fields, series.columns.future, series.columns.past, categories)
        checksum = zlib.crc32("\0".join(map(str, text_fields)).encode("utf-8", "surrogatepass"))
        steps, remainder = np.divmod(last - last[0], calendar.step)
        numbers = map(attrgetter("values"), (*panel.covariates.values(), *panel.static.values()))
        for array in (panel.y, panel.indptr, steps, remainder / calendar.step, *numbers):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        fingerprint, first_rows = f"{len(panel.y)}-{checksum:08x}", complete_panel.indptr[:-1]
        extremes = np.column_stack((np.fmin.reduceat(complete_panel.y, first_rows), np.fmax.reduceat(complete_panel.y, first_rows)))
        return State(complete_panel.series, learned, categories, complete_panel.static, calibration, fingerprint, panel.undeclared, extremes)

    def _state_for_frame(self, frame: Frame | None, static: Frame | None) -> State:
        if frame is None:
            if static is not None:
                raise ParameterError("static= goes with the histories of frame=; without them the values of the fit hold.")
            return self.fitted_state()
        from deepforecast.core.state_updates import move_state

        return self._update_and_warn(move_state, frame, static)

    def _update_and_warn(self, function: Callable[..., State], *args: Any) -> State:
        """The state after `function` on the one there is; what was handled is said once it has been."""
        state, collected = self.fitted_state(), CollectedWarnings()
        with collect_warnings(collected):
            state = function(self, state, *args)
        emit_warnings(collected)
        return state

    def _resolve_horizon(self, horizon: int | None) -> int:
        if "state_" not in self.__dict__:
            self.fitted_state()  # raises
        horizon = self.default_horizon if horizon is None else horizon
        if horizon is None:
            raise ParameterError(f"horizon is needed: {self.name} was constructed without one. Say predict(horizon=...).")
        return validate_horizon(horizon)

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        names, past = state.series.columns.future, state.series.columns.past
        if past and self.default_horizon is not None and steps > self.default_horizon:
            raise CapabilityError(
                f"A horizon longer than declared needs columns known ahead; {format_list(past)} is known only up to now and "
                f"{self.name} was fitted for horizon {self.default_horizon}, not {steps}. Fit it with horizon={steps}, or without "
                "these columns."
            )
        if future is None and not names:
            return {}
        return read_future_covariates(future, state.series, steps, {name: state.categories[name] for name in names}, state.undeclared)

    # -- hooks of a family -----------------------------------------------------------------------------------------------------

    def _min_observations(self, panel: Panel) -> int:
        """The fewest values a series must have."""
        return 1

    def _min_observations_to_fit(self, panel: Panel) -> int:
        """The same for a fit, which calibrates bands too where they are asked for."""
        return self._min_observations(panel) + ((self.default_horizon or 0) if self.calibrates else 0)

    def _min_observations_for_spread(self, learned: LearnedState) -> int | None:
        """The fewest values of a series for the spread of its errors to be known, where that is just one more than it needs."""
        return None

    def _search_choices(self, seasons: tuple[int, ...], rows: int) -> Mapping[str, Sequence[Any]]:
        """What a search varies by the data, in place of what is declared; `rows`: of the longest series, 0: not known."""
        return {}

    def _calibrate(self, panel: Panel) -> Calibration | None:
        """What bands are made of, where they are not the model's own: the errors of forecasts at rolling cutoffs."""
        if self.intervals is None:
            return None
        if self.default_horizon is None:
            class_name = type(self).__name__
            raise ParameterError(f"intervals='conformal' calibrates every step, so it needs a horizon: {class_name}(horizon=...).")
        from deepforecast.core.calibration import series_errors
        return series_errors(self.clone(intervals=None), panel, self.default_horizon)

    def _warn_about_intervals(self, state: State) -> None:
        """What is to be known of bands that are the model's own, if anything."""

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Learn from a panel."""
        raise _missing_hook_error(self, "_fit")

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        """Move the state over the rows of `panel`, parameters as they are. `fresh`: from before its first row; of a model that
        is not local, `learned` then holds other series. Else the rows go on where each series stands; `shared` stays."""
        raise _missing_hook_error(self, "_advance")

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """Forecast from the state."""
        raise _missing_hook_error(self, "_forecast")

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        """Sample paths, shape (series, samples, steps)."""
        raise _missing_hook_error(self, "_simulate")

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components that add up to the forecast, each of shape (series, steps)."""
        raise _missing_hook_error(self, "_explain")

    def _attention_maps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Sequence[Any]:
        """Where the model looked, `core.explaining.Weights`; nothing without attention, and `_explain` is asked."""
        return ()

    def _serialize(self, learned: LearnedState, serializer: SkopsSerializer) -> LearnedState:
        """What was learned as a file can hold it: arrays, numbers and text. `_deserialize` brings it back."""
        return learned

    _deserialize = _serialize

    def _fine_tune(self, learned: LearnedState, panel: Panel) -> LearnedState:
        """Go on learning; for closed forms that is a fit."""
        return self._fit(panel, SILENT)


collect_params(Forecaster)


def _missing_hook_error(model: Forecaster, hook: str) -> CapabilityError:
    name = type(model).__name__
    return CapabilityError(f"{name} cannot do this: its class does not define {hook}. Define it, or use another model.")
