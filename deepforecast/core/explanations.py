"""`explain`: a forecast taken apart into components, or the weights of attention, as a tidy frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.forecast import refuse_duplicate_columns
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import CapabilityError, DataError

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State

MAX_ROWS = 5_000_000  # of a frame of weights: about half a gigabyte
ATTENTION_COLUMNS = ("cutoff", "step", "lag", "kind", "layer", "head", "weight")


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Where a layer of a model looked: each query's weights over the keys add up to 1.

    Rows are counted from each series' last one: 0 is that, 1 the first step ahead. `cutoff`: the row up to which the model had
    seen when it looked, 0, or later where a horizon longer than learned is walked on in blocks. `first_rows`: the keys and queries
    of a series that there are; those before its first value are not.
    """

    kind: str  # "cross": steps look at the window; "self": rows among themselves
    layer: int
    cutoff: int
    weights: NDArray[np.float32]  # (series, heads, queries, keys)
    queries: Ints  # (queries,)
    keys: Ints  # (keys,)
    first_rows: Ints  # (series,): the first row of each

    def pair_mask(self) -> NDArray[np.bool_]:
        """Which query and key there are, (series, queries, keys)."""
        first_row = self.first_rows[:, None]
        return (self.queries >= first_row)[:, :, None] & (self.keys >= first_row)[:, None, :]

    def n_rows(self) -> int:
        """Rows of the frame."""
        first_row = self.first_rows[:, None]
        queries, keys = ((rows >= first_row).sum(axis=1) for rows in (self.queries, self.keys))
        return int((queries * keys).sum()) * int(self.weights.shape[1])


def explain_forecast(model: Forecaster, steps: int, frame: Frame | None, future: Frame | None, static: Frame | None) -> Frame:
    """The frame `explain` gives: components, or the weights of a model with attention.

    Weights: `cutoff` is the stamp up to which the model had seen, `step` the row that looked, counted from it (a step ahead
    from 1 on, a row of the window up to 0), the time column its stamp; `lag` is the stamp of the row that was looked at. `kind`
    is "cross" where steps ahead look at the window, "self" where rows look among themselves; `layer` and `head` count from 0.
    Each step is told the forecast of the one before, as in a greedy forecast.
    """
    if not model.capabilities.explains:
        raise CapabilityError(
            f"{model.name} has no components to show, and no attention. Ask a model whose capabilities.explains is True."
        )
    state = model._state_for_frame(frame, static)
    covariates = model._future_covariates(state, steps, future)
    attention_maps = model._attention_maps(state.learned_with_series, steps, covariates)
    if attention_maps:
        return _attention_frame(model, state, attention_maps)
    return _component_frame(state, steps, model._explain(state.learned_with_series, steps, covariates))


def refuse_large_frame(rows: int, name: str, series: int) -> None:
    """Weights are many: of more rows than a frame should have, say how to get fewer."""
    if rows > MAX_ROWS:
        max_series = max(series * MAX_ROWS // rows, 1)
        raise DataError(
            f"A frame of weights has at most {MAX_ROWS:,} rows; {rows:,} is what {name} has for {series} series: a row for "
            f"each query, key, head and layer. Explain fewer series at a time (about {max_series} here) by explain(frame=...)."
        )


def _component_frame(state: State, steps: int, components: Mapping[str, Floats]) -> Frame:
    columns = state.series.key_columns(np.repeat(state.series.calendar.next_positions(state.series.last, steps), len(components), axis=1))
    refuse_duplicate_columns(["component", "value"], columns)
    columns["component"] = np.array(list(components) * (len(state.series) * steps), dtype=object)
    columns["value"] = np.stack(list(components.values()), axis=-1).reshape(-1)
    return frames.build(state.series.library, columns)


def _attention_frame(model: Forecaster, state: State, attention_maps: Sequence[AttentionMap]) -> Frame:
    """Series by series, as they were given within each."""
    series = state.series
    refuse_large_frame(sum(attention_map.n_rows() for attention_map in attention_maps), model.name, len(series))
    flat_maps = [_flatten_map(attention_map) for attention_map in attention_maps]
    series_index, cutoff, query, key, layer, head, weight, cross = (np.concatenate(attention_map) for attention_map in zip(*flat_maps, strict=True))
    order = np.argsort(series_index, kind="stable") if len(attention_maps) > 1 else slice(None)
    series_index, cutoff, query, key, layer, head, weight, cross = (
        attention_map[order] for attention_map in (series_index, cutoff, query, key, layer, head, weight, cross)
    )
    first, last = min(int(attention_map.min()) for attention_map in (cutoff, query, key)), max(int(attention_map.max()) for attention_map in (cutoff, query, key))
    calendar, numbers = series.calendar, np.arange(first, last + 1)
    timestamps = calendar.timestamps((series.last[:, None] + calendar.step * numbers).reshape(-1)).reshape(len(series), -1)

    def stamps(name: str, rows: Ints) -> Any:
        return frames.time_series(name, timestamps[series_index, rows - first], calendar.time, series.library)

    columns: dict[str, Any] = {}
    if series.columns.id is not None and series.ids is not None:
        columns[series.columns.id] = series.ids[series_index]
    columns[series.columns.time] = stamps(series.columns.time, query)
    refuse_duplicate_columns(ATTENTION_COLUMNS, columns)
    columns |= {"cutoff": stamps("cutoff", cutoff), "step": query - cutoff, "lag": stamps("lag", key)}
    columns |= {"kind": np.array(["self", "cross"], dtype=object)[cross], "layer": layer, "head": head, "weight": weight}
    return frames.build(series.library, columns)


def _flatten_map(attention_map: AttentionMap) -> tuple[Any, ...]:
    """Flat columns: series, cutoff, query, key, layer, head, weight, and whether it is cross-attention."""
    mask = np.broadcast_to(attention_map.pair_mask()[:, None], attention_map.weights.shape)
    series_index, head, query, key = np.nonzero(mask)
    ones = np.full(len(series_index), 1, dtype=np.int64)
    weight = attention_map.weights[mask].astype(np.float64)
    is_cross = int(attention_map.kind == "cross")
    return (series_index, ones * attention_map.cutoff, attention_map.queries[query], attention_map.keys[key], ones * attention_map.layer, head, weight,
            ones * is_cross)  # fmt: skip
