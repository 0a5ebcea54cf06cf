"""Forecasts from arrays to arrays, without the overhead of data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.core.forecast import validate_quantiles
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import OFF_GRID
from deepforecast.data.panel import Series
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import CapabilityError, DataError, ParameterError, format_list, format_value
from deepforecast.models.neural import _series_state

if TYPE_CHECKING:
    from deepforecast.core.forecast import Forecast
    from deepforecast.models.neural._base import NeuralForecaster


class PredictorOutput(NamedTuple):
    """Point forecasts (series, horizon) and quantiles (series, horizon, probabilities)."""

    points: Floats
    quantiles: Floats


@dataclass(frozen=True)
class Predictor:
    """A fitted network as a function from arrays to arrays.

    Created by `model.predictor()`. Its point forecasts equal those of `predict(frame=...)`. Its
    quantiles have the calibration factors of the fit, those of `predict(frame=...)` also depend on
    recent values. Later changes of the model do not affect it, and several threads can call it at once.

    Attributes
    ----------
    model : NeuralForecaster
        Model with the parameters of the fit.
    learned : LearnedState
        State of the fit.
    levels : tuple of float
        Probabilities of the quantiles.

    Examples
    --------
    >>> import numpy as np
    >>> from deepforecast import DLinear
    >>> from deepforecast.datasets import generate
    >>> predictor = DLinear(horizon=7, calendar=None, max_steps=20).fit(generate(2, 100)).predictor(quantiles=[0.1, 0.9])
    >>> predictor(np.sin(np.arange(50))).quantiles.shape
    (1, 7, 2)
    """

    model: NeuralForecaster
    learned: LearnedState
    levels: tuple[float, ...]

    @classmethod
    def from_model(cls, model: NeuralForecaster, quantiles: Sequence[float]) -> Predictor:
        """Create a predictor from a fitted model.

        The predictor has copies of the model and of the network, which later calls of `fit` do not
        change. Raises `CapabilityError` for quantiles of conformal intervals.
        """
        state = model.fitted_state()
        levels = tuple(validate_quantiles(quantiles)) if len(quantiles) else ()
        if levels and state.calibration is not None:
            raise CapabilityError(
                f"{model.name} cannot predict quantiles from arrays, as its intervals are conformal.",
                hint="Use predict(level=...)."
            )
        network = deepcopy(state.learned.shared["network"]).requires_grad_(False)
        shared = {**state.learned.shared, "network": network}
        # One series is enough: `_series` takes the calendar from it and sets the times of each call.
        series = replace(state.series, native_ids=None, last=np.resize(state.series.last, 1))
        return cls(model.clone(), LearnedState({}, shared, series=series), levels)

    @property
    def window_columns(self) -> WindowColumns:
        """Columns and window length of the network."""
        return _series_state.window_columns(self.learned)

    def __call__(
        self,
        y: Any,
        *,
        past: Mapping[str, Any] | None = None,
        future: Mapping[str, Any] | None = None,
        static: Mapping[str, Any] | None = None,
        last_time: Any = None,
    ) -> PredictorOutput:
        """Forecast the steps after y.

        Parameters
        ----------
        y : array of shape (steps,) or (series, steps), or list of arrays
            Histories, which may have different lengths in a list; NaN where missing.
        past : mapping, optional
            Every covariate seen in `fit`, by name, each of the shape of `y`: numbers, or codes of
            categories (from 0; -1 if unknown).
        future : mapping, optional
            Future covariates by name over the horizon, each of shape (series, horizon) or
            (horizon,).
        static : mapping, optional
            Static covariates by name, one value per series.
        last_time : timestamp or array of timestamps, optional
            Timestamp of the last value of `y`, one for all series or one per series. Required if
            the network uses calendar features.

        Returns
        -------
        PredictorOutput
            Arrays `points` and `quantiles`.
        """
        forecast = self._forecast(y, past or {}, future or {}, static or {}, last_time)
        points = forecast.point(self.model.point_kind)
        return PredictorOutput(points, forecast.quantiles(self.levels) if self.levels else np.empty((*points.shape, 0)))

    def _forecast(self, y: Any, past: Any, future: Any, static: Any, last_time: Any) -> Forecast:
        """Forecast of the network from arrays, see `__call__`; checks their names and shapes."""
        columns = self.window_columns
        histories = _to_series(y)
        if self.model.missing != "auto" and any(np.isnan(history).any() for history in histories):
            raise DataError(
                f"`y` must not have missing values, as missing={self.model.missing!r} of "
                f"{self.model.name} applies to frames only.",
                hint="Fill them before the call, or fit with "
                "missing='auto'.",
                parameter="y",
            )
        recent_values = _last_values(histories, columns.input_size, "y")
        n_series = len(recent_values)
        loc, scale = self._scales(histories)
        by_series: dict[str, Any] = {"recent_values": recent_values, "loc": loc, "scale": scale}
        _check_names(past, (*columns.numeric, *columns.categorical), "past")
        _check_names(future, (*columns.numeric[: columns.n_future], *columns.categorical[: columns.n_future_codes]), "future")
        _check_names(static, (*columns.static, *columns.static_codes), "static")
        for name in past:
            fill_value = -1.0 if name in columns.categorical else np.nan
            values = _last_values(_to_series(past[name]), columns.input_size, name, n_series, fill_value)
            by_series[f"recent_values:{name}"] = _encode_categories(values, columns, name)
        for name in static:
            values = np.broadcast_to(np.asarray(static[name], dtype=np.float64), (n_series,))
            by_series[f"static:{name}"] = _encode_categories(values, columns, name)
        future_values = {
            name: _future_values(values, n_series, columns.horizon, name)
            for name, values in future.items()
        }
        covariates = {name: Covariate(_encode_categories(values, columns, name)) for name, values in future_values.items()}
        learned = replace(self.learned, by_series=by_series, series=self._series(last_time, n_series))
        return self.model._forecast(learned, columns.horizon, covariates)

    def _scales(self, histories: list[Floats]) -> tuple[Floats, Floats]:
        """Location and scale of each series, two arrays (series,), as in `predict(frame=...)`.

        They are those of the panel seen in fit, those of the given histories, or 0 and 1 if each
        window is scaled by itself.
        """
        loc, scale = np.zeros(len(histories)), np.ones(len(histories))
        panel_scale = self.learned.shared.get("panel_scale")
        if panel_scale is not None:
            return loc + panel_scale[0], scale * panel_scale[1]
        if self.model.scaler_scope == "series":
            for index, history in enumerate(histories):
                loc[index], scale[index] = _series_state.estimate_scale(history, self.model.scaler)
        return loc, scale

    def _series(self, last_time: Any, n_series: int) -> Series:
        """The series seen in fit with the last timestamps of this call.

        Raises `ParameterError` if the network uses calendar features and `last_time` is None.
        """
        series = self.learned.series
        if series is None:
            raise DataError(
                "A predictor requires a model with series, and its state has none.",
                hint="Use "
                "`model.predictor()` of a fitted model."
            )
        if not self.window_columns.uses_time:
            return replace(series, last=np.zeros(n_series, dtype=np.int64))
        if last_time is None:
            raise ParameterError(
                f"`last_time` must be set, as the network uses calendar features "
                f"({format_list(self.window_columns.calendar)}).",
                hint="Pass the timestamp of the last value of y, or fit with calendar=None.",
                parameter="last_time",
            )
        positions = calendar_positions(series, last_time)
        return replace(series, last=positions if len(positions) == n_series else np.broadcast_to(positions, (n_series,)))


def calendar_positions(series: Series, last_time: Any) -> Any:
    """Convert timestamps to positions on the calendar seen in fit, (timestamps,) int64.

    Timestamps of series with a time zone are in UTC. Raises `DataError` for other values and for
    timestamps that are not on the calendar.
    """
    calendar = series.calendar
    try:
        timestamps = np.atleast_1d(np.asarray(last_time, dtype=f"datetime64[{calendar.time.unit}]")).astype(np.int64)
    except (ValueError, TypeError):
        raise DataError(
            f"`last_time` must be one timestamp, or one per series, got {format_value(last_time)}.", parameter="last_time",
            value=last_time
        ) from None
    positions = calendar.positions(timestamps)
    if (positions == OFF_GRID).any():
        example = calendar.format(int(series.last[0]))
        raise DataError(
            f"`last_time` must be a timestamp of frequency {calendar.freq!r} (as in fit), got "
            f"{format_value(last_time)}.",
            hint=f"Pass for example {example}.",
            parameter="last_time", value=last_time,
        )
    return positions


def _to_series(values: Any) -> list[Floats]:
    """Convert a matrix (series, steps), a vector or a list of vectors to a list with one float64
    array per series; raise `DataError` for anything else.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        if values.ndim > 2 or not values.size:
            raise DataError(
                "An array must have shape (steps,) or (series, steps) and must not be empty, got "
                f"shape {values.shape}."
            )
        matrix = np.atleast_2d(values).astype(np.float64)
        return list(matrix)
    arrays = list(values) if isinstance(values, (list, tuple)) else []
    if arrays and not hasattr(arrays[0], "__len__"):
        arrays = [arrays]
    series = [np.asarray(array, dtype=np.float64) for array in arrays]
    if not series or any(array.ndim != 1 for array in series):
        raise DataError(
            "Series must be an array (steps,) or (series, steps), or a list of arrays, "
            f"got {format_value(values)}."
        )
    return series


def _last_values(
    histories: list[Floats], length: int, name: str, n_series: int | None = None, fill_value: float = np.nan
) -> Floats:
    """The last values of each series, (series, length), short series left-padded with `fill_value`.

    Raises `DataError` for infinite values and for other than `n_series` series; `name` is that of
    the variable in the message.
    """
    if n_series is not None and len(histories) != n_series:
        raise DataError(f"{name!r} must have as many series as `y` ({n_series}), got {len(histories)}.")
    recent_values = np.full((len(histories), length), fill_value)
    for index, history in enumerate(histories):
        if len(history):
            recent_values[index, -min(length, len(history)) :] = history[-length:]
    if np.isinf(recent_values).any():
        raise DataError(
            f"{name!r} must be finite, or NaN where missing, got an infinite value.",
            hint="Replace it with NaN."
        )
    return recent_values


def _future_values(values: Any, n_series: int, horizon: int, name: str) -> Floats:
    """A future covariate as an array (series, horizon); raise `DataError` for other shapes."""
    array = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if array.shape != (n_series, horizon):
        raise DataError(
            f"Future covariate {name!r} must have shape (series, horizon) = ({n_series}, {horizon}), "
            f"got {array.shape}."
        )
    return array


def _encode_categories(values: Floats, columns: WindowColumns, name: str) -> Floats:
    """Values of a numeric column unchanged; codes of categories not seen in fit become -1."""
    n_categories = columns.counts.get(name)
    if n_categories is None:
        return values
    return np.where((values >= 0) & (values < n_categories), np.nan_to_num(values), -1.0)


def _check_names(columns: Mapping[str, Any], names: tuple[str, ...], argument: str) -> None:
    """Raise `DataError` unless the keys of `columns` are `names`, in any order."""
    if set(columns) != set(names):
        expected = format_list(names) if names else "none"
        raise DataError(
            f"`{argument}` must contain the columns seen in fit ({expected}), got "
            f"{format_list(columns) if columns else 'none'}.", parameter=argument
        )
