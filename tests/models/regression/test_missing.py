"""Missing values of the target: not learned from, imputed in features of the past, the same however a history arrives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LinearModel, Regression
from deepforecast.core.forecaster import Forecaster
from deepforecast.errors import DataWarning
from tests.models.regression.promoted import sales, walks

MODELS: list[Forecaster] = [
    LinearModel(horizon=7),
    LinearModel(horizon=7, strategy="direct", differences=None),
    LinearModel(horizon=7, strategy="direct_multioutput", differences=[7]),
    LinearModel(horizon=7, per_series=True, strategy="blocks", block_size=3),
    Regression("ridge", horizon=7),
    Regression("knn", horizon=7),
]
pytestmark = pytest.mark.filterwarnings("ignore:.* forecasts through missing values:UserWarning")


def with_missing(frame: pd.DataFrame, share: float = 0.15, last: int = 0) -> pd.DataFrame:
    """A share of the values missing, and the last ones."""
    frame = frame.copy()
    missing = np.random.default_rng(1).random(len(frame)) < share
    missing |= frame.groupby("unique_id").cumcount(ascending=False).to_numpy() < last
    frame.loc[missing, "y"] = np.nan
    return frame


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("last", [0, 3])
def test_forecasts_are_near_those_of_complete_series(model: Forecaster, last: int) -> None:
    frame = walks(4, 120)
    whole, part = (model.clone().fit(one).predict()[model.name] for one in (frame, with_missing(frame, last=last)))
    assert np.abs(part - whole).mean() < 2  # the noise has deviation 1, a week spans 24
    assert np.abs(part - whole).max() < 6


def test_missing_values_are_announced() -> None:
    with pytest.warns(DataWarning, match="LinearModel forecasts through missing values: column y is missing in"):
        LinearModel(horizon=3).fit(with_missing(walks(2, 60)))


def test_imputed_values_are_no_targets() -> None:
    """Every third value of an exact line is missing; imputed ones would bend it."""
    y = 5.0 + 2.0 * np.arange(90)
    y[20:80:3] = np.nan
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=90), "y": y})
    model = LinearModel(
        horizon=3, season_length=1, lags=None, lag_transforms=None, calendar=None, time_index=True, differences=None, ridge=0.0
    )
    found = model.fit(frame).predict()["LinearModel"]
    np.testing.assert_allclose(found, 5.0 + 2.0 * np.arange(90, 93), rtol=1e-9)


@pytest.mark.parametrize("given", [{}, {"lags": 1, "lag_transforms": None}, {"lag_transforms": ["expanding_mean"]}], ids=str)
def test_histories_in_parts_end_where_whole_ones_end(given: dict[str, Any]) -> None:
    frame = with_missing(walks(3, 90), last=4)
    early = frame[frame.groupby("unique_id").cumcount() < 70]
    model = LinearModel(horizon=7, differences=None, **given).fit(early)
    whole = model.predict(frame=frame)["LinearModel"]
    for first in (70, 80):
        model.update(frame[frame.groupby("unique_id").cumcount().between(first, first + 9)])
    np.testing.assert_allclose(model.predict()["LinearModel"], whole, rtol=1e-9)


def test_missing_values_of_a_past_covariate_leave_rows_out() -> None:
    history, _ = sales()
    history = history.drop(columns="weather")
    part = history.copy()
    part.loc[np.random.default_rng(3).random(len(part)) < 0.2, "promotion"] = np.nan
    model = LinearModel(horizon=2, strategy="direct", past_lags=1)
    whole, found = (model.clone().fit(one, columns={"past": ["promotion"]}).predict()["LinearModel"] for one in (history, part))
    np.testing.assert_allclose(found, whole, atol=8)  # promotions come by chance and move 20
