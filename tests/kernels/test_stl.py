"""STL and MSTL are the published routine's numbers (R, netlib), and statsmodels' for every setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.tsa.stl
from statsmodels.tsa.seasonal import MSTL, STL

from deepforecast.kernels.stl import decompose

RESULTS = Path(statsmodels.tsa.stl.__file__).parent / "tests" / "results"
PLAIN, ROBUST = (5, 0, 1), (2, 15, 1)


def windows(period: int, season: int = 7, degrees: Sequence[int] = (1, 1, 1), jumps: Sequence[int] = (1, 1, 1)) -> list[int]:
    trend, low = int(np.ceil(1.5 * period / (1 - 1.5 / season))), period + 1
    return [period, season, trend + (trend % 2 == 0), low + (low % 2 == 0), *degrees, *jumps]


def seasonal(n: int, period: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    season = np.tile(5 * rng.normal(size=period), n // period + 1)[:n]
    return np.cumsum(rng.normal(size=n)) + season + rng.standard_t(2, size=n)


def one(y: np.ndarray, each: list[int], loops: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    trend, seasons = decompose(y, np.array([0, len(y)]), np.array([each]), loops)
    return trend, seasons[0]


@pytest.mark.parametrize(
    ("scenario", "jumps", "rows"),
    [("baseline", (4, 2, 2), 348), ("short", (4, 2, 2), 347), ("nljump-1", (4, 2, 1), 348), ("ntjump-1", (4, 1, 2), 348),
     ("nljump-1-ntjump-1", (4, 1, 1), 348)],
)  # fmt: skip
def test_stl_of_co2_is_that_of_the_netlib_routine(scenario: str, jumps: tuple[int, ...], rows: int) -> None:
    """stl_test_results.csv: the Fortran of Cleveland et al. with its median corrected, np=12 ns=35 nt=19 nl=13 ni=1 no=2."""
    results = pd.read_csv(RESULTS / "stl_test_results.csv", skipinitialspace=True)
    wanted = results[results["scenario"].str.strip() == scenario].sort_values("idx")
    y = pd.read_csv(RESULTS / "stl_co2.csv", header=None)[0].to_numpy()[:rows]
    trend, season = one(y, [12, 35, 19, 13, 1, 1, 1, *jumps], (1, 2, 1))
    np.testing.assert_allclose(trend, wanted["trend"], rtol=1e-10)
    np.testing.assert_allclose(season, wanted["season"], rtol=1e-8, atol=1e-10)


def test_mstl_of_victorian_demand_is_that_of_r() -> None:
    """mstl_test_results.csv: R's forecast::mstl of Victorian demand by the hour, seasons 24 and 168, without jumps."""
    y = pd.read_csv(RESULTS / "mstl_elec_vic.csv")["y"].to_numpy()
    wanted = pd.read_csv(RESULTS / "mstl_test_results.csv")
    each = np.array([windows(24, 11, (0, 1, 1)), windows(168, 15, (0, 1, 1))])
    trend, seasons = decompose(y, np.array([0, len(y)]), each, (2, 0, 2))
    np.testing.assert_allclose(trend, wanted["Trend"], rtol=1e-7)
    np.testing.assert_allclose(seasons, wanted[["Seasonal24", "Seasonal168"]].to_numpy().T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize(("n", "period"), [(144, 12), (145, 12), (100, 7), (365, 7), (672, 24), (60, 4)])
def test_stl_is_that_of_statsmodels(n: int, period: int, robust: bool) -> None:
    y = seasonal(n, period)
    for season, degrees, jumps in (
        (7, (1, 1, 1), (1, 1, 1)),
        (11, (0, 1, 1), (1, 1, 1)),
        (35, (1, 0, 0), (1, 1, 1)),
        (7, (1, 1, 1), (2, 3, 4)),
        (13, (0, 0, 1), (3, 7, 2)),
    ):
        names = ("seasonal_deg", "trend_deg", "low_pass_deg", "seasonal_jump", "trend_jump", "low_pass_jump")
        given = dict(zip(names, (*degrees, *jumps), strict=True))
        theirs = STL(y, period=period, seasonal=season, robust=robust, **given).fit()
        trend, found = one(y, windows(period, season, degrees, jumps), ROBUST if robust else PLAIN)
        tolerance = 1e-10 * np.abs(y).max()
        np.testing.assert_allclose(trend, theirs.trend, rtol=0, atol=tolerance)
        np.testing.assert_allclose(found, theirs.seasonal, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("n", "period"), [(4, 2), (5, 2), (41, 2), (8, 4), (9, 4), (24, 12), (37, 12), (500, 168)])
def test_stl_of_few_cycles_is_that_of_statsmodels(n: int, period: int) -> None:
    """Plain only: robust, few cycles are fitted all but exactly, and weights then follow from what rounding leaves over."""
    y = seasonal(n, period)
    theirs = STL(y, period=period).fit()
    trend, found = one(y, windows(period), PLAIN)
    np.testing.assert_allclose(np.stack([trend, found]), np.stack([theirs.trend, theirs.seasonal]), rtol=0, atol=1e-11)


@pytest.mark.parametrize("robust", [False, True])
def test_mstl_is_that_of_statsmodels(robust: bool) -> None:
    y = seasonal(800, 24) + seasonal(800, 84, 1)
    theirs = MSTL(y, periods=(24, 84), stl_kwargs={"seasonal_deg": 0, "robust": robust}).fit()
    each = np.array([windows(24, 11, (0, 1, 1)), windows(84, 15, (0, 1, 1))])
    inner, outer, _ = ROBUST if robust else PLAIN
    trend, seasons = decompose(y, np.array([0, 800]), each, (inner, outer, 2))
    np.testing.assert_allclose(trend, theirs.trend, rtol=0, atol=1e-9)
    np.testing.assert_allclose(seasons.T, theirs.seasonal, rtol=0, atol=1e-9)


def test_a_window_too_wide_for_a_table_is_smoothed_all_the_same() -> None:
    y = seasonal(2100, 12)
    theirs = STL(y, period=12, trend=2051).fit(inner_iter=1)
    trend, _ = one(y, [12, 7, 2051, 13, 1, 1, 1, 1, 1, 1], (1, 0, 1))
    np.testing.assert_allclose(trend, theirs.trend, rtol=0, atol=1e-9)


def test_series_beside_each_other_are_as_alone() -> None:
    """Bit for bit; one too short for its season is its own trend."""
    parts = [seasonal(100, 7, 1), seasonal(60, 7, 2), seasonal(9, 7, 3), seasonal(61, 7, 4)]
    indptr = np.cumsum([0, *map(len, parts)])
    trend, seasons = decompose(np.concatenate(parts), indptr, np.array([windows(7)]), PLAIN)
    for place, part in enumerate(parts):
        rows = slice(indptr[place], indptr[place + 1])
        alone = one(part, windows(7), PLAIN)
        np.testing.assert_array_equal(trend[rows], alone[0])
        np.testing.assert_array_equal(seasons[0][rows], alone[1])
    np.testing.assert_allclose(trend[indptr[2] : indptr[3]], parts[2])
    assert (seasons[0][indptr[2] : indptr[3]] == 0).all()


@pytest.mark.parametrize("loops", [PLAIN, ROBUST])
def test_constants_and_perfect_seasons(loops: tuple[int, int, int]) -> None:
    trend, season = one(np.full(50, 1e9 + 0.3), windows(7), loops)
    assert (trend == 1e9 + 0.3).all()
    assert (season == 0).all()
    wave = np.tile([3.0, -1.0, -2.0, 0.0], 12)
    trend, season = one(wave + 100, windows(4), loops)
    np.testing.assert_allclose(trend, 100, rtol=1e-12)
    np.testing.assert_allclose(season, wave, atol=1e-10)
    line, flat = one(2.0 * np.arange(60), windows(7), loops)
    np.testing.assert_allclose(line, 2.0 * np.arange(60), atol=1e-9)
    np.testing.assert_allclose(flat, 0, atol=1e-9)


@pytest.mark.parametrize("factor", [1e-300, 1e200])
def test_scale_does_not_matter(factor: float) -> None:
    y = seasonal(60, 7)
    for loops in (PLAIN, ROBUST):
        plain, scaled = one(y, windows(7), loops), one(y * factor, windows(7), loops)
        np.testing.assert_allclose(scaled[0] / factor, plain[0], rtol=1e-6)
        np.testing.assert_allclose(scaled[1] / factor, plain[1], rtol=1e-6, atol=1e-6)
