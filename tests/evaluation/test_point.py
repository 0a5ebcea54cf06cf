"""Point metrics: worked by hand, beside scikit-learn and utilsforecast, and by their properties."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sklearn_metrics
from utilsforecast import losses

from deepforecast.errors import ParameterError
from deepforecast.evaluation.metrics import (
    METRICS,
    Groups,
    bias,
    mae,
    mape,
    mase,
    owa,
    relative_bias,
    rmse,
    rmsse,
    seasonal_scale,
    smape,
    wape,
)

# By hand:      errors (forecast - actual) 2, -2, 4, 0, -10, 10; absolute 2, 2, 4, 0, 10, 10; squares 4, 4, 16, 0, 100, 100
ACTUAL = np.array([10.0, 20, 0, 40, 50, -5])
FORECAST = np.array([12.0, 18, 4, 40, 40, 5])
TRAIN = np.array([1.0, 3, 2, 6, 4, 8])  # differences two apart: 1, 3, 2, 2: mean 2, mean of the squares 18/4 = 4.5


def test_by_hand() -> None:
    assert mae(ACTUAL, FORECAST) == pytest.approx(28 / 6)
    assert rmse(ACTUAL, FORECAST) == pytest.approx((224 / 6) ** 0.5)
    assert bias(ACTUAL, FORECAST) == pytest.approx(4 / 6)
    # absolute actuals 10 + 20 + 0 + 40 + 50 + 5 = 125
    assert relative_bias(ACTUAL, FORECAST) == pytest.approx(4 / 125)
    assert wape(ACTUAL, FORECAST) == pytest.approx(28 / 125)
    # 2/10, 2/20, none at the zero, 0/40, 10/50, 10/5: 2.5 over five points
    assert mape(ACTUAL, FORECAST) == pytest.approx(2.5 / 5)
    # 400/22, 400/38, 800/4, 0, 2000/90, 2000/10 = 18.181818 + 10.526316 + 200 + 0 + 22.222222 + 200 = 450.930356
    assert smape(ACTUAL, FORECAST) == pytest.approx(450.930356 / 6, rel=1e-8)


def test_scaled_by_hand() -> None:
    scale, squared = seasonal_scale(TRAIN, 2), seasonal_scale(TRAIN, 2, squared=True)
    assert mase(ACTUAL, FORECAST, scale) == pytest.approx(28 / 6 / 2)
    assert rmsse(ACTUAL, FORECAST, squared) == pytest.approx((224 / 6 / 4.5) ** 0.5)
    # half of 75 / 50 + 2 / 4
    assert owa(75.0, 2.0, smape_reference=50.0, mase_reference=4.0) == pytest.approx(1.0)


def test_m4_series_by_hand() -> None:
    """The organisers' definitions on one quarterly series: 200 |a - f| / (|a| + |f|), in-sample differences 4 apart."""
    train = [10.0, 14, 8, 25, 16, 16, 12, 22, 15, 18, 14, 20]
    # differences 4 apart: 6, 2, 4, 3, 1, 2, 2, 2: 22 / 8 = 2.75
    actual, forecast = [15.0, 20, 16, 24], [17.0, 18, 16, 20]
    # absolute errors 2, 2, 0, 4: mean 2; 400/32 + 400/38 + 0 + 800/44 = 12.5 + 10.526316 + 18.181818 = 41.208134
    assert mase(actual, forecast, seasonal_scale(train, 4)) == pytest.approx(2 / 2.75)
    assert smape(actual, forecast) == pytest.approx(41.208134 / 4, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    actual, forecast = random.lognormal(size=(2, 200))
    assert mae(actual, forecast) == pytest.approx(sklearn_metrics.mean_absolute_error(actual, forecast), rel=1e-12)
    assert rmse(actual, forecast) == pytest.approx(sklearn_metrics.root_mean_squared_error(actual, forecast), rel=1e-12)
    assert mape(actual, forecast) == pytest.approx(
        sklearn_metrics.mean_absolute_percentage_error(actual, forecast), rel=1e-12
    )


def ragged_panel() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test frames of eight series of unequal length, with forecasts of two models."""
    random = np.random.default_rng(7)
    frames = []
    for number in range(8):
        length, horizon = 20 + 3 * number, 4 + number
        times = pd.date_range("2024-01-01", periods=length + horizon, freq="D")
        values = random.normal(10 * number - 20, 5, size=length + horizon)
        forecasts = values[:, np.newaxis] + random.normal(size=(length + horizon, 2))
        frame = pd.DataFrame({"unique_id": f"s{number}", "ds": times, "y": values, "A": forecasts[:, 0], "B": forecasts[:, 1]})
        frames.append(frame.assign(test=np.arange(length + horizon) >= length))
    both = pd.concat(frames, ignore_index=True)
    return both[~both["test"]].reset_index(drop=True), both[both["test"]].reset_index(drop=True)


def test_errors_that_cancel_leave_no_bias() -> None:
    error = np.array([0.1, 0.2, -0.3])
    assert error.sum() != 0
    assert bias(np.ones(3), 1 + error) == relative_bias(np.ones(3), 1 + error) == 0
    assert bias([0.0], [1e-17]) == 1e-17  # small, and all there is


@pytest.mark.parametrize("name", ["mae", "rmse", "mape", "smape", "bias", "wape", "mase", "rmsse"])
def test_equal_to_utilsforecast(name: str) -> None:
    train, test = ragged_panel()
    codes = test["unique_id"].str[1:].to_numpy(dtype=np.int64)
    indptr = np.concatenate([[0], np.cumsum(train.groupby("unique_id").size())])
    scales = {
        "scale": seasonal_scale(train["y"], 7, indptr)[codes],
        "squared_scale": seasonal_scale(train["y"], 7, indptr, squared=True)[codes],
    }
    ours = METRICS[name].by_group(test["y"], Groups(codes, 8), forecast=test[["A", "B"]].to_numpy().T, **scales).value
    scaled = {"seasonality": 7, "train_df": train} if name in ("mase", "rmsse") else {}
    theirs = getattr(losses, name)(test, models=["A", "B"], **scaled)
    factor = 200 if name == "smape" else 1  # theirs runs from 0 to 1
    np.testing.assert_allclose(ours, factor * theirs[["A", "B"]].to_numpy().T, rtol=1e-12)


def test_each_series_counts_once_in_scaled_metrics() -> None:
    """Two series of 1 and 2 points: MASE and sMAPE are means over series, as in M4; MAE is one over points."""
    actual, forecast = np.array([10.0, 10, 10]), np.array([14.0, 10, 10])
    groups = Groups(np.zeros(3, dtype=int), 1, forecasts=np.array([0, 1, 1]))
    given_inputs = {"forecast": forecast, "scale": np.full(3, 2.0), "squared_scale": np.full(3, 4.0)}
    names = ("mae", "mase", "rmsse", "smape")
    values = {name: METRICS[name].by_group(actual, groups, **given_inputs).value[0] for name in names}
    # MAE 4 / 3; MASE (4/2 + 0) / 2; RMSSE (sqrt(16/4) + 0) / 2; sMAPE (800/24 + 0) / 2
    assert values == pytest.approx({"mae": 4 / 3, "mase": 1.0, "rmsse": 1.0, "smape": 800 / 24 / 2})


def test_owa_is_taken_on_totals() -> None:
    random = np.random.default_rng(1)
    actual, forecast, reference = random.lognormal(size=(3, 60))
    scale = np.repeat(random.uniform(0.1, 3, size=20), 3)
    groups = Groups(np.zeros(60, dtype=int), 1, forecasts=np.repeat(np.arange(20), 3))
    value = METRICS["owa"].by_group(actual, groups, forecast=forecast, reference=reference, scale=scale).value
    grid = [array.reshape(20, 3) for array in (actual, forecast, reference)]
    by_series = [[smape(grid[0], f), mase(grid[0], f, scale[::3])] for f in grid[1:]]
    totals = np.mean(by_series, axis=2)
    assert value == pytest.approx((totals[0, 0] / totals[1, 0] + totals[0, 1] / totals[1, 1]) / 2)
    assert value != pytest.approx(np.mean(owa(*by_series[0], *by_series[1])), rel=1e-3)


def test_owa_edges() -> None:
    assert np.isnan(owa(1.0, 1.0, smape_reference=0.0, mase_reference=1.0))
    np.testing.assert_allclose(owa([10.0, 20.0], [1.0, 2.0], 20.0, 2.0), [0.5, 1.0])
    with pytest.raises(ParameterError, match="`mase` must be finite"):
        owa(1.0, -1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("mape", ([0.0, 0.0], [1.0, 2.0]), np.nan),  # nowhere defined
        ("smape", ([0.0, 0.0], [0.0, 0.0]), 0.0),
        ("smape", ([0.0, 1.0], [3.0, 1.0]), 100.0),
        ("wape", ([0.0, 0.0], [1.0, 2.0]), np.nan),
        ("relative_bias", ([0.0], [0.0]), np.nan),
        ("smape", ([5e-324], [5e-324]), 0.0),
    ],
)
def test_at_zero(name: str, values: tuple[list[float], list[float]], expected: float) -> None:
    assert METRICS[name](values[0], forecast=values[1]) == pytest.approx(expected, nan_ok=True)


def test_zero_scale_is_nan_and_counted() -> None:
    """A series whose training data are constant has no MASE: neither infinite nor dropped unsaid."""
    actual, forecast = np.array([[5.0, 6.0], [5.0, 9.0]]), np.array([[4.0, 6.0], [4.0, 9.0]])
    scale = seasonal_scale([3.0, 3.0, 3.0, 1.0, 3.0, 5.0], 1, indptr=[0, 3, 6])
    np.testing.assert_array_equal(mase(actual, forecast, scale), [np.nan, 0.25])
    groups = Groups(np.zeros(4, dtype=int), 1, forecasts=np.array([0, 0, 1, 1]))
    total = METRICS["mase"].by_group(actual.ravel(), groups, forecast=forecast.ravel(), scale=np.repeat(scale, 2))
    assert total.value == pytest.approx(0.25)
    assert (total.points.item(), total.left_out.item(), total.forecasts_left_out.item()) == (2, 2, 1)


@given(
    arrays(np.float64, (2, 12), elements=st.floats(-1e6, 1e6, allow_subnormal=False)),
    st.sampled_from([1e-6, 0.5, 3.0, 1e6]),
)
def test_properties(values: np.ndarray, factor: float) -> None:
    """Never negative, zero for the perfect forecast; in units of the target or without any."""
    values = np.round(values, 3)
    actual, forecast = values
    inputs = {"forecast": forecast, "scale": 2.0, "squared_scale": 4.0}
    for name in ("mae", "rmse", "mape", "smape", "wape", "mase", "rmsse"):
        metric = METRICS[name]
        value = metric(actual, **inputs)
        assert np.isnan(value) or value >= 0
        perfect = metric(actual, **{**inputs, "forecast": actual})
        assert np.isnan(perfect) or perfect == 0
        larger = metric(actual * factor, forecast=forecast * factor, scale=2.0, squared_scale=4.0)
        grows = 1.0 if name in ("mape", "smape", "wape") else factor
        np.testing.assert_allclose(larger, value * grows, rtol=1e-9, atol=1e-12 * grows)
    assert bias(actual, forecast) == pytest.approx(-bias(forecast, actual))
    assert rmse(actual, forecast) >= mae(actual, forecast) * (1 - 1e-12)
    assert 0 <= smape(actual, forecast) <= 200 * (1 + 1e-12)


def test_far_from_zero_keeps_its_digits() -> None:
    assert mae(3e9 + np.array([4.0, -4.0]), 3e9 + np.array([3.0, -3.0])) == 1.0


@pytest.mark.slow
@pytest.mark.data
def test_m4_official_forecasts(data_folder: Path) -> None:
    """The organisers' own forecasts score what their table says, Naive2 13.56407 over all series."""
    names = ("train", "test", "official_forecasts")
    train, test, official = (pd.read_parquet(data_folder / "m4" / f"{name}.parquet") for name in names)
    ids = test["unique_id"].cat.categories
    series = test["unique_id"].cat.codes.to_numpy()
    np.testing.assert_array_equal(official["unique_id"].astype(str), test["unique_id"].astype(str))
    season_of = {"Y": 1, "Q": 4, "M": 12, "W": 1, "D": 1, "H": 24}
    sizes = train["unique_id"].value_counts(sort=False).loc[train["unique_id"].unique()]
    season = np.array([season_of[name[0]] for name in sizes.index])
    scale = pd.Series(seasonal_scale(train["y"], season, np.concatenate([[0], np.cumsum(sizes)])), index=sizes.index)
    points = {"scale": scale.loc[ids].to_numpy()[series], "reference": official["Naive2"]}
    forecast = official[["Naive2", "sNaive"]].to_numpy().T
    letter = pd.Categorical([name[0] for name in ids], categories=list(season_of)).codes
    by_frequency = Groups(letter[series].astype(np.int64), 6, forecasts=series)
    found = {name: METRICS[name].by_group(test["y"], by_frequency, forecast=forecast, **points) for name in ("smape", "mase")}
    expected = {
        "smape": [[16.342, 11.012, 14.427, 9.161, 3.045, 18.383], [16.342, 12.521, 15.988, 9.161, 3.045, 13.912]],
        "mase": [[3.974, 1.371, 1.063, 2.777, 3.278, 2.395], [3.974, 1.602, 1.260, 2.777, 3.278, 1.193]],
    }
    for name, table in expected.items():
        np.testing.assert_allclose(found[name].value, table, rtol=0, atol=0.0005)
        assert found[name].left_out.sum() == 0
    total = Groups(np.zeros(len(series), dtype=np.int64), 1, forecasts=series)
    smapes = METRICS["smape"].by_group(test["y"], total, forecast=forecast).value
    np.testing.assert_allclose(smapes[:, 0], [13.56407, 14.65741], rtol=0, atol=0.00001)
    owas = METRICS["owa"].by_group(test["y"], total, forecast=forecast, **points).value
    np.testing.assert_allclose(owas[0], 1.0)
