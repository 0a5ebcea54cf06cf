from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Capabilities, Conformal, Naive, SeasonalNaive
from deepforecast.core.preprocessing import preprocess
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from tests.frames import D, joined


class Counts(Naive):
    """Takes what can be counted."""

    capabilities = Capabilities(missing=True, domain="nonnegative")


class Ratios(Naive):
    """Takes what can be divided by."""

    capabilities = Capabilities(missing=True, domain="positive")


def panel(**lengths: int) -> Panel:
    return Panel.from_frame(joined(*(D(name, n) for name, n in lengths.items())), freq="D")


# -- every series that is named comes with its own value ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ({"A": 60, "B": 6}, "requires at least 7 values per series, but series B has 6. Set on_failure"),
        ({"A": 4, "B": 6}, "requires at least 7 values per series, but series A has 4, B has 6. Set on_failure"),
        ({"A": 5, "B": 5, "C": 9}, "series A, B have 5 each. Set on_failure"),
        ({f"s{n}": n for n in range(1, 7)}, "series s1 has 1, s2 has 2, s3 has 3, s4 has 4, s5 has 5 … (6 in all). Set on_failure"),
    ],
    ids=["one", "two", "alike", "many"],
)
def test_message_of_short_series_gives_the_length_of_each(lengths: dict[str, int], said: str) -> None:
    frame = joined(*(D(name, n) for name, n in lengths.items()))
    with pytest.raises(DataError) as caught:
        SeasonalNaive(horizon=3, season_length=7).fit(frame, freq="D")
    assert said in str(caught.value)


def test_message_of_series_too_short_for_calibration_gives_the_length_of_each() -> None:
    frame = joined(D("A", 60), D("B", 8), D("C", 9))
    with pytest.raises(DataError, match=r"require 7 values to fit and 3 more .* forecast, but series B has 8, C has 9\. Leave"):
        Conformal(SeasonalNaive(season_length=7), horizon=3)._calibrate(Panel.from_frame(frame))


def test_the_first_of_several_gaps_says_whose_it_is() -> None:
    frame = joined(D("A"), D("B"), D("C"))
    holed = frame.drop(index=[70, 71, 130])

    class Whole(Naive):
        capabilities = Capabilities()

    with pytest.raises(DataError, match=r"missing in 3 rows of series B, C, first at 2024-01-11 \(series B\) \("):
        Whole(horizon=3).fit(holed)
    with pytest.raises(DataError, match=r"missing in 2 rows of series B, first at 2024-01-11 \(rows absent"):
        Whole(horizon=3).fit(frame.drop(index=[70, 71]))


def test_the_span_of_several_empty_series_says_whose_it_is() -> None:
    given = panel(A=60, B=50, C=40)
    empty = given.with_target(np.where(np.arange(150) < 60, given.y, np.nan))
    with pytest.raises(DataError, match=r"missing in series B, C, from 2024-01-01 to 2024-02-19 \(series B\)\. Leave"):
        preprocess(Naive(), empty)


def test_where_several_series_stand_says_whose_it_is() -> None:
    model = Naive(horizon=3).fit(joined(D("A", 30), D("B", 40)))
    again = joined(D("A", 30), D("B", 40)).groupby("unique_id").tail(1)
    with pytest.raises(
        DataError, match=r"series A is known up to 2024-01-30 and its new rows start at .* \(2 such series: A, B\)"
    ):
        model.update(again)
    with pytest.raises(DataError, match=r"time grid, but series B is known up to 2024-02-09 and its new rows"):
        model.update(again[again.unique_id == "B"])
    later = again.assign(ds=again.ds + pd.Timedelta(days=9))
    filling = Naive(horizon=3, missing="ffill").fit(joined(D("A", 30), D("B", 40)))
    with pytest.raises(DataError, match=r"series A is known up to 2024-01-30 and its new rows start at 2024-02-08 .*A, B"):
        filling.update(later)


# -- values that a model does not take ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "value", "refused"), [(Counts, 0.0, False), (Counts, -2.5, True), (Ratios, 0.0, True), (Ratios, -2.5, True)]
)
def test_values_outside_the_domain_are_refused_by_name(model: Any, value: float, refused: bool) -> None:
    given = panel(A=40, B=40)
    y = given.y.copy()
    y[[45, 50]] = value, np.nan
    changed = given.with_target(y)
    if not refused:
        assert preprocess(model(missing="ffill"), changed).y[45] == value
        return
    domain = model.capabilities.domain
    with pytest.raises(DataError) as caught:
        preprocess(model(missing="ffill"), changed)
    assert f"Column y must be {domain} for {model().name}, got {value:g} at 2024-01-06 in series B. Leave" in str(caught.value)
    y[3] = -7.0
    with pytest.raises(DataError, match=r"got -7 at 2024-01-04 \(series A\) in series A, B\."):
        preprocess(model(missing="ffill"), given.with_target(y))


def test_what_filling_puts_outside_the_domain_is_not_said_to_be_in_the_data() -> None:
    frame = joined(D("A", 40), D("B", 40)).drop(index=[50, 51])
    with pytest.raises(DataError) as caught:
        Ratios(missing="zero").fit(frame)
    said = "Ratios cannot be used with missing='zero', as its values must be positive, but column y is missing in 2 rows of series B, "
    assert str(caught.value).startswith(said + "first at 2024-01-11. Set missing='interpolate' or 'ffill'")
    Ratios(missing="ffill").fit(frame)
    with pytest.raises(DataError, match=r"got -1 at 2024-01-01 in series A\. Leave"):
        Ratios(missing="zero").fit(frame.assign(y=frame.y.mask(frame.index == 0, -1.0)))


def test_what_is_filled_with_zeros_has_zeros() -> None:
    given = panel(A=40)
    y = given.y.copy()
    y[5] = np.nan
    with pytest.raises(DataError, match=r"missing='zero', as its values must be .* first at 2024-01-06"):
        preprocess(Ratios(missing="zero"), given.with_target(y))
    assert preprocess(Counts(missing="zero"), given.with_target(y)).y[5] == 0


@pytest.mark.parametrize("model", [Ratios(horizon=3), Conformal(Ratios(horizon=3))], ids=["alone", "wrapped"])
def test_complete_data_are_looked_at_too(model: Any) -> None:
    frame = joined(D("A"), D("B"))
    with pytest.raises(DataError, match=r"must be positive for .*, got -1 at 2024-01-11 in series B"):
        model.fit(frame.assign(y=frame.y.where(frame.index != 70, -1.0)))
    model.fit(frame)


def test_histories_and_updates_are_looked_at_too() -> None:
    frame = joined(D("A"), D("B"))
    model = Ratios(horizon=3).fit(frame)
    bad = frame.assign(y=frame.y.where(frame.index != 70, -1.0))
    with pytest.raises(DataError, match="got -1 at 2024-01-11 in series B"):
        model.predict(frame=bad)
    with pytest.raises(DataError, match="got 0 at 2024-03-01 in series A"):
        model.update(D("A", 61).tail(1).assign(y=0.0))
