"""The base class of all models: its public methods are final and call private hooks, which model classes implement.

`fit` turns the frame into a `Panel` and calls `_fit`; `predict` passes the state to `_forecast` and
returns a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from deepforecast.core import model_file, params
from deepforecast.core.backtest import series_errors
from deepforecast.core.conformal import Calibration
from deepforecast.core.declarations import ParameterizedClass, collect_params, with_parameters
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.fallback import failures_frame, find_ids, warn_of_missing_intervals
from deepforecast.core.forecast import (
    BoundedForecast,
    Forecast,
    explain_forecast,
    missing_hook_error,
    no_paths_error,
    output_columns,
    refuse_duplicate_columns,
    resolve_bounds,
    validate_horizon,
    validate_levels,
    validate_quantiles,
)
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import param, refuse_unused_parameters
from deepforecast.core.plausibility import LIMITS, check_columns, check_finite, check_paths, range_ratios
from deepforecast.core.preprocessing import preprocess, refuse_too_short_to_fit
from deepforecast.core.protocols import PickleProtocol, ScikitLearnProtocol, positional_target_error
from deepforecast.core.registry import Capabilities, CapabilitiesDescriptor
from deepforecast.core.state import LearnedState, State, fingerprint, require_histories, value_range
from deepforecast.core.state_updates import (
    append_observations,
    fine_tune_state,
    fit_with_fallback,
    move_state,
    refuse_without_frame,
)
from deepforecast.data import frames
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.covariates import Covariate, read_future_covariates, warn_of_leakage
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
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
    """Base class of all models.

    A subclass declares its hyperparameters with `param` and implements the hooks `_fit`, `_advance`
    and `_forecast`. The constructor only validates and stores the parameters; what `fit` learns is
    in the attribute `state_`.

    Attributes
    ----------
    state_ : State
        What was learned; only after `fit`.
    capabilities : Capabilities
        What the model can do, such as which covariates it uses. Instances may have fewer
        capabilities than their class.

    See Also
    --------
    deepforecast.cross_validate : Evaluate a model on rolling windows.
    deepforecast.tune : Search for better hyperparameters.
    deepforecast.load : Read a saved model.

    Examples
    --------
    >>> from deepforecast import SeasonalNaive, datasets
    >>> model = SeasonalNaive(horizon=2).fit(datasets.load("air_passengers"))
    >>> model.predict()["SeasonalNaive"].tolist()
    [417.0, 391.0]
    """

    capabilities: ClassVar[Any] = CapabilitiesDescriptor(Capabilities())
    accepts_any_value: ClassVar[bool] = True  # whether the domain of every instance is all real values
    forecasts_any_frequency: ClassVar[bool] = False  # whether series of another frequency than in fit can be forecast
    always_calibrates: ClassVar[bool] = False  # whether intervals are calibrated even if `intervals` is None

    horizon: int | None = param(default=None, at_least=1, help="number of steps to forecast, unless passed to `predict`")
    alias: str | None = param(default=None, help="name of the forecast column; None: the class name")
    missing: Literal["auto", "interpolate", "ffill", "zero"] = param(
        default="auto",
        help="imputation of missing values: linear interpolation, the last value or zero; 'auto': no imputation, "
        "and an error if the model cannot handle missing values",
    )
    point: Literal["auto", "median", "mean"] = param(
        default="auto",
        help="statistic of the predictive distribution used as point forecast; 'auto': the median for models "
        "that learn a distribution, else the mean",
    )
    on_failure: Literal["raise", "fallback", "drop"] = param(
        default="raise",
        help="what happens to series that cannot be fitted, e.g. because they are too short: 'raise': an error lists them; "
        "'fallback': they are forecast by SeasonalNaive, or by Naive if they are shorter than a season (global models: as "
        "unseen series, if they can); 'drop': they are left out. See `failures_`",
    )
    bounds: tuple[float | None, float | None] | None = param(
        default=None,
        help="lower and upper bound to which point forecasts, intervals and sample paths are clipped, such as (0, None) for "
        "no upper bound; None: no bounds",
    )
    intervals: Literal["conformal"] | None = param(
        default=None,
        help="method for prediction intervals: 'conformal' calibrates them on rolling forecasts during fit; "
        "None: the model's own distribution, if it has one",
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the parameters of a subclass, add them to its docstring, and make its capabilities a descriptor."""
        super().__init_subclass__(**kwargs)
        collect_params(cls)
        if "__doc__" in vars(cls) and cls.__doc__:
            cls.__doc__ = with_parameters(cls)
        if isinstance(vars(cls).get("capabilities"), Capabilities):
            cls.capabilities = CapabilitiesDescriptor(cls.capabilities)
        cls.accepts_any_value = cls.capabilities.domain == "real" and not hasattr(cls, "_narrow")

    def __init__(self, *args: Any, **values: Any) -> None:
        self.state_: State  # set by `fit`; not annotated in the class body, where it would look like a field
        self.__dict__.update(params.resolve_values(type(self), args, values))

    def fit(self, frame: Frame, *extra: Any, freq: Any = None, columns: Columns | Mapping[str, Any] | None = None,
            static: Frame | None = None) -> Self:  # fmt: skip
        """Fit the model to all series of a frame.

        A second call discards the previous fit. If it raises, the model keeps its previous state.

        Parameters
        ----------
        frame : DataFrame
            One row per series and time step, with the columns "unique_id" (optional for a single
            series), "ds" (time) and "y" (target): pandas, polars, pyarrow, or any
            object with the Arrow C stream interface.
        freq : str, optional
            Frequency, e.g. "D", "W-SUN", "MS" or "15min". Inferred from the timestamps by default.
        columns : Columns or dict, optional
            Names of the id, time and target columns, and which columns are future or past
            covariates.
        static : DataFrame, optional
            Static covariates, one row per series.

        Returns
        -------
        Self
            The fitted model.

        Raises
        ------
        DataError
            If the frame has duplicate or irregular timestamps, non-numeric targets, missing values
            the model cannot handle, or too few observations.
        CapabilityError
            If the model cannot use the covariates declared in `columns`.

        Warns
        -----
        DataWarning
            If columns are left out because they have no role, or a future covariate may leak the
            target.

        Examples
        --------
        >>> from deepforecast import SeasonalNaive, datasets
        >>> SeasonalNaive(season_length=12).fit(datasets.load("air_passengers"))
        SeasonalNaive(season_length=12)
        """
        if extra:
            raise positional_target_error(type(self).__name__, extra)
        panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static, allow_all_missing=self.on_failure != "raise")
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
        ids: Any = None,
        frame: Frame | None = None, freq: Any = None, future: Frame | None = None, static: Frame | None = None,
        level: Any = None, quantiles: Any = None,
    ) -> Frame:  # fmt: skip
        """Forecast each series from its last observation.

        Parameters
        ----------
        horizon : int, optional
            Number of steps. Defaults to the `horizon` of the constructor.
        ids : str, int or sequence of these, optional
            Forecast only the series with these ids, in the order of the fit; time and memory depend on their number alone.
        frame : DataFrame, optional
            Forecast from the end of these series instead of those seen in `fit`. Series known from
            `fit` keep their parameters. New series are forecast by global models as they are; local
            models fit them first.
        freq : str, optional
            Frequency of `frame`, if it is another than in `fit`; only networks can forecast it. The length of the window and
            of the season stay the same number of time steps.
        future : DataFrame, optional
            Future covariates, one row per series and step (see `future_frame`).
        static : DataFrame, optional
            Static covariates of the series in `frame`.
        level : float or list of float, optional
            Coverage of the prediction intervals in percent, e.g. `[80, 95]`.
        quantiles : float or list of float, optional
            Probabilities between 0 and 1, e.g. `[0.1, 0.5, 0.9]`.

        Returns
        -------
        DataFrame
            Of the same library as the training data, with the id and time columns, the point
            forecast (named after the model or its `alias`) and, per level, `<model>-lo-80` and
            `<model>-hi-80`, per quantile `<model>-q-0.1`.

        Raises
        ------
        NotFittedError
            If the model has not been fitted.
        ParameterError
            If there is no horizon, or a level or quantile is out of range.
        CapabilityError
            If intervals are requested from a model without a distribution.
        DataError
            If `future` or `frame` does not fit the series.

        Examples
        --------
        >>> from deepforecast import SeasonalNaive, datasets
        >>> model = SeasonalNaive(horizon=2).fit(datasets.load("air_passengers"))
        >>> model.predict(level=80).iloc[:, 2:].round(1)
           SeasonalNaive  SeasonalNaive-lo-80  SeasonalNaive-hi-80
        0          417.0                370.5                463.5
        1          391.0                344.5                437.5
        """
        steps = self._resolve_horizon(horizon)
        levels = [] if level is None else validate_levels(level)
        probabilities = [] if quantiles is None else validate_quantiles(quantiles)
        from_fit = frame is None and static is None and freq is None and self.state_.series.last.size
        state = self.state_ if from_fit else self._state_for_frame(frame, static, freq)
        if ids is not None:
            state = state.take(find_ids(state, ids))
        forecast = self.forecast_from(state, steps, self._future_covariates(state, steps, future))
        model_columns = output_columns(forecast, self.name, self.point_kind, levels, probabilities)
        series, fitted_columns = state.series, model_columns
        if state.fallback is not None:
            series, fitted_columns, model_columns = state.fallback.split_columns(model_columns, steps)
        if self.on_failure != "raise":
            is_missing = np.isnan(np.column_stack([values.reshape(len(series), -1) for values in model_columns.values()]))
            warn_of_missing_intervals(self.name, series, np.flatnonzero(is_missing.any(axis=1)))
        columns = series.key_columns(series.calendar.next_positions(series.last, steps))
        refuse_duplicate_columns(model_columns, columns)
        ratios = range_ratios(fitted_columns, state.value_range, levels, probabilities)
        if not (ratios <= LIMITS).all():
            check_columns(fitted_columns, state, self, levels, probabilities)
        if len(model_columns) > 1 and state.calibration is None and len(state.series):
            self._warn_about_intervals(state)
        if len(series.last) > 1 and np.ptp(series.last) > steps * series.calendar.step:
            series.warn_of_past_forecasts(self.name, steps)
        return frames.build(series.library, columns | model_columns)

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
        """Draw sample paths from the predictive distribution.

        Parameters
        ----------
        n_samples : int
            Number of paths per series.
        horizon : int, optional
            Number of steps. Defaults to the `horizon` of the constructor.
        frame, future, static : DataFrame, optional
            As in `predict`.
        seed : int, default 0
            Seed of the random number generator; the same seed gives the same paths.

        Returns
        -------
        DataFrame
            In long format: one row per series, sample and step, with the id and time columns,
            `sample` (from 0) and the value, in a column named after the model.

        Raises
        ------
        NotFittedError
            If the model has not been fitted.
        CapabilityError
            If `capabilities.simulates` is False.

        Examples
        --------
        >>> from deepforecast import SeasonalNaive, datasets
        >>> model = SeasonalNaive(horizon=2).fit(datasets.load("air_passengers"))
        >>> model.simulate(n_samples=3).shape
        (6, 4)
        """
        steps = self._resolve_horizon(horizon)
        samples = validate_horizon(n_samples, name="n_samples")
        if not self.capabilities.simulates:
            raise no_paths_error(self)
        state = self._state_for_frame(frame, static)
        series, paths = state.series, self._paths_from(state, steps, samples, seed, future)
        if len(series):
            check_paths(paths, state, self)
        if state.fallback is not None:
            series, paths = state.fallback.join_paths(paths, seed)
            paths = np.clip(paths, *resolve_bounds(self.bounds))
            warn_of_missing_intervals(self.name, series, np.flatnonzero(np.isnan(paths).any(axis=(1, 2))))
        columns = series.key_columns(np.tile(series.calendar.next_positions(series.last, steps), (1, samples)))
        refuse_duplicate_columns(["sample", self.name], columns)
        columns["sample"] = np.tile(np.repeat(np.arange(samples), steps), len(series))
        columns[self.name] = paths.reshape(-1)
        series.warn_of_past_forecasts(self.name, steps)
        return frames.build(series.library, columns)

    def explain(
        self, horizon: int | None = None, *,
        frame: Frame | None = None, future: Frame | None = None, static: Frame | None = None,
    ) -> Frame:  # fmt: skip
        """Decompose the forecast into components, or return the attention weights of models with attention.

        The components are those of an additive model, the contributions of features to a regression, or the integrated
        gradients of a network, which are contributions of its input columns.

        Parameters
        ----------
        horizon : int, optional
            Number of steps. Defaults to the `horizon` of the constructor.
        frame, future, static : DataFrame, optional
            As in `predict`.

        Returns
        -------
        DataFrame
            In long format: one row per series, step and `component`, whose `value`s add up to the
            forecast. For models with attention one row per pair of time steps, layer and head:
            `cutoff` is the last observation the model had seen, `step` the number of the query step
            after it (0 and below in the input window), `lag` the timestamp of the key, `kind`
            "cross" (steps ahead attend to the window) or "self", and `weight` the attention weight.
            Models that select variables (TFT) have a column `variable`, and rows whose `kind` is "past variables",
            "future variables" or "static variables", with the weight of a variable at a time step.

            Components of integrated gradients: "baseline", the forecast of a window that is constant at its location (its
            mean for scaler="standard"), with covariates at their means and calendar features at 0; the contribution of the
            history, named after the target; that of each covariate over all time steps; "calendar"; and "rest", which is
            rounding, or the distance of the forecast from the path that is explained: of autoregressive networks the greedy
            path (decoding="greedy" forecasts it), and beyond the trained horizon that of a window that ends with forecasts.

        Raises
        ------
        NotFittedError
            If the model has not been fitted.
        CapabilityError
            If `capabilities.explains` is False.

        References
        ----------
        Sundararajan, Taly, Yan (2017), "Axiomatic attribution for deep networks", ICML, arXiv:1703.01365.

        Examples
        --------
        >>> from deepforecast import MLP, datasets
        >>> model = MLP(horizon=7, hidden_sizes=[32], max_steps=20).fit(datasets.generate(1, 100))
        >>> sorted(set(model.explain()["component"]))
        ['baseline', 'calendar', 'rest', 'y']
        """
        return explain_forecast(self, self._resolve_horizon(horizon), frame, future, static)

    def update(self, frame: Frame) -> Self:
        """Append new observations to the fitted series; parameters are not estimated again.

        Prediction intervals of networks keep the calibration of the fit; `predict(frame=...)` with the whole histories
        calibrates them on recent values.

        Parameters
        ----------
        frame : DataFrame
            New rows, which continue each series without a gap (models that handle missing values
            allow gaps). Series that are not in the frame stay as they are.

        Returns
        -------
        Self
            The model, which now forecasts from the new last observations.

        Raises
        ------
        NotFittedError
            If the model has not been fitted.
        DataError
            If a series was not in `fit`, or its rows do not follow its last observation.

        Examples
        --------
        >>> from deepforecast import Naive, datasets
        >>> passengers = datasets.load("air_passengers")
        >>> model = Naive(horizon=1).fit(passengers.iloc[:-1])
        >>> model.update(passengers.iloc[-1:]).predict()["Naive"].tolist()
        [432.0]
        """
        self.state_ = self._update_and_warn(append_observations, frame)
        return self

    def fine_tune(self, frame: Frame, *, freq: Any = None, static: Frame | None = None, **options: Any) -> Self:
        """Continue training from the learned parameters on new histories; models in closed form are fitted again.

        A network keeps the calibration of its prediction intervals; its coverage in `calibration_` becomes NaN, as it was
        that of the network before.

        Parameters
        ----------
        frame : DataFrame
            Histories, as for `fit`.
        freq : str, optional
            Frequency of the histories, if it is another than in `fit`, which only networks can forecast.
        static : DataFrame, optional
            Static covariates of these series.
        **options
            For neural networks: `max_steps`, `learning_rate`, and `freeze`: names of modules whose weights stay as they are,
            or a dict with the number of steps after which each is trained, too (gradual unfreezing).

        Returns
        -------
        Self
            The model, which now forecasts from the end of `frame`.

        Raises
        ------
        NotFittedError
            If the model has not been fitted.
        ParameterTypeError
            If the model does not have one of the options.
        """
        self.state_ = self._update_and_warn(fine_tune_state, frame, static, freq, options)
        return self

    def future_frame(self, horizon: int | None = None) -> Frame:
        """Return the id and time columns of the forecast, to which future covariates can be added.

        Parameters
        ----------
        horizon : int, optional
            Number of steps. Defaults to the `horizon` of the constructor.

        Returns
        -------
        DataFrame
            One row per series and step.

        Examples
        --------
        >>> from deepforecast import Naive, datasets
        >>> Naive(horizon=2).fit(datasets.load("air_passengers")).future_frame()
                unique_id         ds
        0  air_passengers 1961-01-01
        1  air_passengers 1961-02-01
        """
        steps, hint = self._resolve_horizon(horizon), "Pass `future` with the time steps that follow each series of `frame`."
        series = require_histories(self.state_, self.name, hint).all_series
        if self.state_.fallback is not None:
            series = series.take(self.state_.fallback.forecast_series)
        return frames.build(series.library, series.key_columns(series.calendar.next_positions(series.last, steps)))

    def save(self, path: Any, *, histories: bool = True, allow_skops: bool = False) -> None:
        """Save the fitted model to a file, which `deepforecast.load` reads.

        The file is written atomically: if saving fails, an existing file at `path` stays as it is.

        Parameters
        ----------
        path : str or path-like
            Path of the file.
        histories : bool, default True
            Whether the file has what is needed to forecast the series seen in `fit`: their ids, last
            timestamps and last observations. Without them the file of a neural network has its
            weights, columns and names of categories, and its size does not depend on the number of
            series; the loaded model forecasts other histories, `predict(frame=...)`, all of them as
            series not seen in `fit`: with their static covariates, and with pooled conformal errors
            multiplied by the scale of these histories.
        allow_skops : bool, default False
            Whether the file may contain regressors of other libraries, stored with skops, and refer to
            functions and torch modules of other packages (`loss`, `head`), stored by their names. To
            load such a file, pass their names as `trusted`.

        Raises
        ------
        NotFittedError
            If the model has not been fitted.
        CapabilityError
            If `histories=False` and the model cannot forecast new histories without values of the
            training data.
        SaveError
            If the model cannot be stored or the file cannot be written.

        Notes
        -----
        Loggers, callbacks and other objects in `trainer` of a network are left out, as they do not
        change its forecasts; a loaded model has the numbers and texts of `trainer`.

        Examples
        --------
        >>> import tempfile
        >>> from deepforecast import Naive, datasets
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Naive(horizon=2).fit(datasets.load("air_passengers")).save(folder + "/model.dfc")
        """
        model_file.save(self, path, histories, allow_skops)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the parameters of wrapped models, as `model__season_length`.

        Returns
        -------
        dict
            Values by parameter name.
        """
        values = {name: getattr(self, name) for name in params.declared_params(type(self))}
        for name, value in list(values.items()) if deep else ():
            if isinstance(value, Forecaster):
                values |= {f"{name}__{inner}": inner_value for inner, inner_value in value.get_params().items()}
        return values

    def set_params(self, **values: Any) -> Self:
        """Set parameters, validated as in the constructor; if one is invalid, none is changed.

        Unless only parameters in `predict_params` change, the model loses its fitted state.

        Parameters
        ----------
        **values
            New values by parameter name; `model__season_length` sets a parameter of a wrapped
            model.

        Returns
        -------
        Self
            The model.

        Raises
        ------
        ParameterError
            If a value is invalid.
        ParameterTypeError
            If a value has the wrong type, or there is no such parameter.
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
        """Return an unfitted copy of the model.

        Parameters
        ----------
        **changes
            Parameters that differ in the copy.

        Returns
        -------
        Self
            A new model; wrapped models are copied, too.

        Examples
        --------
        >>> from deepforecast import SeasonalNaive
        >>> SeasonalNaive(horizon=7, season_length=12).clone(horizon=3)
        SeasonalNaive(horizon=3, season_length=12)
        """
        values = {
            name: value.clone() if isinstance(value, Forecaster) else value
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**{**values, **changes})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and params.equal_params(self.get_params(False), other.get_params(False))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return params.format_model(self)

    @property
    def name(self) -> str:
        """Name of the forecast column."""
        return self.alias or type(self).__name__

    @property
    def point_kind(self) -> str:
        """The point forecast's statistic, "mean" or "median", with `point="auto"` resolved."""
        return self.point if self.point != "auto" else "median" if self.capabilities.learns_distribution else "mean"

    @property
    def predict_params(self) -> tuple[str, ...]:
        """Names of the parameters that do not affect `fit`."""
        return ("horizon", "alias", "point") if self.calibrates else ("horizon", "alias", "point", "bounds")

    @property
    def default_horizon(self) -> int | None:
        """Number of steps to forecast if none is passed."""
        return self.horizon

    @property
    def missing_method(self) -> str:
        """Imputation of missing values; "auto": none."""
        return self.missing

    @property
    def calibrates(self) -> bool:
        """Whether `fit` calibrates prediction intervals on rolling forecasts."""
        return self.always_calibrates or self.intervals == "conformal"

    @property
    def failures_(self) -> Frame:
        """The series that the model could not fit (`on_failure`).

        Returns
        -------
        DataFrame
            One row per series: its id, the `reason`, and the `model` that forecasts it instead ("": no forecast).

        Raises
        ------
        NotFittedError
            If the model has not been fitted.

        Examples
        --------
        >>> from deepforecast import SeasonalNaive, datasets
        >>> len(SeasonalNaive().fit(datasets.load("air_passengers")).failures_)
        0
        """
        return failures_frame(self, self.fitted_state())

    def fitted_state(self) -> State:
        """The state; raises `NotFittedError` before `fit`."""
        if "state_" not in self.__dict__:
            raise not_fitted_error(type(self).__name__, self.__dict__.get("_failure", ""))
        return self.state_

    def forecast_from(self, state: State, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """Forecast of all series as arrays, with conformal intervals if the state is calibrated.

        Raises if a point forecast is not finite. The rows of `future` are those of `state.series`.
        """
        if state.fallback is not None:
            forecast = None
            if len(state.series):
                forecast = self.forecast_from(replace(state, fallback=None), steps, future)
            joined = state.fallback.join(forecast, steps)
            return joined if self.bounds is None else BoundedForecast(joined, resolve_bounds(self.bounds))
        forecast = self._forecast(replace(state.learned, series=state.series), steps, future)
        point = forecast.point(self.point_kind)
        if not np.isfinite(point).all():
            check_finite(point, state, self.name)
        if state.calibration is not None:
            forecast = state.calibration.forecast_around(point, self.on_failure != "raise")
        return forecast if self.bounds is None else BoundedForecast(forecast, resolve_bounds(self.bounds))

    def _paths_from(self, state: State, steps: int, samples: int, seed: int, future: Frame | None) -> Floats:
        """Sample paths of the fitted series, shape (series, samples, steps)."""
        covariates = self._future_covariates(state, steps, future)
        if not len(state.series):  # naive methods forecast all series
            return np.empty((0, samples, steps))
        paths = self._simulate(state.learned_with_series, steps, samples, seed, covariates)
        return paths if self.bounds is None else np.clip(paths, *resolve_bounds(self.bounds))

    def _fit_panel(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        """The state after fitting a panel; does not change the model. Warnings are emitted after a successful fit."""
        if self._has_needs:
            refuse_unused_parameters(self)
        if self.bounds is not None:
            resolve_bounds(self.bounds)  # raises unless they increase
        if self.on_failure != "raise":
            return fit_with_fallback(self, panel, monitor)
        has_covariates, complete_panel, collected = panel.covariates or panel.static, panel, CollectedWarnings()
        if has_covariates or panel.weight is not None or not (panel.complete and self.accepts_any_value):
            with collect_warnings(collected):
                complete_panel = preprocess(self, panel)
        calibrates = self.always_calibrates or self.intervals == "conformal"
        required = self._min_observations_to_fit if calibrates else self._min_observations
        min_observations = required(complete_panel)
        lengths = np.diff(complete_panel.indptr) if complete_panel.complete else complete_panel.observed
        if int(lengths.min()) < min_observations:
            refuse_too_short_to_fit(self, complete_panel, min_observations)
        # calibrate before imputation, which each window does with its own history
        calibration = self._calibrate(panel) if calibrates else None
        learned = self._fit(complete_panel, monitor)
        if panel.series.columns.future:
            learned = self._add_covariate_facts(learned, panel)
        if collected:
            emit_warnings(collected)
        covariates = {**complete_panel.covariates, **complete_panel.static} if has_covariates else {}
        categories = {name: covariate.categories for name, covariate in covariates.items()}
        return State(
            complete_panel.series,
            learned,
            categories,
            static=complete_panel.static,
            calibration=calibration,
            fingerprint=fingerprint(panel),
            undeclared=panel.undeclared,
            value_range=value_range(complete_panel),
        )

    def _add_covariate_facts(self, learned: LearnedState, panel: Panel) -> LearnedState:
        """Add arrays about the future covariates in the training data, before preprocessing, to the learned state."""
        return learned

    def _state_for_frame(self, frame: Frame | None, static: Frame | None, freq: Any = None) -> State:
        """The state at the end of the histories in `frame`, or the fitted state without a frame; the model is unchanged."""
        if frame is None:
            refuse_without_frame(static=static, freq=freq)
            return require_histories(self.fitted_state(), self.name)
        return self._update_and_warn(move_state, frame, static, freq)

    def _update_and_warn(self, function: Callable[..., State], *args: Any) -> State:
        """The state that `function(self, state, *args)` returns; its warnings are emitted only if it does not raise."""
        state, collected = self.fitted_state(), CollectedWarnings()
        with collect_warnings(collected):
            state = function(self, state, *args)
        emit_warnings(collected)
        return state

    def _resolve_horizon(self, horizon: int | None) -> int:
        """The number of steps: `horizon`, or that of the constructor; raises before `fit`, or if there is none."""
        if "state_" not in self.__dict__:
            self.fitted_state()  # raises
        horizon = self.default_horizon if horizon is None else horizon
        if horizon is None:
            raise ParameterError(
                f"`horizon` must be set, as {self.name} was constructed without a horizon.",
                hint="Pass horizon=.",
                parameter="horizon",
            )
        return validate_horizon(horizon)

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        """The future covariates by name, as arrays (series, steps), of the series that the model fitted."""
        series, names, past = state.series, state.series.columns.future, state.series.columns.past
        if past and self.default_horizon is not None and steps > self.default_horizon:
            raise CapabilityError(
                f"`horizon` must be at most {self.default_horizon}, the horizon of the fit, as {self.name} was fitted with "
                f"past covariates ({format_list(past)}), got {steps}.",
                hint=f"Fit it with horizon={steps}, or without these columns.",
                parameter="horizon",
                value=steps,
            )
        if not len(series.last) or (future is None and not names):
            return {}
        categories = {name: state.categories[name] for name in names}
        covariates = read_future_covariates(future, series, steps, categories, state.undeclared)
        self._check_future(state, covariates)
        return covariates

    # -- hooks, implemented by model classes -----------------------------------------------------------------------------------

    def _min_observations(self, panel: Panel) -> int:
        """Minimum number of observations per series."""
        return 1

    def _min_observations_to_fit(self, panel: Panel) -> int:
        """Minimum number of observations per series in `fit`, which may also calibrate intervals."""
        return self._min_observations(panel) + ((self.default_horizon or 0) if self.calibrates else 0)

    def _min_observations_for_spread(self, learned: LearnedState) -> int | None:
        """Minimum number of observations to estimate the error variance, if the model itself needs one less; else None."""
        return None

    def _search_choices(self, seasons: tuple[int, ...], rows: int) -> Mapping[str, Sequence[Any]]:
        """Search values that depend on the data, in place of those declared.

        `rows` is the length of the longest series, 0 if unknown.
        """
        return {}

    def _calibrate(self, panel: Panel) -> Calibration | None:
        """The errors of forecasts at rolling cutoffs, from which conformal intervals are computed; None if not requested."""
        if self.intervals != "conformal":
            return None
        if self.default_horizon is None:
            class_name = type(self).__name__
            raise ParameterError("intervals='conformal' requires a horizon.", hint=f"Pass {class_name}(horizon=...).")
        return series_errors(self.clone(intervals=None, on_failure="raise"), panel, self.default_horizon)

    def _warn_about_intervals(self, state: State) -> None:
        """Warn if the model's own prediction intervals are unreliable."""

    def _check_future(self, state: State, future: Mapping[str, Covariate]) -> None:
        """Check the future covariates (series, steps) of the fitted series, e.g. warn of effects that could not be estimated."""

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Estimate the parameters from a preprocessed panel; does not change the model."""
        raise missing_hook_error(self, "_fit")

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """Run the recursions over the rows of `panel` with fixed parameters; `shared` does not change.

        from_start: the state starts before the first row of `panel`; for a global model, `learned` may be of other series.
        Otherwise the rows follow the last observation of each series.
        """
        raise missing_hook_error(self, "_advance")

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """Forecast `steps` steps from the end of each series."""
        raise missing_hook_error(self, "_forecast")

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        """Sample paths, shape (series, samples, steps)."""
        raise missing_hook_error(self, "_simulate")

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components that add up to the forecast, each of shape (series, steps)."""
        raise missing_hook_error(self, "_explain")

    def _attention_maps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Sequence[Any]:
        """The attention weights; empty for models without attention, for which `_explain` is called."""
        return ()

    def _serialize(self, learned: LearnedState, serializer: SkopsSerializer) -> LearnedState:
        """The learned state as arrays, numbers and strings; the inverse of `_deserialize`."""
        return learned

    _deserialize = _serialize

    def _drop_histories(self, learned: LearnedState) -> LearnedState:
        """The learned state without series, from which `_advance` moves to any history; `CapabilityError` if it needs them."""
        raise model_file.histories_required_error(self)

    def _fine_tune(self, learned: LearnedState, panel: Panel) -> LearnedState:
        """Continue training; by default a new fit."""
        return self._fit(panel, SILENT)


collect_params(Forecaster)
Forecaster.__doc__ = with_parameters(Forecaster)
