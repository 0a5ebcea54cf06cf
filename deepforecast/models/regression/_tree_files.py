"""What boosted trees are written down as, checked before a library reads it: a parser in C++ takes the numbers it is given for
places in memory, so none may lie outside of its tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.data.frames import Ints
from deepforecast.errors import DataError
from deepforecast.io import strict_json

NUMBER = re.compile(r"-?(\d{1,40}(\.\d{0,40})?(e[-+]?\d{1,4})?|inf|nan)")
WHOLE = re.compile(r"-?\d{1,9}")
HEAD = {
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective", "feature_names",
    "feature_infos",
}  # fmt: skip
LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
NODES = ("split_gain", "threshold", "internal_value", "internal_weight", "internal_count")
WHOLES = ("split_feature", "decision_type", "left_child", "right_child", "cat_boundaries", "cat_threshold")
TREE = {"Tree", "num_leaves", "num_cat", *LEAVES, *NODES, *WHOLES, "is_linear", "shrinkage"}
XGBOOST = ("base_weights", "default_left", "left_children", "loss_changes", "parents", "right_children", "split_conditions",
           "split_indices", "split_type", "sum_hessian")  # fmt: skip
CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


def plain(text: str) -> str:
    """The text of LightGBM without what forecasts do not need: sizes in bytes, parameters, importances in words."""
    trees = text.partition("end of trees")[0]
    return re.sub(r"^tree_sizes=.*\n", "", trees, flags=re.MULTILINE) + "end of trees\n\npandas_categorical:null\n"


def checked_text(text: str) -> str:
    """The text of LightGBM, if it is one of whole trees."""
    body, _, rest = text.partition("end of trees")
    head, *trees = [_fields(block) for block in re.split(r"\n\n+", body.strip())]
    _hold(bool(trees))
    columns = _whole(head, "max_feature_idx") + 1
    _hold(rest == "\n\npandas_categorical:null\n" and head.pop("tree", None) == head.pop("average_output", "") == "")
    _hold(set(head) == HEAD)
    _hold(all(len(head[name].split(" ")) == columns for name in ("feature_names", "feature_infos")))
    _hold([_whole(head, one) for one in ("num_class", "num_tree_per_iteration", "label_index")] == [1, 1, 0])
    _hold(all(re.fullmatch(r"[\w :.\-\[\]]*", head[name]) for name in head))
    for number, tree in enumerate(trees):
        _hold(_whole(tree, "Tree") == number and set(tree) <= TREE and tree.get("is_linear", "0") == "0")
        _check_tree(tree, columns)
    return text


def checked_json(raw: bytes) -> bytearray:
    """The description of XGBoost, if it is one of whole trees."""
    try:
        said = strict_json.decode(raw)
        learner = said["learner"]
        booster, columns = learner["gradient_booster"], int(learner["learner_model_param"]["num_feature"])
        model = booster["model"]
        trees, ends = model["trees"], _wholes(model["iteration_indptr"])
        _hold(booster["name"] == "gbtree" and set(booster) == {"name", "model"} and not any(model.get("cats", {}).values()))
        _hold(int(model["gbtree_model_param"]["num_trees"]) == len(trees) == len(model["tree_info"]) == ends[-1])
        _hold(ends[0] == 0 and bool((np.diff(ends) >= 0).all()) and not any(model["tree_info"]))
        _hold(int(learner["learner_model_param"]["num_target"]) == 1 and len(learner["feature_types"]) == columns)
        _hold(int(learner["learner_model_param"].get("num_class", 0)) == 0)
        for number, tree in enumerate(trees):
            _hold(tree["id"] == number)
            _check_nodes(tree, columns)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise _unsound() from error
    return bytearray(raw)


def _check_tree(tree: Mapping[str, str], columns: int) -> None:
    """A tree of LightGBM: places of inner nodes count from 0, those of leaves from -1 down."""
    leaves, groups = _whole(tree, "num_leaves"), _whole(tree, "num_cat")
    _hold(1 <= leaves <= 200_000 and 0 <= groups <= leaves and NUMBER.fullmatch(tree["shrinkage"]) is not None)
    for name in (*LEAVES, *NODES):
        found = tree.get(name, "").split()
        needed = leaves if name in LEAVES else leaves - 1
        _hold((len(found) == needed or (leaves == 1 and not found)) and all(NUMBER.fullmatch(one) for one in found))
    whole = {name: _integers(tree.get(name, "")) for name in WHOLES}
    inner = np.arange(leaves - 1)
    for name in ("left_child", "right_child"):
        child = whole[name]
        _hold(len(child) == leaves - 1)
        _hold(bool((((child > inner) & (child < leaves - 1)) | ((child < 0) & (child >= -leaves))).all()))
    _hold(len(whole["split_feature"]) == len(whole["decision_type"]) == leaves - 1)
    _hold(bool(((whole["split_feature"] >= 0) & (whole["split_feature"] < columns)).all()))
    _hold(bool(((whole["decision_type"] >= 0) & (whole["decision_type"] < 16)).all()))
    sets = [text for text, kind in zip(tree["threshold"].split(), whole["decision_type"], strict=True) if kind & 1]
    _hold(all(WHOLE.fullmatch(one) and 0 <= int(one) < groups for one in sets))
    bounds = whole["cat_boundaries"]
    rising = len(bounds) == groups + 1 and bounds[0] == 0 and bool((np.diff(bounds) >= 0).all())
    _hold((rising and bounds[-1] == len(whole["cat_threshold"])) if groups else not sets)


def _check_nodes(tree: Mapping[str, Any], columns: int) -> None:
    """A tree of XGBoost: -1 stands for no child."""
    sizes = {name: int(value) for name, value in tree["tree_param"].items()}
    count = sizes["num_nodes"]
    _hold(count >= 1 and sizes["num_feature"] == columns and sizes["size_leaf_vector"] == 1 and not sizes.get("num_deleted"))
    _hold(all(len(tree[name]) == count for name in XGBOOST) and set(tree) == {*XGBOOST, *CATEGORIES, "id", "tree_param"})
    left, right, index = _wholes(tree["left_children"]), _wholes(tree["right_children"]), _wholes(tree["split_indices"])
    node, inner = np.arange(count), left != -1
    for child in (left, right):
        _hold(bool(((child == -1) == ~inner).all() and ((child > node) & (child < count))[inner].all()))
    parents = _wholes(tree["parents"])
    _hold(bool((parents[1:] >= 0).all() and (parents[1:] < node[1:]).all()))
    _hold(bool(((index >= 0) & (index < columns)).all()))
    _hold(set(tree["split_type"]) <= {0, 1} and set(tree["default_left"]) <= {0, 1})
    codes, nodes, starts, lengths = (_wholes(tree[name]) for name in CATEGORIES)
    _hold(len(nodes) == len(starts) == len(lengths) and nodes.tolist() == np.flatnonzero(_wholes(tree["split_type"])).tolist())
    _hold(bool((lengths >= 0).all() and (starts == np.cumsum([0, *lengths])[:-1]).all()) and int(lengths.sum()) == len(codes))
    _hold(bool(((codes >= 0) & (codes < 1 << 24)).all()))
    for name in ("base_weights", "split_conditions", "loss_changes", "sum_hessian"):
        _hold(all(type(one) in (int, float) for one in tree[name]))


def _fields(block: str) -> dict[str, str]:
    lines = [line.partition("=") for line in block.split("\n")]
    found = {name: value for name, _, value in lines}
    _hold(len(found) == len(lines))
    return found


def _whole(fields: Mapping[str, str], name: str) -> int:
    _hold(name in fields and WHOLE.fullmatch(fields[name]) is not None)
    return int(fields[name])


def _integers(text: str) -> Ints:
    found = text.split()
    _hold(all(one.isdecimal() or WHOLE.fullmatch(one) for one in found) and all(len(one) < 12 for one in found))
    return np.array([int(one) for one in found], dtype=np.int64)


def _wholes(values: Any) -> Ints:
    _hold(isinstance(values, list) and all(type(one) is int and abs(one) < 1 << 32 for one in values))
    return np.array(values, dtype=np.int64)


def _hold(sound: bool) -> None:
    if not sound:
        raise _unsound()


def _unsound() -> DataError:
    return DataError("Trees of a file lead from node to node of theirs, down to a leaf; these do not. Save them again.")
