"""What series keep: of constant ones that they are, of ones that end in missing values where their season stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GradientBoosting, LinearModel
from deepforecast.errors import DataWarning
from tests.models.regression.promoted import walks

MODELS = [LinearModel(horizon=7), GradientBoosting(horizon=7, n_estimators=20, min_child_samples=3)]


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
@pytest.mark.parametrize("value", [0.0, 1e-9, -7.0, 1e9])
@pytest.mark.parametrize("given", [{}, {"differences": None}, {"detrend": True}], ids=str)
def test_a_constant_series_is_forecast_as_constant_beside_others(model: Any, value: float, given: dict[str, Any]) -> None:
    frame = walks(3, 60)
    frame.loc[frame["unique_id"] == "s1", "y"] = value
    found = model.clone(**given).fit(frame).predict()
    np.testing.assert_allclose(found.loc[found["unique_id"] == "s1", model.name], value, rtol=1e-12, atol=0)


def test_a_series_that_begins_to_vary_after_the_fit_is_forecast_by_what_it_is_now() -> None:
    frame = walks(3, 60)
    late = frame.groupby("unique_id").cumcount() >= 40
    frame.loc[(frame["unique_id"] == "s1") & ~late, "y"] = 60.0
    model = LinearModel(horizon=7, differences=None, lags=7, lag_transforms=None).fit(frame[~late])
    found = model.predict(frame=frame).query("unique_id == 's1'")["LinearModel"].to_numpy()
    model.update(frame[late])
    after = model.predict().query("unique_id == 's1'")["LinearModel"].to_numpy()
    for one in (found, after):
        assert np.corrcoef(one, frame.loc[frame["unique_id"] == "s1", "y"].to_numpy()[46:53])[0, 1] > 0.9  # its week


@pytest.mark.parametrize("given", [{}, {"differences": [7]}, {"differences": [7, 1]}, {"strategy": "direct"}], ids=str)
@pytest.mark.parametrize("missing", [1, 3, 10])
def test_seasons_go_on_where_the_last_values_lack(given: dict[str, Any], missing: int) -> None:
    frame = walks(3, 90)
    model = GradientBoosting(horizon=7, n_estimators=40, min_child_samples=3, **given)
    whole = model.fit(frame).predict()["GradientBoosting"].to_numpy()
    frame.loc[frame.groupby("unique_id").cumcount(ascending=False) < missing, "y"] = np.nan
    with pytest.warns(DataWarning, match="missing in"):
        model.fit(frame)
    np.testing.assert_allclose(model.predict()["GradientBoosting"], whole, atol=4)  # a week spans 24


def test_histories_in_parts_end_where_whole_ones_end() -> None:
    frame = walks(3, 90)
    frame.loc[frame.groupby("unique_id").cumcount().isin([60, 61, 75, 84, 85, 86, 87, 88, 89]), "y"] = np.nan
    early = frame[frame.groupby("unique_id").cumcount() < 65]
    model = GradientBoosting(horizon=7, n_estimators=10, min_child_samples=3, differences=[7, 1])
    with pytest.warns(DataWarning):
        model.fit(early)
    with pytest.warns(DataWarning):
        whole = model.predict(frame=frame)
    with pytest.warns(DataWarning):
        model.update(frame[frame.groupby("unique_id").cumcount() >= 65])
    pd.testing.assert_frame_equal(model.predict(), whole, check_exact=True)
