"""What is forecast for a series is the same to the last bit, whatever the other series and their order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from deepforecast import Forecaster
from deepforecast.errors import DataError, DataWarning

STEPS = 5
NUMBERS = some.one_of(
    some.floats(-100, 100, allow_subnormal=False),
    some.integers(-3, 3).map(float),
    some.sampled_from([0.1, 1e9 + 0.3, 3e9 + 4, 1e200, -1e200, 1e-300, 1e-160, 5.0, 5.0, 5.0]),
)
VALUES = some.one_of(NUMBERS, NUMBERS, NUMBERS, some.just(np.nan))
WEEKS = some.tuples(some.lists(some.floats(0.5, 9), min_size=3, max_size=3), some.integers(3, 9))
SERIES = some.one_of(
    some.lists(NUMBERS, min_size=1, max_size=12),
    some.lists(VALUES, min_size=4, max_size=30),
    some.tuples(NUMBERS, some.integers(1, 30)).map(lambda pair: [pair[0]] * pair[1]),
    WEEKS.map(lambda pair: pair[0] * pair[1]),
)


def said(model: Forecaster, frame: pd.DataFrame) -> dict[str, Any]:
    """Everything a fitted model says of each series, as bytes; the errors of those who say nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        fitted = model.clone().fit(frame, freq="D")
        frames = [fitted.predict(STEPS), fitted.explain(STEPS)]
        for banded in (lambda: fitted.predict(STEPS, level=[80]), lambda: fitted.simulate(3, STEPS, seed=7)):
            try:
                frames.append(banded())
            except DataError:  # a series too short to know its spread
                frames.append(frames[0])
    return {
        name: tuple(one[one["unique_id"] == name].select_dtypes("float64").to_numpy().tobytes() for one in frames)
        for name in frame["unique_id"].unique()
    }


def alone(model: Forecaster, series: Sequence[list[float]], daily: Any) -> tuple[list[list[float]], list[Any]]:
    """The series that this model forecasts with bands by themselves, and what it says of each."""
    kept, bits = [], []
    for one in series:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                model.clone().fit(daily(A=one), freq="D").predict(STEPS, level=80)
        except DataError:
            continue
        kept.append(one)
        bits.append(said(model, daily(A=one))["A"])
    return kept, bits


def same_in_company(model: Forecaster, series: Sequence[list[float]], daily: Any) -> int:
    kept, bits = alone(model, series, daily)
    for order in (list(range(len(kept))), list(range(len(kept)))[::-1]):
        together = {f"id{place:02d}": kept[number] for place, number in enumerate(order)}
        if not together:
            continue
        found = said(model, daily(**together))
        for place, number in enumerate(order):
            assert found[f"id{place:02d}"] == bits[number], (model.name, kept, order, number)
    return len(kept)


@settings(max_examples=5)
@given(series=some.lists(SERIES, min_size=1, max_size=5))
def test_forecast_does_not_depend_on_the_panel(
    series: list[list[float]], baselines: tuple[Forecaster, ...], daily: Any
) -> None:
    for model in baselines:
        same_in_company(model, series, daily)


@pytest.mark.slow
@settings(max_examples=100)
@given(series=some.lists(SERIES, min_size=1, max_size=7))
def test_forecast_does_not_depend_on_the_panel_in_many_examples(
    series: list[list[float]], baselines: tuple[Forecaster, ...], daily: Any
) -> None:
    for model in baselines:
        same_in_company(model, series, daily)


def test_missing_values_of_one_series_change_no_other(patient: Forecaster, daily: Any) -> None:
    """The complete series take another way through the arithmetic than the one with holes: to the same bits."""
    random = np.random.default_rng(0)
    series = [list(random.normal(size=rows) / 3) for rows in (40, 41, 200)]
    series.append([np.nan, *random.normal(size=9), np.nan, 1.0, 2.0, 3.0, np.nan])
    assert same_in_company(patient, series, daily) == 4


def test_outlier_of_one_series_changes_no_other(model: Forecaster, daily: Any) -> None:
    random = np.random.default_rng(0)
    outlier = [*random.random(60), 1e9, *random.random(59)]
    series = [list(3 + random.random(50)), outlier, [1e200, 1e150, -1e200, 1.0, 1.0, 1.0, 1.0]]
    assert same_in_company(model, series, daily) == 3


def test_blocks_of_series_do_not_change_the_forecast(model: Forecaster, daily: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    frame = daily(**{f"s{number}": 3 + random.random(int(random.integers(9, 40))) for number in range(30)})
    whole = said(model, frame)
    monkeypatch.setattr("deepforecast.core.arrays.MAX_BLOCK_ROWS", 50)
    assert said(model, frame) == whole
