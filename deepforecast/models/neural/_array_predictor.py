"""Forecasts from arrays to arrays, without the overhead of data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.core.forecast import validate_quantiles
from deepforecast.core.state import LearnedState
from deepforecast.data.calendar import OFF_GRID
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
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

    Created by `model.predictor()`. Its forecasts equal those of `predict`. Later changes of the
    model do not affect it, and several threads can call it at once.

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
        """Create a predictor from a fitted model."""
        state, levels = model.fitted_state(), tuple(validate_quantiles(quantiles)) if len(quantiles) else ()
        if levels and state.calibration is not None:
            raise CapabilityError(
                f"{model.name} cannot predict quantiles from arrays, as its intervals are "
                "calibrated. Use predict(level=...)."
            )
        shared = {**state.learned.shared, "network": deepcopy(state.learned.shared["network"]).requires_grad_(False)}
        return cls(model.clone(), LearnedState({}, shared, series=replace(state.series.take(np.arange(1)), native_ids=None)), levels)

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
            Every covariate of the fit by name, each of the shape of `y`: numbers, or codes of
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
        columns, histories = self.window_columns, _to_series(y)
        if self.model.missing != "auto" and any(np.isnan(history).any() for history in histories):
            raise DataError(
                f"`y` must not have missing values, as missing={self.model.missing!r} of "
                f"{self.model.name} applies to frames only. Fill them first."
            )
        recent_values = _last_rows(histories, columns.input_size, "y")
        loc, scale = self._scales(histories)
        by_series: dict[str, Any] = {"tail": recent_values, "place": loc, "spread": scale}
        _check_names(past, (*columns.numeric, *columns.categorical), "past")
        _check_names(future, (*columns.numeric[: columns.n_future], *columns.categorical[: columns.n_future_codes]), "future")
        _check_names(static, (*columns.static, *columns.static_codes), "static")
        for name in past:
            fill_value = -1.0 if name in columns.categorical else np.nan
            values = _last_rows(_to_series(past[name]), columns.input_size, name, len(recent_values), fill_value)
            by_series[f"tail:{name}"] = _encode_categories(values, columns, name)
        for name in static:
            values = np.broadcast_to(np.asarray(static[name], dtype=np.float64), (len(recent_values),))
            by_series[f"static:{name}"] = _encode_categories(values, columns, name)
        future_values = {name: _future_rows(values, len(recent_values), columns.horizon, name) for name, values in future.items()}
        covariates = {name: Covariate(_encode_categories(values, columns, name)) for name, values in future_values.items()}
        learned = replace(self.learned, by_series=by_series, series=self._series(last_time, len(recent_values)))
        return self.model._forecast(learned, columns.horizon, covariates)

    def _scales(self, histories: list[Floats]) -> tuple[Floats, Floats]:
        """Location and scale per series, as in `fit` and `predict(frame=...)`."""
        loc, scale = np.zeros(len(histories)), np.ones(len(histories))
        panel_scale = self.learned.shared.get("scale")
        if panel_scale is not None:
            return loc + panel_scale[0], scale * panel_scale[1]
        if self.model.scaler_scope == "series":
            for index, history in enumerate(histories):
                loc[index], scale[index] = _series_state.estimate_scale(history, self.model.scaler)
        return loc, scale

    def _series(self, last_time: Any, count: int) -> Series:
        series = self.learned.series
        if series is None:
            raise DataError(
                "A predictor must be created from a fitted model with series; there are none."
            )
        if not self.window_columns.uses_time:
            return replace(series, last=np.zeros(count, dtype=np.int64))
        if last_time is None:
            raise ParameterError(
                f"`last_time` must be set, as the network uses calendar features "
                f"({format_list(self.window_columns.calendar)}). "
                "Pass the timestamp of the last value of y, or fit with calendar=None."
            )
        return replace(series, last=np.broadcast_to(positions(series, last_time), (count,)))


def positions(series: Series, last_time: Any) -> Any:
    """Timestamps (in UTC for series with a time zone) as positions on the calendar of the fit."""
    calendar = series.calendar
    try:
        raw = np.atleast_1d(np.asarray(last_time, dtype=f"datetime64[{calendar.time.unit}]")).astype(np.int64)
    except (ValueError, TypeError):
        raise DataError(
            f"`last_time` must be a timestamp, or one per series, got {format_value(last_time)}."
        ) from None
    grid_positions = calendar.positions(raw)
    if (grid_positions == OFF_GRID).any():
        raise DataError(
            f"`last_time` must match the frequency {calendar.freq} of the fit, got "
            f"{format_value(last_time)}."
        )
    return grid_positions


def _to_series(values: Any) -> list[Floats]:
    """One array per series."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        if values.ndim > 2 or not values.size:
            raise DataError(
                "An array must have shape (steps,) or (series, steps) and not be empty, got "
                f"{values.shape}."
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


def _last_rows(histories: list[Floats], rows: int, name: str, count: int | None = None, fill_value: float = np.nan) -> Floats:
    """The last `rows` values of each series, left-padded with `fill_value`."""
    if count is not None and len(histories) != count:
        raise DataError(f"{name} must have as many series as y, {count}, got {len(histories)}.")
    recent_values = np.full((len(histories), rows), fill_value)
    for index, history in enumerate(histories):
        if len(history):
            recent_values[index, -min(rows, len(history)) :] = history[-rows:]
    if np.isinf(recent_values).any():
        raise DataError(f"{name} must be finite, or NaN where missing, but has an infinite value.")
    return recent_values


def _future_rows(values: Any, count: int, horizon: int, name: str) -> Floats:
    array = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if array.shape != (count, horizon):
        raise DataError(
            f"future: {name} must have shape (series, horizon) = ({count}, {horizon}), got "
            f"{array.shape}."
        )
    return array


def _encode_categories(values: Floats, columns: WindowColumns, name: str) -> Floats:
    """Numbers unchanged; codes of categories that were not in the fit become -1."""
    count = columns.counts.get(name)
    return values if count is None else np.where((values >= 0) & (values < count), np.nan_to_num(values), -1.0)


def _check_names(columns: Mapping[str, Any], names: tuple[str, ...], argument: str) -> None:
    if set(columns) != set(names):
        expected = format_list(names) if names else "none"
        raise DataError(
            f"`{argument}` must have the columns of the fit ({expected}), got "
            f"{format_value(list(columns))}."
        )
