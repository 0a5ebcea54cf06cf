"""ARIMA beside statsmodels on real series: 50 of the M1 and M4 competitions for each form, equal treatment."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX

from deepforecast import ARIMA, datasets
from deepforecast.models.statistical._scaled_series import Order, ScaledSeries

SERIES = 50
LONGEST = 160  # of a series of M4, for the time that statsmodels takes


def order_of(p, d, q, seasonal=(0, 0, 0), season=1, constant=False):
    return Order(tuple(range(1, p + 1)), d, tuple(range(1, q + 1)), seasonal, season, constant)


FORMS = {
    "plain": (order_of(2, 1, 2), ("yearly", "quarterly"), False, 0),
    "drift": (order_of(1, 1, 1, constant=True), ("yearly", "monthly"), False, 0),
    "mean": (order_of(3, 0, 1, constant=True), ("quarterly", "monthly"), False, 0),
    "airline": (order_of(0, 1, 1, (0, 1, 1), 12), ("monthly", "m4"), False, 0),
    "seasonal": (order_of(2, 1, 2, (1, 0, 1), 12), ("monthly",), False, 0),
    "seasonal-drift": (order_of(1, 0, 1, (1, 1, 1), 4, True), ("quarterly",), False, 0),
    "missing": (order_of(1, 1, 2), ("monthly", "m4"), True, 0),
    "seasonal-missing": (order_of(1, 1, 1, (0, 0, 1), 4), ("quarterly",), True, 0),
    "regressors": (order_of(1, 0, 1, constant=True), ("monthly", "m4"), False, 2),
    "regressors-missing": (order_of(0, 1, 2), ("quarterly",), True, 1),
}


@pytest.fixture(scope="module")
def pool():
    """Values of every series, by group."""
    info = datasets.table("m1", "info").set_index("unique_id")["frequency"].to_dict()
    found = {"yearly": [], "quarterly": [], "monthly": [], "m4": []}
    for one, part in datasets.load("m1", split="train").groupby("unique_id", observed=True):
        found[{1: "yearly", 4: "quarterly", 12: "monthly"}[info[one]]].append(part["y"].to_numpy(float))
    months = datasets.load("m4_monthly", split="train")
    ids = months["unique_id"].astype(str)
    for one in np.unique(ids)[::600]:
        found["m4"].append(months.loc[(ids == one).to_numpy(), "y"].to_numpy(float)[-LONGEST:])
    return found


def chosen(pool, order, groups, missing, regressors):
    """Series of these groups, evenly spread, with holes and regressors."""
    for group in groups:
        fit = [y for y in pool[group] if len(y) > max(15, order.n_lost + 3 * order.n_coefficients + 5) and np.ptp(y) > 0]
        for number in np.linspace(0, len(fit) - 1, SERIES // len(groups)).astype(int):
            rng = np.random.default_rng(number)
            y = fit[number].copy()
            if missing:
                y[rng.choice(np.arange(order.n_lost + 1, len(y) - 1), max(2, len(y) // 15), replace=False)] = np.nan
            yield y, rng.normal(size=(len(y), regressors)).cumsum(axis=0)


def statsmodels_of(series, order, missing):
    """Its model of what our kernels estimate from."""
    table, seasonal = series.table(order), (*order.seasonal, order.season if order.season > 1 else 0)
    return SARIMAX(
        table[0], table[1:].T if len(table) > 1 else None, order=(len(order.ar), order.d, len(order.ma)),
        seasonal_order=seasonal, trend=None, simple_differencing=not missing, use_exact_diffuse=missing,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("form", FORMS)
def test_on_no_series_is_the_likelihood_below_that_of_statsmodels(pool, form):
    order, groups, missing, regressors = FORMS[form]
    gains = []
    for y, x in chosen(pool, order, groups, missing, regressors):
        series = ScaledSeries.from_values(y, x)
        model = statsmodels_of(series, order, missing)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            theirs = model.fit(disp=False, maxiter=500).llf
        theirs += 0.5 * np.log(2 * np.pi) * order.n_lost if missing else 0.0
        found = series.fit_many_starts(order)[0]
        gains.append(found.log_likelihood + found.n_observed * np.log(series.scale) - theirs)
    assert len(gains) == SERIES
    assert min(gains) > -1e-4


def nearest(ar):
    """How near to the unit circle a root of an autoregression comes."""
    return np.abs(np.roots([1.0, *(-ar)])).max(initial=0.0)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("order", "seasonal", "group"),
    [((2, 1, 2), (0, 0, 0), "yearly"), ((1, 1, 1), (1, 0, 1), "quarterly"), ((0, 1, 1), (0, 1, 1), "monthly"),
     ((2, 0, 1), (1, 0, 0), "monthly")],
)  # fmt: skip
def test_forecasts_from_equal_parameters_are_those_of_statsmodels(pool, order, seasonal, group):
    season = {"yearly": 1, "quarterly": 4, "monthly": 12}[group]
    held = 0
    for y in [one for one in pool[group] if len(one) > 25][:: len(pool[group]) // 8]:
        frame = pd.DataFrame({"ds": np.arange(len(y)), "y": y})
        model = ARIMA(horizon=12, order=order, seasonal_order=seasonal, season_length=season, constant=False).fit(frame, freq=1)
        coefficients = model.state_.learned["factors"][0]
        if nearest(coefficients[: order[0]]) > 0.999 or nearest(coefficients[sum(order[::2]) :][: seasonal[0]]) > 0.999:
            continue  # their covariance before the first row is wrong there, up to its fourth digit
        held += 1
        their = (*seasonal, season if season > 1 else 0)
        space = SARIMAX(y, order=order, seasonal_order=their, use_exact_diffuse=True, concentrate_scale=True)
        wanted = space.smooth(coefficients).forecast(12)
        np.testing.assert_allclose(model.predict()["ARIMA"], wanted, rtol=1e-8, atol=1e-8 * np.abs(y).max())
    assert held > 1
