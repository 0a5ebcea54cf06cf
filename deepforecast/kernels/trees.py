"""Sum of the leaf values of regression trees stored as flat arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice, compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Nodes = tuple[Ints, Floats, Ints, Ints, Bools, Ints]

NODES = ("column", "threshold", "left", "right", "missing_left", "table")


def add_leaf_values(rows: Floats, first: Ints, nodes: Nodes, value: Floats, lefts: Ints, totals: Floats) -> None:
    """Add to `totals` (rows, outputs) the leaf `value` (nodes, outputs) of every tree for each row.

    Tree t has the nodes `first[t]` to `first[t + 1]`, the first of which is its root. `nodes`:
    column (-1: leaf); threshold up to which a row goes left; left child; right child; whether
    missing values go left; for categorical splits the row of `lefts` (1: the code goes left, 0:
    right, -1 or beyond its width: as a missing value).
    """
    with compile_notice("the kernel of regression trees"):
        _add_leaf_values(np.ascontiguousarray(rows, np.float64), first, nodes, value, lefts, totals)


@compiled
def _add_leaf_values(rows: Floats, first: Ints, nodes: Nodes, value: Floats, lefts: Ints, totals: Floats) -> None:
    column, threshold, left, right, missing_left, table = nodes
    for tree in range(len(first) - 1):
        for row in range(len(rows)):
            node = first[tree]
            while column[node] >= 0:
                feature_value = rows[row, column[node]]
                if table[node] >= 0:
                    side = -1
                    if 0 <= feature_value < lefts.shape[1]:
                        side = lefts[table[node], int(feature_value)]
                    goes_left = missing_left[node] if side < 0 else side == 1
                elif np.isnan(feature_value):
                    goes_left = missing_left[node]
                else:
                    goes_left = feature_value <= threshold[node]
                node = left[node] if goes_left else right[node]
            for column_index in range(value.shape[1]):
                totals[row, column_index] += value[node, column_index]
