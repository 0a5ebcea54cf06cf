from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast import Panel
from deepforecast.core.conformal import (
    PooledErrors,
    SeriesErrors,
    adapt_miss_rates,
    interpolate_miss_rate,
    mean_absolute_change,
    min_windows,
)
from deepforecast.errors import CapabilityError

LEVELS = st.sampled_from([1, 10, 50, 66.6, 80, 90, 95])
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 30), st.integers(1, 3))


def errors_of(shape: tuple[int, ...], seed: int, missing: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < missing, np.nan, rng.normal(size=shape).round(1))  # rounded: some are equal


ERRORS = st.builds(errors_of, SHAPES, st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.5]))


def smallest_that_covers(sizes: list[float], level: float) -> float | None:
    """The finite-sample quantile by its definition: the least of the errors that a new one stays below with that chance."""
    for rank, size in enumerate(sorted(sizes), start=1):
        if Fraction(rank, len(sizes) + 1) >= Fraction(str(level)) / 100:
            return size
    return None


@given(ERRORS, LEVELS)
def test_a_radius_is_the_finite_sample_quantile(errors: np.ndarray, level: float) -> None:
    calibration = SeriesErrors(errors)
    wanted = np.empty((errors.shape[0], errors.shape[2]))
    for series in range(errors.shape[0]):
        for step in range(errors.shape[2]):
            sizes = [abs(one) for one in errors[series, :, step] if not math.isnan(one)]
            found = smallest_that_covers(sizes, level)
            wanted[series, step] = math.nan if found is None else found
    if np.isnan(wanted).any():
        with pytest.raises(CapabilityError, match="requires at least"):
            calibration.half_widths(level, errors.shape[2])
    else:
        assert (calibration.half_widths(level, errors.shape[2]) == wanted).all()


@given(st.integers(1, 400), st.floats(0.5, 99.9))
def test_windows_needed_is_the_least_number_that_reaches_a_level(count: int, level: float) -> None:
    reached = math.ceil((count + 1) * level / 100 - 1e-9) <= count
    assert (min_windows(level) <= count) == reached


def test_a_level_too_high_says_which_one_is_possible() -> None:
    for count in (1, 2, 5, 20, 23, 98):
        calibration = SeriesErrors(np.ones((2, count, 1)))
        with pytest.raises(CapabilityError) as caught:
            calibration.half_widths(99, 1)
        words = f"A conformal level of 99 requires at least 99 calibration errors per step, but there are {count}. Use a level "
        words += "of at most "
        assert str(caught.value).startswith(words)
        possible = float(str(caught.value)[len(words) :].partition(",")[0])
        assert calibration.half_widths(possible, 1).shape == (2, 1)
        with pytest.raises(CapabilityError):
            calibration.half_widths(possible + 0.02, 1)
    with pytest.raises(CapabilityError, match="there are 0"):
        SeriesErrors(np.full((1, 9, 1), np.nan)).half_widths(1, 1)


def test_a_horizon_longer_than_calibrated_is_refused() -> None:
    for calibration in (SeriesErrors(np.ones((2, 30, 3))), PooledErrors(np.ones((30, 3)), np.ones(2))):
        assert calibration.steps == 3
        assert calibration.half_widths(80, 2).shape == (2, 2)
        with pytest.raises(
            CapabilityError, match=r"must be at most 3, .* intervals were calibrated, got 4\. Fit with horizon=4"
        ):
            calibration.forecast_around(np.zeros((2, 4))).quantiles([0.1])
    assert SeriesErrors(np.ones((2, 30, 3))).forecast_around(np.zeros((2, 4))).quantiles([0.5]).shape == (2, 4, 1)


def test_quantiles_are_symmetric_monotone_and_around_the_point() -> None:
    rng = np.random.default_rng(0)
    for method in ("split", "adaptive"):
        forecast = SeriesErrors(rng.normal(size=(4, 60, 3)), method).forecast_around(rng.normal(size=(4, 3)))
        probabilities = [0.9, 0.025, 0.5, 0.1, 0.975, 0.3, 0.9]
        found = forecast.quantiles(probabilities)
        assert (np.diff(found[..., np.argsort(probabilities)], axis=-1) >= 0).all()
        np.testing.assert_allclose(found[..., 0] - forecast.mean, forecast.mean - found[..., 3])
        assert (found[..., 2] == forecast.mean).all()
        assert (found[..., 0] == found[..., 6]).all()
        later = forecast.skip_steps(1)
        assert (later.quantiles(probabilities) == found[:, 1:]).all()
        assert (later.skip_steps(1).mean == forecast.mean[:, 2:]).all()
        assert (forecast.point("median") == forecast.point("mean")).all()


def test_probabilities_next_to_the_ends_are_refused_and_next_to_the_middle_are_the_point() -> None:
    forecast = SeriesErrors(np.ones((1, 30, 1))).forecast_around(np.zeros((1, 1)))
    for probability in (1e-15, 1 - 1e-15):
        with pytest.raises(CapabilityError, match="there are 30"):
            forecast.quantiles([probability])
    assert forecast.quantiles([0.5 + 1e-15]).item() == 0


@given(ERRORS, st.sampled_from([0.05, 0.2, 0.5]), st.sampled_from([0.01, 0.1]))
def test_the_adapted_miss_rate_is_that_of_a_plain_loop(errors: np.ndarray, aim: float, rate: float) -> None:
    found = adapt_miss_rates(np.abs(errors), np.array([aim]), rate)[0]
    for series in range(errors.shape[0]):
        for step in range(errors.shape[2]):
            miss, past = aim, []
            for size in np.abs(errors[series, :, step]):
                if past and not math.isnan(size):
                    rank = math.ceil((len(past) + 1) * (1 - miss) - 1e-9)
                    band = -math.inf if rank < 1 else sorted(past)[rank - 1] if rank <= len(past) else math.inf
                    miss += rate * (aim - (size > band))
                past += [] if math.isnan(size) else [size]
            assert found[series, step] == pytest.approx(min(max(miss, 1e-6), 1 - 1e-6), abs=1e-12)


@given(ERRORS)
def test_adaptive_bands_are_nested_and_those_of_a_series_alone(errors: np.ndarray) -> None:
    aims = [0.9, 0.5, 0.35, 0.21, 0.2, 0.19, 0.07, 0.05, 0.004]
    followed = np.stack([interpolate_miss_rate(np.abs(errors), aim, 0.05) for aim in aims])
    assert (np.diff(followed, axis=0) <= 0).all()  # a wider band misses less
    padded = np.concatenate([np.full_like(errors[:, :3], np.nan), errors], axis=1)
    assert (interpolate_miss_rate(np.abs(padded), 0.2, 0.05) == interpolate_miss_rate(np.abs(errors), 0.2, 0.05)).all()


def test_an_adaptive_band_follows_errors_that_grow() -> None:
    growing = np.abs(np.random.default_rng(1).normal(size=(50, 90, 1))) * np.where(np.arange(90) < 60, 1, 3)[:, None]
    split, adaptive = (SeriesErrors(growing, method).half_widths(80, 1) for method in ("split", "adaptive"))
    assert (adaptive >= split).mean() > 0.95
    shrinking = growing[:, ::-1]
    split, adaptive = (SeriesErrors(shrinking, method).half_widths(80, 1) for method in ("split", "adaptive"))
    assert (adaptive <= split).mean() > 0.95


def test_series_are_taken_and_joined_with_their_own_errors() -> None:
    rng = np.random.default_rng(0)
    many, few = SeriesErrors(rng.normal(size=(3, 30, 2))), SeriesErrors(rng.normal(size=(2, 9, 2)))
    for both in (many.join(few), few.join(many).take(np.array([2, 3, 4, 0, 1]))):
        assert both.errors.shape == (5, 30, 2)
        assert (both.half_widths(80, 2) == np.concatenate([many.half_widths(80, 2), few.half_widths(80, 2)])).all()
    assert (many.take(np.array([2, 0])).half_widths(50, 1) == many.half_widths(50, 1)[[2, 0]]).all()
    pooled = PooledErrors(np.sort(rng.exponential(size=(40, 2)), axis=0), np.array([1.0, 2.0]))
    joined = pooled.join(PooledErrors(np.zeros((40, 2)), np.array([4.0]))).take(np.array([2, 0]))
    assert (joined.half_widths(80, 2) == pooled.half_widths(80, 2)[[0]] * np.array([[4.0], [1.0]])).all()


@given(st.lists(st.floats(0, 100) | st.just(math.inf) | st.just(math.nan), min_size=1, max_size=40), LEVELS)
def test_a_pooled_radius_is_a_quantile_of_all_over_the_scale_of_one(scores: list[float], level: float) -> None:
    calibration = PooledErrors(np.sort(np.array(scores))[:, None], np.array([0.0, 1.0, 2.5]))
    found = smallest_that_covers([one for one in scores if not math.isnan(one)], level)
    if found is None:
        with pytest.raises(CapabilityError, match="requires at least"):
            calibration.half_widths(level, 1)
        assert calibration.take(np.array([0])).half_widths(level, 1).tolist() == [[0.0]]
    else:
        assert calibration.half_widths(level, 1)[:, 0].tolist() == [0.0, found, 2.5 * found]


@given(st.lists(st.lists(st.floats(-1e6, 1e6) | st.just(math.nan), min_size=1, max_size=9), min_size=1, max_size=5))
def test_the_scale_is_the_mean_change_from_value_to_value(series: list[list[float]]) -> None:
    series = [[1.0, *values] for values in series]
    parts = [pd.DataFrame({"unique_id": i, "ds": np.arange(len(v)), "y": v}) for i, v in enumerate(series)]
    found = mean_absolute_change(Panel.from_frame(pd.concat(parts), freq=1))
    for values, scale in zip(series, found, strict=True):
        seen = [one for one in values if not math.isnan(one)]
        changes = [abs(b - a) for a, b in pairwise(seen)]
        assert scale == pytest.approx(sum(changes) / len(changes), rel=1e-12) if changes else math.isnan(scale)
