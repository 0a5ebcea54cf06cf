"""The scale of each forecast: of its series up to the cutoff, never further, at many cutoffs in one pass."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.errors import DataError, ParameterError
from deepforecast.evaluation import metrics
from deepforecast.evaluation.scale import seasonal_scale
from deepforecast.evaluation.score import score
from deepforecast.evaluation.training_scale import scale_until

HORIZON = 3  # of the forecasts given
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("season", [1, 4, 30])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_every_scale_is_that_of_the_series_cut_off(season: int, squared: bool, missing: float) -> None:
    lengths = RANDOM.integers(1, 40, 50)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = RANDOM.normal(size=indptr[-1]) * np.repeat(10.0 ** RANDOM.integers(-9, 9, 50), lengths)
    values[RANDOM.random(len(values)) < missing] = np.nan
    chosen = np.repeat(RANDOM.permutation(50)[:40], RANDOM.integers(1, 9, 40))  # some series not asked for, in any order
    ends = indptr[chosen] + np.floor(RANDOM.random(len(chosen)) * (lengths[chosen] + 1)).astype(np.int64)
    ends = np.concatenate([np.sort(ends[chosen == one]) for one in dict.fromkeys(chosen.tolist())])
    found = scale_until(values, indptr, chosen, ends, season, squared)
    expected = [
        seasonal_scale(values[indptr[one] : end], season, squared=squared) if end > indptr[one] else np.nan
        for one, end in zip(chosen, ends, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isfinite(found).any() or season == 30


def test_one_end_a_series_gives_the_very_bits_of_seasonal_scale() -> None:
    indptr = np.array([0, 30, 75, 100])
    values = RANDOM.lognormal(size=100)
    found = scale_until(values, indptr, np.arange(3), indptr[1:], 12, False)
    assert found.tolist() == seasonal_scale(values, 12, indptr).tolist()


def test_a_constant_series_has_scale_zero_and_too_short_a_one_none() -> None:
    found = scale_until(np.array([5.0, 5, 5, 1, 2]), np.array([0, 3, 5]), np.array([0, 0, 1]), np.array([2, 3, 5]), 2, False)
    np.testing.assert_array_equal(found, [np.nan, 0.0, np.nan])


def test_squares_beyond_float64_are_refused() -> None:
    with pytest.raises(DataError, match="Squares of the training data"):
        scale_until(np.array([0.0, 1e200]), np.array([0, 2]), np.array([0]), np.array([2]), 1, True)


def test_many_cutoffs_cost_one_pass() -> None:
    series, length, windows = 2_000, 500, 200
    values, indptr = RANDOM.normal(size=series * length), np.arange(series + 1) * length
    chosen = np.repeat(np.arange(series), windows)
    ends = indptr[chosen] + np.tile(np.arange(length - windows, length), series)
    begin = time.process_time()
    found = scale_until(values, indptr, chosen, ends, 7, False)
    assert time.process_time() - begin < 2.0  # a pass a window takes longer
    assert found[-1] == pytest.approx(seasonal_scale(values[indptr[-2] : ends[-1]], 7))


def test_rows_after_a_cutoff_never_count(given: Any) -> None:
    expected = score(given.points, train=given.frame, by=["series", "cutoff"], metrics=["mase", "rmsse"])
    first = given.points.groupby("unique_id")["cutoff"].min()
    spoiled = given.frame.assign(y=given.frame["y"].where(given.frame["ds"] <= given.frame["unique_id"].map(first), 1e6))
    found = score(given.points, train=spoiled, by=["series", "cutoff"], metrics=["mase", "rmsse"])
    early = found["cutoff"] == found["unique_id"].map(first)
    pd.testing.assert_frame_equal(found[early], expected[early], check_exact=True)
    assert (found["mase"] < expected["mase"])[~early].all()


def test_without_cutoffs_rows_from_the_first_stamp_forecast_on_never_count(given: Any) -> None:
    begins = given.predicted.groupby("unique_id")["ds"].min()
    earlier = given.frame[given.frame["ds"] < given.frame["unique_id"].map(begins)]
    whole, cut = (score(given.predicted, actual=given.frame, train=train) for train in (given.frame, earlier))
    pd.testing.assert_frame_equal(whole, cut, check_exact=True)


def test_a_gap_after_the_cutoff_does_not_move_it(given: Any) -> None:
    later = given.points[given.points.groupby(["unique_id", "cutoff"]).cumcount() > 0]
    found = score(later, train=given.frame, metrics="mase", by=["series", "cutoff"])["mase"]
    windows = [own for _, own in later.groupby(["unique_id", "cutoff"])]
    expected = [given.by_hand(own, model, "mase", scale=given.scales()) for own in windows for model in ("B", "A")]
    assert found.tolist() == pytest.approx(expected)


def test_season_length_follows_from_the_frequency_or_is_given(given: Any) -> None:
    for season in (1, 4):
        found = score(given.points, train=given.frame, metrics="mase", season_length=season)["mase"]
        assert found[1] == pytest.approx(given.by_hand(given.points, "A", "mase", scale=given.scales(season)))
    odd = pd.date_range("2024-01-01", periods=9, freq="3D")
    frame = pd.DataFrame({"ds": odd[6:], "y": 1.0, "A": 2.0})
    with pytest.raises(ParameterError, match=r"freq='3D', which has no usual season\. Set season_length"):
        score(frame, train=pd.DataFrame({"ds": odd, "y": 1.0}))


def test_training_gaps_are_missing_values_not_shifts(given: Any) -> None:
    holes = given.frame.drop(index=[5, 50])
    found = score(given.points, train=holes, metrics="mase", freq="MS", season_length=1, by=["series", "cutoff"])
    own = holes[holes["unique_id"] == "b"].set_index("ds")["y"].asfreq("MS")
    scale = metrics.seasonal_scale(own[: given.points[given.points["unique_id"] == "b"]["cutoff"].min()].to_numpy(), 1)
    first = given.points[(given.points["unique_id"] == "b")].iloc[:HORIZON]
    row = found[found["unique_id"] == "b"].iloc[0]
    assert row["mase"] == pytest.approx(metrics.mase(first["y"], first["B"], scale))


def test_wrong_training_frames_are_refused(given: Any) -> None:
    with pytest.raises(DataError, match="must have rows of every series in the forecasts; missing: b"):
        score(given.points, train=given.frame[given.frame["unique_id"] != "b"])
    with pytest.raises(DataError, match="grid of freq='MS'; that of series a at 2021-11-01, cutoff 2021-10-31 is not"):
        score(given.points.assign(cutoff=given.points["ds"] - pd.Timedelta(days=1)), train=given.frame)
    with pytest.raises(DataError, match="of the same kind"):
        score(given.points, train=given.frame.assign(ds=range(len(given.frame))), season_length=1)
