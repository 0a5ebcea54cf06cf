"""Forecasts from arrays to arrays: no frame is read or built, for programs that ask for one series at a time and often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.core.forecast import checked_quantiles
from deepforecast.core.state import Learned
from deepforecast.data.calendar import OFF_GRID
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Series
from deepforecast.data.windows import Channels
from deepforecast.errors import CapabilityError, DataError, ParameterError, shown, some
from deepforecast.models.neural import _standing

if TYPE_CHECKING:
    from deepforecast.core.forecast import Forecast
    from deepforecast.models.neural._base import NeuralForecaster


class Forecasts(NamedTuple):
    """`points` (series, horizon) and `quantiles` (series, horizon, those asked for)."""

    points: Floats
    quantiles: Floats


@dataclass(frozen=True)
class Predictor:
    """A fit as it was, called on arrays; from several threads at once too. Its answers are those of `predict`.

    >>> import numpy as np
    >>> from deepforecast import DLinear
    >>> from deepforecast.datasets import generate
    >>> predictor = DLinear(horizon=7, calendar=None, max_steps=20).fit(generate(2, 100)).predictor(quantiles=[0.1, 0.9])
    >>> predictor(np.sin(np.arange(50))).quantiles.shape
    (1, 7, 2)

    - `past`, `future`: columns by name, each (series, rows) or (rows,): numbers, or the codes of categories (from 0, -1 for an
      unknown one). `past` has every declared column over the rows of y, `future` those known ahead over the steps ahead.
    - `static`: a value a series by name.
    - `at`: the stamp of the last row, one or one a series, where the network looks at the calendar.
    """

    model: NeuralForecaster
    learned: Learned
    wanted: tuple[float, ...]

    @classmethod
    def of(cls, model: NeuralForecaster, quantiles: Sequence[float]) -> Predictor:
        """Of a fitted model."""
        state, wanted = model.fitted(), tuple(checked_quantiles(quantiles)) if len(quantiles) else ()
        if wanted and state.calibration is not None:
            raise CapabilityError(f"{model.name} has calibrated bands, which go with frames: predict(level=...) gives them.")
        shared = {**state.learned.shared, "network": deepcopy(state.learned.shared["network"]).requires_grad_(False)}
        return cls(model.clone(), Learned({}, shared, series=replace(state.series.take(np.arange(1)), own_ids=None)), wanted)

    @property
    def channels(self) -> Channels:
        """Which columns are looked at, and how many rows."""
        return _standing.channels_of(self.learned)

    def __call__(
        self,
        y: Any,
        *,
        past: Mapping[str, Any] | None = None,
        future: Mapping[str, Any] | None = None,
        static: Mapping[str, Any] | None = None,
        at: Any = None,
    ) -> Forecasts:
        """The forecast after y: an array (rows,) or (series, rows), or a list of arrays of any lengths; NaN where missing."""
        said = self._forecast(y, past or {}, future or {}, static or {}, at)
        points = said.point(self.model.point_kind)
        return Forecasts(points, said.quantiles(self.wanted) if self.wanted else np.empty((*points.shape, 0)))

    def _forecast(self, y: Any, past: Any, future: Any, static: Any, at: Any) -> Forecast:
        channels, whole = self.channels, _series_of(y)
        if self.model.missing != "auto" and any(np.isnan(one).any() for one in whole):
            raise DataError(f"{self.model.name} fills what is missing ({self.model.missing!r}) in frames alone. Fill y first.")
        tail = _last(whole, channels.input_size, "y")
        place, spread = self._scales(whole)
        held: dict[str, Any] = {"tail": tail, "place": place, "spread": spread}
        _only(past, (*channels.numbers, *channels.codes), "past")
        _only(future, (*channels.numbers[: channels.ahead], *channels.codes[: channels.ahead_codes]), "future")
        _only(static, (*channels.static, *channels.static_codes), "static")
        for name in past:
            lost = -1.0 if name in channels.codes else np.nan
            values = _last(_series_of(past[name]), channels.input_size, name, len(tail), lost)
            held[f"tail:{name}"] = _coded(values, channels, name)
        for name in static:
            values = np.broadcast_to(np.asarray(static[name], dtype=np.float64), (len(tail),))
            held[f"static:{name}"] = _coded(values, channels, name)
        given = {name: _steps(values, len(tail), channels.horizon, name) for name, values in future.items()}
        ahead = {name: Covariate(_coded(values, channels, name)) for name, values in given.items()}
        learned = replace(self.learned, by_series=held, series=self._series(at, len(tail)))
        return self.model._forecast(learned, channels.horizon, ahead)

    def _scales(self, whole: list[Floats]) -> tuple[Floats, Floats]:
        """As a fit or `predict(frame=...)` finds them."""
        place, spread = np.zeros(len(whole)), np.ones(len(whole))
        known = self.learned.shared.get("scale")
        if known is not None:
            return place + known[0], spread * known[1]
        if self.model.scaler_scope == "series":
            for number, one in enumerate(whole):
                place[number], spread[number] = _standing.scale_of(one, self.model.scaler)
        return place, spread

    def _series(self, at: Any, count: int) -> Series:
        """Where the series stand in time."""
        series = self.learned.series
        if series is None:
            raise DataError("A predictor stands in time by the series of a fit; there are none.")
        if not self.channels.timed:
            return replace(series, last=np.zeros(count, dtype=np.int64))
        if at is None:
            raise ParameterError(
                f"The network looks at the calendar ({some(self.channels.clock)}): say at= the stamp of the last row of y, or "
                "fit it with calendar=None."
            )
        return replace(series, last=np.broadcast_to(positions(series, at), (count,)))


def positions(series: Series, at: Any) -> Any:
    """Stamps (of a zone: in UTC) as positions on the calendar of a fit."""
    calendar = series.calendar
    try:
        raw = np.atleast_1d(np.asarray(at, dtype=f"datetime64[{calendar.time.unit}]")).astype(np.int64)
    except (ValueError, TypeError):
        raise DataError(f"at is a stamp, or one a series; got {shown(at)}.") from None
    found = calendar.positions(raw)
    if (found == OFF_GRID).any():
        raise DataError(f"at lies on the calendar of the fit (freq {calendar.freq}); {shown(at)} does not.")
    return found


def _series_of(values: Any) -> list[Floats]:
    """One array a series."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        if values.ndim > 2 or not values.size:
            raise DataError(f"An array is (rows,) or (series, rows), and not empty; got shape {values.shape}.")
        whole = np.atleast_2d(values).astype(np.float64)
        return list(whole)
    given = list(values) if isinstance(values, (list, tuple)) else []
    if given and not hasattr(given[0], "__len__"):
        given = [given]
    found = [np.asarray(one, dtype=np.float64) for one in given]
    if not found or any(one.ndim != 1 for one in found):
        raise DataError(f"Series are an array (rows,) or (series, rows), or a list of arrays; got {shown(values)}.")
    return found


def _last(whole: list[Floats], rows: int, name: str, count: int | None = None, lost: float = np.nan) -> Floats:
    """The last rows of each, missing ones before its first."""
    if count is not None and len(whole) != count:
        raise DataError(f"{name} has a row of values for each series: {count} of y, and {len(whole)} are there.")
    found = np.full((len(whole), rows), lost)
    for number, one in enumerate(whole):
        if len(one):
            found[number, -min(rows, len(one)) :] = one[-rows:]
    if np.isinf(found).any():
        raise DataError(f"Values are finite, NaN where missing; {name} holds an infinite one.")
    return found


def _steps(values: Any, count: int, horizon: int, name: str) -> Floats:
    found = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if found.shape != (count, horizon):
        raise DataError(f"future: {name} has the steps ahead of each series, ({count}, {horizon}); got shape {found.shape}.")
    return found


def _coded(values: Floats, channels: Channels, name: str) -> Floats:
    """A column as it is; of categories, a code there is none for stands for an unknown one."""
    count = channels.counts.get(name)
    return values if count is None else np.where((values >= 0) & (values < count), np.nan_to_num(values), -1.0)


def _only(given: Mapping[str, Any], names: tuple[str, ...], what: str) -> None:
    if set(given) != set(names):
        raise DataError(f"{what}= holds the columns of the fit: {some(names) if names else 'none'}; got {shown(list(given))}.")
