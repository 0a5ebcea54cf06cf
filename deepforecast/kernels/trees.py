"""Values of regression trees that are held as flat arrays: what many trees say of each row, added up."""

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
    """Add to `totals` (rows, outputs) the `value` (nodes, outputs) of the leaf that each row falls into, tree after tree.

    Tree t has the nodes from `first[t]` to `first[t + 1]`, its root the first of them. `nodes` are of each its column (-1: a
    leaf), the threshold up to which a row goes left, the nodes to the left and right, whether a missing value goes left, and of
    a split of categories its row in `lefts` (1: the code goes left, 0: right, -1 and beyond its width: as if missing).
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
