"""Ticks of axes: round numbers, whole powers, dates in their zone, never a warning."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast.plotting.chart import Axis
from deepforecast.plotting.ticks import find_ticks


def microseconds(stamp: str) -> float:
    return float(np.datetime64(stamp, "us").astype(np.int64))


@pytest.mark.parametrize("most", range(2, 13))
def test_dates_of_any_span_have_ticks_inside(most: int) -> None:
    start = microseconds("2017-07-14")
    for span in np.geomspace(1e3, 3e15, 60):  # a millisecond to a century; warnings are errors
        found = find_ticks(Axis(kind="time"), start, start + span, most)
        assert 1 <= len(found.positions) <= max(most, 5)
        assert ((found.positions >= start - 1) & (found.positions <= start + span + 1)).all()
        assert len(found.labels) == len(found.positions)


def test_dates_are_those_of_the_zone() -> None:
    ends = microseconds("2024-01-01T12"), microseconds("2024-01-03T12")
    found = find_ticks(Axis(kind="time", zone="Asia/Tokyo"), *ends, 4)
    midnights = [at for at, label in zip(found.positions, found.labels, strict=True) if label.endswith("Jan")]
    assert str(np.datetime64(round(midnights[0]), "us")) == "2024-01-01T15:00:00.000000"
    assert found.shared == "2024"


@pytest.mark.parametrize(
    ("axis", "low", "high", "labels"),
    [
        (Axis(), -0.31, 0.22, ["-0.3", "-0.2", "-0.1", "0", "0.1", "0.2"]),
        (Axis(), 9_000.0, 31_000.0, ["10,000", "15,000", "20,000", "25,000", "30,000"]),
        (Axis(), 1e-7, 3e-7, ["1e-07", "1.5e-07", "2e-07", "2.5e-07", "3e-07"]),
        (Axis(kind="integer"), 0.6, 3.4, ["1", "2", "3"]),
        (Axis(tick_multiple=7), 0.0, 22.0, ["0", "7", "14", "21"]),
        (Axis(kind="log"), -0.1, 0.9, ["1", "2", "5"]),
        (Axis(kind="names", names=("a", "b")), -0.6, 1.4, ["a", "b"]),
    ],
)
def test_labels(axis: Axis, low: float, high: float, labels: list[str]) -> None:
    assert find_ticks(axis, low, high, 6).labels == labels
