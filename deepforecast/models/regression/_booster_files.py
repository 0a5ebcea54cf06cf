"""Serialized boosted trees of LightGBM and XGBoost, and their validation.

The C++ parsers of the libraries use the numbers of a file as memory offsets without bounds checks.
Therefore every node index is checked before a file is passed to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core import encoding
from deepforecast.data.frames import Ints
from deepforecast.errors import DataError

MAX_LEAVES = 200_000  # per tree
MAX_CATEGORY = 1 << 24  # largest category code that float32 represents exactly
CATEGORICAL_BIT = 1  # of `decision_type`: the split is categorical, its threshold the index of a set of categories
NUMBER = re.compile(r"-?(\d{1,40}(\.\d{0,40})?(e[-+]?\d{1,4})?|inf|nan)")
INTEGER = re.compile(r"-?\d{1,9}")
HEADER_FIELDS = {
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective", "feature_names",
    "feature_infos",
}  # fmt: skip
LEAF_FIELDS = ("leaf_value", "leaf_weight", "leaf_count")
NODE_FIELDS = ("split_gain", "threshold", "internal_value", "internal_weight", "internal_count")
INTEGER_FIELDS = ("split_feature", "decision_type", "left_child", "right_child", "cat_boundaries", "cat_threshold")
TREE_FIELDS = {"Tree", "num_leaves", "num_cat", *LEAF_FIELDS, *NODE_FIELDS, *INTEGER_FIELDS, "is_linear", "shrinkage"}
XGBOOST_FIELDS = (
    "base_weights",
    "default_left",
    "left_children",
    "loss_changes",
    "parents",
    "right_children",
    "split_conditions",
    "split_indices",
    "split_type",
    "sum_hessian",
)
CATEGORY_FIELDS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


def strip_text(text: str) -> str:
    """LightGBM model text without the parts that prediction does not need."""
    trees = text.partition("end of trees")[0]
    return re.sub(r"^tree_sizes=.*\n", "", trees, flags=re.MULTILINE) + "end of trees\n\npandas_categorical:null\n"


def validate_lightgbm(text: str) -> str:
    """Return the LightGBM model text if all its trees are valid, else raise."""
    body, _, trailer = text.partition("end of trees")
    header, *trees = [_parse_fields(block) for block in re.split(r"\n\n+", body.strip())]
    _require(bool(trees))
    n_columns = _parse_integer(header, "max_feature_idx") + 1
    _require(trailer == "\n\npandas_categorical:null\n" and header.pop("tree", None) == header.pop("average_output", "") == "")
    _require(set(header) == HEADER_FIELDS)
    _require(all(len(header[name].split(" ")) == n_columns for name in ("feature_names", "feature_infos")))
    _require([_parse_integer(header, key) for key in ("num_class", "num_tree_per_iteration", "label_index")] == [1, 1, 0])
    _require(all(re.fullmatch(r"[\w :.\-\[\]]*", header[name]) for name in header))
    for index, tree in enumerate(trees):
        _require(_parse_integer(tree, "Tree") == index and set(tree) <= TREE_FIELDS and tree.get("is_linear", "0") == "0")
        _check_lightgbm_tree(tree, n_columns)
    return text


def validate_xgboost(raw: bytes) -> bytearray:
    """Return the XGBoost model description if all its trees are valid, else raise."""
    try:
        document = encoding.decode_json(raw)
        learner = document["learner"]
        booster = learner["gradient_booster"]
        n_columns = int(learner["learner_model_param"]["num_feature"])
        model = booster["model"]
        trees = model["trees"]
        iteration_ends = _checked_integers(model["iteration_indptr"])
        _require(booster["name"] == "gbtree" and set(booster) == {"name", "model"} and not any(model.get("cats", {}).values()))
        _require(int(model["gbtree_model_param"]["num_trees"]) == len(trees) == len(model["tree_info"]) == iteration_ends[-1])
        _require(iteration_ends[0] == 0 and bool((np.diff(iteration_ends) >= 0).all()) and not any(model["tree_info"]))
        _require(int(learner["learner_model_param"]["num_target"]) == 1 and len(learner["feature_types"]) == n_columns)
        _require(int(learner["learner_model_param"].get("num_class", 0)) == 0)
        for index, tree in enumerate(trees):
            _require(tree["id"] == index)
            _check_xgboost_tree(tree, n_columns)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise _invalid_trees_error() from error
    return bytearray(raw)


def _check_lightgbm_tree(tree: Mapping[str, str], n_columns: int) -> None:
    """Check array lengths and indices of a LightGBM tree: inner nodes are numbered from 0 up, leaves from -1 down.

    Every child that is an inner node must have a larger number than its parent, so that there are no cycles.
    """
    n_leaves, n_category_sets = _parse_integer(tree, "num_leaves"), _parse_integer(tree, "num_cat")
    n_inner = n_leaves - 1
    _require(1 <= n_leaves <= MAX_LEAVES and 0 <= n_category_sets <= n_leaves)
    _require(NUMBER.fullmatch(tree["shrinkage"]) is not None)
    for name in (*LEAF_FIELDS, *NODE_FIELDS):
        numbers = tree.get(name, "").split()
        n_numbers = n_leaves if name in LEAF_FIELDS else n_inner
        _require(len(numbers) == n_numbers or (n_leaves == 1 and not numbers))
        _require(all(NUMBER.fullmatch(token) for token in numbers))
    integers = {name: _parse_integers(tree.get(name, "")) for name in INTEGER_FIELDS}
    inner = np.arange(n_inner)
    for name in ("left_child", "right_child"):
        child = integers[name]
        _require(len(child) == n_inner)
        _require(bool((((child > inner) & (child < n_inner)) | ((child < 0) & (child >= -n_leaves))).all()))
    split_features, decision_types = integers["split_feature"], integers["decision_type"]
    _require(len(split_features) == len(decision_types) == n_inner)
    _require(bool(((split_features >= 0) & (split_features < n_columns)).all()))
    _require(bool(((decision_types >= 0) & (decision_types < 16)).all()))
    thresholds = zip(tree["threshold"].split(), decision_types, strict=True)
    category_sets = [threshold for threshold, decision_type in thresholds if decision_type & CATEGORICAL_BIT]
    _require(all(INTEGER.fullmatch(token) and 0 <= int(token) < n_category_sets for token in category_sets))
    if not n_category_sets:
        _require(not category_sets)
        return
    bounds = integers["cat_boundaries"]
    _require(len(bounds) == n_category_sets + 1 and bounds[0] == 0 and bool((np.diff(bounds) >= 0).all()))
    _require(bounds[-1] == len(integers["cat_threshold"]))


def _check_xgboost_tree(tree: Mapping[str, Any], n_columns: int) -> None:
    """Check array lengths and indices of an XGBoost tree; -1 marks a missing child, which all leaves have.

    Children must have larger numbers than their parents, so that there are no cycles.
    """
    sizes = {name: int(value) for name, value in tree["tree_param"].items()}
    n_nodes = sizes["num_nodes"]
    _require(n_nodes >= 1 and sizes["num_feature"] == n_columns)
    _require(sizes["size_leaf_vector"] == 1 and not sizes.get("num_deleted"))
    _require(all(len(tree[name]) == n_nodes for name in XGBOOST_FIELDS))
    _require(set(tree) == {*XGBOOST_FIELDS, *CATEGORY_FIELDS, "id", "tree_param"})
    left = _checked_integers(tree["left_children"])
    right = _checked_integers(tree["right_children"])
    split_columns = _checked_integers(tree["split_indices"])
    node, is_inner = np.arange(n_nodes), left != -1
    for child in (left, right):
        _require(bool(((child == -1) == ~is_inner).all() and ((child > node) & (child < n_nodes))[is_inner].all()))
    parents = _checked_integers(tree["parents"])
    _require(bool((parents[1:] >= 0).all() and (parents[1:] < node[1:]).all()))
    _require(bool(((split_columns >= 0) & (split_columns < n_columns)).all()))
    _require(set(tree["split_type"]) <= {0, 1} and set(tree["default_left"]) <= {0, 1})
    codes, nodes, starts, lengths = (_checked_integers(tree[name]) for name in CATEGORY_FIELDS)
    categorical_nodes = np.flatnonzero(_checked_integers(tree["split_type"]))
    _require(len(nodes) == len(starts) == len(lengths) and nodes.tolist() == categorical_nodes.tolist())
    _require(bool((lengths >= 0).all() and (starts == np.cumsum([0, *lengths])[:-1]).all()))
    _require(int(lengths.sum()) == len(codes))
    _require(bool(((codes >= 0) & (codes < MAX_CATEGORY)).all()))
    for name in ("base_weights", "split_conditions", "loss_changes", "sum_hessian"):
        _require(all(type(value) in (int, float) for value in tree[name]))


def _parse_fields(block: str) -> dict[str, str]:
    """The lines `name=value` of a block; a name must not be repeated."""
    lines = [line.partition("=") for line in block.split("\n")]
    fields = {name: value for name, _, value in lines}
    _require(len(fields) == len(lines))
    return fields


def _parse_integer(fields: Mapping[str, str], name: str) -> int:
    _require(name in fields and INTEGER.fullmatch(fields[name]) is not None)
    return int(fields[name])


def _parse_integers(text: str) -> Ints:
    """The integers of at most 11 characters in a text, separated by white space."""
    tokens = text.split()
    _require(all(token.isdecimal() or INTEGER.fullmatch(token) for token in tokens))
    _require(all(len(token) < 12 for token in tokens))
    return np.array([int(token) for token in tokens], dtype=np.int64)


def _checked_integers(values: Any) -> Ints:
    """A list of integers as an array; `DataError` for anything else."""
    _require(isinstance(values, list) and all(type(value) is int and abs(value) < 1 << 32 for value in values))
    return np.array(values, dtype=np.int64)


def _require(condition: bool) -> None:
    if not condition:
        raise _invalid_trees_error()


def _invalid_trees_error() -> DataError:
    return DataError(
        "The trees in the file are invalid: node indices, features or array lengths are inconsistent.",
        hint="Save the model again.",
    )
