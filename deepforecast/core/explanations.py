"""Implementation of `explain`: forecast components or attention weights as a frame in long format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.forecast import refuse_duplicate_columns, resolve_bounds
from deepforecast.data import frames, key_columns
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import CapabilityError, DataError, warn

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State

MAX_ROWS = 5_000_000  # of a frame of attention weights: about half a gigabyte
ATTENTION_COLUMNS = ("cutoff", "step", "lag", "kind", "layer", "head", "weight")


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention weights of one layer; those of each query sum to 1 over the keys.

    Time steps are numbered from the last observation of each series: 0 is the last one, 1 the first
    step ahead. `cutoff` is the last step the model had seen: 0, or later where a horizon longer
    than that of the fit is forecast in blocks. Queries and keys before `first_rows` are padding.
    """

    kind: str  # "cross": steps ahead attend to the window; "self": steps attend to each other
    layer: int
    cutoff: int
    weights: NDArray[np.float32]  # (series, heads, queries, keys)
    queries: Ints  # (queries,)
    keys: Ints  # (keys,)
    first_rows: Ints  # (series,): the first observation of each

    def pair_mask(self) -> NDArray[np.bool_]:
        """Mask of the pairs that are not padding, (series, queries, keys)."""
        first_row = self.first_rows[:, None]
        return (self.queries >= first_row)[:, :, None] & (self.keys >= first_row)[:, None, :]

    def n_rows(self) -> int:
        """Number of rows of the frame."""
        first_row = self.first_rows[:, None]
        queries, keys = ((rows >= first_row).sum(axis=1) for rows in (self.queries, self.keys))
        return int((queries * keys).sum()) * int(self.weights.shape[1])


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
        covariates = state.fallback.of_fitted(covariates)
    attention_maps = model._attention_maps(state.learned_with_series, steps, covariates)
    if attention_maps:
        return _attention_frame(model, state, attention_maps)
    components = dict(model._explain(state.learned_with_series, steps, covariates))
    if model.bounds is not None:  # the effect of clipping
        total: Floats = np.sum(list(components.values()), axis=0)
        name = "bounds" if "bounds" not in components else "bounds_"
        components[name] = np.clip(total, *resolve_bounds(model.bounds)) - total
    return _component_frame(state, steps, components)


def refuse_large_frame(n_rows: int, name: str, n_series: int) -> None:
    """Raise if a frame of attention weights would have more than MAX_ROWS rows."""
    if n_rows > MAX_ROWS:
        max_series = max(n_series * MAX_ROWS // n_rows, 1)
        raise DataError(
            f"A frame of attention weights must have at most {MAX_ROWS:,} rows, but that of {name} would have {n_rows:,} for "
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
    series_index, cutoff, query, key, layer, head, weight, is_cross = (values[order] for values in flat_columns)
    first_step = min(int(steps.min()) for steps in (cutoff, query, key))
    last_step = max(int(steps.max()) for steps in (cutoff, query, key))
    calendar, all_steps = series.calendar, np.arange(first_step, last_step + 1)
    timestamps = calendar.timestamps((series.last[:, None] + calendar.step * all_steps).reshape(-1)).reshape(len(series), -1)

    def time_column(name: str, steps: Ints) -> Any:
        return key_columns.time_series(name, timestamps[series_index, steps - first_step], calendar.time, series.library)

    columns: dict[str, Any] = {}
    if series.columns.id is not None and series.ids is not None:
        columns[series.columns.id] = series.ids[series_index]
    columns[series.columns.time] = time_column(series.columns.time, query)
    refuse_duplicate_columns(ATTENTION_COLUMNS, columns)
    columns |= {"cutoff": time_column("cutoff", cutoff), "step": query - cutoff, "lag": time_column("lag", key)}
    columns |= {"kind": np.array(["self", "cross"], dtype=object)[is_cross], "layer": layer, "head": head, "weight": weight}
    return frames.build(series.library, columns)


def _flatten_map(attention_map: AttentionMap) -> tuple[Any, ...]:
    """Arrays with one element per pair that is not padding: series, cutoff, query, key, layer, head, weight, 1 if "cross"."""
    mask = np.broadcast_to(attention_map.pair_mask()[:, None], attention_map.weights.shape)
    series_index, head, query, key = np.nonzero(mask)
    ones = np.full(len(series_index), 1, dtype=np.int64)
    weight = attention_map.weights[mask].astype(np.float64)
    is_cross = int(attention_map.kind == "cross")
    return (
        series_index,
        ones * attention_map.cutoff,
        attention_map.queries[query],
        attention_map.keys[key],
        ones * attention_map.layer,
        head,
        weight,
        ones * is_cross,
    )
