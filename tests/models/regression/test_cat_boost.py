"""What is CatBoost's own: categories stand behind the numbers, and it refuses what never varies."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast import CatBoost
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.models.regression import cat_boost
from deepforecast.models.regression._samples import Sample

pytest.importorskip("catboost", reason="the package catboost is not installed")


def test_importance_and_shares_stand_in_the_order_of_the_columns() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 3))
    rows[:, 1] = random.integers(0, 3, 300)
    target = 40.0 * (rows[:, 1] == 1) + rows[:, 0]
    model = CatBoost(n_estimators=40, learning_rate=0.2)
    regressor = model._train(Sample(rows, target, None, ["a", "kind", "b"], [1], *np.zeros((2, 300), dtype=np.int64)), None)
    assert model._feature_importance(regressor).argmax() == 1
    shares = model._contributions(regressor, rows)
    np.testing.assert_allclose(shares.sum(axis=1), model._predict_rows(regressor, rows), atol=1e-9)
    assert np.abs(shares[:, 1]).mean() > 5 * np.abs(shares[:, 2]).mean()


def test_what_never_varies_is_forecast_without_trees() -> None:
    model, rows = CatBoost(n_estimators=5), np.ones((20, 2))
    sample = Sample(rows, np.arange(20.0), None, ["a", "b"], [], *np.zeros((2, 20), dtype=np.int64))
    mean, high = model._train(sample, None), model._train(sample, 0.9)
    assert model._predict_rows(mean, rows[:3]).tolist() == [9.5] * 3
    assert model._predict_rows(high, rows[:1])[0] == pytest.approx(17, abs=1)
    again = model._deserialize_regressor(model._serialize_regressor(mean, SkopsSerializer()), SkopsSerializer())
    assert model._predict_rows(again, rows[:1]) == 9.5
    assert model._feature_importance(mean).tolist() == [0, 0]
    np.testing.assert_array_equal(model._contributions(mean, rows[:1]), [[0, 0, 9.5]])


def test_rows_that_lack_what_never_lacked_before_do_not_say_when_to_stop() -> None:
    series = np.zeros(4, dtype=np.int64)
    before = Sample(np.ones((4, 2)), np.ones(4), None, ["a", "b"], [], np.arange(4), series)
    late = Sample(np.array([[1.0, np.nan], [1.0, 2.0]]), np.ones(2), None, ["a", "b"], [], np.arange(2), series[:2])
    assert len(cat_boost._drop_unseen_missing(late, before)) == 1


def test_the_same_trees_make_the_same_bytes_whenever_they_are_grown() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    sample = Sample(rows, rows[:, 0], None, ["a", "b"], [], *np.zeros((2, 60), dtype=np.int64))
    made = [
        CatBoost(n_estimators=5)._serialize_regressor(CatBoost(n_estimators=5)._train(sample, None), SkopsSerializer())
        for _ in range(2)
    ]
    np.testing.assert_array_equal(made[0]["trees"], made[1]["trees"])
