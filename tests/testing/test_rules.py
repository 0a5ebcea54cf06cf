"""Rules that no model of the library meets yet: each is kept by a toy, and caught where the toy is broken."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Conformal, Forecaster, Naive, SeasonalNaive, WindowMean, testing
from deepforecast.core.forecast import Forecast
from deepforecast.core.monitor import Monitor
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame
from deepforecast.data.panel import Panel
from tests.testing.toys import Attentive, Devices, Last, Sampled


def outcome(model: object, rule: str) -> tuple[str, str]:
    (row,) = testing.run(model, only=rule).rows
    return row.outcome, row.reason


class Deaf(Sampled):
    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return self.clone(seed=5)._own(learned, steps, future) if self.seed != 5 else self._own(learned, steps, future)

    def _own(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return super()._forecast(learned, steps, future)


class Hushed(Naive):
    """Hears nothing of new values."""

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        return learned


class Damped(Last):
    """Hears half of a change of its histories, and says that it follows."""

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        moved = super()._advance(learned, panel, fresh)
        return Learned({**moved.by_series, "last": (learned["last"] + moved["last"]) / 2})


class Clock(Last):
    """Time passes for it in update, values do not."""

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        if fresh:
            return super()._advance(learned, panel, fresh)
        return Learned({**learned.by_series, "last": learned["last"] + panel.lengths})


class Setting(Naive):
    """Sets in each fit what `change` sets: the same each time, so that only the first fit of a process shows it."""

    change: Callable[[], object]

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        type(self).change()
        return super()._fit(panel, monitor)


class Distracted(Attentive):
    def explain(self, *args: Any, **given: Any) -> Frame:
        found = super().explain(*args, **given)
        return found.assign(weight=found["weight"] * 0.9)


class Partial(Attentive):
    def explain(self, *args: Any, **given: Any) -> Frame:
        return super().explain(*args, **given).drop(columns="weight")


class Mixed(Devices):
    moves = False


class Doubling(Last):
    def explain(self, *args: Any, **given: Any) -> Frame:
        found = super().explain(*args, **given)
        return pd.concat([found, found], ignore_index=True)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        (Sampled, "another_seed_gives_another"),
        (Sampled, "intervals_are_nested_around_the_median"),
        (Sampled, "a_level_is_honoured_exactly"),
        (Sampled, "the_same_seed_gives_the_same"),
        (Attentive, "explanations_add_up"),
    ],
)
def test_a_toy_keeps(model: type, rule: str) -> None:
    assert outcome(model, rule) == ("passed", "")


@pytest.mark.parametrize(
    ("model", "rule", "said"),
    [
        (Deaf, "another_seed_gives_another", "seeds 1 and 2 give the same forecast"),
        (Distracted, "explanations_add_up", "the sum of the weights is off by 0.1"),
        (Partial, "explanations_add_up", "an explanation has a column value or weight"),
        (Doubling, "explanations_add_up", "a component is twice"),
    ],
)
def test_a_broken_toy_is_caught(model: type, rule: str, said: str) -> None:
    found, reason = outcome(model, rule)
    assert found == "failed"
    assert reason.startswith(f"{model.__name__} breaks {rule} (")
    assert said in reason


@pytest.mark.parametrize("model", [Last, Sampled, Attentive])
def test_what_hears_of_new_values_passes(model: type) -> None:
    assert outcome(model, "new_values_move_the_forecast") == ("passed", "")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Hushed, "predict(frame=...) with all values plus 100 does not move the forecast of s0, s1, s2"),
        (Damped, "the forecast from the values plus 100, less that, is off by"),
        (Clock, "update with values plus 100, not as they are, does not move the forecast of s0, s1, s2"),
    ],
)
def test_what_is_deaf_to_new_values_is_caught(model: type, said: str) -> None:
    found, reason = outcome(model, "new_values_move_the_forecast")
    assert found == "failed"
    assert said in reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: random.seed(0), "the generator of random"),
        (lambda: np.random.seed(0), "the generator of numpy"),  # noqa: NPY002
        (lambda: os.environ.update({"OMP_NUM_THREADS": "1"}), "the environment"),
        (lambda: os.environ.setdefault("OMP_NUM_THREADS", "1"), "the environment"),
        (lambda: os.chdir(os.sep), "the working folder"),
        (lambda: np.seterr(all="ignore"), "numpy's handling of errors"),
        (lambda: logging.basicConfig(), "the log handlers"),
    ],
)
def test_a_change_made_before_is_caught_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: Callable[[], object], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    chance, drawn = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with np.errstate():
            change()  # as an earlier fit would have
            before = dict(os.environ), os.getcwd(), np.geterr(), list(logging.getLogger().handlers)
            cls = type("Setter", (Setting,), {"change": staticmethod(change), "__module__": __name__})
            found, reason = outcome(cls, "the_process_is_left_as_it_was")
            assert before == (dict(os.environ), os.getcwd(), np.geterr(), list(logging.getLogger().handlers))
    finally:
        random.setstate(chance)
        np.random.set_state(drawn)  # noqa: NPY002
    assert (found, reason.rpartition("changes ")[2]) == ("failed", said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda torch: torch.manual_seed(0), "the generator of torch"),
        (lambda torch: torch.set_num_threads(1), "torch's threads"),
        (lambda torch: torch.set_default_dtype(torch.float64), "torch's defaults"),
    ],
)
def test_a_change_made_in_torch_before_is_caught_too(change: Callable[[Any], object], said: str) -> None:
    torch = pytest.importorskip("torch")
    threads, dtype, chance = torch.get_num_threads(), torch.get_default_dtype(), torch.get_rng_state()
    try:
        change(torch)
        before = torch.get_num_threads(), torch.get_default_dtype()
        cls = type("Setter", (Setting,), {"change": staticmethod(lambda: change(torch)), "__module__": __name__})
        found, reason = outcome(cls, "the_process_is_left_as_it_was")
        assert before == (torch.get_num_threads(), torch.get_default_dtype())
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(chance)
    assert (found, reason.rpartition("changes ")[2].split(", ")[0]) == ("failed", said)


def test_a_model_that_sets_nothing_leaves_the_process() -> None:
    assert outcome(Last, "the_process_is_left_as_it_was") == ("passed", "")


def test_devices_that_meet_are_noticed() -> None:
    pytest.importorskip("torch")
    assert outcome(Devices, "devices_are_not_mixed") == ("passed", "")
    found, reason = outcome(Mixed, "devices_are_not_mixed")
    assert found == "failed"
    assert "Expected all tensors to be on the same device" in reason


def test_a_model_of_no_module_is_said_not_to_be_saved_elsewhere() -> None:
    nameless = type("Nameless", (Last,), {"__module__": "no_such_module"})
    assert outcome(nameless, "a_fresh_process_forecasts_the_same") == (
        "skipped",
        "no other process can import the module no_such_module",
    )


@pytest.mark.parametrize(
    "model",
    [
        SeasonalNaive(missing="interpolate", alias="filled"),
        Conformal(Naive(missing="ffill"), alias="wrapped"),
        Naive(intervals="conformal", horizon=9),
        WindowMean(window=3, point="median"),
    ],
    ids=repr,
)
def test_objects_keep_the_rules_too(model: Forecaster) -> None:
    testing.run(model).raise_for_failures()


def test_what_is_filled_is_not_forecast_through() -> None:
    found = outcome(SeasonalNaive(missing="interpolate"), "missing_values_are_forecast_through")
    assert found == ("skipped", "missing='interpolate': what is missing is filled")
