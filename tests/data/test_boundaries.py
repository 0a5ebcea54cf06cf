"""Where rules begin to hold: the share of steps that makes a frequency, the length from which a series is not short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import check
from deepforecast.data.calendar import infer_frequency
from deepforecast.data.key_columns import TimeType
from tests.frames import D, joined

HALF = [1, 2] * 6
FEWER = [1, 2] * 8 + [1, 2, 2]  # 9 of 19 neighbours are one step apart


def looks_like(freq: Any, gaps: list[int], tz: str | None = None) -> str:
    """The frequency found for a series of which some rows are there, `gaps` steps apart."""
    places = np.cumsum([0, *gaps])
    if isinstance(freq, int):
        return str(infer_frequency(freq * places, np.array([0, len(places)]), TimeType("")))
    index = pd.date_range("2024-01-01", periods=places[-1] + 1, freq=freq, unit="us", tz=tz)
    return str(infer_frequency(np.array(index.asi8)[places], np.array([0, len(places)]), TimeType("us", tz)))


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
@pytest.mark.parametrize("freq", [3, "15min", "h", "D", "B", "W-MON", "MS", "ME", "BMS", "QS-FEB", "YE-JUN"])
def test_a_step_is_believed_if_half_of_the_neighbours_take_it(freq: Any, tz: str | None) -> None:
    assert looks_like(freq, HALF, tz) == str(freq)
    assert looks_like(freq, [*HALF, 1], tz) == str(freq)
    assert looks_like(freq, FEWER, tz) == "None"


def test_half_of_the_neighbours_of_all_series_together() -> None:
    sparse, dense = np.cumsum([0, *FEWER]), np.arange(3)
    for series, found in (([sparse, sparse, dense], "5"), ([sparse, sparse, sparse, dense], "None")):  # 20 of 40, 29 of 59
        indptr = np.cumsum([0, *(len(one) for one in series)])
        assert str(infer_frequency(5 * np.concatenate(series), indptr, TimeType(""))) == found


@pytest.mark.parametrize(("freq", "season"), [("D", 7), ("B", 5), ("h", 24), ("MS", 12), ("QS-JAN", 4)])
def test_a_series_is_short_below_two_seasons(freq: str, season: int) -> None:
    name = f"short (< 2 seasons of {season})"
    for rows, warned in ((2 * season - 1, True), (2 * season, False)):
        found = {one.problem: one.where for one in check(joined(D("long", 60, freq), D("A", rows, freq))).findings}
        assert found.get(name) == ("A" if warned else None), rows
    holed = D("A", 2 * season + 1, freq)  # rows are counted that have a value
    for missing, warned in (([3, 6], True), ([3], False)):
        frame = holed.assign(y=holed["y"].mask(holed.index.isin(missing)))
        assert (name in {one.problem for one in check(frame).findings}) == warned
