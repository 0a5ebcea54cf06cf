"""Forecasts as arrays: a point forecast and, if there is one, a predictive distribution; validation of levels.

Explanations of forecasts (components or attention weights) as frames in long format.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data import frames, key_columns
from deepforecast.data.columns import format_number
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import (
    CapabilityError,
    DataError,
    ParameterError,
    ParameterTypeError,
    format_list,
    format_value,
    validate_integer,
    warn,
)

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State

MAX_HORIZON = 1_000_000  # larger values are typing errors, or come from malicious files
MAX_ATTENTION_ROWS = 5_000_000  # of a frame of attention weights: about half a gigabyte
ATTENTION_COLUMNS = ("cutoff", "step", "lag", "kind", "layer", "head", "weight")


class Forecast(ABC):
    """Point forecasts of shape (series, steps) and a predictive distribution."""

    mean: Floats

    @abstractmethod
    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles, shape (series, steps, probabilities)."""

    def point(self, point_kind: str) -> Floats:
        """The mean if `point_kind` is "mean", else the median."""
        return self.mean if point_kind == "mean" else self.median

    @cached_property
    def median(self) -> Floats:
        """The median; raises `CapabilityError` without a distribution."""
        return self.quantiles([0.5])[..., 0]

    @abstractmethod
    def skip_steps(self, steps: int) -> Forecast:
        """The forecast without its first `steps` steps."""


@dataclass(frozen=True)
class PointForecast(Forecast):
    """Point forecasts without a distribution."""

    mean: Floats
    name: str = "The model"

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """The point forecast for the median; raises `CapabilityError` for other quantiles."""
        if list(probabilities) == [0.5]:
            return self.mean[..., None]
        raise no_distribution_error(self.name)

    def skip_steps(self, steps: int) -> PointForecast:
        """The forecast without its first `steps` steps."""
        return PointForecast(self.mean[:, steps:], self.name)


@dataclass(frozen=True)
class NormalForecast(Forecast):
    """A normal distribution at every step."""

    mean: Floats
    deviation: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """mean + deviation * z_p."""
        from statistics import NormalDist

        standard_quantiles = np.array([NormalDist().inv_cdf(probability) for probability in probabilities])
        with np.errstate(over="ignore", invalid="ignore"):  # check_finite raises later, with the name of the series
            # the median must not be NaN where the deviation is unknown
            offsets = np.where(standard_quantiles == 0, 0.0, self.deviation[..., None] * standard_quantiles)
            return np.asarray(self.mean[..., None] + offsets)

    def skip_steps(self, steps: int) -> NormalForecast:
        """The forecast without its first `steps` steps."""
        return NormalForecast(self.mean[:, steps:], self.deviation[:, steps:])


@dataclass(frozen=True)
class SampledForecast(Forecast):
    """Sample paths, shape (series, samples, steps)."""

    paths: Floats

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The mean of the paths."""
        return np.asarray(self.paths.mean(axis=1))

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Empirical quantiles of the paths, interpolated linearly."""
        return np.moveaxis(np.quantile(self.paths, list(probabilities), axis=1), 0, -1)

    def skip_steps(self, steps: int) -> SampledForecast:
        """The forecast without its first `steps` steps."""
        return SampledForecast(self.paths[:, :, steps:])


@dataclass(frozen=True)
class QuantileForecast(Forecast):
    """Learned quantiles, shape (series, steps, probabilities), with linear interpolation but no extrapolation."""

    mean: Floats
    probabilities: tuple[float, ...]
    values: Floats
    name: str = "The model"

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles between the smallest and the largest learned probability; others raise `CapabilityError`.

        Crossing quantiles are made monotone by the running maximum over the probabilities.
        """
        learned, requested = np.array(self.probabilities), np.array(probabilities, dtype=np.float64)
        outside = [probability for probability in probabilities if not learned[0] - 1e-12 <= probability <= learned[-1] + 1e-12]
        if outside:
            levels = format_list(sorted({format_number(round(100 * abs(1 - 2 * probability), 9)) for probability in outside}))
            learned_text = format_list([f"{probability:g}" for probability in learned], max_shown=20)
            raise CapabilityError(
                f"{self.name} cannot forecast quantiles outside of {learned[0]:g} to {learned[-1]:g}, the range of those it "
                f"learned ({learned_text}), got {format_list([f'{probability:g}' for probability in outside])} (level "
                f"{levels}).",
                hint="Fit it with wider `quantiles`.",
            )
        monotone = np.maximum.accumulate(self.values, axis=-1)
        if len(learned) == 1:
            return np.repeat(monotone, len(requested), axis=-1)
        right = np.clip(np.searchsorted(learned, requested), 1, len(learned) - 1)
        left = right - 1
        weight = (requested - learned[left]) / (learned[right] - learned[left])
        return np.asarray(monotone[..., left] + weight * (monotone[..., right] - monotone[..., left]))

    def skip_steps(self, steps: int) -> QuantileForecast:
        """The forecast without its first `steps` steps."""
        return replace(self, mean=self.mean[:, steps:], values=self.values[:, steps:])


@dataclass(frozen=True)
class BoundedForecast(Forecast):
    """A forecast whose mean and quantiles are clipped to bounds."""

    forecast: Forecast
    bounds: tuple[float, float]

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The clipped mean."""
        return np.clip(self.forecast.mean, *self.bounds)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """The clipped quantiles."""
        return np.clip(self.forecast.quantiles(probabilities), *self.bounds)

    def skip_steps(self, steps: int) -> BoundedForecast:
        """The forecast without its first `steps` steps."""
        return BoundedForecast(self.forecast.skip_steps(steps), self.bounds)


@dataclass(frozen=True)
class JoinedForecast(Forecast):
    """Forecasts of several models for different series: pairs of the index of their series and a forecast.

    NaN for series without a forecast.
    """

    n_series: int
    forecasts: tuple[tuple[Ints, Forecast], ...]

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The means of all forecasts."""
        return self._join(lambda forecast: forecast.mean)

    def point(self, point_kind: str) -> Floats:
        """The point forecasts of all forecasts."""
        return self._join(lambda forecast: forecast.point(point_kind))

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """The quantiles of all forecasts."""
        return self._join(lambda forecast: forecast.quantiles(probabilities))

    def skip_steps(self, steps: int) -> JoinedForecast:
        """The forecast without its first `steps` steps."""
        forecasts = tuple((numbers, forecast.skip_steps(steps)) for numbers, forecast in self.forecasts)
        return JoinedForecast(self.n_series, forecasts)

    def _join(self, values_of: Callable[[Forecast], Floats]) -> Floats:
        numbers = np.concatenate([numbers for numbers, _ in self.forecasts])
        values = np.concatenate([values_of(forecast) for _, forecast in self.forecasts])
        joined = np.full((self.n_series, *values.shape[1:]), np.nan)
        joined[numbers] = values
        return joined


def resolve_bounds(bounds: tuple[float | None, float | None] | None) -> tuple[float, float]:
    """Lower and upper bound of forecasts, infinite if None; raises `ParameterError` unless they increase."""
    low, high = bounds or (None, None)
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if low < high:
        return low, high
    raise ParameterError(
        f"`bounds` must be a lower and a larger upper bound, got {format_value(bounds)}.",
        hint="Pass for example (0, None), with None for no bound.",
        parameter="bounds",
        value=bounds,
    )


def no_distribution_error(name: str) -> CapabilityError:
    """The error for a level or quantile of a model without a predictive distribution."""
    return CapabilityError(
        f"{name} cannot forecast levels or quantiles, as it has no predictive distribution.",
        hint="Set intervals='conformal', or use Conformal(model).",
        parameter="level",
    )


def no_paths_error(model: Any) -> CapabilityError:
    """The error for sample paths of a model that draws none."""
    if model.intervals == "conformal" and model.clone(intervals=None).capabilities.simulates:
        return CapabilityError(
            f"{model.name} cannot simulate sample paths with intervals={model.intervals!r}, which correct the intervals but "
            "not the paths.",
            hint="Set intervals=None, or use predict(level=...).",
        )
    return CapabilityError(f"{model.name} cannot simulate sample paths.", hint="Use predict(level=...) instead.")


def missing_hook_error(model: Any, hook: str) -> CapabilityError:
    """The error for an operation whose hook a model class does not define."""
    return CapabilityError(
        f"{type(model).__name__} does not support this operation, as its class does not define {hook}.",
        hint=f"Define {hook}, or use another model.",
    )


def validate_levels(level: Any) -> list[float]:
    """Validate one or more levels, between 0 and 100; return them sorted, without duplicates.

    >>> validate_levels([95, 80, 80]), validate_levels(80), validate_levels(None)
    ([80, 95], [80], [])
    """
    levels = sorted(set(_validate_numbers(level, "level", 0, 100)))
    if levels and level_probabilities(levels[-1])[1] >= 1:
        raise ParameterError(
            f"`level` must be below 100 by more than the rounding error of float64, got {levels[-1]!r}.", parameter="level"
        )
    if levels and levels[0] < 1:
        low = levels[0]
        warn(
            f"`level` is in percent: an interval of level {low:g} covers {low:g} % of the values. "
            f"Pass {100 * low:g} for {100 * low:g} %."
        )
    return levels


def validate_quantiles(quantiles: Any) -> list[float]:
    """Validate one or more probabilities, between 0 and 1; return them sorted, without duplicates."""
    return sorted(set(_validate_numbers(quantiles, "quantiles", 0, 1)))


validate_horizon = partial(validate_integer, name="horizon", maximum=MAX_HORIZON)
"""Validate a positive number of steps; `name` is that of the argument."""


def level_probabilities(level: float) -> tuple[float, float]:
    """The probabilities of the lower and the upper bound of a central interval, e.g. 0.1 and 0.9 for level 80."""
    return (100 - level) / 200, (100 + level) / 200


def output_columns(
    forecast: Forecast, name: str, point: str, levels: Sequence[float], quantiles: Sequence[float]
) -> dict[str, Floats]:
    """The forecast columns by name (see `column_names`), each flat over series and steps."""
    columns = {name: forecast.point(point).reshape(-1)}
    probabilities = [probability for level in levels for probability in level_probabilities(level)] + list(quantiles)
    if probabilities:
        labels = column_names(name, levels, quantiles)[1:]  # in the order of `probabilities`
        flat_quantiles = np.moveaxis(forecast.quantiles(probabilities), -1, 0).reshape(len(labels), -1)
        columns.update(zip(labels, flat_quantiles, strict=True))
    return columns


def column_names(name: str, levels: Sequence[float], quantiles: Sequence[float] = ()) -> list[str]:
    """Names of the forecast columns of a model.

    >>> column_names("Naive", [80], [0.1])
    ['Naive', 'Naive-lo-80', 'Naive-hi-80', 'Naive-q-0.1']
    """
    interval_names = [column for _, *columns in interval_columns(name, levels) for column in columns]
    return [name, *interval_names, *(f"{name}-q-{format_number(probability)}" for probability in quantiles)]


def refuse_duplicate_columns(new: Iterable[str], existing: Iterable[str]) -> None:
    """Raise `ParameterError` if two columns of the forecast would have the same name."""
    names = [*existing, *new]
    if len(set(names)) < len(names):
        duplicates = list(dict.fromkeys(name for position, name in enumerate(names) if name in names[:position]))
        raise ParameterError(
            f"Columns of a forecast must have different names, but these are repeated: {format_list(duplicates)}.",
            hint="Pass another alias=, or rename the column of the frame.",
        )


def interval_columns(name: str, levels: Sequence[float]) -> list[tuple[float, str, str]]:
    """(level, name of the lower column, name of the upper column) per level."""
    return [(level, f"{name}-lo-{format_number(level)}", f"{name}-hi-{format_number(level)}") for level in levels]


def _validate_numbers(value_or_list: Any, name: str, low: float, high: float) -> list[float]:
    """The numbers as a list, in their order; raises unless all are between `low` and `high` (exclusive). None: no numbers."""
    if value_or_list is None:
        return []
    is_list = hasattr(value_or_list, "__iter__") and not isinstance(value_or_list, (str, bytes, Mapping))
    values = list(value_or_list) if is_list else [value_or_list]
    for value in values:
        is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not (is_number and low < value < high):
            message = f"`{name}` must be between {low} and {high} (exclusive), got {format_value(value)}."
            if is_number:
                raise ParameterError(message, parameter=name, value=value)
            hint = f"Pass a number or a list of numbers, not {type(value).__name__}."
            raise ParameterTypeError(message, hint=hint, parameter=name, value=value)
    return values


def seeded_normal(seed: int, keys: Floats, shape: tuple[int, ...]) -> Floats:
    """Draw standard normal numbers, shape (len(keys), *shape); each row of `keys` identifies a series by its values.

    Equal rows get equal draws, others independent ones. Draws with a longer first axis extend those
    with a shorter one. Global random generators are not used.

    Examples
    --------
    >>> seeded_normal(0, np.array([[1.0], [2.0], [1.0]]), (1,)).round(2)
    array([[0.17],
           [0.68],
           [0.17]])
    """
    seed_value = validate_integer(seed, "seed", minimum=0, maximum=2**64 - 1)
    keys = np.ascontiguousarray(keys + 0.0)  # -0.0 is 0.0
    draws = np.empty((len(keys), *shape))
    for row, key in zip(draws, keys, strict=True):
        digest = int.from_bytes(blake2b(key.tobytes(), digest_size=8).digest(), "little")
        np.random.Generator(np.random.Philox(key=[seed_value, digest])).standard_normal(out=row)
    return draws


# --- explanations -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention weights of one layer; those of each query sum to 1 over the keys.

    Time steps are numbered from the last observation of each series: 0 is the last one, 1 the first
    step ahead. `cutoff` is the last step the model had seen: 0, or later where a horizon longer
    than that of the fit is forecast in blocks. Queries and keys before `first_rows` are padding.
    Weights of a variable selection have `variables` in place of keys.
    """

    kind: str  # "cross": steps ahead attend to the window; "self": steps attend to each other; "... variables"
    layer: int
    cutoff: int
    weights: NDArray[np.float32]  # (series, heads, queries, keys)
    queries: Ints  # (queries,)
    keys: Ints  # (keys,)
    first_rows: Ints  # (series,): the first observation of each
    variables: tuple[str, ...] = ()

    def pair_mask(self) -> NDArray[np.bool_]:
        """Mask of the pairs that are not padding, (series, queries, keys)."""
        first_row = self.first_rows[:, None]
        if self.variables:
            return np.repeat((self.queries >= first_row)[:, :, None], len(self.variables), axis=2)
        return (self.queries >= first_row)[:, :, None] & (self.keys >= first_row)[:, None, :]

    def n_rows(self) -> int:
        """Number of rows of the frame."""
        return int(self.pair_mask().sum()) * int(self.weights.shape[1])


def explain_forecast(model: Forecaster, steps: int, frame: Frame | None, future: Frame | None, static: Frame | None) -> Frame:
    """The frame that `Forecaster.explain` returns.

    Columns of attention weights: `cutoff` is the timestamp of the last observation seen, `step`
    the query, counted from it (from 1 for steps ahead, up to 0 in the window), the time column its
    timestamp, and `lag` the timestamp of the key. `kind` is "cross" for steps ahead attending to
    the window, "self" otherwise; `layer` and `head` count from 0. The input of each decoder step is
    the forecast of the previous one (greedy decoding).
    """
    if not model.capabilities.explains:
        raise CapabilityError(
            f"{model.name} cannot explain its forecasts.", hint="Use a model whose capabilities.explains is True."
        )
    state = model._state_for_frame(frame, static)
    covariates = model._future_covariates(state, steps, future)
    if state.fallback is not None:
        others = np.setdiff1d(np.arange(len(state.all_series)), state.fallback.fitted)
        if len(others):
            warn(
                f"{model.name} cannot explain forecasts of series that it could not fit, which are left out: "
                f"{state.all_series.labels(others)}.",
                subject=model.name,
            )
    attention_maps = model._attention_maps(state.learned_with_series, steps, covariates)
    if attention_maps:
        return _attention_frame(model, state, attention_maps)
    components = dict(model._explain(state.learned_with_series, steps, covariates))
    if model.bounds is not None:  # the effect of clipping
        total: Floats = np.sum(list(components.values()), axis=0)
        components[unused_name("bounds", components)] = np.clip(total, *resolve_bounds(model.bounds)) - total
    return _component_frame(state, steps, components)


def unused_name(name: str, used_names: Collection[str]) -> str:
    """`name` with as many underscores appended as needed to be different from the used names.

    Examples
    --------
    >>> unused_name("calendar", ["y", "calendar"])
    'calendar_'
    """
    return name if name not in used_names else unused_name(f"{name}_", used_names)


def refuse_large_frame(n_rows: int, name: str, n_series: int) -> None:
    """Raise if a frame of attention weights would have more than MAX_ATTENTION_ROWS rows."""
    if n_rows > MAX_ATTENTION_ROWS:
        max_series = max(n_series * MAX_ATTENTION_ROWS // n_rows, 1)
        raise DataError(
            f"A frame of attention weights must have at most {MAX_ATTENTION_ROWS:,} rows, but that of {name} would have {n_rows:,} for "
            f"{n_series} series, one per query, key, head and layer.",
            hint=f"Pass fewer series at a time (about {max_series} here): explain(frame=...).",
        )


def _component_frame(state: State, steps: int, components: Mapping[str, Floats]) -> Frame:
    """The frame of forecast components, ordered by series, step and component."""
    columns = state.series.key_columns(
        np.repeat(state.series.calendar.next_positions(state.series.last, steps), len(components), axis=1)
    )
    refuse_duplicate_columns(["component", "value"], columns)
    columns["component"] = np.array(list(components) * (len(state.series) * steps), dtype=object)
    columns["value"] = np.stack(list(components.values()), axis=-1).reshape(-1)
    return frames.build(state.series.library, columns)


def _attention_frame(model: Forecaster, state: State, attention_maps: Sequence[AttentionMap]) -> Frame:
    """The frame of attention weights, ordered by series."""
    series = state.series
    refuse_large_frame(sum(attention_map.n_rows() for attention_map in attention_maps), model.name, len(series))
    flat_maps = [_flatten_map(attention_map) for attention_map in attention_maps]
    flat_columns = [np.concatenate(parts) for parts in zip(*flat_maps, strict=True)]
    order = np.argsort(flat_columns[0], kind="stable") if len(attention_maps) > 1 else slice(None)
    series_index, cutoff, query, key, layer, head, weight, kind, variable = (values[order] for values in flat_columns)
    first_step = min(int(steps.min()) for steps in (cutoff, query, key))
    last_step = max(int(steps.max()) for steps in (cutoff, query, key))
    calendar, all_steps = series.calendar, np.arange(first_step, last_step + 1)
    timestamps = calendar.timestamps((series.last[:, None] + calendar.step * all_steps).reshape(-1)).reshape(len(series), -1)

    def time_column(name: str, steps: Ints) -> Any:
        return key_columns.time_column(name, timestamps[series_index, steps - first_step], calendar.time, series.library)

    columns: dict[str, Any] = {}
    if series.columns.id is not None and series.ids is not None:
        columns[series.columns.id] = series.ids[series_index]
    columns[series.columns.time] = time_column(series.columns.time, query)
    refuse_duplicate_columns(ATTENTION_COLUMNS, columns)
    columns |= {"cutoff": time_column("cutoff", cutoff), "step": query - cutoff, "lag": time_column("lag", key)}
    columns |= {"kind": kind, "layer": layer, "head": head, "weight": weight}
    if any(attention_map.variables for attention_map in attention_maps):
        refuse_duplicate_columns(["variable"], columns)
        columns["variable"] = variable
    return frames.build(series.library, columns)


def _flatten_map(attention_map: AttentionMap) -> tuple[Any, ...]:
    """Arrays with one element per pair that is not padding: series, cutoff, query, key, layer, head, weight, kind, variable.

    The key of a variable is the time step itself; the variable of a time step is "".
    """
    mask = np.broadcast_to(attention_map.pair_mask()[:, None], attention_map.weights.shape)
    series_index, head, query, key = np.nonzero(mask)
    ones = np.full(len(series_index), 1, dtype=np.int64)
    names = np.array([*attention_map.variables, ""], dtype=object)
    return (
        series_index,
        ones * attention_map.cutoff,
        attention_map.queries[query],
        attention_map.queries[query] if attention_map.variables else attention_map.keys[key],
        ones * attention_map.layer,
        head,
        attention_map.weights[mask].astype(np.float64),
        np.full(len(ones), attention_map.kind, dtype=object),
        names[key if attention_map.variables else 0 * key],
    )
