"""Sample paths, and forecasts that are wrong: refused by model, series and stamp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.errors import DataError, ParameterError, ParameterTypeError
from deepforecast.evaluation import metrics
from deepforecast.evaluation.score import score


def paths(given: Any, samples: int = 4) -> pd.DataFrame:
    """Sample paths in the order of simulate: series, sample, step."""
    one = given.predicted
    parts = [one.assign(sample=number, A=one["A"] + number**2, B=one["B"] - number) for number in range(samples)]
    return pd.concat(parts).sort_values(["unique_id", "sample", "ds"], ignore_index=True)


def test_sample_paths(given: Any) -> None:
    frame = paths(given)
    found = score(frame, actual=given.frame)
    assert found.columns.tolist() == ["model", "crps_from_samples"]
    stack = np.stack([given.predicted["A"] + number**2 for number in range(4)])
    assert found["crps_from_samples"][1] == pytest.approx(metrics.crps_from_samples(given.actual["y"], stack))
    mixed = frame.sample(frac=1, random_state=0)
    by = score(mixed, actual=given.frame, by=["series", "step"], metrics="crps_from_samples")
    expected = [metrics.crps_from_samples(given.actual["y"].to_numpy()[[i]], stack[:, [i]]) for i in range(9)]
    assert by["crps_from_samples"].tolist()[1::2] == pytest.approx(expected)
    with_y = frame.merge(given.actual, on=["unique_id", "ds"])
    pd.testing.assert_frame_equal(score(with_y), found)


def test_sample_paths_that_are_not_whole_are_refused(given: Any) -> None:
    frame = paths(given)
    doubled = pd.concat([frame.drop(index=[5]), frame.iloc[[7]]])
    for broken in (frame.drop(index=[5]), frame.drop(index=[0, 1, 2, 3]), doubled):
        with pytest.raises(DataError, match="each of the 4 sample paths exactly once"):
            score(broken, actual=given.frame)
    with pytest.raises(DataError, match="Column sample must have integers"):
        score(frame.assign(sample=frame["sample"] / 2), actual=given.frame)
    with pytest.raises(ParameterError, match="mae cannot be computed without point forecasts, and these are sample paths"):
        score(frame, actual=given.frame, metrics="mae")
    with_y = frame.merge(given.actual, on=["unique_id", "ds"])
    with_y.loc[3, "y"] = 0.0
    with pytest.raises(DataError, match="column y differs for series a"):
        score(with_y)
    with pytest.raises(DataError, match="column A of model A is nan for series a"):
        score(frame.assign(A=frame["A"].where(frame.index != 3)), actual=given.frame)


def test_forecasts_that_are_not_numbers_are_refused_by_name(given: Any) -> None:
    holes = given.points.assign(A=given.points["A"].where(given.points.index != 7))
    with pytest.raises(DataError, match=r"column A of model A is nan for series b at 2022-12-01, cutoff 2022-10-01 \(1 such"):
        score(holes)
    wrong = given.rolled.copy()
    wrong.loc[[3, 4], "B-hi-95"] = np.inf
    with pytest.raises(DataError, match=r"column B-hi-95 of model B is inf for series a at .* \(2 such"):
        score(wrong)
    assert score(wrong, models="A", metrics="mae")["model"].tolist() == ["A"]


def test_intervals_upside_down_are_refused_by_name(given: Any) -> None:
    swapped = given.rolled.rename(columns={"A-lo-80": "A-hi-80", "A-hi-80": "A-lo-80"})
    with pytest.raises(DataError, match=r"A-lo-80 is .* for series a at 2021-11-01, cutoff 2021-10-01 \(18 such"):
        score(swapped, metrics="width")


def test_doubled_keys_are_refused_by_name(given: Any) -> None:
    twice = pd.concat([given.points, given.points.iloc[[2, 11]]])
    with pytest.raises(
        DataError, match=r"\(unique_id, ds, cutoff\) must be unique .* a at 2022-01-01, cutoff .* \(2 such rows"
    ):
        score(twice)
    points, later = given.points, given.points["ds"] + pd.DateOffset(months=3)
    overlapping = points.assign(ds=points["ds"].where(points["cutoff"] != "2021-10-01", later))
    assert score(overlapping, metrics="mae")["mae"].notna().all()
    with pytest.raises(DataError, match=r"\(unique_id, ds\) must be unique .* several cutoffs must have the column cutoff"):
        score(overlapping.drop(columns="cutoff"))


def test_frames_that_are_no_forecasts_are_refused(given: Any) -> None:
    with pytest.raises(DataError, match="`forecasts` must have at least one row"):
        score(given.points.iloc[:0])
    with pytest.raises(DataError, match="numeric column for each model, got columns unique_id, ds, cutoff, y"):
        score(given.points[["unique_id", "ds", "cutoff", "y"]])
    with pytest.raises(DataError, match=r"columns .*\bds\b"):
        score(given.points.drop(columns="ds"))
    with pytest.raises(DataError, match="frame of forecasts"):
        score([1, 2])  # type: ignore[arg-type]
    with pytest.raises(
        DataError, match="Column cutoff of the forecasts cannot have missing timestamps, but data row 4 has one"
    ):
        score(given.points.assign(cutoff=given.points["cutoff"].where(given.points.index != 4)))
    with pytest.raises(
        DataError, match=r"after their cutoff, but series a at 2021-11-01, cutoff 2021-11-01 is not \(6 such forecasts"
    ):
        score(given.points.assign(cutoff=given.points.groupby(["unique_id", "cutoff"])["ds"].transform("min")))
    with pytest.raises(ParameterTypeError):
        score(given.points, columns=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="by='cutoff' requires a column cutoff"):
        score(given.predicted, actual=given.frame, by="cutoff")
