"""Paths of forecasts made step by step: their sums vary as those of the truth, their steps as the bands say."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP
from deepforecast.core.monitor import SILENT
from deepforecast.data.panel import Panel
from deepforecast.models.neural import _residual_correlation
from tests.models.neural.test_predict import fitted, panel

SERIES, ROWS, STEPS, KEPT = 20, 300, 8, 0.8


@pytest.fixture(scope="module")
def wandering() -> pd.DataFrame:
    """Each value is 0.8 of the one before, and chance."""
    rng = np.random.default_rng(0)
    y = np.zeros((SERIES, ROWS))
    for row in range(1, ROWS):
        y[:, row] = KEPT * y[:, row - 1] + rng.normal(size=SERIES)
    ids = np.repeat([f"s{number:02d}" for number in range(SERIES)], ROWS)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(ROWS), SERIES), "y": y.reshape(-1)})


@pytest.fixture(scope="module")
def learned(wandering: pd.DataFrame) -> MLP:
    model = MLP(
        horizon=STEPS, input_size=8, hidden_sizes=[16], max_steps=250, learning_rate=5e-3, scaler="none", season_length=1
    )
    return model.fit(wandering)


def paths(model: MLP) -> np.ndarray:
    return model.simulate(400, seed=1)["MLP"].to_numpy().reshape(SERIES, 400, STEPS)


def test_the_sum_of_the_steps_varies_as_the_truth(learned: MLP) -> None:
    weights = np.array([sum(KEPT**power for power in range(STEPS - step)) for step in range(STEPS)])
    assert paths(learned).sum(axis=2).var(axis=1).mean() == pytest.approx((weights**2).sum(), rel=0.2)


def test_steps_are_spread_as_the_bands(learned: MLP) -> None:
    found = learned.predict(quantiles=[0.1, 0.9])
    low, high = (found[f"MLP-q-{one}"].to_numpy().reshape(SERIES, 1, STEPS) for one in (0.1, 0.9))
    assert (paths(learned) < low).mean() == pytest.approx(0.1, abs=0.02)
    assert (paths(learned) > high).mean() == pytest.approx(0.1, abs=0.02)


def test_ties_are_those_of_the_errors(learned: MLP) -> None:
    factor = learned.state_.learned.shared["correlation_factor"]
    found = factor @ factor.T

    def shared(one: int, other: int) -> float:
        return sum(KEPT ** (one - step) * KEPT ** (other - step) for step in range(1, min(one, other) + 1))

    steps = range(1, STEPS + 1)
    true = np.array([[shared(i, j) / np.sqrt(shared(i, i) * shared(j, j)) for j in steps] for i in steps])
    np.testing.assert_allclose(found, true, atol=0.12)
    np.testing.assert_allclose((factor**2).sum(axis=1), 1)


def test_ties_cost_little_and_are_the_same_again(learned: MLP, wandering: pd.DataFrame) -> None:
    panel, state = Panel.from_frame(wandering), learned.state_.learned
    begin = time.process_time()
    again = _residual_correlation.fit_residual_correlation(learned, state, panel).shared["correlation_factor"]
    assert time.process_time() - begin < 0.5  # ten times what it may take
    assert (again == state.shared["correlation_factor"]).all()


def test_where_no_paths_are_made_of_them_no_ties_are_learned(wandering: pd.DataFrame) -> None:
    small, held = MLP(horizon=3, hidden_sizes=[4], max_steps=2, input_size=6), Panel.from_frame(wandering)
    assert "correlation_factor" in small._fit(held, SILENT).shared
    assert "correlation_factor" not in small._fit(held, SILENT.fold(0)).shared  # which is judged by its forecasts, and forgotten
    assert "correlation_factor" not in fitted("MLP", head="point").state_.learned.shared
    in_turn = LSTM(horizon=4, input_size=8, hidden_size=4, max_steps=2, output="autoregressive").fit(panel(2, 60))
    assert "correlation_factor" not in in_turn.state_.learned.shared


def test_chance_alone_ties_nothing() -> None:
    errors = np.random.default_rng(0).normal(size=(60, 12))
    found = _residual_correlation.shrink_correlation(_residual_correlation.normal_scores(errors))
    assert np.abs(found - np.eye(12)).max() < 0.15
    together = errors[:, :1] + 0.1 * errors
    assert _residual_correlation.shrink_correlation(_residual_correlation.normal_scores(together))[0, 1] > 0.9


def test_errors_that_were_not_seen_count_for_nothing() -> None:
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(400, 1)) + 0.3 * rng.normal(size=(400, 3))
    holes = np.where(rng.random(errors.shape) < 0.3, np.nan, errors)
    whole, part = (
        _residual_correlation.shrink_correlation(_residual_correlation.normal_scores(one)) for one in (errors, holes)
    )
    np.testing.assert_allclose(part, whole, atol=0.08)
    assert np.isfinite(
        _residual_correlation.shrink_correlation(_residual_correlation.normal_scores(np.full((4, 3), np.nan)))
    ).all()


def test_noise_belongs_to_the_series() -> None:
    model, frame = fitted("MLP"), panel(3, 40)
    whole = model.simulate(5, 10, frame=frame)
    alone = model.simulate(5, 10, frame=frame[frame.unique_id == "s0001"])
    beside = whole[whole.unique_id == "s0001"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, beside, rtol=0, atol=1e-6 * beside.MLP.abs().max())  # but for last bits
