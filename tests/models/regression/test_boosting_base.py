"""What holds for all boosted trees: known effects, categories, gaps, weights, quantiles, seeds, early stopping, threads."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import CatBoost, GradientBoosting, LightGBM, XGBoost
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.monitor import SILENT
from deepforecast.core.threads import as_worker
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, DependencyError, ParameterError
from deepforecast.models.regression._boosting_base import BoostedTrees, mean_loss
from tests.models.regression.promoted import PLAIN, PROMOTION, WEATHER, sales, walks

NAMES = {"GradientBoosting": GradientBoosting, "LightGBM": LightGBM, "XGBoost": XGBoost, "CatBoost": CatBoost}
SMALL = {"n_estimators": 60, "learning_rate": 0.2}


@pytest.fixture(params=NAMES)
def boosted(request: pytest.FixtureRequest) -> Any:
    cls = NAMES[request.param]
    if cls.package and find_spec(cls.package) is None:
        pytest.skip(f"the package {cls.package} is not installed")
    return cls


def small(cls: type[BoostedTrees], **given: Any) -> BoostedTrees:
    rows = {} if cls is CatBoost else {"min_child_samples": 5}
    return cls(**{"horizon": 4, **SMALL, **rows, **given})


def trees(model: BoostedTrees) -> int:
    """How many trees a fitted model has."""
    held = model.state_.learned["regressors"].models[0][0]
    counts = {
        "GradientBoosting": lambda: len(held.tree_starts) - 1,
        "LightGBM": lambda: held.num_trees(),
        "XGBoost": lambda: held.num_boosted_rounds(),
        "CatBoost": lambda: held["model"].tree_count_,
    }
    return int(counts[type(model).__name__]())


def test_effects_of_a_number_and_of_a_category_known_ahead(boosted: Any) -> None:
    history, future = sales()
    model = small(boosted, **PLAIN).fit(history, columns={"future": ["promotion", "weather"]})
    found = model.predict(future=future)[model.name].to_numpy()
    effects = future["weather"].astype(str).map(WEATHER).to_numpy(float)
    np.testing.assert_allclose(found, 100 + PROMOTION * future["promotion"] + effects, atol=1.5)


def test_a_category_that_no_threshold_tells_apart_is_found(boosted: Any) -> None:
    """Every other of 20 categories counts: one split of sets, many of numbers."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 20, 300)
    frame = pd.DataFrame({"ds": pd.date_range("2023-01-01", periods=300), "y": 10.0 * (codes % 2) + random.normal(0, 0.1, 300)})
    frame["kind"] = pd.Categorical([f"k{code:02d}" for code in codes])
    future = pd.DataFrame({"ds": pd.date_range("2023-10-28", periods=4), "kind": ["k04", "k05", "k18", "k19"]})
    future["kind"] = pd.Categorical(future["kind"], categories=frame["kind"].cat.categories)
    model = small(boosted, n_estimators=8, learning_rate=0.5, **PLAIN).fit(frame, columns={"future": ["kind"]})
    found = model.predict(future=future)[model.name].to_numpy()
    assert (found[[0, 2]] < 3).all()
    assert (found[[1, 3]] > 7).all()


def test_gaps_are_forecast_through(boosted: Any) -> None:
    frame = walks()
    holes = frame.drop(index=frame.index[[20, 21, 50, 130, 200]])
    with pytest.warns(UserWarning, match="missing"):
        model = small(boosted, season_length=7).fit(holes, freq="D")
    whole = small(boosted, season_length=7).fit(frame).predict()
    assert np.abs(model.predict()[model.name] - whole[model.name]).max() < 5


def test_a_row_of_weight_zero_counts_for_nothing(boosted: Any) -> None:
    history, future = sales(2, 60)
    history["counts"] = np.where(history.index % 5 == 0, 0.0, 1.0 + history.index % 3)
    roles = {"future": ["promotion", "weather"], "weight": "counts"}
    wild = history.assign(y=np.where(history["counts"] == 0, 1e4, history["y"]))
    found = [
        small(boosted, **PLAIN).fit(one, columns=roles).predict(future=future)
        for one in (history, wild)
    ]
    pd.testing.assert_frame_equal(*found)
    other = history.assign(counts=1.0)
    heavy = small(boosted, **PLAIN).fit(other, columns=roles).predict(future=future)
    assert not heavy.equals(found[0])


def test_quantiles_rise_and_cover(boosted: Any) -> None:
    """Nothing but the day of the week is known, and noise of deviation 1 is left: 80 % lie in a band 2.56 wide."""
    frame = walks(6, 150)
    late = frame.groupby("unique_id").cumcount(ascending=False) < 3
    known = {"lags": None, "lag_transforms": None, "differences": None, "calendar": ["day_of_week"]}
    shape = {"max_depth": 2} if boosted in (CatBoost, XGBoost) else {"num_leaves": 7, "min_child_samples": 20}
    given = {**known, **shape, "quantiles": [0.1, 0.5, 0.9], "strategy": "direct", "horizon": 3}
    model = small(boosted, **given).fit(frame[~late])
    found = model.predict(level=80)
    low, high = found[f"{model.name}-lo-80"].to_numpy(), found[f"{model.name}-hi-80"].to_numpy()
    assert (low <= found[model.name]).all()
    assert (found[model.name] <= high).all()
    assert 2 < (high - low).mean() < 3.1
    inside = (low <= frame.loc[late, "y"]) & (frame.loc[late, "y"] <= high)
    assert 0.6 <= inside.mean() <= 0.97


def test_the_same_seed_gives_the_same_bits_and_another_does_not(boosted: Any) -> None:
    frame = walks(2, 80)
    more = {"subsample" if boosted is CatBoost else "colsample_bytree": 0.6}
    first, again, other = (small(boosted, seed=seed, **more).fit(frame).predict() for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_one_thread_gives_the_same_forecast(boosted: Any) -> None:
    frame = walks(2, 80)
    free = small(boosted).fit(frame).predict()
    with as_worker():
        alone = small(boosted).fit(frame).predict()
    np.testing.assert_allclose(free.iloc[:, -1], alone.iloc[:, -1], rtol=1e-6)


def test_early_stopping_ends_before_the_last_tree_and_keeps_the_best(boosted: Any) -> None:
    frame = walks(4, 100)
    given: dict[str, Any] = {"differences": None, "early_stopping_rounds": 10, "validation_size": 15, "learning_rate": 0.3}
    model = small(boosted, n_estimators=400, **given).fit(frame)
    kept = trees(model)
    assert 0 < kept < 400

    sampled: list[Any] = []
    model.__dict__["_train"] = lambda sample, level: sampled.append(sample)
    model._fit(Panel.from_frame(frame), SILENT)
    before, last = sampled[0].split(15)

    def late(count: int) -> float:
        """The squared errors on the last rows of so many trees that learned the rows before."""
        other = small(boosted, n_estimators=count, **{**given, "early_stopping_rounds": None, "validation_size": None})
        return mean_loss(last.target, other._predict_rows(other._train(before, None), last.rows), None, None)

    losses = {count: late(count) for count in (max(kept - 4, 1), max(kept - 1, 1), kept, kept + 1, kept + 4, kept + 9)}
    assert losses[kept] == min(losses.values())
    assert losses[kept + 9] > losses[kept]


def test_early_stopping_refuses_series_too_short_for_it(boosted: Any) -> None:
    frame = walks(2, 20)
    with pytest.raises(DataError, match="validation_size"):
        small(boosted, lags=2, lag_transforms=None, differences=None, early_stopping_rounds=5, validation_size=30).fit(frame)


def test_written_and_revived_it_says_the_same_to_the_bit(boosted: Any) -> None:
    history, _ = sales(2, 60)
    model = small(boosted, strategy="direct", quantiles=[0.1, 0.9]).fit(history, columns={"future": ["promotion", "weather"]})
    for regressors in model.state_.learned["regressors"].models:
        for one in regressors:
            said = model._serialize_regressor(one, SkopsSerializer())
            assert all(isinstance(value, (np.ndarray, int, float, str, list)) for value in said.values())
            width = len(model._feature_importance(one))
            rows = np.random.default_rng(1).normal(size=(40, width))
            rows[:, -1] = np.random.default_rng(2).integers(-1, 3, 40)
            rows[0, 0] = np.nan
            np.testing.assert_array_equal(
                model._predict_rows(model._deserialize_regressor(said, SkopsSerializer()), rows), model._predict_rows(one, rows)
            )


def test_what_cannot_be_told_apart_is_forecast_as_it_was(boosted: Any) -> None:
    frame = walks(2, 40).assign(y=7.0)
    assert (small(boosted).fit(frame).predict().iloc[:, -1] == 7).all()
    line = frame.assign(y=0.1 * frame.groupby("unique_id").cumcount())  # its changes differ by rounding alone
    found = small(boosted, differences=[1]).fit(line).predict().iloc[:4, -1]
    np.testing.assert_allclose(found, [4.0, 4.1, 4.2, 4.3], rtol=1e-4)


def test_few_rows_are_enough(boosted: Any) -> None:
    frame = walks(1, 14)
    assert np.isfinite(small(boosted, lags=1, lag_transforms=None, differences=None).fit(frame).predict().iloc[:, -1]).all()


def test_options_of_the_learner_are_handed_on(boosted: Any) -> None:
    option = {"random_strength": 3} if boosted is CatBoost else {"max_depth": 1}
    frame = walks(2, 80)
    plain, changed = (small(boosted, options=one).fit(frame).predict() for one in (None, option))
    assert not plain.equals(changed)
    with pytest.raises(ParameterError, match="no_such_option"):
        small(boosted, options={"no_such_option": "x"}).fit(frame)


@pytest.mark.parametrize("boosted", [name for name, cls in NAMES.items() if cls.package], indirect=True)
def test_a_package_that_is_not_there_is_named(boosted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, boosted.package, None)
    with pytest.raises(DependencyError, match=rf"{boosted.__name__} requires the package {boosted.package}.*pip install"):
        small(boosted).fit(walks(1, 40))
