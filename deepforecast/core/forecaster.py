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
from deepforecast.core.capabilities import Capabilities, CapabilitiesOf
from deepforecast.core.conformal import Calibration
from deepforecast.core.declaring import Declared, collect
from deepforecast.core.docstrings import with_parameters
from deepforecast.core.finite import finite
from deepforecast.core.forecast import Forecast, checked_horizon, checked_levels, checked_quantiles, columns_of, refuse_taken
from deepforecast.core.foreign import Foreign
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import param
from deepforecast.core.pickling import PickleProtocol
from deepforecast.core.plausibility import LIMITS, checked_columns, checked_paths, excess
from deepforecast.core.scikit_learn import ScikitLearnProtocol, positional_target
from deepforecast.core.state import Learned, State
from deepforecast.data import frames
from deepforecast.data.ahead import ahead
from deepforecast.data.calendar import PER_DAY
from deepforecast.data.columns import Columns, say_undeclared
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.grids import GRIDS
from deepforecast.data.leaks import say_leaks
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, Kept, ParameterError, keeping, not_fitted, say_kept, some


class Forecaster(Declared, ScikitLearnProtocol, PickleProtocol):
    """Base of all models. Parameters are declared with `param`; the constructor only stores, what is learned is in `state_`."""

    capabilities: ClassVar[Any] = CapabilitiesOf(Capabilities())
    takes_any_value: ClassVar[bool] = True  # whether no instance has another domain than all real values
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

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        collect(cls)
        if "__doc__" in vars(cls) and cls.__doc__:
            cls.__doc__ = with_parameters(cls)
        if isinstance(vars(cls).get("capabilities"), Capabilities):
            cls.capabilities = CapabilitiesOf(cls.capabilities)
        cls.takes_any_value = cls.capabilities.domain == "real" and not hasattr(cls, "_narrow")

    def __init__(self, *args: Any, **given: Any) -> None:
        self.state_: State  # set by `fit`; annotated here, for in the class body it would be a parameter
        self.__dict__.update(params.values(type(self), args, given))

    # -- fitting and forecasting -------------------------------------------------------------------------------------------

    def fit(self, frame: Frame, *extra: Any, freq: Any = None, columns: Columns | Mapping[str, Any] | None = None,
            static: Frame | None = None) -> Self:  # fmt: skip
        """Learn from the whole frame; a second fit starts fresh. A fit that fails leaves the model as it was."""
        if extra:
            raise positional_target(type(self).__name__, extra)
        panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
        if panel.undeclared:
            say_undeclared(panel.undeclared)
        if panel.series.columns.future:
            say_leaks(panel)
        self.__dict__["state_"] = self._learn(panel)
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
        steps = self._steps(horizon)
        levels = [] if level is None else checked_levels(level)
        wanted = [] if quantiles is None else checked_quantiles(quantiles)
        state = self.state_ if frame is None and static is None else self._at_end_of(frame, static)
        forecast = self.forecast_from(state, steps, self._ahead(state, steps, future))
        columns = state.series.rows(state.series.calendar.following(state.series.last, steps))
        found = columns_of(forecast, self.name, self.point_kind, levels, wanted)
        refuse_taken(found, columns)
        if not (excess(found, state.value_range, levels, wanted) <= LIMITS).all():
            checked_columns(found, state, self, levels, wanted)
        if len(found) > 1 and state.calibration is None:
            self._say_of_bands(state)
        if np.ptp(state.series.last) > steps * state.series.calendar.step:
            state.series.warn_of_past_forecasts(self.name, steps)
        return frames.build(state.series.library, columns | found)

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
        steps, samples = self._steps(horizon), checked_horizon(n_samples, name="n_samples")
        if not self.capabilities.simulates:
            can = self.intervals is not None and self.clone(intervals=None).capabilities.simulates
            why = f" with intervals={self.intervals!r}, only without: they correct its bands, not its paths" if can else ""
            way_out = "`predict(level=...)` may give what you need."
            raise CapabilityError(f"{self.name} cannot simulate sample paths{why}. {way_out}")
        state = self._at_end_of(frame, static)
        paths = self._simulate(state.standing, steps, samples, seed, self._ahead(state, steps, future))
        columns = state.series.rows(np.tile(state.series.calendar.following(state.series.last, steps), (1, samples)))
        refuse_taken(["sample", self.name], columns)
        columns["sample"] = np.tile(np.repeat(np.arange(samples), steps), len(state.series))
        columns[self.name] = checked_paths(paths, state, self)
        state.series.warn_of_past_forecasts(self.name, steps)
        return frames.build(state.series.library, columns)

    def explain(
        self, horizon: int | None = None, *,
        frame: Frame | None = None, future: Frame | None = None, static: Frame | None = None,
    ) -> Frame:  # fmt: skip
        """The forecast taken apart, tidy: a row for each series, step and `component`, whose `value`s add up to the forecast;
        of a model with attention a row for each `weight`: see `core.explaining`."""
        from deepforecast.core.explaining import explained
        return explained(self, self._steps(horizon), frame, future, static)

    def update(self, frame: Frame) -> Self:
        """Append observations to series known from fit: the state moves on, parameters stay.

        A model that takes missing values also takes rows that hold nothing else: time goes on, what is known stays.
        """
        from deepforecast.core.histories import appended

        self.state_ = self._heard(appended, frame)
        return self

    def fine_tune(self, frame: Frame, *, static: Frame | None = None, **how: Any) -> Self:
        """Go on learning from the parameters found, on these histories. Networks take freeze=, max_steps=, learning_rate=."""
        from deepforecast.core.histories import refined
        self.state_ = self._heard(refined, frame, static, how)
        return self

    def future_frame(self, horizon: int | None = None) -> Frame:
        """The ids and stamps a `future` frame has to cover; add the columns known ahead to it."""
        steps, series = self._steps(horizon), self.state_.series
        return frames.build(series.library, series.rows(series.calendar.following(series.last, steps)))

    def save(self, path: Any, *, allow_skops: bool = False) -> None:
        """Write the fitted model to one file, atomically; `deepforecast.load(path)` reads it. With `allow_skops` it may hold a
        regressor of any type, by skops; who loads it then names the types in `trusted`."""
        from deepforecast.core.persistence import save
        save(self, path, allow_skops)

    # -- parameters: scikit-learn's meaning ------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters; with `deep` those of wrapped models too, as `model__season_length`."""
        own = {name: getattr(self, name) for name in params.declared(type(self))}
        for name, value in list(own.items()) if deep else ():
            if isinstance(value, Forecaster):
                own |= {f"{name}__{inner}": held for inner, held in value.get_params().items()}
        return own

    def set_params(self, **given: Any) -> Self:
        """Change parameters, checked as on construction; all of them or, on an error, none.

        A change of what a fit depends on (all but `said_at_predict`) unfits the model: what it learned is not what its
        parameters say any more.
        """
        checked = params.changed(self, given)
        before = type(self)(**{name: getattr(self, name) for name in checked})
        self.__dict__.update(checked)
        if before != self.clone(**{name: getattr(before, name) for name in self.said_at_predict}):
            for name in ("state_", "_failure"):
                self.__dict__.pop(name, None)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name in params.declared(type(self)):
            self.set_params(**{name: value})
        else:
            object.__setattr__(self, name, value)

    def clone(self, **changed: Any) -> Self:
        """An unfitted copy with the same parameters, some of them changed."""
        own = {n: v.clone() if isinstance(v, Forecaster) else v for n, v in self.get_params(deep=False).items()}
        return type(self)(**{**own, **changed})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_params(False) == other.get_params(False)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return params.written(self)

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
    def said_at_predict(self) -> tuple[str, ...]:
        """Parameters that change no fit."""
        return ("horizon", "alias", "point")

    @property
    def own_horizon(self) -> int | None:
        """The steps to forecast where a call does not say."""
        return self.horizon

    @property
    def filling(self) -> str:
        """What is done with missing values; "auto": they stay missing."""
        return self.missing

    @property
    def calibrates(self) -> bool:
        """Whether a fit makes bands from the errors of rolling forecasts."""
        return self.always_calibrates or self.intervals is not None

    def fitted(self) -> State:
        """The state, or `NotFittedError`."""
        if "state_" not in self.__dict__:
            raise not_fitted(type(self).__name__, self.__dict__.get("_failure", ""))
        return self.state_

    def forecast_from(self, state: State, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """The forecast as arrays, with calibrated bands where there are; never a point that is not finite."""
        forecast = self._forecast(replace(state.learned, series=state.series), steps, future)
        point = forecast.point(self.point_kind)
        if not np.isfinite(point).all():
            finite(point, state, self.name)
        return state.calibration.around(point) if state.calibration is not None else forecast

    def _learn(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        """Everything a fit does with a panel, without touching the model. What is handled is said once it has been."""
        held, whole, kept = panel.covariates or panel.static, panel, Kept()
        if held or not (panel.complete and self.takes_any_value):
            from deepforecast.core.preparing import prepared

            with keeping(kept):
                whole = prepared(self, panel)
        bands = self.always_calibrates or self.intervals is not None
        needed = self._needs_to_fit(whole) if bands else self._needs(whole)
        if int((np.diff(whole.indptr) if whole.complete else whole.observed).min()) < needed:
            from deepforecast.core.preparing import refuse_short_to_fit

            refuse_short_to_fit(self, whole, needed)
        calibration = self._calibrated(panel) if bands else None  # before filling: each of its windows fills for itself
        learned = self._fit(whole, monitor)
        if kept:
            say_kept(kept)
        kinds = {n: one.categories for n, one in {**whole.covariates, **whole.static}.items()} if held else {}
        series, calendar, last = panel.series, panel.series.calendar, panel.series.last
        day = 1 if calendar.frequency.base in GRIDS else PER_DAY.get(calendar.time.unit, 1)  # the unit of time does not count
        clock = (*calendar.frequency, calendar.step / day, int(last[0]) // day, int(last[0]) % day / day)
        words = (*(() if series.own_ids is None else series.own_ids), *clock, series.columns.future, series.columns.past, kinds)
        check = zlib.crc32("\0".join(map(str, words)).encode("utf-8", "surrogatepass"))
        steps, rest = np.divmod(last - last[0], calendar.step)
        numbers = map(attrgetter("values"), (*panel.covariates.values(), *panel.static.values()))
        for part in (panel.y, panel.indptr, steps, rest / calendar.step, *numbers):
            check = zlib.crc32(np.ascontiguousarray(part).data, check)
        data, begin = f"{len(panel.y)}-{check:08x}", whole.indptr[:-1]
        extremes = np.column_stack((np.fmin.reduceat(whole.y, begin), np.fmax.reduceat(whole.y, begin)))
        return State(whole.series, learned, kinds, whole.static, calibration, data, panel.undeclared, extremes)

    def _at_end_of(self, frame: Frame | None, static: Frame | None) -> State:
        if frame is None:
            if static is not None:
                raise ParameterError("static= goes with the histories of frame=; without them the values of the fit hold.")
            return self.fitted()
        from deepforecast.core.histories import moved

        return self._heard(moved, frame, static)

    def _heard(self, act: Callable[..., State], *given: Any) -> State:
        """The state after `act` on the one there is; what was handled is said once it has been."""
        state, kept = self.fitted(), Kept()
        with keeping(kept):
            state = act(self, state, *given)
        say_kept(kept)
        return state

    def _steps(self, horizon: int | None) -> int:
        if "state_" not in self.__dict__:
            self.fitted()  # raises
        horizon = self.own_horizon if horizon is None else horizon
        if horizon is None:
            raise ParameterError(f"horizon is needed: {self.name} was constructed without one. Say predict(horizon=...).")
        return checked_horizon(horizon)

    def _ahead(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        names, past = state.series.columns.future, state.series.columns.past
        if past and self.own_horizon is not None and steps > self.own_horizon:
            raise CapabilityError(
                f"A horizon longer than declared needs columns known ahead; {some(past)} is known only up to now and "
                f"{self.name} was fitted for horizon {self.own_horizon}, not {steps}. Fit it with horizon={steps}, or without "
                "these columns."
            )
        if future is None and not names:
            return {}
        return ahead(future, state.series, steps, {name: state.categories[name] for name in names}, state.undeclared)

    # -- hooks of a family -----------------------------------------------------------------------------------------------------

    def _needs(self, panel: Panel) -> int:
        """The fewest values a series must have."""
        return 1

    def _needs_to_fit(self, panel: Panel) -> int:
        """The same for a fit, which calibrates bands too where they are asked for."""
        return self._needs(panel) + ((self.own_horizon or 0) if self.calibrates else 0)

    def _needs_to_spread(self, learned: Learned) -> int | None:
        """The fewest values of a series for the spread of its errors to be known, where that is just one more than it needs."""
        return None

    def _search_by(self, seasons: tuple[int, ...], rows: int) -> Mapping[str, Sequence[Any]]:
        """What a search varies by the data, in place of what is declared; `rows`: of the longest series, 0: not known."""
        return {}

    def _calibrated(self, panel: Panel) -> Calibration | None:
        """What bands are made of, where they are not the model's own: the errors of forecasts at rolling cutoffs."""
        if self.intervals is None:
            return None
        if self.own_horizon is None:
            name = type(self).__name__
            raise ParameterError(f"intervals='conformal' calibrates every step, so it needs a horizon: {name}(horizon=...).")
        from deepforecast.core.calibrating import own_errors
        return own_errors(self.clone(intervals=None), panel, self.own_horizon)

    def _say_of_bands(self, state: State) -> None:
        """What is to be known of bands that are the model's own, if anything."""

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        """Learn from a panel."""
        raise _lacks(self, "_fit")

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        """Move the state over the rows of `panel`, parameters as they are. `fresh`: from before its first row; of a model that
        is not local, `learned` then holds other series. Else the rows go on where each series stands; `shared` stays."""
        raise _lacks(self, "_advance")

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """Forecast from the state."""
        raise _lacks(self, "_forecast")

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        """Sample paths, shape (series, samples, steps)."""
        raise _lacks(self, "_simulate")

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components that add up to the forecast, each of shape (series, steps)."""
        raise _lacks(self, "_explain")

    def _attended(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Sequence[Any]:
        """Where the model looked, `core.explaining.Weights`; nothing without attention, and `_explain` is asked."""
        return ()

    def _kept(self, learned: Learned, foreign: Foreign) -> Learned:
        """What was learned as a file can hold it: arrays, numbers and text. `_revive` brings it back."""
        return learned

    _revive = _kept

    def _refine(self, learned: Learned, panel: Panel) -> Learned:
        """Go on learning; for closed forms that is a fit."""
        return self._fit(panel, SILENT)


collect(Forecaster)


def _lacks(model: Forecaster, hook: str) -> CapabilityError:
    name = type(model).__name__
    return CapabilityError(f"{name} cannot do this: its class does not define {hook}. Define it, or use another model.")
