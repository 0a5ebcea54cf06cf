"""How far an axis reaches."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast.plotting.chart import Axis, Band, Bars, Dots, Line, Mark, Panel, Rules, Spans
from deepforecast.plotting.limits import axis_range

Ends = tuple[float, float] | None
ONE, TWO = np.array([1.0, 2.0]), np.array([5.0, 9.0])


@pytest.mark.parametrize(
    ("mark", "across", "upright"),
    [
        (Line(ONE, TWO), (1, 2), (5, 9)),
        (Dots(ONE, TWO), (1, 2), (5, 9)),
        (Band(ONE, TWO - 10, TWO, "#000000", 1.0), (1, 2), (-5, 9)),
        (Spans(ONE, TWO - 10, TWO, "#000000"), (1, 2), (-5, 9)),
        (Spans(ONE, TWO - 10, TWO, "#000000", vertical=False), (-5, 9), (1, 2)),
        (Rules(ONE), (1, 2), None),
        (Rules(ONE, vertical=False), None, (1, 2)),
    ],
)
def test_every_mark_is_reached_with_room(mark: Mark, across: Ends, upright: Ends) -> None:
    panel = Panel((mark,))
    for side, ends in (("x", across), ("y", upright)):
        found = axis_range(panel, side)
        if ends is None:
            assert found is None
        else:
            assert found == pytest.approx((ends[0] - 0.05 * (ends[1] - ends[0]), ends[1] + 0.05 * (ends[1] - ends[0])))


def test_a_histogram_stands_on_the_ground() -> None:
    low, high = axis_range(Panel((Bars(np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0]), "#000000"),)), "y") or (None, None)
    assert low == 0
    assert high == pytest.approx(4.2)


def test_logarithms_and_missing_values() -> None:
    panel = Panel((Dots(np.array([0.1, 10.0, np.nan]), np.array([1.0, 1.0, 1.0])),), x=Axis(kind="log"))
    assert axis_range(panel, "x") == pytest.approx((-1.1, 1.1))
    assert axis_range(panel, "y") == (0.5, 1.5)  # all at one place


def test_what_is_too_little_to_tell() -> None:
    assert axis_range(Panel((Dots(ONE, np.zeros(2)),)), "y") is None
    assert axis_range(Panel((Dots(ONE[:1], ONE[:1]),), x=Axis(kind="integer")), "x") is None
    assert axis_range(Panel(()), "x") is None
