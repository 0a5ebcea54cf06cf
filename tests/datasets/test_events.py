from __future__ import annotations

import pandas as pd
import pytest

from deepforecast import datasets
from deepforecast.datasets.events import EVENTS, TYPES, align_event_numbers


def _days(**columns: list[str]) -> pd.DataFrame:
    days = pd.to_datetime(["2016-02-07", "2016-04-24", "2016-04-30", "2016-05-08"])
    return pd.DataFrame({"ds": days, **columns}).astype(dict.fromkeys(columns, "category"))


def test_test_days_take_the_numbers_of_train() -> None:
    frame = _days(event=["1", "0", "1", "4"], event_type=["1", "0", "1", "2"])
    align_event_numbers(frame)
    assert frame["event"].tolist() == ["1", "0", "9", "11"]
    assert frame["event_type"].tolist() == ["1", "0", "4", "2"]
    assert EVENTS["Pesach End"] == 9
    assert TYPES["Religious"] == 4
    again = frame.copy()
    align_event_numbers(again)
    pd.testing.assert_frame_equal(again, frame)


@pytest.mark.data
def test_each_event_of_the_folder_has_one_type(data_folder: object) -> None:
    frame = datasets.load("m5_ca_1")
    seen = frame.drop_duplicates(["event", "event_type"])
    assert seen["event"].is_unique
    mothers_days = frame[frame["ds"].isin(pd.to_datetime(["2015-05-10", "2016-05-08"]))]
    assert set(mothers_days["event"]) == {str(EVENTS["Mother's day"])}
