"""Where a fitted model stands: `update` in pieces and `predict(frame=...)` on other histories equal a replay by plain loops."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from deepforecast import Drift, Forecaster, Mean, Naive, Naive2, SeasonalMean
from deepforecast.errors import DataError, DataWarning

STEPS = 7
TRAIN = 9  # three seasons, never missing
ROWS = some.lists(some.one_of(some.floats(-50, 50), some.floats(-50, 50), some.just(np.nan)), min_size=1, max_size=20)


def equal(found: pd.DataFrame, expected: pd.DataFrame, exact: bool) -> None:
    pd.testing.assert_frame_equal(found, expected, check_exact=exact, rtol=1e-12, atol=1e-12)


def quietly(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return call()


@settings(max_examples=25)
@given(later=ROWS, cuts=some.lists(some.integers(0, 20), max_size=4), seed=some.integers(0, 5))
def test_updates_in_pieces_are_the_whole_history(
    later: list[float], cuts: list[int], seed: int, baselines: tuple[Forecaster, ...], daily: Any
) -> None:
    train = daily(A=20 + np.random.default_rng(seed).normal(size=TRAIN), B=np.arange(1.0, TRAIN + 1))
    new = daily(after=TRAIN, A=later, B=later[::-1]).dropna()  # what is missing is not in the frame: gaps between pieces too
    day = (new["ds"] - train["ds"].max()).dt.days
    for model in baselines:
        if not model.capabilities.missing and np.isnan(later).any():
            continue
        grown = model.clone().fit(train)
        for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), len(later)], strict=True):
            piece = new[(day > first) & (day <= last)]
            if len(piece):
                quietly(lambda grown=grown, piece=piece: grown.update(piece))
        whole = pd.concat([train, new])
        expected = quietly(lambda model=model, whole=whole: model.clone().fit(train).predict(STEPS, frame=whole, level=[80]))
        equal(grown.predict(STEPS, level=[80]), expected, exact=not isinstance(model, (Mean, SeasonalMean)))


@settings(max_examples=25)
@given(history=ROWS, rows=some.integers(3, 12), seed=some.integers(0, 5))
def test_other_histories_are_replayed(
    history: list[float], rows: int, seed: int, baselines: tuple[Forecaster, ...], daily: Any, plain: Any
) -> None:
    """Longer, shorter, ending at any place of the season: the state is that of a fit on the history, the deviation stays."""
    random = np.random.default_rng(seed)
    train = daily(A=20 + random.normal(size=12) + 3 * (np.arange(12) % 3))
    y = [*(20 + random.normal(size=rows)), *history]
    for model in baselines:
        if isinstance(model, (Drift, Naive2)) or (not model.capabilities.missing and np.isnan(y).any()):
            continue
        fitted, fresh = model.clone().fit(train), model.clone()
        found = quietly(lambda fitted=fitted: fitted.predict(STEPS, frame=daily(A=y)[["unique_id", "ds", "y"]]))
        points, _ = plain(model, np.array(y)[: len(y)], STEPS)
        np.testing.assert_allclose(found[model.name], points, rtol=1e-12, atol=1e-12)
        quietly(lambda fresh=fresh: fresh.fit(daily(A=y)))
        here, there = (quietly(lambda m=m: m._state_for_frame(daily(A=y), None)).learned for m in (fitted, fresh))
        assert here["deviation"] == fitted.state_.learned["deviation"]
        np.testing.assert_array_equal(fitted._deviation_factor(here, STEPS), fresh._deviation_factor(there, STEPS))


def test_trailing_rows_without_a_value_widen_the_bands(patient: Forecaster, daily: Any, plain: Any) -> None:
    """A missing last value moves no stamp, and is not taken for the last value."""
    y = [*np.random.default_rng(0).normal(size=20), np.nan, np.nan]
    with pytest.warns(DataWarning, match="y is missing in 2 rows of series A, first at 2024-01-21"):
        found = patient.fit(daily(A=y)).predict(3, level=80)
    points, spread = plain(patient, y, 3)
    assert found["ds"].iloc[0] == pd.Timestamp("2024-01-23")
    np.testing.assert_allclose(found[patient.name], points, rtol=1e-12)
    width = found[f"{patient.name}-hi-80"] - found[f"{patient.name}-lo-80"]
    np.testing.assert_allclose(width, 2 * 1.2815515655446004 * np.array(spread), rtol=1e-12)


@pytest.mark.parametrize("others", [{}, {"B": [np.nan, 4.0, np.nan]}, {"B": [np.nan] * 3}], ids=["alone", "seen", "unseen"])
def test_update_with_missing_values_advances_the_time(patient: Forecaster, daily: Any, others: Any) -> None:
    """As if the rows had been there in fit, and said once; a history without a value stays refused."""
    random = np.random.default_rng(3)
    known = {"A": random.normal(size=20), "B": random.normal(size=20)}
    patient.fit(daily(**known))
    with pytest.warns(DataWarning, match="forecasts through missing values: column y is missing in") as said:
        patient.update(daily(after=20, A=[np.nan] * 3, **others))
    assert len(said) == 1
    whole = {name: [*y, *others.get(name, [np.nan] * 3 if name == "A" else [])] for name, y in known.items()}
    fresh = quietly(lambda: patient.clone().fit(daily(**whole)).predict(4))
    found = patient.predict(4)
    assert (found["ds"] == fresh["ds"]).all()
    np.testing.assert_allclose(found[patient.name][:4], fresh[patient.name][:4], rtol=1e-12)
    for call in (lambda: patient.predict(4, frame=daily(A=[np.nan] * 9)), lambda: patient.fine_tune(daily(A=[np.nan] * 9))):
        with pytest.raises(DataError, match=r"at least one value.* are missing in series A"):
            call()


def test_update_with_missing_values_is_filled_or_refused(daily: Any) -> None:
    rows = daily(after=20, A=[np.nan] * 3)
    y = np.random.default_rng(3).normal(size=20)
    zero = Naive(missing="zero").fit(daily(A=y)).update(rows).predict(1)
    assert zero.iloc[0].tolist() == ["A", pd.Timestamp("2024-01-24"), 0.0]
    for model in (Naive(missing="ffill"), Mean(missing="interpolate"), Naive2(season_length=3)):
        fitted = model.fit(daily(A=1 + y**2))
        with pytest.raises(DataError, match=r"column y (is|are) missing .* series A, (first at|from) 2024-01-21"):
            fitted.update(rows)
        assert fitted.predict(1)["ds"].tolist() == [pd.Timestamp("2024-01-21")]


def test_drift_keeps_its_slope_on_other_histories(daily: Any) -> None:
    fitted = Drift().fit(daily(A=[1.0, 2.0, 4.0, 7.0]))
    np.testing.assert_array_equal(fitted.predict(2, frame=daily(A=[10.0, 20.0, 100.0]))["Drift"], [102.0, 104.0])
    with pytest.warns(DataWarning, match="missing"):
        fitted.update(daily(after=5, A=[9.0]))  # a day is missing in between
    np.testing.assert_array_equal(fitted.predict(2)["Drift"], [11.0, 13.0])


@pytest.mark.parametrize("rows", range(10, 18))
@pytest.mark.parametrize("begin", [0, 1, 2])
def test_naive2_knows_the_place_in_the_season_by_the_calendar(daily: Any, rows: int, begin: int) -> None:
    """Histories that begin and end anywhere: of a perfect season, the forecast goes on with it."""
    season = np.array([1.0, 2.0, 4.0])
    fitted = Naive2(season_length=3).fit(daily(A=season[np.arange(12) % 3]))
    history = daily(A=season[np.arange(rows) % 3])[begin:]
    expected = season[np.arange(rows, rows + 5) % 3]
    np.testing.assert_allclose(fitted.predict(5, frame=history)["Naive2"], expected, rtol=1e-14)
    if rows > 12:
        fitted.update(history[history["ds"] >= pd.Timestamp("2024-01-13")])
        np.testing.assert_allclose(fitted.predict(5)["Naive2"], expected, rtol=1e-14)


CALENDARS = {"ME": "1960-01-31", "h": "2024-03-30", "W-WED": "2024-01-03", "B": "2024-01-01", "QE": "1969-06-30"}


@pytest.mark.parametrize(("freq", "first"), CALENDARS.items())
@pytest.mark.parametrize("unit", ["ns", "s"])
def test_naive2_on_every_calendar(freq: str, first: str, unit: str) -> None:
    """Positions count raw units, weeks or points of a grid, before 1970 below 0; another unit of time changes nothing."""
    season = np.array([1.0, 2.0, 4.0, 3.0])
    stamps = pd.date_range(first, periods=30, freq=freq)
    frame = pd.DataFrame({"ds": stamps, "y": season[np.arange(30) % 4]})
    fitted = Naive2(season_length=4).fit(frame[:20], freq=freq)
    other = frame[3:27].assign(ds=lambda held: held["ds"].dt.as_unit(unit))
    np.testing.assert_allclose(fitted.predict(6, frame=other)["Naive2"], season[np.arange(27, 33) % 4], rtol=1e-14)


def test_update_of_some_series_leaves_the_others(model: Forecaster, daily: Any) -> None:
    random = np.random.default_rng(0)
    train = daily(A=3 + random.random(12), B=3 + random.random(12), C=3 + random.random(12))
    fitted = model.fit(train)
    before = fitted.predict(STEPS, level=80)
    fitted.update(daily(after=12, B=[7.0, 8.0]))
    after = fitted.predict(STEPS, level=80)
    for name in ("A", "C"):
        equal(after[after["unique_id"] == name], before[before["unique_id"] == name], exact=True)
    assert after.loc[after["unique_id"] == "B", "ds"].iloc[0] == pd.Timestamp("2024-01-15")
    assert (after[after["unique_id"] == "B"].iloc[0, 2:] != before[before["unique_id"] == "B"].iloc[0, 2:]).any()


def test_a_history_too_short_is_refused(model: Forecaster, daily: Any) -> None:
    fitted = model.fit(daily(A=np.arange(1.0, 13)))
    needed = {"Naive": 1, "Naive2": 1, "Mean": 1, "Drift": 2}.get(model.name, 3)
    fitted.predict(2, frame=daily(A=np.arange(1.0, needed + 1)))
    if needed > 1:
        with pytest.raises(DataError, match=f"at least {needed} values .*series A has {needed - 1}"):
            fitted.predict(2, frame=daily(A=np.arange(1.0, needed)))


def test_an_unknown_series_is_fitted_aloud(model: Forecaster, daily: Any) -> None:
    random = np.random.default_rng(0)
    known, new = 3 + random.random(12), 3 + random.random(15)
    with pytest.warns(DataWarning, match="not seen in fit are fitted now: B"):
        found = model.fit(daily(A=known)).predict(STEPS, frame=daily(A=known, B=new), level=80)
    expected = model.clone().fit(daily(A=known, B=new)).predict(STEPS, level=80)
    equal(found, expected, exact=True)
