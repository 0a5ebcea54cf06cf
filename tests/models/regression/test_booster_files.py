"""Descriptions of boosted trees from a file: whole ones pass to the bit, all others are refused before a library sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deepforecast import LightGBM, XGBoost
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.errors import DataError
from deepforecast.models.regression._booster_files import strip_text, validate_lightgbm, validate_xgboost
from tests.models.regression.promoted import sales

ROLES = {"future": ["promotion", "weather"]}


@pytest.fixture(scope="module")
def text() -> str:
    pytest.importorskip("lightgbm", reason="the package lightgbm is not installed")
    model = LightGBM(horizon=3, n_estimators=5, num_leaves=5, min_child_samples=5).fit(sales(2, 60)[0], columns=ROLES)
    return strip_text(model.state_.learned["regressors"].models[0][0].model_to_string())


@pytest.fixture(scope="module")
def raw() -> bytes:
    pytest.importorskip("xgboost", reason="the package xgboost is not installed")
    model = XGBoost(horizon=3, n_estimators=5, max_depth=3).fit(sales(2, 60)[0], columns=ROLES)
    return bytes(model._serialize_regressor(model.state_.learned["regressors"].models[0][0], SkopsSerializer())["trees"])


def test_whole_trees_pass(text: str, raw: bytes) -> None:
    assert validate_lightgbm(text) == text
    assert validate_xgboost(raw) == raw
    assert "cat_boundaries" in text
    assert json.loads(raw)["learner"]["gradient_booster"]["model"]["trees"][0]["categories_nodes"] is not None


POISSON = {"options": {"objective": "poisson"}, "differences": None, "scale": False}


@pytest.mark.parametrize("given", [{"min_child_samples": 5000}, POISSON], ids=["no split", "poisson"])
def test_what_is_left_of_the_text_forecasts_the_same(given: dict[str, Any]) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="the package lightgbm is not installed")
    history = sales(2, 60)[0]
    booster = LightGBM(horizon=3, n_estimators=8, **given).fit(history, columns=ROLES).state_.learned["regressors"].models[0][0]
    rows = np.random.default_rng(0).normal(size=(50, booster.num_feature()))
    kept = strip_text(booster.model_to_string())
    assert "num_threads" not in kept  # nothing of the machine
    np.testing.assert_array_equal(lightgbm.Booster(model_str=validate_lightgbm(kept)).predict(rows), booster.predict(rows))


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        (r"left_child=-?\d+", "left_child=4000"),
        (r"left_child=-?\d+", "left_child=0"),
        (r"right_child=-?\d+", "right_child=-4000"),
        (r"split_feature=\d+", "split_feature=999"),
        (r"split_feature=\d+", "split_feature=-1"),
        (r"num_leaves=\d+", "num_leaves=3"),
        (r"num_leaves=\d+", "num_leaves=999999999"),
        (r"cat_boundaries=0 \d+", "cat_boundaries=0 4000"),
        (r"cat_boundaries=0", "cat_boundaries=1"),
        (r"is_linear=0", "is_linear=1"),
        (r"max_feature_idx=\d+", "max_feature_idx=3"),
        (r"num_class=1", "num_class=7"),
        (r"num_tree_per_iteration=1", "num_tree_per_iteration=2"),
        (r"label_index=0", "label_index=0\ntree_sizes=5 5 5 5 5"),
        (r"leaf_value=\S+", "leaf_value=x"),
        (r"leaf_value=\S+", "leaf_value="),
        (r"Tree=1", "Tree=7"),
        (r"shrinkage=1", "shrinkage=1\nshrinkage=1"),
        (r"decision_type=\d+", "decision_type=64"),
        (r"end of trees", "end of trees\n\nparameters:\n[machines: x]\nend of parameters"),
    ],
    ids=lambda one: one.replace("\n", " "),
)
def test_a_text_that_leads_elsewhere_is_refused(text: str, pattern: str, wrong: str) -> None:
    broken = re.sub(pattern, wrong, text, count=1)
    assert broken != text
    with pytest.raises(DataError, match=r"trees in the file are invalid"):
        validate_lightgbm(broken)


def _tree(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda said: change(said["learner"]["gradient_booster"]["model"]["trees"][0])


@pytest.mark.parametrize(
    "change",
    [
        _tree(lambda tree: tree["left_children"].__setitem__(0, 4000)),
        _tree(lambda tree: tree["left_children"].__setitem__(0, 0)),
        _tree(lambda tree: tree["right_children"].__setitem__(0, -7)),
        _tree(lambda tree: tree["right_children"].__setitem__(0, 1.5)),
        _tree(lambda tree: tree["split_indices"].__setitem__(0, 999)),
        _tree(lambda tree: tree["parents"].__setitem__(1, 4000)),
        _tree(lambda tree: tree["split_conditions"].pop()),
        _tree(lambda tree: tree["split_type"].__setitem__(0, 1 - tree["split_type"][0])),
        _tree(lambda tree: tree["categories"].append(3)),
        _tree(lambda tree: tree["categories"].__setitem__(0, 1 << 31) if tree["categories"] else tree.clear()),
        _tree(lambda tree: tree["tree_param"].update(num_nodes="100000")),
        _tree(lambda tree: tree["tree_param"].update(size_leaf_vector="5")),
        lambda said: said["learner"]["learner_model_param"].update(num_feature="3"),
        lambda said: said["learner"]["learner_model_param"].update(num_target="9"),
        lambda said: said["learner"]["gradient_booster"].update(name="dart"),
        lambda said: said["learner"]["gradient_booster"]["model"]["trees"].pop(),
        lambda said: said["learner"]["gradient_booster"]["model"].update(tree_info=[9] * 5),
        lambda said: said["learner"]["gradient_booster"]["model"].update(iteration_indptr=[0, 9, 5]),
        lambda said: said.pop("learner"),
    ],
)
def test_a_description_that_leads_elsewhere_is_refused(raw: bytes, change: Callable[[dict[str, Any]], Any]) -> None:
    said = json.loads(raw)
    change(said)
    with pytest.raises(DataError, match=r"trees in the file are invalid"):
        validate_xgboost(json.dumps(said).encode())


def test_what_is_no_description_is_refused() -> None:
    for wrong in (b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"learner": 3}'):
        with pytest.raises(DataError, match=r"trees in the file are invalid"):
            validate_xgboost(wrong)
    for text in ("", "tree", "tree\nversion=v4\nend of trees\n\npandas_categorical:null\n"):
        with pytest.raises(DataError, match=r"trees in the file are invalid"):
            validate_lightgbm(text)


def test_rows_of_other_columns_are_refused(raw: bytes) -> None:
    model = XGBoost()
    regressor = model._deserialize_regressor({"trees": np.frombuffer(raw, dtype=np.uint8)}, SkopsSerializer())
    with pytest.raises(DataError, match="features"):
        model._predict_rows(regressor, np.zeros((2, 3)))


def test_a_category_split_has_no_threshold_that_json_does_not_know() -> None:
    """XGBoost before 3 writes NaN there."""

    class Old:
        def save_raw(self, kind: str) -> bytes:
            return b'{"split_conditions":[NaN,1E0,NaN],"default_left":[0]}'

    written = bytes(XGBoost()._serialize_regressor(Old(), SkopsSerializer())["trees"])
    assert written == b'{"split_conditions":[0E0,1E0,0E0],"default_left":[0]}'
