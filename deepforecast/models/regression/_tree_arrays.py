"""Trees of scikit-learn as plain arrays, so that forecasts do not depend on the version of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import DataError
from deepforecast.kernels import trees as kernel


@dataclass(frozen=True)
class TreeEnsemble:
    """Concatenated trees; the prediction is multiplier * (base + sum of the leaf values of all trees).

    `tree_starts` (trees + 1,): index of the first node of each tree, then the number of nodes. One
    entry per node: `column` that it splits, -1 for a leaf; `threshold` of a numeric split; `left`
    and `right` child; `missing_left`, whether missing values go left; `table`, row of
    `category_sides` for a categorical split, else -1; `value` (nodes, outputs).

    `category_sides` (splits, codes): 1 if a category goes left, 0 if right, -1 if it was not in
    training and is treated as missing. `gains`: importance of each column. `rounds_to_float32`: rows are rounded to float32,
    as in training.
    """

    tree_starts: Ints
    column: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Any
    table: Ints
    value: Floats
    category_sides: Ints
    gains: Floats
    base: float = 0.0
    multiplier: float = 1.0
    rounds_to_float32: bool = False

    def predict(self, rows: Any) -> Floats:
        """Predictions (rows,) or, for several outputs, (rows, outputs)."""
        if rows.shape[1] != len(self.gains):
            raise DataError(
                f"The number of features must be {len(self.gains)}, as in training, got {rows.shape[1]}.",
                hint="Fit the model again.",
            )
        rows = rows.astype(np.float32) if self.rounds_to_float32 else rows
        predictions = np.full((len(rows), self.value.shape[1]), self.base)
        nodes = (self.column, self.threshold, self.left, self.right, self.missing_left, self.table)
        kernel.add_leaf_values(rows, self.tree_starts, nodes, self.value, self.category_sides, predictions)
        predictions *= self.multiplier
        return predictions[:, 0] if predictions.shape[1] == 1 else predictions

    def predict_tree(self, index: int, rows: Any) -> Floats:
        """Predictions of a single tree, without `base`."""
        tree = replace(self, tree_starts=self.tree_starts[index : index + 2], base=0.0)
        return tree.predict(rows)

    def first_trees(self, n_trees: int) -> TreeEnsemble:
        """The ensemble of the first `n_trees` trees; `gains` remain those of all trees."""
        nodes = slice(None, self.tree_starts[n_trees])
        arrays = {name: getattr(self, name)[nodes] for name in (*kernel.NODES, "value")}
        return replace(self, tree_starts=self.tree_starts[: n_trees + 1], **arrays)

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TreeEnsemble:
        """Restore from arrays; `DataError` if node indices are out of range or cyclic, as the kernel has no bounds checks."""
        trees = cls(**stored)
        n_nodes, is_inner = len(trees.column), trees.column >= 0
        tree_ends = np.repeat(trees.tree_starts[1:], np.maximum(np.diff(trees.tree_starts), 0))  # of the tree of each node
        is_valid = (
            all(len(getattr(trees, name)) == n_nodes for name in (*kernel.NODES, "value"))
            and trees.value.ndim == trees.category_sides.ndim == 2
            and len(tree_ends) == n_nodes
            and (np.diff(trees.tree_starts) > 0).all()
            and trees.tree_starts[0] == 0
            and (trees.column < len(trees.gains)).all()
            and all(
                (child > np.arange(n_nodes))[is_inner].all() and (child < tree_ends)[is_inner].all()
                for child in (trees.left, trees.right)
            )
            and (trees.table < len(trees.category_sides)).all()
        )
        if not is_valid:
            raise DataError(
                "The trees in the file are invalid: every inner node must have two children with larger indices in the same "
                "tree, and all arrays must have the same length.",
                hint="Save the model again.",
            )
        return trees


def from_boosting(model: Any, categories: Sequence[int], n_columns: int) -> TreeEnsemble:
    """Convert a fitted HistGradientBoostingRegressor.

    scikit-learn moves the columns `categories` to the front and numbers the categories of each by
    rank; both are undone here, so that rows of the feature matrix can be passed as they are.
    """
    order = [*categories, *(position for position in range(n_columns) if position not in set(categories))]
    category_codes = _category_codes(model, categories)
    predictors = [predictor[0] for predictor in model._predictors]
    nodes = np.concatenate([predictor.nodes for predictor in predictors])
    tree_starts = np.cumsum([0, *(len(predictor.nodes) for predictor in predictors)])
    node_offsets = np.repeat(tree_starts[:-1], np.diff(tree_starts))
    column = np.where(nodes["is_leaf"] == 1, -1, np.array(order)[nodes["feature_idx"]])
    table_starts = np.cumsum([0, *(len(predictor.raw_left_cat_bitsets) for predictor in predictors)])
    is_categorical = (column >= 0) & (nodes["is_categorical"] == 1)
    table_offsets = np.repeat(table_starts[:-1], np.diff(tree_starts))
    table = np.where(is_categorical, nodes["bitset_idx"].astype(np.int64) + table_offsets, -1)
    n_codes = max([0, *(int(codes[-1]) + 1 for codes in category_codes.values() if len(codes))])
    category_sides = np.full((table_starts[-1], n_codes), -1)
    bits = np.concatenate([predictor.raw_left_cat_bitsets for predictor in predictors])  # 32 categories per integer
    for node in np.flatnonzero(is_categorical):
        codes = category_codes[int(column[node])]
        position = np.arange(len(codes))
        category_sides[table[node], codes] = bits[table[node]][position // 32] >> (position % 32).astype(np.uint32) & 1
    gains = np.bincount(column[column >= 0], nodes["gain"][column >= 0], minlength=n_columns).astype(np.float64)
    return TreeEnsemble(
        tree_starts=tree_starts,
        column=column,
        threshold=nodes["num_threshold"].astype(np.float64),
        left=nodes["left"].astype(np.int64) + node_offsets,
        right=nodes["right"].astype(np.int64) + node_offsets,
        missing_left=nodes["missing_go_to_left"] == 1,
        table=table,
        value=nodes["value"].astype(np.float64)[:, None],
        category_sides=category_sides,
        gains=gains,
        base=float(np.ravel(model._baseline_prediction)[0]),
    )


def _category_codes(model: Any, categories: Sequence[int]) -> dict[int, Ints]:
    """For each categorical column, the sorted codes that occurred in training."""
    if not len(categories):
        return {}
    encoder_categories = model._preprocessor.named_transformers_["encoder"].categories_
    return {
        position: codes[np.isfinite(codes)].astype(np.int64)
        for position, codes in zip(categories, encoder_categories, strict=True)
    }


def from_forest(model: Any) -> TreeEnsemble:
    """Convert a fitted RandomForestRegressor, whose prediction is the mean of its trees."""
    trees = [tree.tree_ for tree in model.estimators_]
    tree_starts = np.cumsum([0, *(tree.node_count for tree in trees)])
    node_offsets = np.repeat(tree_starts[:-1], np.diff(tree_starts))
    column = np.concatenate([tree.feature for tree in trees]).astype(np.int64)
    return TreeEnsemble(
        tree_starts=tree_starts,
        column=np.maximum(column, -1),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=np.concatenate([tree.children_left for tree in trees]) + node_offsets,
        right=np.concatenate([tree.children_right for tree in trees]) + node_offsets,
        missing_left=np.concatenate([tree.missing_go_to_left for tree in trees]) == 1,
        table=np.full(len(column), -1),
        value=np.ascontiguousarray(np.concatenate([tree.value[:, :, 0] for tree in trees])),
        category_sides=np.empty((0, 0), np.int64),
        gains=model.feature_importances_,
        multiplier=1 / len(trees),
        rounds_to_float32=True,
    )
