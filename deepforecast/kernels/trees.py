"""Predictions of ensembles of regression trees that are stored as flat arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice, compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Nodes = tuple[Ints, Floats, Ints, Ints, Bools, Ints]

NODES = ("column", "threshold", "left", "right", "missing_left", "table")  # names of the arrays of `nodes`
MISSING = -1  # side of a category that is treated as a missing value


def add_leaf_values(
    rows: Floats, tree_starts: Ints, nodes: Nodes, values: Floats, category_sides: Ints, totals: Floats
) -> None:
    """Add the leaf values (`values`: nodes, outputs) of every tree to `totals` (rows, outputs) in place.

    `rows` (rows, features). Tree t has the nodes `tree_starts[t]` to `tree_starts[t + 1]`, the first of
    which is its root. `nodes` holds arrays by node: column of the feature (-1: leaf); threshold up to which a
    row goes left; left child; right child; whether missing values go left; for categorical splits the
    row of `category_sides`, else -1. `category_sides` (splits, codes): 1 if the code goes left, 0 if
    right; -1, and codes beyond its width, are treated as missing values.
    """
    with compile_notice("regression trees"):
        _add_leaf_values(np.ascontiguousarray(rows, np.float64), tree_starts, nodes, values, category_sides, totals)


@compiled
def _add_leaf_values(
    rows: Floats, tree_starts: Ints, nodes: Nodes, values: Floats, category_sides: Ints, totals: Floats
) -> None:
    """See `add_leaf_values`; the trees are summed in order."""
    column, threshold, left, right, missing_left, table = nodes
    for tree in range(len(tree_starts) - 1):
        for row in range(len(rows)):
            node = tree_starts[tree]
            while column[node] >= 0:
                feature_value = rows[row, column[node]]
                if table[node] >= 0:
                    side = MISSING
                    if 0 <= feature_value < category_sides.shape[1]:
                        side = category_sides[table[node], int(feature_value)]
                    goes_left = missing_left[node] if side < 0 else side == 1
                elif np.isnan(feature_value):
                    goes_left = missing_left[node]
                else:
                    goes_left = feature_value <= threshold[node]
                node = left[node] if goes_left else right[node]
            for output in range(values.shape[1]):
                totals[row, output] += values[node, output]
