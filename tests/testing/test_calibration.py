"""The rule that intervals cover what they say: kept by sound toys, broken by intervals of another width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest

from deepforecast import Mean, Naive, testing
from deepforecast.core.forecast import Forecast, NormalForecast
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.errors import ParameterError
from deepforecast.testing import processes
from deepforecast.testing.processes import PROCESSES
from deepforecast.testing.rules.calibration import coverage
from tests.testing.toys import Line

RULE = "intervals_cover_their_level"


def outcome(model: object, rule: str = RULE) -> tuple[str, str]:
    (row,) = testing.run(model, only=rule).rows
    return row.outcome, row.reason


class Scaled(Naive):
    """Naive with intervals of another width."""

    width: ClassVar[float] = 1.0

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        forecast = super()._forecast(learned, steps, future)
        assert isinstance(forecast, NormalForecast)
        return NormalForecast(forecast.mean, self.width * forecast.deviation)


class Narrow(Scaled):
    width = 0.01


class Wide(Scaled):
    width = 2.0


class OwnProcess(Naive):
    """Draws its series by itself: a random walk of larger steps."""

    def coverage_process(self, random: np.random.Generator, n_series: int, n_rows: int) -> Floats:
        return 5 * random.normal(size=(n_series, n_rows)).cumsum(axis=1)


class WrongProcess(Mean):
    coverage_process = "random_walk"


class UnknownProcess(Mean):
    coverage_process = "random_run"


@pytest.mark.parametrize("model", [Scaled, OwnProcess])
def test_calibrated_intervals_pass(model: type) -> None:
    assert outcome(model) == ("passed", "")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Narrow, "the 80 % interval must cover 72 to 88 % of the values of the process random_walk, got 0.6 %"),
        (Wide, "the 80 % interval must cover 72 to 88 % of the values of the process random_walk, got 98.8 %"),
        (WrongProcess, "must cover 72 to 88 % of the values of the process random_walk, got"),
    ],
)
def test_intervals_of_another_width_fail(model: type, said: str) -> None:
    found, reason = outcome(model)
    assert (found, said in reason) == ("failed", True), reason


def test_a_process_must_be_known() -> None:
    with pytest.raises(ParameterError, match=r"`coverage_process` must be one of .*, got 'random_run'"):
        coverage(UnknownProcess())


def test_without_a_declared_process_series_are_white_noise() -> None:
    assert processes.process_name(Line()) == "white_noise"
    y = processes.draw(Line(), 400, 12)
    assert y.shape == (400, 12)
    assert abs(np.corrcoef(y[:, 0], y[:, 1])[0, 1]) < 0.15
    assert y.std() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", [name for name in PROCESSES if name not in ("process_of_model", "decomposition")])
def test_series_of_a_process_are_independent_and_reproducible(name: str) -> None:
    cls = type("Drawing", (Naive,), {"coverage_process": name})
    y = processes.draw(cls(), 400, 30)
    assert np.array_equal(y, processes.draw(cls(), 400, 30))
    assert (y >= 0).all()
    last = np.diff(y, axis=1)[:, -1]
    assert abs(np.corrcoef(last[:200], last[200:])[0, 1]) < 0.25


def test_a_frequent_zero_leaves_half_of_the_misses() -> None:
    cls = type("Demanded", (Mean,), {"coverage_process": "intermittent_demand"})
    assert [nominal for _, nominal in coverage(cls(horizon=3)).values()] == [90.0, 97.5]
