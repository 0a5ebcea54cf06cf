"""Windows: which there are, where they begin, what stands beside them, and that nothing after a cutoff is before it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deepforecast.data import features
from deepforecast.data.panel import Panel
from deepforecast.data.windows import (
    WindowArrays,
    WindowColumns,
    fit_window_columns,
    training_windows,
    validation_windows,
    window_arrays,
)
from tests.frames import D, P


def panel(*lengths: int, **columns: object) -> Panel:
    frames = [D(f"s{number}", length) for number, length in enumerate(lengths)]
    return Panel.from_frame(pd.concat(frames, ignore_index=True))


def cut(held: WindowArrays, series: int, cutoff: int) -> tuple[np.ndarray, np.ndarray]:
    begin, _ = held.window_start(np.array([series]), np.array([cutoff]))
    window = held.y[begin[0] : begin[0] + held.input_size + held.horizon]
    return window[: held.input_size], window[held.input_size :]


def made(source: Panel, input_size: int, horizon: int) -> WindowArrays:
    return window_arrays(
        source, fit_window_columns(source, input_size, horizon, features.default_features(source.calendar))
    )


@settings(deadline=None, max_examples=60)
@example([2, 9], 1, 6)  # a horizon that reaches farther than a window looks back
@given(st.lists(st.integers(2, 30), min_size=1, max_size=4), st.integers(1, 8), st.integers(1, 6))
def test_a_window_is_the_rows_up_to_its_cutoff_and_those_after_it(lengths: list[int], size: int, horizon: int) -> None:
    source = panel(*lengths)
    held, there = made(source, size, horizon), training_windows(source, size, horizon)
    series, cutoffs = there.locate(np.arange(len(there)))
    assert len(set(zip(series.tolist(), cutoffs.tolist(), strict=True))) == len(there)
    for one, cutoff in zip(series, cutoffs, strict=True):
        y = source.y[source.indptr[one] : source.indptr[one + 1]]
        past, ahead = cut(held, one, cutoff)
        wanted = np.full(size, np.nan)
        wanted[max(size - cutoff, 0) :] = y[max(cutoff - size, 0) : cutoff]
        np.testing.assert_array_equal(past, wanted)
        known = y[cutoff : cutoff + horizon]
        np.testing.assert_array_equal(ahead[: len(known)], known)
        assert np.isnan(ahead[len(known) :]).all()
        assert np.isfinite(past).any()
        assert len(known)


def test_a_long_series_gives_whole_windows_alone_and_a_short_one_those_it_can() -> None:
    there = training_windows(panel(30, 9), 8, 4)
    assert (there.first_cutoff.tolist(), there.last_cutoff.tolist()) == ([8, 1], [26, 5])


def test_rows_held_out_are_in_no_window_but_those_of_validation() -> None:
    source = panel(40, 25)
    there, looked = training_windows(source, 8, 4, n_validation=6), validation_windows(source, 4, 6)
    assert (there.last_cutoff + 4 <= source.lengths - 6).all()
    assert (looked.first_cutoff >= source.lengths - 6).all()
    assert (looked.last_cutoff + 4 <= source.lengths).all()


def test_only_recent_windows_are_drawn_where_that_is_asked() -> None:
    series, cutoffs = training_windows(panel(100), 8, 4, max_recent=5).draw(0, 0, 500, False)
    assert set(series) == {0}
    assert set(cutoffs) == set(range(92, 97))


def test_draws_hang_on_seed_and_step_alone_and_are_even() -> None:
    there = training_windows(panel(200, 20), 8, 4)
    first, again = there.draw(3, 7, 64, False), there.draw(3, 7, 64, False)
    np.testing.assert_array_equal(first, again)
    assert (first[1] != there.draw(3, 8, 64, False)[1]).any()
    assert (first[1] != there.draw(4, 7, 64, False)[1]).any()
    by_window, by_series = there.draw(0, 0, 20_000, False)[0], there.draw(0, 0, 20_000, True)[0]
    assert by_window.mean() == pytest.approx(9 / (9 + 189), abs=0.01)
    assert by_series.mean() == pytest.approx(0.5, abs=0.02)


def test_what_is_drawn_hangs_on_values_not_on_names() -> None:
    frame = P(3, 40)
    renamed = frame.assign(unique_id=frame["unique_id"].map({"s001": "z", "s002": "a", "s003": "m"}))
    one, other = Panel.from_frame(frame), Panel.from_frame(renamed)
    windows = []
    for source in (one, other):
        series, cutoffs = training_windows(source, 8, 4).draw(0, 0, 50, False)
        windows.append([source.y[source.indptr[s] + c - 1] for s, c in zip(series, cutoffs, strict=True)])
    assert windows[0] == windows[1]


def test_columns_are_standardised_and_missing_ones_are_in_the_middle() -> None:
    frame = P(2, 30).assign(price=np.arange(60.0) * 1e9, kind=pd.Categorical(["a", "b", "c"] * 20))
    frame.loc[5, "price"] = np.nan
    source = Panel.from_frame(frame, columns={"future": ["price"], "past": ["kind"]})
    found = fit_window_columns(source, 8, 4, ())
    held = window_arrays(source, found)
    own = np.concatenate([held.numeric[b : b + n, 0] for b, n in zip(held.first, held.lengths, strict=True)])
    assert own.mean() == pytest.approx(0, abs=1e-5)
    assert own.std() == pytest.approx(1, abs=0.02)
    assert own[5] == 0
    assert held.category_codes[held.first[0], 0] == 1
    assert held.category_codes[0, 0] == 0
    assert (found.n_future, found.n_future_codes, found.counts) == (1, 0, {"kind": 3})


def test_the_clock_stands_beside_its_row() -> None:
    source = panel(30, 20)
    held = made(source, 8, 4)
    _, time = held.window_start(np.array([1]), np.array([20]))
    shown = held.calendar[time[0] + 8 - 1]  # the last row up to the cutoff
    wanted = fit_window_columns(source, 8, 4, features.default_features(source.calendar)).calendar_values(
        source.calendar, source.series.last[1:]
    )
    np.testing.assert_array_equal(shown, wanted[0])


def test_channels_come_back_from_plain_values() -> None:
    frame = P(2, 30).assign(price=1.0, kind=pd.Categorical(["a", "b"] * 30), size=3.0)
    source = Panel.from_frame(frame, columns={"future": ["price", "kind"], "static": ["size"]})
    found = fit_window_columns(source, 8, 4, ("day_of_week", "month"))
    assert WindowColumns.from_dict(found.to_dict()) == found
