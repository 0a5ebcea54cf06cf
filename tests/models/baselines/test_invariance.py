"""What must not change a forecast, and what must change it exactly so: scale, shift, order, clock, types, horizon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Forecaster
from deepforecast.errors import DataWarning

STEPS = 7


@pytest.fixture(scope="module")
def series() -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    lengths = {"A": 40, "B": 12, "C": 90}
    return {name: 20 + 5 * (np.arange(rows) % 3) + random.normal(size=rows) for name, rows in lengths.items()}


def numbers(model: Forecaster, frame: pd.DataFrame, steps: int = STEPS) -> np.ndarray:
    return np.asarray(model.clone().fit(frame, freq="D").predict(steps, level=[80, 95]).iloc[:, 2:])


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40, 2.0**600, 2.0**-900])
def test_scaling_by_a_power_of_two_is_exact(model: Forecaster, daily: Any, series: Any, scale: float) -> None:
    scaled = numbers(model, daily(**{name: y * scale for name, y in series.items()}))
    np.testing.assert_array_equal(scaled / scale, numbers(model, daily(**series)))


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12, 1e200, 1e-280])
def test_any_other_scaling_is_within_rounding(model: Forecaster, daily: Any, series: Any, scale: float) -> None:
    scaled = numbers(model, daily(**{name: y * scale for name, y in series.items()}))
    expected = numbers(model, daily(**series))
    np.testing.assert_allclose(scaled / scale, expected, rtol=1e-12)
    if model.name in ("Naive", "SeasonalNaive"):
        np.testing.assert_array_equal(scaled[:, 0], expected[:, 0] * scale)


def test_shift_and_sign(model: Forecaster, daily: Any, series: Any) -> None:
    if not model.capabilities.shift_equivariant:
        assert model.name == "Naive2"  # multiplicative
        return
    here = numbers(model, daily(**series))
    moved = numbers(model, daily(**{name: y + 1000 for name, y in series.items()}))
    np.testing.assert_allclose(moved - 1000, here, rtol=1e-10)
    flipped = numbers(model, daily(**{name: -y for name, y in series.items()}))
    np.testing.assert_array_equal(-flipped[:, 0], here[:, 0])
    np.testing.assert_allclose(-flipped[:, [2, 1, 4, 3]], here[:, 1:], rtol=1e-12)  # the quantiles' last digits


def test_row_order_and_time_shift(model: Forecaster, daily: Any, series: Any) -> None:
    frame = daily(**series)
    expected = numbers(model, frame)
    np.testing.assert_array_equal(numbers(model, frame.sample(frac=1, random_state=0)), expected)
    np.testing.assert_array_equal(numbers(model, daily(after=100, **series)), expected)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "Int64", "float32", "float16", "Float64"])
def test_dtype_of_the_target(model: Forecaster, daily: Any, dtype: str) -> None:
    whole = np.random.default_rng(0).integers(1, 100, 30)
    frame = daily(A=whole.astype("float64"))
    np.testing.assert_array_equal(numbers(model, frame.assign(y=frame["y"].astype(dtype))), numbers(model, frame))


def test_missing_values_of_every_dtype(patient: Forecaster, daily: Any) -> None:
    """`pd.NA` is NaN."""
    y = np.where(np.arange(30) % 7 == 6, np.nan, np.random.default_rng(0).integers(1, 100, 30))
    frame = daily(A=y)
    with pytest.warns(DataWarning, match="missing"):
        expected = numbers(patient, frame)
    for dtype in ("Float64", "Int64", "float32"):
        with pytest.warns(DataWarning, match="missing"):
            np.testing.assert_array_equal(numbers(patient, frame.assign(y=frame["y"].astype(dtype))), expected)


def test_shorter_horizon_is_the_beginning_of_a_longer_one(model: Forecaster, daily: Any, series: Any) -> None:
    longer = numbers(model, daily(**series), 20).reshape(3, 20, -1)
    for steps in (1, 2, 3, 4, 19):
        np.testing.assert_array_equal(numbers(model, daily(**series), steps), longer[:, :steps].reshape(3 * steps, -1))


def test_refit_and_refit_after_other_data_give_the_same_bits(model: Forecaster, daily: Any, series: Any) -> None:
    frame = daily(**series)
    expected = numbers(model, frame)
    again = model.fit(daily(X=[1.0, 5.0, 2.0, 4.0, 4.0]), freq="D").fit(frame, freq="D")
    np.testing.assert_array_equal(np.asarray(again.predict(STEPS, level=[80, 95]).iloc[:, 2:]), expected)
    np.testing.assert_array_equal(np.asarray(again.predict(STEPS, level=[80, 95]).iloc[:, 2:]), expected)


def test_values_after_the_cutoff_do_not_change_the_forecast(model: Forecaster, daily: Any) -> None:
    """The state between two refits moves over the history and not a row further."""
    y = 20 + np.random.default_rng(0).random(40)
    changed = np.where(np.arange(40) < 30, y, -37 * y + 1e5)
    fitted = model.fit(daily(A=y[:20]))
    here, there = (fitted.predict(STEPS, frame=daily(A=one)[:30], level=80) for one in (y, changed))
    pd.testing.assert_frame_equal(here, there, check_exact=True)
