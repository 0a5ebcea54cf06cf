"""Unit-root tests, against statsmodels."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from statsmodels.tsa.adfvalues import mackinnoncrit
from statsmodels.tsa.stattools import adfuller
from statsmodels.tsa.stattools import kpss as reference

from deepforecast.kernels.unit_roots import adf, count_differences, kpss, needs_difference, seasonal_strength


@pytest.mark.parametrize("lags", [0, 1, 3])
def test_kpss_is_that_of_statsmodels(lags):
    values = np.random.default_rng(lags).normal(size=80).cumsum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a p-value beyond its table
        wanted = reference(values, nlags=lags)
    assert kpss(values, lags) == pytest.approx(wanted[0], rel=1e-12)


@pytest.mark.parametrize("lags", [0, 1, 4])
def test_adf_is_that_of_statsmodels(lags):
    values = np.random.default_rng(lags).normal(size=80).cumsum()
    newer = {"result_object": False} if "result_object" in inspect.signature(adfuller).parameters else {}  # statsmodels 0.15
    wanted = adfuller(values, maxlag=lags, autolag=None, **newer)
    statistic, critical = adf(values, lags)
    assert statistic == pytest.approx(wanted[0], rel=1e-9)
    assert critical == pytest.approx(mackinnoncrit(1, "c", wanted[3])[1], rel=1e-9)


@pytest.mark.parametrize("test", ["kpss", "adf"])
def test_noise_stays_a_walk_is_differenced_once_and_a_walk_of_walks_twice(test):
    noise = np.random.default_rng(5).normal(size=300)
    found = [count_differences(values, test, 2) for values in (noise, noise.cumsum(), noise.cumsum().cumsum())]
    assert found == [0, 1, 2]


def test_constants_and_handfuls_are_left_alone():
    assert not needs_difference(np.full(50, 7.0), "kpss")
    assert not needs_difference(np.arange(4.0), "kpss")
    assert count_differences(np.arange(50.0), "kpss", 2) == 1


def test_strength_goes_from_none_to_all():
    noise, wave = np.random.default_rng(0).normal(size=120), np.sin(np.arange(120) * np.pi / 6)
    assert seasonal_strength(wave, np.zeros(120)) == 1.0
    assert seasonal_strength(np.zeros(120), noise) == 0.0
    assert seasonal_strength(1e200 * wave, 1e200 * noise) == pytest.approx(seasonal_strength(wave, noise))
    assert seasonal_strength(np.zeros(5), np.zeros(5)) == 0.0
