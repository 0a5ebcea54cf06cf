from __future__ import annotations

import numpy as np
import pytest

from deepforecast.data.cutoffs import Plan, windows
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from tests.frames import D, joined


def panel(*lengths: int) -> Panel:
    """Series a, b, ... of these lengths, which end on the same day; y counts the rows from the end, 0 the last."""
    frames = [
        D(chr(97 + i), n).assign(ds=lambda f: f.ds - f.ds.iloc[-1] + D("x", 60).ds.iloc[-1], y=-np.arange(n)[::-1] * 1.0)
        for i, n in enumerate(lengths)
    ]
    return Panel.from_frame(joined(*frames), freq="D")


def test_windows_count_back_from_the_end() -> None:
    held = panel(20, 12)
    found = windows(held, Plan(horizon=3, n_windows=3, step=2))
    assert [window.number for window in found] == [0, 1, 2]
    assert [window.cut.tolist() for window in found] == [[13, 5], [15, 7], [17, 9]]
    last = found[-1]
    history = last.history(held)
    assert history.lengths.tolist() == [17, 9]
    assert history.y[history.indptr[1:] - 1].tolist() == [-3, -3]
    rows, there = last.ahead(held, 0, 3)
    assert held.y[rows].tolist() == [[-2, -1, 0], [-2, -1, 0]]
    assert there.all()


def test_gap_and_sliding_size() -> None:
    held = panel(20, 6)
    window = windows(held, Plan(horizon=2, n_windows=1, step=1, gap=3, size=4))[0]
    history = window.history(held)
    assert history.lengths.tolist() == [4, 1]
    assert history.y.tolist() == [-8, -7, -6, -5, -5]
    assert held.y[window.ahead(held, 3, 2)[0]].tolist() == [[-1, 0], [-1, 0]]


def test_no_history_touches_what_is_judged() -> None:
    held = panel(30, 17, 9)
    for align in ("series", "calendar"):
        for gap in (0, 2):
            for window in windows(held, Plan(2, 3, 2, gap=gap, align=align)):
                history = window.history(held)
                rows, there = window.ahead(held, gap, 2)
                firsts = held.row_positions[rows[:, 0]]
                assert (firsts - history.series.last == (gap + 1) * held.calendar.step).all()
                assert there[:, 0].all()
                assert history.series.ids.to_list() == [held.series.ids[int(one)] for one in window.series]


def test_on_one_calendar_series_that_ended_earlier_are_judged_where_they_have_rows() -> None:
    frame = joined(D("a", 20), D("b", 17), D("c", 20, start="2024-01-10"))
    held = Panel.from_frame(frame)
    found = windows(held, Plan(horizon=4, n_windows=2, step=4, align="calendar"))
    # c ends last, on 2024-01-29; the cutoffs are the 21st and the 25th, and a (to the 20th) and b (to the 17th) end before
    assert [window.series.tolist() for window in found] == [[2], [2]]
    one = windows(held, Plan(horizon=10, n_windows=1, step=1, align="calendar"))[0]
    assert one.series.tolist() == [0, 2]
    rows, there = one.ahead(held, 0, 10)
    assert there.tolist() == [[True] + [False] * 9, [True] * 10]
    assert held.stamp(int(rows[0, 0])) == "2024-01-20"
    last = {held.calendar.text(int(position)) for position in one.history(held).series.last}
    assert last == {"2024-01-19"}


def test_short_series_are_named() -> None:
    with pytest.raises(ParameterError, match=r"n_windows=3 .*series b has 7"):
        windows(panel(20, 7), Plan(horizon=3, n_windows=3, step=2))
    assert len(windows(panel(20, 8), Plan(horizon=3, n_windows=3, step=2))) == 3
    with pytest.raises(ParameterError, match=r"n_windows=3 .*series b has 8"):
        windows(panel(20, 8), Plan(horizon=3, n_windows=3, step=2, needed=3))


def test_a_calendar_without_rows_on_both_sides() -> None:
    with pytest.raises(ParameterError, match=r"n_windows=3.*no series .*cutoff 1"):
        windows(panel(5, 4), Plan(horizon=3, n_windows=3, step=2, align="calendar"))
