"""The test for a season and classical decomposition, against statsmodels and Naive2."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.tsa.seasonal import seasonal_decompose
from statsmodels.tsa.stattools import acf

from deepforecast.core import seasonality


def panel(sizes=(30, 41, 25, 60), season=6, seed=0):
    rng = np.random.default_rng(seed)
    waves = [np.tile(rng.normal(size=season), 12)[:size] * number for number, size in enumerate(sizes)]
    parts = [20 + wave + rng.normal(size=len(wave)) for wave in waves]
    return parts, np.array(sizes), np.concatenate(parts)


@pytest.mark.parametrize("season", [5, 6])
@pytest.mark.parametrize("kind", ["additive", "multiplicative"])
def test_indices_are_those_of_statsmodels(kind, season):
    parts, lengths, y = panel()
    found, of_rows = seasonality.decompose(y, lengths, season, additive=kind == "additive")
    np.testing.assert_array_equal(of_rows[:30], found[0, (np.arange(30) - 30) % season])
    for part, index in zip(parts, found, strict=True):
        wanted = seasonal_decompose(part, model=kind, period=season).seasonal
        np.testing.assert_allclose(index[(np.arange(len(part)) - len(part)) % season], wanted, rtol=1e-10, atol=1e-12)


def test_the_limit_is_that_of_the_autocorrelations():
    parts, lengths, y = panel(seed=3)
    found = seasonality.is_seasonal(y, lengths, 6)
    for part, seasonal in zip(parts, found, strict=True):
        r = acf(part, nlags=6, fft=False)[1:]
        assert seasonal == (abs(r[5]) > 1.645 * np.sqrt((1 + 2 * np.sum(r[:5] ** 2)) / len(part)))
    assert 0 < found.sum() < len(found)


def test_rows_that_are_not_seen_do_not_count():
    y = np.tile([1.0, 2.0, 6.0], 8)
    spoilt = y.copy()
    spoilt[[7, 11]] = 50.0
    seen = spoilt == y
    found, _ = seasonality.decompose(np.where(seen, spoilt, y), np.array([24]), 3, additive=True, is_observed=seen)
    np.testing.assert_allclose(found, seasonality.decompose(y, np.array([24]), 3, additive=True)[0], atol=1e-12)
    never = np.arange(24) % 3 != 1
    assert np.isnan(seasonality.decompose(y, np.array([24]), 3, is_observed=never)[0]).all()


def test_a_season_is_added_where_it_cannot_be_multiplied():
    wave = np.tile([1.0, 5.0, 9.0, 5.0], 10)
    y = np.concatenate([wave + 20, wave - 5, np.full(40, 3.0), np.where(wave == 1, 1e-4, wave * 100)])
    indptr = np.arange(5) * 40
    index, additive = seasonality.seasonal_indices(y, indptr, 4, "auto", 2)
    assert additive.tolist() == [False, True, False, True]
    assert (index[2] == 1).all()
    np.testing.assert_allclose(index[1], [-4, 0, 4, 0], atol=1e-12)
    assert seasonality.seasonal_indices(y, indptr, 4, "additive", 2)[1].tolist() == [True, True, False, True]
    assert not seasonality.seasonal_indices(y, indptr, 4, "auto", 11)[1].any()
