"""`explain`: a forecast taken apart into components, or the weights of attention, as a tidy frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.forecast import refuse_taken
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import CapabilityError, DataError

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State

MOST_ROWS = 5_000_000  # of a frame of weights: about half a gigabyte
COLUMNS = ("cutoff", "step", "lag", "kind", "layer", "head", "weight")


@dataclass(frozen=True, eq=False)
class Weights:
    """Where a layer of a model looked: each query's weights over the keys add up to 1.

    Rows are counted from each series' last one: 0 is that, 1 the first step ahead. `cutoff`: the row up to which the model had
    seen when it looked, 0, or later where a horizon longer than learned is walked on in blocks. `there`: the keys and queries
    of a series that there are; those before its first value are not.
    """

    kind: str  # "cross": steps look at the window; "self": rows among themselves
    layer: int
    cutoff: int
    weights: NDArray[np.float32]  # (series, heads, queries, keys)
    queries: Ints  # (queries,)
    keys: Ints  # (keys,)
    there: Ints  # (series,): the first row of each

    def pairs(self) -> NDArray[np.bool_]:
        """Which query and key there are, (series, queries, keys)."""
        first = self.there[:, None]
        return (self.queries >= first)[:, :, None] & (self.keys >= first)[:, None, :]

    def count(self) -> int:
        """Rows of the frame."""
        first = self.there[:, None]
        queries, keys = ((rows >= first).sum(axis=1) for rows in (self.queries, self.keys))
        return int((queries * keys).sum()) * int(self.weights.shape[1])


def explained(model: Forecaster, steps: int, frame: Frame | None, future: Frame | None, static: Frame | None) -> Frame:
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
    state = model._at_end_of(frame, static)
    known = model._ahead(state, steps, future)
    looked = model._attended(state.standing, steps, known)
    if looked:
        return _of_weights(model, state, looked)
    return _of_parts(state, steps, model._explain(state.standing, steps, known))


def refuse_large(rows: int, name: str, series: int) -> None:
    """Weights are many: of more rows than a frame should have, say how to get fewer."""
    if rows > MOST_ROWS:
        fewer = max(series * MOST_ROWS // rows, 1)
        raise DataError(
            f"A frame of weights has at most {MOST_ROWS:,} rows; {rows:,} is what {name} has for {series} series: a row for "
            f"each query, key, head and layer. Explain fewer series at a time (about {fewer} here) by explain(frame=...)."
        )


def _of_parts(state: State, steps: int, parts: Mapping[str, Floats]) -> Frame:
    columns = state.series.rows(np.repeat(state.series.calendar.following(state.series.last, steps), len(parts), axis=1))
    refuse_taken(["component", "value"], columns)
    columns["component"] = np.array(list(parts) * (len(state.series) * steps), dtype=object)
    columns["value"] = np.stack(list(parts.values()), axis=-1).reshape(-1)
    return frames.build(state.series.library, columns)


def _of_weights(model: Forecaster, state: State, looked: Sequence[Weights]) -> Frame:
    """Series by series, as they were given within each."""
    series = state.series
    refuse_large(sum(one.count() for one in looked), model.name, len(series))
    parts = [_rows(one) for one in looked]
    whose, cutoff, query, key, layer, head, weight, cross = (np.concatenate(one) for one in zip(*parts, strict=True))
    order = np.argsort(whose, kind="stable") if len(looked) > 1 else slice(None)
    whose, cutoff, query, key, layer, head, weight, cross = (
        one[order] for one in (whose, cutoff, query, key, layer, head, weight, cross)
    )
    first, last = min(int(one.min()) for one in (cutoff, query, key)), max(int(one.max()) for one in (cutoff, query, key))
    calendar, numbers = series.calendar, np.arange(first, last + 1)
    raw = calendar.stamps((series.last[:, None] + calendar.step * numbers).reshape(-1)).reshape(len(series), -1)

    def stamps(name: str, rows: Ints) -> Any:
        return frames.time_series(name, raw[whose, rows - first], calendar.time, series.library)

    columns: dict[str, Any] = {}
    if series.columns.id is not None and series.ids is not None:
        columns[series.columns.id] = series.ids[whose]
    columns[series.columns.time] = stamps(series.columns.time, query)
    refuse_taken(COLUMNS, columns)
    columns |= {"cutoff": stamps("cutoff", cutoff), "step": query - cutoff, "lag": stamps("lag", key)}
    columns |= {"kind": np.array(["self", "cross"], dtype=object)[cross], "layer": layer, "head": head, "weight": weight}
    return frames.build(series.library, columns)


def _rows(looked: Weights) -> tuple[Any, ...]:
    """Flat columns: series, cutoff, query, key, layer, head, weight, and whether it is cross-attention."""
    there = np.broadcast_to(looked.pairs()[:, None], looked.weights.shape)
    whose, head, query, key = np.nonzero(there)
    same = np.full(len(whose), 1, dtype=np.int64)
    weight = looked.weights[there].astype(np.float64)
    crossed = int(looked.kind == "cross")
    return (whose, same * looked.cutoff, looked.queries[query], looked.keys[key], same * looked.layer, head, weight,
            same * crossed)  # fmt: skip
