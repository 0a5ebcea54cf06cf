"""Trees as arrays: they say what scikit-learn's own say, to the bit where these add in order, and lead nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from deepforecast.errors import DataError
from deepforecast.models.regression import _tree_arrays
from deepforecast.models.regression._tree_arrays import TreeEnsemble

RANDOM = np.random.default_rng(0)
CODES = [0, 2, 3, 9, 40]  # not all numbers up to the last


def rows(count: int, codes: list[int]) -> Any:
    found = RANDOM.normal(size=(count, 4))
    found[:, 2] = RANDOM.choice(codes, count)
    found[RANDOM.random(found.shape) < 0.05] = np.nan
    return found


SEEN, NEW = rows(400, CODES), rows(300, [*CODES, 1, 77, -1])
TARGET = np.nan_to_num(SEEN[:, 0]) + np.sin(5 * np.nan_to_num(SEEN[:, 2])) + (SEEN[:, 1] > 0)


@pytest.mark.parametrize("loss", [{}, {"loss": "quantile", "quantile": 0.8}], ids=["mean", "quantile"])
@pytest.mark.parametrize("categories", [[], [2]], ids=["numbers", "categories"])
def test_histogram_boosting(loss: dict[str, Any], categories: list[int]) -> None:
    model = HistGradientBoostingRegressor(max_iter=20, categorical_features=categories or None, **loss).fit(SEEN, TARGET)
    trees = TreeEnsemble.from_dict(_tree_arrays.from_boosting(model, categories, 4).to_dict())
    np.testing.assert_array_equal(trees.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(trees.first_trees(7).predict(NEW), list(model.staged_predict(NEW))[6])
    assert trees.gains.argmax() in (0, 2)


@pytest.mark.parametrize("target", [TARGET, np.stack([TARGET, -2 * TARGET], axis=1)], ids=["one", "two"])
def test_forests(target: Any) -> None:
    model = RandomForestRegressor(10, random_state=0).fit(SEEN, target)
    trees = TreeEnsemble.from_dict(_tree_arrays.from_forest(model).to_dict())
    np.testing.assert_allclose(trees.predict(NEW), model.predict(NEW), rtol=1e-12, atol=1e-14)


def test_each_tree_adds_its_part() -> None:
    trees = _tree_arrays.from_boosting(HistGradientBoostingRegressor(max_iter=3).fit(SEEN, TARGET), [], 4)
    parts = [trees.predict_tree(number, NEW) for number in range(3)]
    np.testing.assert_allclose(trees.base + sum(parts), trees.predict(NEW), rtol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        {"left": lambda one: np.where(one.column >= 0, 0, one.left)},  # round in a circle
        {"right": lambda one: one.right + 10_000},
        {"left": lambda one: one.left * 0 - 5},
        {"column": lambda one: one.column + 4},
        {"tree_starts": lambda one: one.tree_starts[:-1]},
        {"tree_starts": lambda one: one.tree_starts + 1},
        {"value": lambda one: one.value[:-1]},
        {"table": lambda one: one.table + 100},
    ],
    ids=["circle", "beyond", "before", "column", "few", "shifted", "short", "table"],
)
def test_trees_that_lead_out_of_their_arrays_are_refused(wrong: dict[str, Any]) -> None:
    trees = _tree_arrays.from_boosting(
        HistGradientBoostingRegressor(max_iter=3, categorical_features=[2]).fit(SEEN, TARGET), [2], 4
    )
    broken = replace(trees, **{name: make(trees) for name, make in wrong.items()})
    with pytest.raises(DataError, match="trees in the file are invalid"):
        TreeEnsemble.from_dict(broken.to_dict())
