"""Printed numbers: Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, as in statsmodels' holtwinters tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import SES, Holt, HoltWinters

OIL = [446.6565, 454.4733, 455.663, 423.6322, 456.2713, 440.5881, 425.3325, 485.1494, 506.0482, 526.792, 514.2689, 494.211]
AIR = [
    17.5534, 21.8601, 23.8866, 26.9293, 26.8885, 28.8314, 30.0751, 30.9535, 30.1857, 31.5797, 32.577569, 33.477398, 39.021581,
    41.386432, 41.596552,
]  # fmt: skip
TOURISTS = [
    41.727458, 24.04185, 32.328103, 37.328708, 46.213153, 29.346326, 36.48291, 42.977719, 48.901525, 31.180221, 37.717881,
    40.420211, 51.206863, 31.887228, 40.978263, 43.772491, 55.558567, 33.850915, 42.076383, 45.642292, 59.76678, 35.191877,
    44.319737, 47.913736,
]  # fmt: skip


def forecast(model, values, horizon, freq="YS"):
    frame = pd.DataFrame({"ds": pd.date_range("1990-01-01", periods=len(values), freq=freq), "y": values})
    return model.fit(frame).predict(horizon)[model.name].to_numpy()


@pytest.mark.parametrize(("alpha", "printed"), [(0.2, 484.802468), (0.6, 501.837461)])
def test_simple_smoothing_with_a_given_alpha(alpha, printed):
    found = forecast(SES(alpha=alpha, initial="simple"), OIL, 2)
    np.testing.assert_allclose(found, printed, atol=5e-5)


def test_simple_smoothing_estimated():
    model = SES()
    np.testing.assert_allclose(forecast(model, OIL, 1), 496.493543, atol=5e-3)
    found = model.parameters().iloc[0]
    np.testing.assert_allclose(found["alpha"], 0.891998, atol=1e-4)
    np.testing.assert_allclose(found["level"], 447.478440, atol=1e-2)


def test_holt_and_an_exponential_trend_with_given_rates():
    given = {"alpha": 0.8, "beta": 0.8 * 0.2, "initial": "simple"}
    np.testing.assert_allclose(forecast(Holt(**given), AIR, 5), [43.76, 45.59, 47.43, 49.27, 51.10], atol=6e-3)
    exponential = forecast(Holt(trend="multiplicative", **given), AIR, 5)
    np.testing.assert_allclose(exponential, [44.60, 47.24, 50.04, 53.01, 56.15], atol=6e-3)


def test_a_damped_trend_with_given_rates():
    """First states and phi are estimated."""
    found = forecast(Holt(damped=True, alpha=0.8, beta=0.8 * 0.2), AIR, 5)
    np.testing.assert_allclose(found, [42.85, 43.81, 44.66, 45.41, 46.06], atol=6e-3)


def test_a_season_that_multiplies():
    found = forecast(HoltWinters(seasonal="multiplicative", parameter_bounds="usual"), TOURISTS, 4, freq="QS")
    np.testing.assert_allclose(found, [61.3083, 37.3730, 46.9652, 51.5578], atol=2e-3)

