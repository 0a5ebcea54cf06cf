"""Actual values are matched by key; missing ones are left out and counted, missing rows refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.errors import DataError, ParameterError
from deepforecast.evaluation.score import score


def test_actual_values_are_matched_by_key(given: Any) -> None:
    expected = score(given.last.drop(columns="cutoff"), by=["series", "step"])
    mixed = given.frame.sample(frac=1, random_state=1)
    for actual in (given.actual, given.frame, mixed, mixed[["y", "ds", "unique_id"]].assign(extra="x")):
        found = score(given.predicted, actual=actual, by=["series", "step"])
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    mixed = score(given.predicted.sample(frac=1, random_state=2), actual=given.frame, by=["series", "step"])
    pd.testing.assert_frame_equal(mixed, expected, check_exact=True)


def test_actual_values_of_cross_validation_without_them(given: Any) -> None:
    pd.testing.assert_frame_equal(score(given.points.drop(columns="y"), actual=given.frame), score(given.points))


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_stamps_of_any_unit_meet(given: Any, unit: str) -> None:
    expected = score(given.predicted, actual=given.frame, train=given.frame)
    other = given.frame.assign(ds=given.frame["ds"].dt.as_unit(unit))
    pd.testing.assert_frame_equal(score(given.predicted, actual=other, train=other), expected)
    forecasts = given.points.assign(cutoff=given.points["cutoff"].dt.as_unit(unit))
    pd.testing.assert_frame_equal(score(forecasts, train=other, by="step"), score(given.points, train=given.frame, by="step"))


def test_stamps_of_different_kinds_do_not_meet(given: Any) -> None:
    zoned = given.frame.assign(ds=given.frame["ds"].dt.tz_localize("UTC"))
    counted = given.frame.assign(ds=range(len(given.frame)))
    for options in ({"actual": zoned}, {"actual": given.frame, "train": zoned}, {"actual": counted}):
        with pytest.raises(DataError, match="of the same kind"):
            score(given.predicted, **options)
    early = pd.DataFrame({"ds": np.array(["1600-01-01"], "M8[s]"), "A": 1.0})
    with pytest.raises(DataError, match="cannot be converted to the unit"):
        score(early, actual=pd.DataFrame({"ds": np.array(["2000-01-01"], "M8[ns]"), "y": 1.0}))


def test_missing_rows_of_actual_values_are_refused_by_name(given: Any) -> None:
    holes = given.frame[~((given.frame["unique_id"] == "c") & (given.frame["ds"] >= "2022-08-01"))]
    with pytest.raises(DataError, match="2 of 9 are missing, in 1 series, the first series c at 2022-08-01"):
        score(given.predicted, actual=holes)
    with pytest.raises(DataError, match="3 of 9 are missing, in 1 series, the first series a at "):
        score(given.predicted, actual=given.frame[given.frame["unique_id"] != "a"])
    with pytest.raises(DataError, match="9 of 9 are missing, in 3 series"):
        score(given.predicted, actual=given.frame.assign(ds=given.frame["ds"] + pd.Timedelta(days=1)))


def test_wrong_actual_frames_are_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match=r"must have a column y with the actual values"):
        score(given.predicted)
    with pytest.raises(ParameterError, match="the forecasts have column y"):
        score(given.points, actual=given.frame)
    with pytest.raises(DataError, match=r"unique_id and ds .* b\b"):
        score(given.predicted, actual=pd.concat([given.frame, given.frame.iloc[[3]]]))
    with pytest.raises(DataError, match="`actual` must have the column y"):
        score(given.predicted, actual=given.frame.drop(columns="y"))
    with pytest.raises(DataError, match="`actual` must have at least one row"):
        score(given.predicted, actual=given.frame.iloc[:0])
    with pytest.raises(DataError, match=r"column y is inf for series a at 2022-02-01"):
        score(given.predicted, actual=given.frame.assign(y=given.frame["y"].where(given.frame["ds"] != "2022-02-01", np.inf)))
    with pytest.raises(DataError, match="y is missing at all 18 points"):
        score(given.points.assign(y=np.nan))


def test_points_without_an_actual_value_are_left_out_and_counted(given: Any) -> None:
    holes = given.points.assign(y=given.points["y"].where(given.points.index % 5 != 0))
    found = score(holes, by="series", metrics=["mae", "smape"])
    assert found.columns.tolist() == ["unique_id", "model", "mae", "smape", "left_out"]
    missing = holes["y"].isna().groupby(holes["unique_id"]).sum()
    assert found["left_out"].tolist() == np.repeat(missing.to_numpy(), 2).tolist()
    own = holes[holes["unique_id"] == "a"].dropna()
    assert found["mae"][0] == pytest.approx((own["y"] - own["B"]).abs().mean())


def test_what_a_metric_is_not_defined_for_is_left_out_and_counted(given: Any) -> None:
    train = given.frame.assign(y=given.frame["y"].where(given.frame["unique_id"] != "c", 7.0))
    found = score(given.points, train=train, metrics=["mae", "mase"])
    assert found.columns.tolist() == ["model", "mae", "mase", "mase-left_out"]
    assert found["mase-left_out"].tolist() == [6, 6]
    others = given.points[given.points["unique_id"] != "c"]
    assert found["mase"].tolist() == pytest.approx(score(others, train=given.frame, metrics="mase")["mase"].tolist())
    assert np.isnan(score(given.points, train=train, metrics="mase", by="series")["mase"]).tolist() == [False] * 4 + [True] * 2
