"""Residual diagnostics are statsmodels' numbers on every series of a panel, gaps left out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.stats.stattools import jarque_bera
from statsmodels.tsa.stattools import breakvar_heteroskedasticity_test

from deepforecast.models.statistical._diagnostics import residual_tests

LENGTHS = (5, 30, 47, 120, 300)


def ragged(lengths: tuple[int, ...] = LENGTHS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    parts = [np.convolve(rng.normal(size=n + 3), [1, 0.5, 0.2, 0.1], "valid") * np.linspace(1, 3, n) for n in lengths]
    return np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)])


def series(values: np.ndarray, indptr: np.ndarray) -> list[np.ndarray]:
    return np.split(values, indptr[1:-1])


@pytest.mark.parametrize("lags", [None, 3, 12])
def test_ljung_box_is_acorr_ljungbox(lags: int | None) -> None:
    values, indptr = ragged()
    statistic, p_value, used = residual_tests(values, indptr, lags)["ljung_box"]
    wanted = [min(max(len(one) // 5, 1), 10) if lags is None else min(lags, len(one) - 1) for one in series(values, indptr)]
    assert used.tolist() == wanted
    for place, one in enumerate(series(values, indptr)):
        theirs = acorr_ljungbox(one, lags=[used[place]])
        np.testing.assert_allclose(statistic[place], theirs["lb_stat"].iloc[0], rtol=1e-10)
        np.testing.assert_allclose(p_value[place], theirs["lb_pvalue"].iloc[0], rtol=1e-9)


def test_lags_of_a_season_are_two_seasons() -> None:
    values, indptr = ragged((300, 60))
    assert residual_tests(values, indptr, None, season=12)["ljung_box"][2].tolist() == [24, 12]


def test_heteroscedasticity_is_the_break_test_of_variances() -> None:
    values, indptr = ragged()
    statistic, p_value, third = residual_tests(values, indptr, None)["heteroscedasticity"]
    for place, one in enumerate(series(values, indptr)):
        theirs = breakvar_heteroskedasticity_test(one)
        np.testing.assert_allclose([statistic[place], p_value[place]], [theirs[0], theirs[1]], rtol=1e-10)
        assert third[place] == round(len(one) / 3)


def test_jarque_bera_is_theirs() -> None:
    values, indptr = ragged()
    statistic, p_value, _ = residual_tests(values, indptr, None)["jarque_bera"]
    for place, one in enumerate(series(values, indptr)):
        np.testing.assert_allclose([statistic[place], p_value[place]], jarque_bera(one)[:2], rtol=1e-9)


def test_missing_residuals_are_left_out() -> None:
    values, indptr = ragged((80, 100))
    holed = values.copy()
    holed[:2] = holed[20:25] = holed[99] = np.nan
    found = residual_tests(holed, indptr, 4)
    for place, one in enumerate(series(holed, indptr)):
        there = one[~np.isnan(one)]
        np.testing.assert_allclose(found["jarque_bera"][0][place], jarque_bera(there)[0], rtol=1e-9)
        np.testing.assert_allclose(found["heteroscedasticity"][0][place], breakvar_heteroskedasticity_test(there)[0], rtol=1e-9)
        centred = np.where(np.isnan(one), 0.0, one - there.mean())
        seen = ~np.isnan(one)
        wanted = 0.0
        for lag in range(1, 5):
            correlation = (centred[lag:] @ centred[:-lag]) / (centred @ centred)
            wanted += correlation**2 / (seen[lag:] & seen[:-lag]).sum()
        np.testing.assert_allclose(found["ljung_box"][0][place], wanted * len(there) * (len(there) + 2), rtol=1e-10)
    leading = np.concatenate([[np.nan, np.nan], values[80:]])
    ours = residual_tests(leading, np.array([0, 102]), 4)["ljung_box"][0][0]
    np.testing.assert_allclose(ours, acorr_ljungbox(values[80:], lags=[4])["lb_stat"].iloc[0], rtol=1e-10)


def test_residuals_that_do_not_vary_have_nothing_to_find() -> None:
    found = residual_tests(np.zeros(40), np.array([0, 40]), None)
    assert [float(one[1][0]) for one in found.values()] == [1.0, 1.0, 1.0]
    step = np.concatenate([np.zeros(20), np.ones(20)])
    assert residual_tests(step, np.array([0, 40]), None)["heteroscedasticity"][1][0] == 0.0


def test_too_few_are_nan_and_others_as_alone() -> None:
    values, indptr = ragged((1, 4, 60))
    found = residual_tests(values, indptr, None)
    lacking = {test: np.isnan(one[0]).tolist() for test, one in found.items()}
    first, both = [True, False, False], [True, True, False]
    assert lacking == {"ljung_box": first, "heteroscedasticity": both, "jarque_bera": first}
    alone = residual_tests(values[5:], np.array([0, 60]), None)
    assert [one[0][2] for one in found.values()] == [one[0][0] for one in alone.values()]


@pytest.mark.parametrize("factor", [1e-300, 1e200])
def test_scale_does_not_matter(factor: float) -> None:
    values, indptr = ragged((60, 90))
    plain, scaled = residual_tests(values, indptr, None), residual_tests(values * factor, indptr, None)
    for test, (statistic, _, _) in plain.items():
        np.testing.assert_allclose(scaled[test][0], statistic, rtol=1e-6)


MULTIPLY = {"error": "multiplicative", "seasonal": "multiplicative"}


@pytest.mark.parametrize("how", [MULTIPLY, {"seasonal": "additive", "box_cox": 0.0}])
def test_errors_that_multiply_are_shares(how: dict[str, object]) -> None:
    """What grows with the level is no break of the variance where the model says so."""
    from deepforecast import ETS, datasets

    found = ETS(**how).fit(datasets.load("air_passengers")).residual_diagnostics().set_index("test")
    assert found.loc["heteroscedasticity", "p_value"] > 0.2
    assert found.loc["jarque_bera", "p_value"] > 0.5


def test_errors_that_multiply_are_those_of_statsmodels_summary() -> None:
    from deepforecast import ETS, datasets

    model = ETS(**MULTIPLY).fit(datasets.load("air_passengers"))
    found, summary = model.residual_diagnostics()["statistic"], model.summary()
    for statistic, label in zip(found, ["Ljung-Box", "Heteroskedasticity", "Jarque-Bera"], strict=True):
        printed = float(re.search(rf"{label} \(\w+\): +([\d.]+)", summary)[1])
        assert abs(statistic - printed) < 0.02


def test_a_constant_series_leaves_nothing_whatever_the_form() -> None:
    import pandas as pd

    from deepforecast import ETS

    frame = pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=30), "y": 5.0})
    assert (ETS(error="multiplicative").fit(frame).residual_diagnostics()["p_value"] == 1).all()


@pytest.mark.parametrize("name", ["AutoTheta", "CES", "ARIMA", "HoltWinters", "MSTL"])
def test_every_family_tells_what_it_left_over(name: str) -> None:
    import deepforecast

    model = getattr(deepforecast, name)().fit(deepforecast.datasets.load("air_passengers").iloc[-48:])
    assert model.residual_diagnostics()["p_value"].between(0, 1).all()
