"""Metrics of quantiles, samples and intervals: by hand, beside scikit-learn and utilsforecast, and by their properties."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mean_pinball_loss
from utilsforecast import losses

from deepforecast.errors import DataError, ParameterError
from deepforecast.evaluation.metrics import (
    METRICS,
    Groups,
    coverage,
    crps_from_quantiles,
    crps_from_samples,
    mae,
    msis,
    pinball,
    wape,
    weighted_quantile_loss,
    width,
    winkler,
)

ACTUAL = np.array([10.0, 20, 0, 40, 50, -5])
LO = np.array([8.0, 14, 0, 36, 36, 1])
HI = np.array([12.0, 18, 4, 40, 40, 5])  # always 4 wide


def test_quantiles_by_hand() -> None:
    # actual - HI: -2, 2, -4, 0, 10, -10; at 0.9: .2, 1.8, .4, 0, 9, 1 = 12.4
    assert pinball(ACTUAL, HI, 0.9) == pytest.approx(12.4 / 6)
    # actual - LO: 2, 6, 0, 4, 14, -6; at 0.1: .2, .6, 0, .4, 1.4, 5.4 = 8
    assert pinball(ACTUAL, LO, 0.1) == pytest.approx(8 / 6)
    # absolute actuals 125; (2 * 12.4 / 125 + 2 * 8 / 125) / 2
    assert weighted_quantile_loss(ACTUAL, [LO, HI], [0.1, 0.9]) == pytest.approx(20.4 / 125)


def test_crps_by_hand() -> None:
    # A quarter of the mass at each end, half spread between them: F = 1/4 + s/2 along the interval.
    # Actual in the middle: 4 * 2 * integral of F^2 over half = 8 * (2/3) (1/8 - 1/64) = 7/12
    # Actual at an end: 4 * (2/3) (27/64 - 1/64) = 13/12; outside, its distance is added: 0 (mid), 2, 0, 0, 10, 6
    assert crps_from_quantiles(ACTUAL, [LO, HI], [0.25, 0.75]) == pytest.approx((7 / 12 + 5 * 13 / 12 + 18) / 6)
    # Two samples: mean distance 2, 4, 2, 2, 12, 8 less half the mean difference of two draws (4 / 2) / 2 = 1
    assert crps_from_samples(ACTUAL, [LO, HI]) == pytest.approx((30 - 6) / 6)


def test_intervals_by_hand() -> None:
    # inside: yes, no, yes (on lo), yes (on hi), no, no
    assert coverage(ACTUAL, LO, HI) == pytest.approx(3 / 6)
    assert width(ACTUAL, LO, HI) == pytest.approx(4)
    # outside by 0, 2, 0, 0, 10, 6 = 18; at 80 % times 2 / 0.2, at 95 % times 2 / 0.05
    assert winkler(ACTUAL, LO, HI, 80) == pytest.approx(4 + 18 * 10 / 6)
    assert msis(ACTUAL, LO, HI, scale=2.0) == pytest.approx((4 + 18 * 40 / 6) / 2)


def quantile_panel() -> tuple[pd.DataFrame, list[float], dict[str, list[str]]]:
    random = np.random.default_rng(3)
    quantiles = [0.05, 0.1, 0.5, 0.9, 0.95]
    frame = pd.DataFrame({"unique_id": np.repeat(["a", "b", "c"], [5, 9, 14]), "y": random.lognormal(size=28)})
    for model in ("A", "B"):
        values = np.sort(random.lognormal(size=(28, 5)), axis=1)
        names = [f"{model}-lo-90", f"{model}-lo-80", f"{model}-q-0.5", f"{model}-hi-80", f"{model}-hi-90"]
        frame[names] = values
    return frame, quantiles, {m: [n for n in frame.columns if n.startswith(m)] for m in ("A", "B")}


def test_equal_to_scikit_learn() -> None:
    frame, quantiles, columns = quantile_panel()
    for q, column in zip(quantiles, columns["A"], strict=True):
        assert pinball(frame["y"], frame[column], q) == pytest.approx(mean_pinball_loss(frame["y"], frame[column], alpha=q))


def test_equal_to_utilsforecast() -> None:
    frame, quantiles, columns = quantile_panel()
    groups = Groups(np.repeat([0, 1, 2], [5, 9, 14]), 3)
    stacked = np.stack([frame[columns[model]].to_numpy().T for model in ("A", "B")], axis=1)

    def ours(name: str, **inputs: object) -> np.ndarray:
        return METRICS[name].by_group(frame["y"], groups, **inputs).value  # type: ignore[arg-type]

    def same(found: np.ndarray, theirs: pd.DataFrame) -> None:
        np.testing.assert_allclose(found, theirs.sort_values("unique_id")[["A", "B"]].to_numpy().T, rtol=1e-12)

    asked = {"quantile_forecast": stacked, "quantiles": quantiles}
    same(ours("pinball", **asked), losses.mqloss(frame, columns, np.array(quantiles)))
    same(ours("weighted_quantile_loss", **asked), losses.scaled_crps(frame, columns, np.array(quantiles)))
    for level, inner in ((80, (1, 3)), (90, (0, 4))):
        bounds = {"lo": stacked[inner[0]], "hi": stacked[inner[1]]}
        same(ours("coverage", **bounds), losses.coverage(frame, ["A", "B"], level))
        same(ours("winkler", **bounds, level=level), losses.winkler_score(frame, ["A", "B"], level))


def plain_crps(actual: float, samples: np.ndarray) -> float:
    """E|X - y| - E|X - X'| / 2 by its definition, one pair of samples after the other."""
    count = len(samples)
    pairs = sum(abs(first - second) for first in samples for second in samples)
    return sum(abs(x - actual) for x in samples) / count - pairs / 2 / count**2


NUMBERS = st.floats(-1e4, 1e4, allow_subnormal=False)


SAMPLES = st.integers(2, 9).flatmap(lambda count: arrays(np.float64, (count, 3), elements=NUMBERS))


@given(SAMPLES, arrays(np.float64, 3, elements=NUMBERS))
def test_crps_of_samples_is_the_double_loop(samples: np.ndarray, actual: np.ndarray) -> None:
    exact = crps_from_samples(actual[:, np.newaxis], samples[..., np.newaxis])
    assert (exact >= 0).all()
    np.testing.assert_allclose(exact, [plain_crps(y, x) for y, x in zip(actual, samples.T, strict=True)], atol=1e-8)


@given(arrays(np.float64, (5, 4), elements=NUMBERS), arrays(np.float64, 4, elements=NUMBERS))
def test_crps_of_quantiles_is_its_integral(forecast: np.ndarray, actual: np.ndarray) -> None:
    """Twice the pinball loss, integrated over q by the midpoint rule; never negative, crossing quantiles sorted."""
    quantiles = np.array([0.05, 0.3, 0.4, 0.8, 0.9])
    cells = (np.arange(4000) + 0.5) / 4000
    found = crps_from_quantiles(actual[:, np.newaxis], forecast[..., np.newaxis], quantiles)
    assert (found >= 0).all()
    for column, y, value in zip(np.sort(forecast, axis=0).T, actual, found, strict=True):
        error = y - np.interp(cells, quantiles, column)
        integral = 2 * np.maximum(cells * error, (cells - 1) * error).mean()
        assert value == pytest.approx(integral, rel=1e-3, abs=1e-3 * (1 + np.ptp(column)))


def test_crps_of_a_point_is_its_absolute_error() -> None:
    random = np.random.default_rng(0)
    actual, forecast = random.normal(size=(2, 50))
    for quantiles in ([0.5], [0.1, 0.2, 0.9]):
        same = np.tile(forecast, (len(quantiles), 1))
        assert crps_from_quantiles(actual, same, quantiles) == pytest.approx(mae(actual, forecast))
    assert crps_from_samples(actual, forecast[np.newaxis]) == pytest.approx(mae(actual, forecast))


def test_crps_of_a_normal_distribution() -> None:
    """Known in closed form, 0.2337 at the mean: deciles come within 1 %, 2,000 samples within 3 %, on average over draws."""
    normal = NormalDist()
    deciles = np.arange(1, 10) / 10
    actual = np.array([normal.inv_cdf((i + 0.5) / 2000) for i in range(2000)])
    true = np.mean([y * (2 * normal.cdf(y) - 1) + 2 * normal.pdf(y) - np.pi**-0.5 for y in actual])
    quantile_forecast = np.tile([[normal.inv_cdf(q)] for q in deciles], (1, 2000))
    assert crps_from_quantiles(actual, quantile_forecast, deciles) == pytest.approx(true, rel=0.015)
    samples = np.random.default_rng(0).normal(size=(500, 2000))
    assert crps_from_samples(actual, samples) == pytest.approx(true, rel=0.01)
    few = np.random.default_rng(0).normal(size=(3, 2000))
    assert crps_from_samples(actual, few) > 1.2 * true  # as the docstring says


def test_median_alone_is_the_point_metric() -> None:
    random = np.random.default_rng(0)
    actual, forecast = random.normal(size=(2, 50))
    assert pinball(actual, forecast, 0.5) == pytest.approx(mae(actual, forecast) / 2)
    assert weighted_quantile_loss(actual, forecast[np.newaxis], [0.5]) == pytest.approx(wape(actual, forecast))


@given(arrays(np.float64, (3, 6), elements=NUMBERS), st.sampled_from([0.01, 7.0, 1e5]))
def test_scale_carries_over(values: np.ndarray, factor: float) -> None:
    values = np.round(values, 3)
    actual, lo, hi = values[0], values[1:].min(axis=0), values[1:].max(axis=0)
    inputs = {"lo": lo, "hi": hi, "quantile_forecast": np.stack([lo, hi]), "samples": np.stack([lo, hi])}
    larger = {name: array * factor for name, array in inputs.items()}
    fixed = {"level": 80, "quantiles": [0.1, 0.9]}
    for name in ("pinball", "crps_from_quantiles", "crps_from_samples", "width", "winkler"):
        value = METRICS[name](actual, **inputs, **fixed)
        assert value >= 0
        assert METRICS[name](actual * factor, **larger, **fixed) == pytest.approx(value * factor, rel=1e-9, abs=1e-7 * factor)


def test_edges() -> None:
    with pytest.raises(DataError, match=r"got 18\.0 and 14\.0 at position 1 \(2 such"):
        coverage(ACTUAL, np.where([0, 1, 1, 0, 0, 0], HI, LO), np.where([0, 1, 1, 0, 0, 0], LO, HI))
    for metric in (coverage, width):
        assert metric([np.nan, 1.0], [0.0, 0.0], [9.0, 1.0]) == 1.0
    assert np.isnan(coverage([np.nan], [0.0], [1.0]))
    assert np.isnan(msis([1.0], [0.0], [2.0], scale=0.0))
    for level in (0, 100, -5, float("nan")):
        with pytest.raises(ParameterError, match=r"`level` must be above 0 and below 100"):
            winkler(ACTUAL, LO, HI, level)
    for quantiles in ([0.9, 0.1], [0.0, 0.5], [0.5, 1.0], [0.5, 0.5]):
        with pytest.raises(ParameterError, match="increasing numbers"):
            weighted_quantile_loss(ACTUAL, [LO, HI], quantiles)
    with pytest.raises(ParameterError, match="got 2 and 3"):
        weighted_quantile_loss(ACTUAL, [LO, HI], [0.1, 0.5, 0.9])
    with pytest.raises(ParameterError, match="first axis over the quantiles"):
        weighted_quantile_loss(ACTUAL, LO, [0.1])


def test_crps_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    actual, samples = random.normal(size=11), random.normal(size=(7, 2, 11))
    whole = METRICS["crps_from_samples"].by_group(actual, Groups(np.arange(11), 11), samples=samples).value
    monkeypatch.setattr("deepforecast.evaluation.probabilistic.BLOCK_SIZE", 50)
    parts = METRICS["crps_from_samples"].by_group(actual, Groups(np.arange(11), 11), samples=samples).value
    np.testing.assert_allclose(parts, whole, rtol=1e-13)
    assert whole.shape == (2, 11)
