from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast.data import frames
from deepforecast.data.panel import Panel
from deepforecast.datasets import Recipe, generate
from tests.frames import LIBRARIES, D, P, converted, joined, plain, same


def ragged() -> Panel:
    frame = joined(D("A", 5), D("B", 3, start="2024-01-04"), D("C", 1))
    frame = frame.assign(y=np.arange(9.0), promo=np.arange(9.0) * 10, size=[1.0] * 5 + [2.0] * 3 + [3.0])
    frame.loc[[1, 6], "y"] = np.nan
    return Panel.from_frame(frame, columns={"future": "promo", "static": "size"}, freq="D")


def test_lengths_starts_and_rows() -> None:
    panel = ragged()
    assert len(panel) == 3
    assert panel.lengths.tolist() == [5, 3, 1]
    assert panel.observed.tolist() == [4, 2, 1]
    assert panel.row_series.tolist() == [0] * 5 + [1] * 3 + [2]
    assert [panel.format_timestamp(row) for row in (0, 4, 5, 7, 8)] == [
        "2024-01-01",
        "2024-01-05",
        "2024-01-04",
        "2024-01-06",
        "2024-01-01",
    ]
    stamps = panel.series.time_column(panel.row_positions).to_native()
    assert stamps.tolist() == [*D("A", 5).ds, *D("B", 3, start="2024-01-04").ds, pd.Timestamp("2024-01-01")]


def test_some_series_in_another_order() -> None:
    panel = ragged().take(np.array([2, 0]))
    assert panel.series.ids.to_list() == ["C", "A"]
    np.testing.assert_array_equal(panel.y, [8, 0, np.nan, 2, 3, 4])
    assert panel.covariates["promo"].values.tolist() == [80, 0, 10, 20, 30, 40]
    assert panel.static["size"].values.tolist() == [3, 1]
    assert panel.series.label(0) == "C"
    assert panel.format_timestamp(0) == "2024-01-01"
    whole = panel.take(np.arange(2))
    assert whole.series.ids.to_list() == ["C", "A"]


def test_some_rows_of_each_series() -> None:
    panel = ragged().between(np.array([1, 0, 0]), np.array([4, 2, 1]))
    np.testing.assert_array_equal(panel.y, [np.nan, 2, 3, 5, np.nan, 8])
    assert [panel.format_timestamp(row) for row in (0, 2, 3, 5)] == ["2024-01-02", "2024-01-04", "2024-01-04", "2024-01-01"]
    assert panel.lengths.tolist() == [3, 2, 1]
    tail = ragged().tail(2)
    np.testing.assert_array_equal(tail.y, [3, 4, np.nan, 7, 8])
    assert [tail.format_timestamp(row) for row in (0, 2, 4)] == ["2024-01-04", "2024-01-05", "2024-01-01"]
    assert not np.shares_memory(tail.y, ragged().y)


def test_series_without_rows_have_no_values() -> None:
    panel = ragged().between(np.array([0, 3, 0]), np.array([2, 3, 1]))
    assert panel.lengths.tolist() == [2, 0, 1]
    assert panel.observed.tolist() == [1, 0, 1]


def test_padded() -> None:
    np.testing.assert_array_equal(ragged().padded(3), [[2, 3, 4], [5, np.nan, 7], [np.nan, np.nan, 8]])
    assert ragged().padded(7).shape == (3, 7)


def test_with_other_values() -> None:
    panel = ragged()
    assert panel.with_target(np.zeros(9)).observed.tolist() == [5, 3, 1]
    assert panel.observed.tolist() == [4, 2, 1]


def test_labels() -> None:
    panel = Panel.from_frame(P(9, 3))
    assert panel.series.labels(np.arange(2)) == "s001, s002"
    assert panel.series.labels(np.arange(9)) == "s001, s002, s003, s004, s005 … (9 in all)"
    assert Panel.from_frame(D().drop(columns="unique_id")).series.label(0) == "(no id)"
    assert Panel.from_frame(D().assign(unique_id=np.int16(4))).series.label(0) == "4"


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_a_forecast(library: str) -> None:
    series = Panel.from_frame(converted(P(2, 3), library)).series
    rows = plain(frames.build(library, series.key_columns(series.calendar.next_positions(series.last, 2))))
    assert rows["unique_id"].to_list() == ["s001", "s001", "s002", "s002"]
    assert [str(stamp)[:10] for stamp in rows["ds"].to_list()] == ["2024-01-04", "2024-01-05"] * 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_frame_of_a_panel_has_every_column(library: str) -> None:
    frame = P(2, 4).assign(promo=np.arange(8.0), kind=pd.Categorical(["a", "b"] * 4), size=[1.0] * 4 + [2.0] * 4)
    columns = {"future": "promo", "past": "kind", "static": "size"}
    back = Panel.from_frame(converted(frame, library), columns=columns).to_frame()
    same(plain(back).astype({"kind": str}), frame.astype({"kind": str}))
    assert type(back) is type(converted(frame, library))


def test_frames_do_not_share_the_panel_s_memory() -> None:
    panel = ragged()
    frame = panel.to_frame()
    frame["y"] = 5.0
    frame.loc[:, "promo"] = 5.0
    assert panel.y[0] == 0
    assert panel.covariates["promo"].values[2] == 20


@pytest.mark.parametrize("covariates", [[], ["price"]])
@pytest.mark.parametrize("length", [30, 400])
def test_rows_are_copied_alike_from_short_and_long_series(length: int, covariates: list[str]) -> None:
    frame = generate(3, length, recipe=Recipe(covariates=covariates))
    panel = Panel.from_frame(frame, columns={"future": tuple(covariates)})
    begin, end = np.array([0, 5, 11]), np.array([length, length - 7, length - 1])
    found = panel.between(begin, end)
    rows = np.concatenate([np.arange(panel.indptr[n] + begin[n], panel.indptr[n] + end[n]) for n in range(3)])
    np.testing.assert_array_equal(found.y, panel.y[rows])
    assert found.lengths.tolist() == (end - begin).tolist()
    assert list(found.covariates) == covariates
    assert not np.shares_memory(found.y, panel.y)
    assert len(panel.take(np.array([], dtype=np.int64)).y) == 0
