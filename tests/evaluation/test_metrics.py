"""The catalogue: names, and the edges that hold for every metric in it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error

from deepforecast.errors import DataError, ParameterError, ParameterTypeError
from deepforecast.evaluation import metrics
from deepforecast.evaluation.metrics import METRICS, Groups, get

RANDOM = np.random.default_rng(0)
ACTUAL = np.round(RANDOM.uniform(5, 15, size=6))
FORECAST = np.round(RANDOM.uniform(5, 15, size=6))
PER_POINT = {
    "forecast": FORECAST,
    "reference": FORECAST + 1,
    "lo": FORECAST - 2,
    "hi": FORECAST + 2,
    "quantile_forecast": np.stack([FORECAST - 2, FORECAST, FORECAST + 3]),
    "samples": np.stack([FORECAST + 1, FORECAST, FORECAST - 2, FORECAST]),
}
FIXED = {"scale": 2.0, "squared_scale": 3.0, "level": 80, "quantiles": [0.1, 0.5, 0.9]}
EVERY = pytest.mark.parametrize("name", METRICS)


def call(name: str, actual: Any = ACTUAL, **changed: Any) -> Any:
    return METRICS[name](actual, **{**PER_POINT, **FIXED, **changed})


def test_the_catalogue_holds_every_metric() -> None:
    asked = "mae rmse mape smape mase rmsse wape bias owa pinball weighted_quantile_loss coverage width winkler msis"
    assert set(asked.split()) | {"crps_from_quantiles", "crps_from_samples"} <= set(METRICS)
    for name, metric in METRICS.items():
        assert metric.name == name == name.lower()
        assert metric.rewards.endswith(".")
        with pytest.raises(TypeError):
            METRICS[name] = metric  # type: ignore[index]


@EVERY
def test_functions_of_the_same_name_state_what_they_reward(name: str) -> None:
    function = getattr(metrics, name)
    assert get(function) is METRICS[name]
    assert any(word in function.__doc__ for word in ("inimized by", "favours", "best at", "too high"))


def test_get() -> None:
    assert get("sMAPE") is METRICS["smape"]
    assert get(METRICS["mae"]) is METRICS["mae"]
    assert get(mean_absolute_error).name == "mean_absolute_error"
    with pytest.raises(ParameterError, match=r"Unknown metric 'msae'\. Did you mean 'm"):
        get("msae")
    with pytest.raises(ParameterError, match="Available: mae, rmse"):
        get("???")
    with pytest.raises(ParameterTypeError, match="a name, a Metric or a function, got 3"):
        get(3)  # type: ignore[arg-type]


def test_a_stranger_of_the_same_name_is_not_ours() -> None:
    def mae(actual: np.ndarray, forecast: np.ndarray) -> float:
        return 42.0

    assert get(mae)(ACTUAL, forecast=FORECAST) == 42.0


@EVERY
def test_missing_actuals_are_left_out_and_counted(name: str) -> None:
    kept = np.array([True, False, True, True, False, True])
    holes = np.where(kept, ACTUAL, np.nan)
    cut = {key: array[..., kept] for key, array in PER_POINT.items()}
    assert call(name, holes) == pytest.approx(call(name, ACTUAL[kept], **cut))
    groups = Groups(np.array([0, 1, 0, 0, 0, 0]), 2)
    scales = {"scale": np.full(6, 2.0), "squared_scale": np.full(6, 3.0)}
    found = METRICS[name].by_group(holes, groups, **{**PER_POINT, **FIXED, **scales})
    np.testing.assert_array_equal(found.points, [4, 0])
    np.testing.assert_array_equal(found.left_out, [1, 1])
    np.testing.assert_array_equal(found.forecasts_left_out, [0, 1])
    assert np.isnan(found.value[1])


@EVERY
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e301])
def test_bad_forecasts_are_refused(name: str, bad: float) -> None:
    """Also where there is no actual: a model that answers NaN is broken."""
    actual = np.where(np.arange(6) == 3, np.nan, ACTUAL)
    for key in set(METRICS[name].needs) & set(PER_POINT):
        array = PER_POINT[key].copy()
        array[..., 3] = bad
        with pytest.raises(DataError, match=f"`{key}` is .* at position .*3 .* such values"):
            call(name, actual, **{key: array})


@EVERY
@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e301])
def test_infinite_actuals_are_refused(name: str, bad: float) -> None:
    with pytest.raises(DataError, match=r"`actual` must be below .* at position 2"):
        call(name, np.where(np.arange(6) == 2, bad, ACTUAL))


@EVERY
def test_computed_in_float64(name: str) -> None:
    expected = call(name)
    for dtype in (np.float32, np.int16, np.int64):
        found = call(name, ACTUAL.astype(dtype), **{key: array.astype(dtype) for key, array in PER_POINT.items()})
        assert found == expected


@EVERY
def test_inputs_are_not_written_to(name: str) -> None:
    before = {key: array.copy() for key, array in PER_POINT.items()}
    actual = ACTUAL.copy()
    call(name, actual)
    np.testing.assert_array_equal(actual, ACTUAL)
    for key, array in before.items():
        np.testing.assert_array_equal(array, PER_POINT[key])


@EVERY
def test_shapes_are_checked(name: str) -> None:
    for key in set(METRICS[name].needs) & set(PER_POINT):
        wrong = PER_POINT[key][..., :5]
        with pytest.raises(ParameterError, match=f"`{key}` "):
            call(name, **{key: wrong})
        with pytest.raises(ParameterError, match=f"`{key}` "):
            call(name, **{key: PER_POINT[key][..., np.newaxis]})


@pytest.mark.parametrize("values", ["abc", ["a", "b"], [True, False], [1j, 2.0], [None, 1.0]])
def test_only_real_numbers(values: Any) -> None:
    with pytest.raises(ParameterTypeError, match="real numbers"):
        metrics.mae(values, [1.0, 2.0])


def test_odd_arrays() -> None:
    with pytest.raises(ParameterError, match="rows of equal length"):
        metrics.mae([[1.0], [1.0, 2.0]], [1.0, 2.0])
    for empty in (3.0, []):
        with pytest.raises(ParameterError, match="at least one point"):
            metrics.mae(empty, empty)
    masked = np.ma.MaskedArray([1.0, 1e9], mask=[False, True])
    assert metrics.mae(masked, [2.0, 2.0]) == 1.0
    with pytest.raises(DataError, match="`forecast` is nan"):
        metrics.mae([2.0, 2.0], masked)
    for scale in (-1.0, np.inf):
        with pytest.raises(ParameterError, match="not negative"):
            metrics.mase(ACTUAL, FORECAST, scale)
    with pytest.raises(ParameterError, match="one number per forecast"):
        metrics.mase(ACTUAL, FORECAST, [1.0, 2.0])


def test_one_scale_per_point_or_per_forecast() -> None:
    actual, forecast = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    by_series = metrics.mase(actual, forecast, [1.0, 4.0])
    np.testing.assert_allclose(by_series, [2 / 3, 9 / 4 / 3])
    np.testing.assert_array_equal(metrics.mase(actual, forecast, [[1.0] * 3, [4.0] * 3]), by_series)


def test_many_models_and_series_are_fast() -> None:
    """A tenth of the panel in the budget (5 models, 100,000 series, 18 steps, 6 metrics in 3 s), ten times its time."""
    series = np.repeat(np.arange(10_000), 18)
    actual = RANDOM.uniform(5, 15, size=180_000)
    forecast = actual + RANDOM.normal(size=(5, 180_000))
    scales = {"scale": np.full(180_000, 2.0), "squared_scale": np.full(180_000, 3.0)}
    start = time.process_time()
    for groups in (Groups(series, 10_000, series), Groups(np.tile(np.arange(18), 10_000), 18, series)):
        for name in ("mae", "rmse", "smape", "mase", "rmsse", "wape"):
            METRICS[name].by_group(actual, groups, forecast=forecast, **scales)
    assert time.process_time() - start < 6
