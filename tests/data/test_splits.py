from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepforecast import Panel
from deepforecast.data.windows import BacktestPlan, backtest_windows, rows_until_observed
from deepforecast.errors import ParameterError

LENGTHS = st.lists(st.integers(1, 20), min_size=1, max_size=4)
PLANS = st.builds(
    BacktestPlan, horizon=st.integers(1, 4), n_windows=st.integers(1, 4), step=st.integers(1, 4), gap=st.integers(0, 2),
    train_size=st.none() | st.integers(1, 9), align=st.sampled_from(["series", "calendar"]), min_observations=st.integers(1, 5),
    full_windows=st.booleans(),
)  # fmt: skip


def panel_of(lengths: list[int], ends: list[int] | None = None, missing: tuple[tuple[int, int], ...] = ()) -> Panel:
    """Series of whole-number time; value 100 * series + stamp. `ends[i]`: how long before the latest end a series ends."""
    parts = []
    for number, length in enumerate(lengths):
        last = 1000 - (ends[number] if ends else 0)
        stamps = np.arange(last - length + 1, last + 1)
        y = np.array([np.nan if (number, row) in missing else 1e6 * number + stamp for row, stamp in enumerate(stamps)])
        parts.append(pd.DataFrame({"unique_id": number, "ds": stamps, "y": y}))
    return Panel.from_frame(pd.concat(parts), freq=1)


def expected(panel: Panel, plan: BacktestPlan) -> list[dict[int, tuple[int, int]]] | None:
    """By a plain loop: for each window, series -> (begin, cut); None where it is refused."""
    found = []
    latest = max(panel.series.last)
    for number in range(plan.n_windows):
        later = plan.horizon + plan.gap + (plan.n_windows - 1 - number) * plan.step
        window = {}
        for one in range(len(panel)):
            y = panel.y[panel.indptr[one] : panel.indptr[one + 1]]
            last = panel.series.last[one]
            cut = len(y) - later if plan.align == "series" else min(len(y), len(y) - (last - (latest - later)))
            begin = 0 if plan.train_size is None else max(0, cut - plan.train_size)
            seen = np.sum(~np.isnan(y[begin:cut])) if cut > 0 else 0
            ahead = len(y) - (cut + plan.gap)
            if seen >= plan.min_observations and ahead >= (plan.horizon if plan.full_windows else 1):
                window[one] = (begin, cut)
            elif plan.align == "series":
                return None
        if not window:
            return None
        found.append(window)
    return found if plan.train_size is None or plan.train_size >= plan.min_observations else None


@settings(max_examples=300)
@given(LENGTHS, st.data(), PLANS)
def test_windows_are_those_of_a_plain_loop(lengths: list[int], data: st.DataObject, plan: BacktestPlan) -> None:
    ends = data.draw(st.lists(st.integers(0, 12), min_size=len(lengths), max_size=len(lengths)))
    missing = data.draw(st.sets(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=20))
    panel = panel_of(lengths, ends, tuple(missing))
    wanted = expected(panel, plan)
    if wanted is None:
        with pytest.raises(ParameterError):
            backtest_windows(panel, plan)
        return
    found = backtest_windows(panel, plan)
    assert [window.number for window in found] == list(range(plan.n_windows))
    for window, one in zip(found, wanted, strict=True):
        bounds = zip(window.train_start.tolist(), window.cutoff.tolist(), strict=True)
        assert dict(zip(window.series.tolist(), bounds, strict=True)) == one


@given(LENGTHS, PLANS)
def test_a_history_ends_at_the_cutoff_and_what_is_judged_begins_after_it(lengths: list[int], plan: BacktestPlan) -> None:
    panel = panel_of([length + 20 for length in lengths])
    plan = replace(plan, train_size=None if plan.train_size is None else plan.train_size + plan.min_observations)
    for window in backtest_windows(panel, plan):
        history = window.history(panel)
        rows, there = window.test_rows(panel, plan.gap, plan.horizon)
        assert (history.lengths == window.cutoff - window.train_start).all()
        for place, one in enumerate(window.series):
            last = history.series.last[place]
            own = history.y[history.indptr[place] : history.indptr[place + 1]]
            assert (own == 1e6 * one + np.arange(last - len(own) + 1, last + 1)).all()
            ahead = panel.y[rows[place]][there[place]]
            assert (ahead == 1e6 * one + last + plan.gap + np.arange(1, plan.horizon + 1)[there[place]]).all()


def test_rows_that_are_not_there_are_said_to_be_absent() -> None:
    panel = panel_of([20, 20], ends=[0, 3])
    (window,) = backtest_windows(panel, BacktestPlan(5, 1, 5, align="calendar"))
    rows, there = window.test_rows(panel, 0, 5)
    assert there.tolist() == [[True] * 5, [True, True, False, False, False]]
    assert (rows >= 0).all()
    assert (rows < len(panel.y)).all()
    (window,) = backtest_windows(panel, BacktestPlan(5, 1, 5, align="calendar", full_windows=True))
    assert window.series.tolist() == [0]


def test_what_is_known_ahead_needs_rows_that_are_there() -> None:
    frame = panel_of([20, 20], ends=[0, 3]).to_frame().assign(promo=1.0)
    panel = Panel.from_frame(frame, freq=1, columns={"future": ["promo"]})
    assert backtest_windows(panel, BacktestPlan(5, 1, 5, align="calendar"))[0].series.tolist() == [0]


@given(LENGTHS, st.sets(st.tuples(st.integers(0, 3), st.integers(1, 28))), st.integers(1, 6))
def test_ready(lengths: list[int], missing: Any, needed: int) -> None:
    panel = panel_of(lengths, missing=tuple(missing))
    for one, found in enumerate(rows_until_observed(panel, needed)):
        seen = np.cumsum(~np.isnan(panel.y[panel.indptr[one] : panel.indptr[one + 1]]))
        if seen[-1] < needed:
            assert found > len(seen)
        else:
            assert seen[found - 1] == needed
            assert found == 1 or seen[found - 2] == needed - 1


def test_too_many_windows_for_the_shortest_series() -> None:
    panel = panel_of([30, 9, 30, 8])
    with pytest.raises(
        ParameterError, match=r"n_windows=3 .* requires 1 value .*eries 1, 3 have fewer: the first, 1, has 9 rows"
    ):
        backtest_windows(panel, BacktestPlan(3, 3, 3))
    with pytest.raises(ParameterError, match=r"series 3 has 8 rows\. Use fewer"):
        backtest_windows(panel.take(np.array([0, 2, 3])), BacktestPlan(3, 3, 3))
    with pytest.raises(ParameterError, match=r"and 2 rows after them; series 1 has 1 row\."):
        backtest_windows(panel_of([30, 1]), BacktestPlan(1, 2, 1))
    assert len(backtest_windows(panel.take(np.array([0, 2])), BacktestPlan(3, 9, 3))) == 9
    with pytest.raises(ParameterError, match="Use fewer windows"):
        backtest_windows(panel, BacktestPlan(3, 11, 3, align="calendar"))
    with pytest.raises(ParameterError, match=r"series 1 has 2 non-missing values before cutoff 1"):
        backtest_windows(panel_of([9, 9], missing=((1, 2),)), BacktestPlan(3, 2, 3, min_observations=3))
    with pytest.raises(ParameterError, match=r"size` must be at least 5, .*, got 4"):
        backtest_windows(panel, BacktestPlan(3, 1, 3, train_size=4, min_observations=5))


def test_a_cutoff_is_the_same_day_for_all_series_by_calendar() -> None:
    frame = pd.DataFrame({"unique_id": "A", "ds": pd.date_range("2024-01-01", "2024-06-30"), "y": 1.0})
    other = pd.DataFrame({"unique_id": "B", "ds": pd.date_range("2024-02-01", "2024-06-10"), "y": 1.0})
    panel = Panel.from_frame(pd.concat([frame, other]))
    for window in backtest_windows(panel, BacktestPlan(7, 5, 7, align="calendar")):
        cutoff = panel.series.last.max() - panel.calendar.step * 7 * (5 - window.number)
        wanted = np.minimum(cutoff, panel.series.last)
        there = wanted < panel.series.last  # or the window has nothing to judge
        assert window.series.tolist() == np.flatnonzero(there).tolist()
        assert (window.history(panel).series.last == wanted[there]).all()
