"""Steps are counted from the cutoff, on the calendar."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from deepforecast.errors import DataError
from deepforecast.evaluation.score import score


def test_steps_are_counted_from_the_cutoff(given: Any) -> None:
    gapped = given.points[given.points.groupby(["unique_id", "cutoff"]).cumcount() > 0]
    assert score(gapped, metrics="mae", by="step")["step"].tolist() == [2, 2, 3, 3]
    holes = given.points.drop(index=[1, 4])
    found = score(holes, metrics="mae", by="step")
    kept = given.stepped.drop(index=[1, 4])
    assert found["step"].tolist() == [1, 1, 2, 2, 3, 3]
    assert found["mae"][3] == pytest.approx((kept["y"] - kept["A"])[kept["step"] == 2].abs().mean())


def test_steps_without_a_cutoff_are_counted_from_the_first_stamp(given: Any) -> None:
    found = score(given.predicted.drop(index=[1]), actual=given.frame, metrics="mae", by=["series", "step"])
    assert found["step"].tolist() == [1, 1, 3, 3, *[1, 1, 2, 2, 3, 3] * 2]
    one = given.predicted.drop_duplicates("unique_id")
    assert score(one, actual=given.frame, metrics="mae", by="step")["step"].tolist() == [1, 1]


def test_a_column_of_steps_is_taken_as_it_is(given: Any) -> None:
    numbered = given.stepped.assign(step=given.stepped["step"] * 10)
    found = score(numbered, metrics="mae", by="step")
    assert found["step"].tolist() == [10, 10, 20, 20, 30, 30]
    assert found["mae"].tolist() == score(given.points, metrics="mae", by="step")["mae"].tolist()
    with pytest.raises(DataError, match="Column step must have integers"):
        score(numbered.assign(step=0.5), metrics="mae", by="step")


def test_steps_that_cannot_be_counted_are_refused() -> None:
    ds = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-05", "2024-01-13"])
    uneven = pd.DataFrame({"ds": ds, "y": 1.0, "A": 1.0})
    with pytest.raises(DataError, match="The frequency, in which steps are counted, cannot be inferred from column ds"):
        score(uneven, by="step")
    assert score(uneven, by="step", freq="D")["step"].tolist() == [1, 2, 5, 13]
    with pytest.raises(DataError, match="whole number of steps of freq='2D'"):
        score(uneven, by="step", freq="2D")


def test_daylight_saving_does_not_move_steps() -> None:
    days = pd.date_range("2024-03-29", periods=5, freq="D", tz="Europe/Berlin")
    frame = pd.DataFrame({"ds": days[1:], "cutoff": days[0], "y": 1.0, "A": [1.0, 2.0, 3.0, 4.0]})
    found = score(frame, metrics="mae", by="step")
    assert found["step"].tolist() == [1, 2, 3, 4]
    assert found["mae"].tolist() == [0.0, 1.0, 2.0, 3.0]
