"""What a metric does with its inputs, and metrics made of functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score

from deepforecast.errors import DataError, ParameterError
from deepforecast.evaluation.metric_classes import FunctionMetric, Metric, PointMetric
from deepforecast.evaluation.metrics import METRICS, Groups

ACTUAL = np.array([1.0, 2.0, np.nan, 4.0, 5.0, 7.0])
FORECAST = np.array([[1.0, 3.0, 9.0, 2.0, 5.0, 7.0], [2.0, 2.0, 0.0, 4.0, 6.0, 7.5]])
GROUPS = Groups(np.array([0, 0, 0, 1, 1, 1]), 2, forecasts=np.array([0, 1, 1, 2, 2, 3]))


def test_a_function_of_all_points() -> None:
    """A function of scikit-learn gives what the fast metric gives, missing actuals taken out before."""
    metric = Metric.from_function(mean_absolute_error, rewards="The median.")
    found, fast = (m.by_group(ACTUAL, GROUPS, forecast=FORECAST) for m in (metric, METRICS["mae"]))
    assert (metric.name, metric.rewards) == ("mean_absolute_error", "The median.")
    np.testing.assert_allclose(found.value, fast.value, rtol=1e-14)
    np.testing.assert_array_equal(found.points, fast.points)
    np.testing.assert_array_equal(found.left_out, fast.left_out)
    assert metric(ACTUAL, forecast=FORECAST[0]) == pytest.approx(3 / 5)


def test_a_function_of_each_forecast() -> None:
    metric = Metric.from_function(mean_absolute_error, counts="forecasts")
    found = metric.by_group(ACTUAL, GROUPS, forecast=FORECAST)
    # first model: forecasts score 0 and 1 in the first group, (2 + 0) / 2 and 0 in the second
    np.testing.assert_allclose(found.value[0], [0.5, 0.5])
    np.testing.assert_array_equal(found.points[0], [2, 3])


def test_a_function_given_more_inputs() -> None:
    def scaled_miss(actual: np.ndarray, lo: np.ndarray, scale: np.ndarray, level: float) -> float:
        assert isinstance(level, float)
        return float(np.sum((lo - actual) / scale) * level)

    def spread(actual: np.ndarray, samples: np.ndarray) -> float:
        assert samples.shape == (3, actual.size)
        return float(np.ptp(samples, axis=0).sum())

    metric = Metric.from_function(scaled_miss, needs=("lo", "scale", "level"))
    assert metric([1.0, 2.0], lo=[[2.0, 4.0], [1.0, 2.0]], scale=2.0, level=50).tolist() == [75.0, 0.0]
    samples = np.array([[[1.0, 2], [0, 0]], [[2, 4], [0, 1]], [[0, 0], [0, 0]]])
    found = Metric.from_function(spread, needs=("samples",)).by_group([1.0, 2.0], Groups(np.array([0, 1]), 2), samples=samples)
    np.testing.assert_array_equal(found.value, [[2.0, 4.0], [0.0, 1.0]])


def test_a_function_of_each_point() -> None:
    def missed_by_two(actual: np.ndarray, forecast: np.ndarray) -> np.ndarray:
        return (np.abs(actual - forecast) >= 2).astype(float)

    metric = Metric.from_function(missed_by_two, pointwise=True, unit="fraction")
    assert isinstance(metric, PointMetric)
    found = metric.by_group(ACTUAL, GROUPS, forecast=FORECAST)
    np.testing.assert_allclose(found.value, [[0, 1 / 3], [0, 0]])
    np.testing.assert_array_equal(found.left_out, [[1, 0], [1, 0]])
    with pytest.raises(ParameterError, match=r"an error per point, shape \(2, 6\), got shape \(\)"):
        Metric.from_function(mean_absolute_error_of_none, pointwise=True).by_group(ACTUAL, GROUPS, forecast=FORECAST)


def mean_absolute_error_of_none(actual: np.ndarray, forecast: np.ndarray) -> float:
    return 0.0


def test_functions_refused() -> None:
    with pytest.raises(ParameterError, match="must have a name"):
        Metric.from_function(lambda actual, forecast: 0.0)
    with pytest.raises(ParameterError, match="`needs` must contain only forecast"):
        Metric.from_function(r2_score, needs=("forcast",))
    for wrong in (lambda actual, forecast: actual, lambda actual, forecast: "high"):
        with pytest.raises(ParameterError, match="metric wrong must return one number"):
            Metric.from_function(wrong, name="wrong")([1.0, 2.0], forecast=[1.0, 2.0])


def test_undefined_values_of_a_function_are_counted() -> None:
    def only_long(actual: np.ndarray, forecast: np.ndarray) -> float:
        return 1.0 if actual.size > 1 else float("nan")

    found = Metric.from_function(only_long).by_group([1.0, 1, 1], Groups(np.array([0, 0, 1]), 3), forecast=[1.0, 1, 1])
    np.testing.assert_array_equal(found.value, [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(found.left_out, [0, 1, 0])
    np.testing.assert_array_equal(found.forecasts_left_out, [0, 1, 0])


def test_distance_is_what_a_ranking_sorts_by() -> None:
    assert METRICS["mae"].distance([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert METRICS["bias"].distance([-3.0, 2.0]).tolist() == [3.0, 2.0]
    assert METRICS["coverage"].distance([0.7, 0.85], level=80) == pytest.approx([0.1, 0.05])
    assert Metric.from_function(r2_score, better="high").distance([0.2, 0.9]).tolist() == [-0.2, -0.9]
    with pytest.raises(ParameterError, match="Pass `level`"):
        METRICS["coverage"].distance([0.7])


def test_shapes_of_the_answer() -> None:
    actual, forecast = np.arange(12.0).reshape(3, 4), np.ones((2, 3, 4))
    mae: Any = METRICS["mae"]
    assert isinstance(mae(actual[0], forecast=forecast[0, 0]), float)
    assert mae(actual[0], forecast=forecast[:, 0]).shape == (2,)
    assert mae(actual, forecast=forecast[0]).shape == (3,)
    np.testing.assert_allclose(mae(actual, forecast=forecast), np.abs(actual - forecast).mean(axis=-1))


def test_inputs_by_name() -> None:
    with pytest.raises(ParameterError, match="requires the inputs forecast, scale; missing: scale"):
        METRICS["mase"](ACTUAL, forecast=FORECAST)
    with pytest.raises(ParameterError, match="the same number of points, got 6 and 5"):
        METRICS["mae"].by_group(ACTUAL[:5], GROUPS, forecast=FORECAST[:, :5])
    assert METRICS["mae"](ACTUAL, forecast=FORECAST[0], lo="not looked at") == pytest.approx(0.6)  # type: ignore[arg-type]


def test_too_large_is_said_not_returned() -> None:
    with pytest.raises(DataError, match="rmse must be finite"):
        METRICS["rmse"]([1e200], forecast=[-1e200])
    assert METRICS["mae"]([1e200], forecast=[-1e200]) == 2e200


def test_metrics_are_values() -> None:
    metric = METRICS["mase"]
    with pytest.raises(AttributeError):
        metric.name = "other"  # type: ignore[misc]
    assert isinstance(Metric.from_function(r2_score), FunctionMetric)
    assert len({metric, METRICS["mase"]}) == 1
