"""ARIMA against Stata's published estimates (through statsmodels' result files) and statsmodels' own maxima."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.tests.results import results_sarimax as stata

from deepforecast import ARIMA, AutoARIMA
from deepforecast.data.columns import Columns
from deepforecast.errors import DataError, ParameterError
from deepforecast.models.statistical._scaled_series import Order, ScaledSeries

M2 = Columns(future=("m2",))


def framed(values, freq="QS", **columns):
    return pd.DataFrame({"ds": pd.date_range("1959-01-01", periods=len(values), freq=freq), "y": values, **columns})


def learned(model, frame, **given):
    return model.fit(frame, **given).parameters().iloc[0]


def friedman():
    return framed(stata.friedman2_data["consump"], m2=stata.friedman2_data["m2"])


# -- Stata's numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "values", "freq", "source", "names"),
    [
        (ARIMA(order=(1, 1, 1), constant=True), stata.wpi1_data, "QS", stata.wpi1_stationary, ["ar1", "ma1", "constant"]),
        (ARIMA(order=(3, 1, 0)), stata.wpi1_data, "QS", stata.wpi1_ar3, ["ar1", "ar2", "ar3"]),
        (
            ARIMA(order=(1, 1, [1, 4]), constant=True), np.log(stata.wpi1_data), "QS", stata.wpi1_seasonal,
            ["ar1", "ma1", "ma4", "constant"],
        ),
        (
            ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1)), np.log(stata.air2_data), "MS", stata.air2_stationary,
            ["ma1", "seasonal_ma1"],
        ),
    ],
    ids=["wpi1", "wpi1-ar3", "ln-wpi1-ma14", "ln-air2"],
)  # fmt: skip
def test_estimates_match_stata(model, values, freq, source, names):
    found = learned(model, framed(values, freq))
    kinds = ("params_ar", "params_ma", "params_seasonal_ma", "params_mean")
    wanted = np.concatenate([source.get(kind, []) for kind in kinds])
    assert found["log_likelihood"] >= source["loglike"] - 1e-4
    np.testing.assert_allclose(found[names].astype(float), wanted, rtol=1e-3)
    seen = len(values) - 1 - 12 * (freq == "MS")
    variance = found["sigma"] ** 2 * (seen - len(wanted)) / seen  # theirs divides by the number of values
    assert variance == pytest.approx(source["params_variance"][0], rel=1e-3)


def test_friedman_regression_matches_stata():
    model, source = ARIMA(order=(1, 0, 1)), stata.friedman2_mle
    found = learned(model, friedman(), columns=M2)
    assert found["log_likelihood"] >= source["loglike"] - 1e-5
    values = [found["constant"], model.state_.learned["beta"][0, 1], found["ar1"], found["ma1"]]
    np.testing.assert_allclose(values, [*source["params_exog"], *source["params_ar"], *source["params_ma"]], rtol=1e-3)


def test_friedman_forecasts_match_stata():
    source, frame = stata.friedman2_predict, friedman()
    model = ARIMA(order=(1, 0, 1)).fit(frame[:-15], columns=M2)
    assert model.parameters()["log_likelihood"][0] >= source["loglike"] - 1e-5
    ahead = model.predict(15, future=frame[-15:].drop(columns="y"))["ARIMA"]
    np.testing.assert_allclose(ahead, source["forecast"][-15:], rtol=1e-3)
    seen = model.fitted_values(frame)["ARIMA"]
    np.testing.assert_allclose(seen, source["predict"], rtol=1e-3)
    dynamic = model.predict(16, frame=frame[:-16], future=frame[-16:].drop(columns="y"))["ARIMA"]
    np.testing.assert_allclose(dynamic, source["dynamic_predict"][-16:], rtol=1e-3)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize(
    ("order", "seasonal", "holes"), [((0, 1, 1), (0, 1, 1), [3]), ((1, 2, 1), (0,) * 3, [1]), ((1, 0, 1), (1, 1, 0), [1, 2, 7])]
)
def test_what_was_foreseen_hangs_on_earlier_rows_alone(order, seasonal, holes):
    """Also where the first values are missing, which the forecast of what comes after estimates from all rows."""
    rng = np.random.default_rng(3)
    y = np.cumsum(rng.normal(size=48)) + np.resize([0.0, 5.0, 9.0, 3.0], 48)
    y[holes] = np.nan
    model = ARIMA(order=order, seasonal_order=seasonal, season_length=4 if any(seasonal) else "auto").fit(framed(y))
    seen = model.fitted_values()["ARIMA"].to_numpy()
    for row in (20, 21, 33, 47):
        assert seen[row] == pytest.approx(model.predict(1, frame=framed(y[:row]))["ARIMA"][0], abs=1e-9)
    moved = np.where(np.arange(48) >= 30, y + 1000.0, y)
    np.testing.assert_array_equal(model.fitted_values(framed(moved))["ARIMA"][:31], seen[:31])
    assert np.isfinite(seen[10:]).all()


# -- statsmodels' maxima -------------------------------------------------------------------------------------------------------


def order_of(p, d, q, seasonal=(0, 0, 0), season=1, constant=False):
    return Order(tuple(range(1, p + 1)), d, tuple(range(1, q + 1)), seasonal, season, constant)


def drawn(seed, order, missing, regressors):
    """A series that the order may have made, with other things in it."""
    rng = np.random.default_rng(seed)
    y = np.convolve(rng.normal(size=140), [1, rng.uniform(-0.9, 0.9), rng.uniform(-0.5, 0.5)])[:120]
    for t in range(1, 120):
        y[t] += 0.7 * rng.uniform(-1, 1) * y[t - 1] if seed % 3 else 0.8 * y[t - 1]
    y = y.cumsum() if order.d else y
    if order.season > 1:
        y = y + np.tile(rng.normal(size=order.season) * 3, 120)[:120]
    x = rng.normal(size=(120, regressors)).cumsum(axis=0)
    y = y + x.sum(axis=1)
    if missing:
        y[rng.choice(np.arange(20, 119), 8, replace=False)] = np.nan
    return y, x


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "missing", "regressors"),
    [
        (order_of(2, 1, 2), False, 0),
        (order_of(1, 1, 1, constant=True), False, 0),
        (order_of(0, 1, 1, (0, 1, 1), 12), False, 0),
        (order_of(1, 0, 1, (1, 0, 1), 4, constant=True), False, 0),
        (order_of(1, 1, 1), True, 0),
        (order_of(1, 0, 1, constant=True), False, 2),
    ],
    ids=["plain", "drift", "seasonal", "seasonal-mean", "missing", "regressors"],
)
def test_at_least_the_likelihood_of_statsmodels(order, missing, regressors):
    gains = []
    for seed in range(50):
        y, x = drawn(seed, order, missing, regressors)
        series = ScaledSeries.from_values(y, x)
        table = series.table(order)
        seasonal = (*order.seasonal, order.season if order.season > 1 else 0)
        model = SARIMAX(
            table[0], table[1:].T if len(table) > 1 else None, order=(len(order.ar), order.d, len(order.ma)),
            seasonal_order=seasonal, trend=None, simple_differencing=not missing, use_exact_diffuse=missing,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = model.fit(disp=False, maxiter=500).llf + (0.5 * np.log(2 * np.pi) * order.n_lost if missing else 0)
        found = series.fit_many_starts(order)[0]
        gains.append(found.log_likelihood + found.n_observed * np.log(series.scale) - theirs)
    assert min(gains) > -1e-4


def test_the_engine_of_statsmodels_finds_the_same():
    frame = load_air()
    ours = ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1), horizon=5).fit(frame)
    theirs = ARIMA(order=(0, 1, 1), seasonal_order=(0, 1, 1), horizon=5, engine="statsmodels").fit(frame)
    one, other = ours.predict(level=80), theirs.predict(level=80)
    np.testing.assert_allclose(one.iloc[:, 2:], other.iloc[:, 2:], rtol=1e-4)
    assert ours.parameters()["log_likelihood"][0] == pytest.approx(theirs.parameters()["log_likelihood"][0], abs=1e-4)


def load_air():
    from deepforecast import datasets

    return datasets.load("air_passengers")


def test_summary_is_of_the_fit_and_names_what_there_is():
    model = ARIMA(order=(2, 0, 0)).fit(load_air())
    text = model.summary("air_passengers")
    likelihood = model.parameters()["log_likelihood"][0]
    assert f"{likelihood:.3f}" in text
    assert "constant" in text
    with pytest.raises(ParameterError, match="air_passengers"):
        model.summary("nobody")


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize("missing", [[], [20, 50, 51, 90]])
@pytest.mark.parametrize(
    "model", [AutoARIMA(), ARIMA(order=(1, 1, 1)), ARIMA(order=(2, 0, 0))], ids=repr
)
def test_a_summary_has_the_criteria_of_parameters(model, missing):
    frame = load_air()
    frame.loc[missing, "y"] = np.nan
    row, text = model.fit(frame).parameters().iloc[0], model.summary()
    shown = {
        name: float(value)
        for name, value in re.findall(r"(Observations:|Likelihood|\bAIC|BIC)\s+(-?[\d.]+)", text)
    }
    count = len(re.findall(r"^(?:constant|ar\.|ma\.|sigma2)", text, re.MULTILINE))
    deviance, seen = -2 * row["log_likelihood"], shown["Observations:"]
    assert shown["Likelihood"] == pytest.approx(row["log_likelihood"], abs=6e-4)
    assert shown["AIC"] == pytest.approx(deviance + 2 * count, abs=2e-3)
    assert shown["BIC"] == pytest.approx(deviance + count * np.log(seen), abs=2e-3)
    correction = 2 * count * (count + 1) / (seen - count - 1)
    assert row["aicc"] == pytest.approx(shown["AIC"] + correction, abs=2e-3)


# -- what holds by construction ------------------------------------------------------------------------------------------------


def daily(values):
    return pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=len(values)), "y": np.asarray(values, float)})


@pytest.mark.parametrize("value", [7.0, -7.0, 1e9, 1e-9, 0.0])
@pytest.mark.parametrize("order", [(1, 1, 1), (1, 0, 1), (0, 2, 1)])
def test_constant_is_continued_with_zero_width_intervals(value, order):
    found = ARIMA(order=order, horizon=5).fit(daily(np.full(60, value))).predict(level=80)
    np.testing.assert_array_equal(found.iloc[:, 1:], np.full((5, 3), value))


def test_linear_series_is_continued():
    found = ARIMA(order=(1, 1, 1), constant=True, horizon=5).fit(daily(np.arange(60))).predict(level=80)
    np.testing.assert_allclose(found.iloc[:, 1:], np.repeat(np.arange(60.0, 65.0)[:, None], 3, axis=1), atol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("order", [(2, 0, 1), (1, 1, 1), (0, 2, 2)])
def test_scale_equivariance(scale, order):
    y = np.random.default_rng(3).normal(size=120).cumsum()
    plain, scaled = (ARIMA(order=order, horizon=5).fit(daily(one)).predict(level=80) for one in (y, y * scale))
    np.testing.assert_allclose(scaled.iloc[:, 1:] / scale, plain.iloc[:, 1:], rtol=1e-6)


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 1, 1)])
def test_shift_and_sign(order):
    y = np.random.default_rng(3).normal(size=120).cumsum()
    plain, moved, turned = (ARIMA(order=order, horizon=5).fit(daily(one)).predict()["ARIMA"] for one in (y, y + 1000, -y))
    np.testing.assert_allclose(moved - 1000, plain, atol=1e-4)
    np.testing.assert_allclose(-turned, plain, atol=1e-6)


def test_random_walk_interval_widens_with_the_root_of_the_horizon():
    found = ARIMA(order=(0, 1, 0), horizon=9).fit(daily(np.random.default_rng(0).normal(size=100).cumsum())).predict(level=80)
    width = (found["ARIMA-hi-80"] - found["ARIMA-lo-80"]).to_numpy()
    np.testing.assert_allclose(width / width[0], np.sqrt(np.arange(1, 10)), rtol=1e-12)


def test_an_intervention_is_a_column_of_zeros_and_ones():
    y = np.random.default_rng(0).normal(size=120)
    step = (np.arange(120) >= 70).astype(float)
    frame = daily(y.cumsum() + 50 * step).assign(step=step)
    model = ARIMA(order=(0, 1, 1), horizon=2).fit(frame, columns=Columns(future=("step",)))
    assert model.state_.learned["beta"][0, 1] == pytest.approx(50, abs=4)
    ahead = pd.DataFrame({"ds": pd.date_range("2024-04-30", periods=2), "step": [1.0, 0.0]})
    parts = model.explain(future=ahead).pivot(index="ds", columns="component", values="value")
    assert parts["regressors"].diff().iloc[-1] == pytest.approx(-50, abs=4)


def test_update_is_like_a_longer_history():
    y = np.random.default_rng(0).normal(size=120).cumsum()
    y[[60, 110]] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ARIMA(order=(1, 1, 1), horizon=5).fit(daily(y)[:100])
        through = model.predict(frame=daily(y), level=80)
        stepped = model.update(daily(y)[100:]).predict(level=80)
    pd.testing.assert_frame_equal(through, stepped, rtol=1e-10)


def test_orders_that_make_no_sense_are_refused():
    frame = daily(np.random.default_rng(0).normal(size=60))
    with pytest.raises(ParameterError, match="constant"):
        ARIMA(order=(0, 2, 0), constant=True).fit(frame)
    with pytest.raises(ParameterError, match="lags"):
        ARIMA(order=(1, 0, [2, 2])).fit(frame)
    with pytest.raises(ParameterError, match="season_length"):
        ARIMA(seasonal_order=(1, 0, 0), season_length=1).fit(frame)
    with pytest.raises(DataError, match="at least 25"):  # of 13 left one is 12 steps from another
        ARIMA(order=(1, 1, 1), seasonal_order=(0, 1, 1), season_length=11).fit(frame[:16])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"order": "(1,1,1)"}, r"`order` must be a tuple \(an integer or a list of integers, an integer, .*\(str\)"),
        ({"order": (1.0, 1, 1)}, r"`order` must be a tuple .*got \(1\.0, 1, 1\)"),
        ({"order": (1, -1, 1)}, "at least 0 .*got"),
        ({"order": (10**9, 1, 1)}, "at most 500"),
        ({"order": (1, 1, 1, 12)}, r"`order` must be a tuple \(an integer or a list of integers, an integer,"),
        ({"order": (1, 4, 1)}, "at most 3 differences .*Use"),
        ({"seasonal_order": (0, 3, 1), "season_length": 7}, "`seasonal_order` at most 2.*Use"),
        ({"seasonal_order": (0, 1, 1, 12)}, r"`seasonal_order` must be a tuple of 3 integers of at least 0 and at mo"),
        ({"seasonal_order": (0, 1, 1), "season_length": 1}, "must be above 1 .* got 1. Pass"),
        ({"seasonal_order": (50, 0, 0), "season_length": 12}, "at most 500.*got 601.*AutoARIMA"),
        ({"order": ([0, 1], 1, 0)}, r"different and at least 1, got \[0, 1\]"),
        ({"order": (1, 0, [400])}, "requires at least 401 values"),
    ],
)
def test_what_is_no_order_is_told_by_rule_value_and_way_out(given, said):
    with pytest.raises((ParameterError, DataError), match=said):
        ARIMA(**given).fit(daily(np.random.default_rng(0).normal(size=60)))


def test_a_tuple_of_lags_is_a_list_of_them():
    frame = daily(np.random.default_rng(0).normal(size=60))
    one, other = (ARIMA(horizon=3, order=(lags, 0, 1)).fit(frame).predict()["ARIMA"] for lags in ((1, 3), [3, 1]))
    np.testing.assert_array_equal(one, other)


def test_paths_are_spread_as_the_bands_say():
    y = np.random.default_rng(0).normal(size=120).cumsum()
    y[-3:-1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ARIMA(order=(1, 1, 1), horizon=6).fit(daily(y))
    paths = model.simulate(4000)["ARIMA"].to_numpy().reshape(4000, 6)
    band = model.predict(level=80)
    deviation = (band["ARIMA-hi-80"] - band["ARIMA-lo-80"]).to_numpy() / 2 / 1.2815515655446004
    np.testing.assert_allclose(paths.std(axis=0), deviation, rtol=0.05)
    np.testing.assert_allclose(paths.mean(axis=0), band["ARIMA"], atol=4 * deviation.max() / np.sqrt(4000))
