"""Rules that no model of the library meets yet: each is kept by a toy, and caught where the toy is broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from deepforecast import Conformal, Forecaster, Naive, SeasonalNaive, WindowMean, testing
from deepforecast.core.forecast import Forecast
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame
from tests.testing.toys import Attentive, Devices, Last, Sampled


def outcome(model: object, rule: str) -> tuple[str, str]:
    (row,) = testing.run(model, only=rule).rows
    return row.outcome, row.reason


class Deaf(Sampled):
    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return self.clone(seed=5)._own(learned, steps, future) if self.seed != 5 else self._own(learned, steps, future)

    def _own(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return super()._forecast(learned, steps, future)


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
