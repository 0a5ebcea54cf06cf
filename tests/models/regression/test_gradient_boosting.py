"""What is GradientBoosting's own: columns of very many categories."""

from __future__ import annotations

import numpy as np
import pandas as pd

from deepforecast import GradientBoosting
from tests.models.regression.promoted import PLAIN


def test_a_column_of_more_categories_than_it_tells_apart_is_one_of_numbers() -> None:
    random = np.random.default_rng(0)
    codes = np.r_[np.arange(300), random.integers(0, 300, 900)]
    frame = pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=1200), "y": (codes >= 150) * 10.0})
    frame["shop"] = pd.Categorical([f"k{code:03d}" for code in codes])
    future = pd.DataFrame({"ds": pd.date_range("2023-04-15", periods=2), "shop": ["k000", "k299"]})
    future["shop"] = pd.Categorical(future["shop"], categories=frame["shop"].cat.categories)
    model = GradientBoosting(horizon=2, n_estimators=30, learning_rate=0.3, **PLAIN).fit(frame, columns={"future": ["shop"]})
    np.testing.assert_allclose(model.predict(future=future)["GradientBoosting"], [0, 10], atol=0.1)
