"""Trees of scikit-learn as plain arrays: written down as they are, they forecast alike in any version of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import DataError
from deepforecast.kernels import trees as kernel


@dataclass(frozen=True)
class Trees:
    """Trees one after the other: see `kernels.trees`. What they say is added to `base` and then multiplied by `share`.
    `gains`: what each column was worth; `coarse`: rows are rounded to float32, as the trees saw them."""

    first: Ints
    column: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Any
    table: Ints
    value: Floats
    lefts: Ints
    gains: Floats
    base: float = 0.0
    share: float = 1.0
    coarse: bool = False

    def values(self, rows: Any) -> Floats:
        """What they say of rows; of several values a row, one column each."""
        if rows.shape[1] != len(self.gains):
            raise DataError(f"The trees saw {len(self.gains)} columns, and rows have {rows.shape[1]}. Fit again.")
        rows = rows.astype(np.float32) if self.coarse else rows
        found = np.full((len(rows), self.value.shape[1]), self.base)
        nodes = (self.column, self.threshold, self.left, self.right, self.missing_left, self.table)
        kernel.add_leaf_values(rows, self.first, nodes, self.value, self.lefts, found)
        found *= self.share
        return found[:, 0] if found.shape[1] == 1 else found

    def each(self, number: int, rows: Any) -> Floats:
        """What one of the trees adds."""
        alone = replace(self, first=self.first[number : number + 2], base=0.0)
        return alone.values(rows)

    def until(self, count: int) -> Trees:
        """The first trees."""
        nodes = slice(None, self.first[count])
        held = {name: getattr(self, name)[nodes] for name in (*kernel.NODES, "value")}
        return replace(self, first=self.first[: count + 1], **held)

    def written(self) -> dict[str, Any]:
        """As arrays and numbers."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Trees:
        """Back from them; whatever would lead out of an array, or round in a circle, is refused."""
        found = cls(**said)
        nodes, inner = len(found.column), found.column >= 0
        ends = np.repeat(found.first[1:], np.maximum(np.diff(found.first), 0))
        sound = (
            all(len(getattr(found, name)) == nodes for name in (*kernel.NODES, "value"))
            and found.value.ndim == found.lefts.ndim == 2
            and len(ends) == nodes
            and (np.diff(found.first) > 0).all()
            and found.first[0] == 0
            and (found.column < len(found.gains)).all()
            and all((to > np.arange(nodes))[inner].all() and (to < ends)[inner].all() for to in (found.left, found.right))
            and (found.table < len(found.lefts)).all()
        )
        if not sound:
            raise DataError("Trees of a file lead from node to node of theirs, down to a leaf; these do not. Save them again.")
        return found


def of_boosting(model: Any, categories: Sequence[int], columns: int) -> Trees:
    """The trees of scikit-learn's histogram boosting. Its columns of categories stand first, numbered in the
    order of their codes."""
    order = [*categories, *(place for place in range(columns) if place not in set(categories))]
    known = _codes(model, categories)
    grown = [one[0] for one in model._predictors]
    nodes = np.concatenate([one.nodes for one in grown])
    first = np.cumsum([0, *(len(one.nodes) for one in grown)])
    began = np.repeat(first[:-1], np.diff(first))
    column = np.where(nodes["is_leaf"] == 1, -1, np.array(order)[nodes["feature_idx"]])
    tables = np.cumsum([0, *(len(one.raw_left_cat_bitsets) for one in grown)])
    split = (column >= 0) & (nodes["is_categorical"] == 1)
    table = np.where(split, nodes["bitset_idx"].astype(np.int64) + np.repeat(tables[:-1], np.diff(first)), -1)
    lefts = np.full((tables[-1], max([0, *(int(codes[-1]) + 1 for codes in known.values() if len(codes))])), -1)
    bits = np.concatenate([one.raw_left_cat_bitsets for one in grown])
    for node in np.flatnonzero(split):
        codes = known[int(column[node])]
        place = np.arange(len(codes))
        lefts[table[node], codes] = bits[table[node]][place // 32] >> (place % 32).astype(np.uint32) & 1
    gains = np.bincount(column[column >= 0], nodes["gain"][column >= 0], minlength=columns).astype(np.float64)
    return Trees(
        first,
        column,
        nodes["num_threshold"].astype(np.float64),
        nodes["left"].astype(np.int64) + began,
        nodes["right"].astype(np.int64) + began,
        nodes["missing_go_to_left"] == 1,
        table,
        nodes["value"].astype(np.float64)[:, None],
        lefts,
        gains,
        float(np.ravel(model._baseline_prediction)[0]),
    )


def _codes(model: Any, categories: Sequence[int]) -> dict[int, Ints]:
    """Of each column of categories the codes it was fitted with, in their order."""
    if not len(categories):
        return {}
    held = model._preprocessor.named_transformers_["encoder"].categories_
    return {place: one[np.isfinite(one)].astype(np.int64) for place, one in zip(categories, held, strict=True)}


def of_forest(model: Any) -> Trees:
    """The trees of scikit-learn's forests, whose mean is the forecast."""
    grown = [one.tree_ for one in model.estimators_]
    first = np.cumsum([0, *(one.node_count for one in grown)])
    began = np.repeat(first[:-1], np.diff(first))
    column = np.concatenate([one.feature for one in grown]).astype(np.int64)
    return Trees(
        first,
        np.maximum(column, -1),
        np.concatenate([one.threshold for one in grown]),
        np.concatenate([one.children_left for one in grown]) + began,
        np.concatenate([one.children_right for one in grown]) + began,
        np.concatenate([one.missing_go_to_left for one in grown]) == 1,
        np.full(len(column), -1),
        np.ascontiguousarray(np.concatenate([one.value[:, :, 0] for one in grown])),
        np.empty((0, 0), np.int64),
        model.feature_importances_,
        share=1 / len(grown),
        coarse=True,
    )
