"""Rules that no model of the library meets yet: each is kept by a toy, and caught where the toy is broken."""

from __future__ import annotations

import logging
import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from deepforecast import Conformal, Forecaster, Naive, SeasonalNaive, WindowMean, testing
from deepforecast.core.forecast import Forecast, NormalForecast
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import param
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame
from deepforecast.data.panel import Panel
from deepforecast.testing.rules.calibration import N_SERIES
from tests.testing.toys import Attentive, Devices, Last, Line, Ratio, Sampled


def outcome(model: object, rule: str) -> tuple[str, str]:
    (row,) = testing.run(model, only=rule).rows
    return row.outcome, row.reason


class Deaf(Sampled):
    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return self.clone(seed=5)._own(learned, steps, future) if self.seed != 5 else self._own(learned, steps, future)

    def _own(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return super()._forecast(learned, steps, future)


class Hushed(Naive):
    """Hears nothing of new values."""

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return learned


class Damped(Last):
    """Hears half of a change of its histories, and says that it follows."""

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        moved = super()._advance(learned, panel, fresh)
        return LearnedState({**moved.by_series, "last": (learned["last"] + moved["last"]) / 2})


class Pretending(Last):
    """Hears of new values, and says that it does not."""

    capabilities = replace(Last.capabilities, new_values="ignored")


class Clock(Last):
    """Time passes for it in update, values do not."""

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        if fresh:
            return super()._advance(learned, panel, fresh)
        return LearnedState({**learned.by_series, "last": learned["last"] + panel.lengths})


class Setting(Naive):
    """Sets in each fit what `change` sets: the same each time, so that only the first fit of a process shows it."""

    change: Callable[[], object]

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        type(self).change()
        return super()._fit(panel, monitor)


class Distracted(Attentive):
    def explain(self, *args: Any, **given: Any) -> Frame:
        found = super().explain(*args, **given)
        return found.assign(weight=found["weight"] * 0.9)


class Partial(Attentive):
    def explain(self, *args: Any, **given: Any) -> Frame:
        return super().explain(*args, **given).drop(columns="weight")


class Weighted(Last):
    """Declares that it uses weights, and does not."""

    capabilities = replace(Last.capabilities, weights=True)


class Careless(Last):
    """Does not look at what its panel has."""

    def _fit_panel(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        return super()._fit_panel(drop_unusable(panel, self.capabilities)[0], monitor)


class Unequal(Weighted):
    """Its forecasts grow with the largest weight."""

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        return super()._fit(panel if panel.weight is None else panel.with_target(panel.y * (1 + panel.weight.max() / 100)), monitor)


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
        (Deaf, "another_seed_gives_another", "seed=1 and seed=2 must give different forecasts"),
        (Distracted, "explanations_add_up", "the attention weights over all lags must sum to 1: the largest difference is 0.1"),
        (Partial, "explanations_add_up", "`explain` must return a column value or weight"),
        (Weighted, "weights_count_in_training", "unequal weights must change the forecast"),
        (Unequal, "weights_count_in_training", "twice the weights must give the same forecast"),
        (Careless, "unusable_weights_are_refused", "CapabilityError"),
        (Doubling, "explanations_add_up", "occur once per series and timestamp, got 0 missing names and 9 duplicates"),
    ],
)
def test_a_broken_toy_is_caught(model: type, rule: str, said: str) -> None:
    found, reason = outcome(model, rule)
    assert found == "failed"
    assert reason.startswith(f"{model.__name__} breaks {rule} (")
    assert said in reason


@pytest.mark.parametrize("model", [Last, Sampled, Attentive, Line])
def test_what_hears_of_new_values_or_says_that_it_does_not_passes(model: type) -> None:
    assert outcome(model, "new_values_move_the_forecast") == ("passed", "")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            Hushed,
            "predict(frame=...) with all values plus 100 must change all forecasts, but does not change those of s0, s1, s2",
        ),
        (Damped, "the forecast from all values plus 100, minus 100, must equal that from the values"),
        (
            Pretending,
            "capabilities.new_values is 'ignored': predict(frame=...) with all values plus 100 must not change the forecast",
        ),
        (Clock, "update with all values plus 100 must change all forecasts, but does not change those of s0, s1, s2"),
    ],
)
def test_what_is_deaf_to_new_values_is_caught(model: type, said: str) -> None:
    found, reason = outcome(model, "new_values_move_the_forecast")
    assert found == "failed"
    assert said in reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: random.seed(0), "the random state of Python"),
        (lambda: np.random.seed(0), "the random state of numpy"),  # noqa: NPY002
        (lambda: os.environ.update({"OMP_NUM_THREADS": "1"}), "the environment variables"),
        (lambda: os.environ.setdefault("OMP_NUM_THREADS", "1"), "the environment variables"),
        (lambda: os.chdir(os.sep), "the working directory"),
        (lambda: np.seterr(all="ignore"), "numpy's error handling (np.seterr)"),
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
    assert (found, reason.rpartition("changed: ")[2]) == ("failed", said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda torch: torch.manual_seed(0), "the random state of torch"),
        (lambda torch: torch.set_num_threads(1), "torch's thread counts"),
        (
            lambda torch: torch.set_default_dtype(torch.float64),
            "torch's defaults (dtype, device, autocast, gradients, determinism)",
        ),
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
    assert (found, reason.rpartition("changed: ")[2].startswith(said)) == ("failed", True)


def test_the_number_of_numbas_threads_stays_where_it_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba compiles nothing more once its threads run and the variable is another."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    seen: list[str | None] = []
    cls = type("Looking", (Setting,), {"change": staticmethod(lambda: seen.append(os.environ.get("NUMBA_NUM_THREADS")))})
    assert outcome(cls, "the_process_is_left_as_it_was") == ("passed", "")
    assert set(seen) == {"1"}


def test_a_model_that_sets_nothing_leaves_the_process() -> None:
    assert outcome(Last, "the_process_is_left_as_it_was") == ("passed", "")


def test_devices_that_meet_are_noticed() -> None:
    pytest.importorskip("torch")
    assert outcome(Devices, "devices_are_not_mixed") == ("passed", "")
    found, reason = outcome(Mixed, "devices_are_not_mixed")
    assert found == "failed"
    assert "must be on one device" in reason


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


# -- what models declare of themselves --------------------------------------------------------------------------------------


class Sloppy(Last):
    """Off by a millionth, more for data of another size or sign, as an optimiser may leave it."""

    capabilities = replace(Last.capabilities, precision=1e-6)
    off: ClassVar[float] = 1e-7

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        learned = super()._fit(panel, monitor)
        seen = np.array([np.ptp(y) * math.sin(1e3 * abs(y[0])) for y in np.split(panel.y, panel.indptr[1:-1])])
        return LearnedState({**learned.by_series, "last": learned["last"] + self.off * seen})


class Sloppier(Sloppy):
    off: ClassVar[float] = 1e-4


class Silent(Sloppy):
    """Says nothing of it."""

    capabilities = Last.capabilities


NUMERICAL = ("the_forecast_follows_the_scale", "the_forecast_follows_a_shift")


@pytest.mark.parametrize("rule", NUMERICAL)
def test_declared_precision_is_checked(rule: str) -> None:
    assert outcome(Sloppy, rule) == ("passed", "")
    for model in (Sloppier, Silent):
        found, reason = outcome(model, rule)
        assert found == "failed"
        assert "the largest difference is" in reason


class Lopsided(Last):
    """Lower bounds that are twice as far away."""

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        forecast = super()._forecast(learned, steps, future)
        return _Lopsided(forecast.mean, forecast.deviation)


class _Lopsided(NormalForecast):
    def quantiles(self, probabilities: Sequence[float]) -> np.ndarray:
        found = super().quantiles(probabilities)
        return np.where(found < self.mean[..., None], 2 * found - self.mean[..., None], found)


class Upward(Last):
    """Goes up, whatever the sign."""

    def _mean(self, learned: LearnedState, steps: int) -> np.ndarray:
        return super()._mean(learned, steps) + learned["deviation"][:, None]


@pytest.mark.parametrize("model", [Lopsided, Upward])
def test_missing_sign_equivariance_is_caught(model: type) -> None:
    assert outcome(Last, "the_forecast_follows_the_sign") == ("passed", "")
    assert outcome(model, "the_forecast_follows_a_shift") == ("passed", "")
    found, reason = outcome(model, "the_forecast_follows_the_sign")
    assert found == "failed"
    assert "of the negated data, negated, must equal" in reason


class Reckless(Ratio):
    """Takes the logarithm of anything."""

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        with np.errstate(all="ignore"):
            return Naive._fit(self, panel.with_target(np.log(np.abs(panel.y) + 1)), monitor)


Reckless.accepts_any_value = True  # or its values would be looked at before it sees them


def test_what_takes_positive_values_alone_is_checked_on_these() -> None:
    rows = testing.run(Ratio, only=["edge_cases", "invariance", "missing_values", "updates", "leakage"]).rows
    assert [row.reason for row in rows if row.outcome == "failed"] == []
    skipped = {row.rule: row.reason for row in rows if row.outcome == "skipped"}
    assert skipped["the_forecast_follows_a_shift"] == "capabilities.shift_equivariant is False"
    assert "values_outside_the_domain_are_refused" not in skipped
    found, reason = outcome(Reckless, "values_outside_the_domain_are_refused")
    assert found == "failed"
    assert "DataError must be raised when y is 0 in a row" in reason


class Mixing(Conformal):
    """Bands of all series, said to be those of each."""

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return replace(super()._narrow(declared), local=True, pooled=False)


def test_pooled_bands_are_not_local() -> None:
    testing.run(Conformal(Naive(), pool=True, alias="pooled")).raise_for_failures()
    for rule in (
        "series_are_forecast_independently",
        "an_outlier_stays_in_its_series",
        "unknown_series_are_fitted_and_reported",
    ):
        assert outcome(Mixing(Naive(), pool=True), rule)[0] == "failed"


class Noisy(Naive):
    """Points from a formula, bands around them from draws."""

    capabilities = Capabilities(missing=True, distribution="samples")

    seed: int = param(default=0, at_least=0, help="of the bands")

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        forecast = super()._forecast(learned, steps, future)
        return NormalForecast(forecast.mean, forecast.deviation * (1 + 0.01 * np.random.default_rng(self.seed).random()))


def test_a_seed_may_speak_in_the_bands_alone() -> None:
    assert outcome(Noisy, "another_seed_gives_another") == ("passed", "")


class LongSeasons(SeasonalNaive):
    """Knows four seasons before it says a word."""

    def _min_observations(self, panel: Panel) -> int:
        return 4 * super()._min_observations(panel)


def test_a_run_of_all_rules_fits_few_series() -> None:
    """What a model costs in a fit, it costs some two hundred times a series in the checks, beside the series of calibration."""
    fits: list[int] = []

    class Counted(Naive):
        def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
            fits.append(len(panel))
            return super()._fit(panel, monitor)

    testing.run(Counted)
    assert len(fits) < 110
    assert 100 < sum(fits) - N_SERIES < 220


def test_a_model_with_long_seasons_gets_histories_that_it_can_learn_from() -> None:
    assert outcome(LongSeasons, "times_follow_the_calendar") == ("passed", "")


def test_what_is_filled_is_not_forecast_through() -> None:
    found = outcome(SeasonalNaive(missing="interpolate"), "series_with_missing_values_are_forecast")
    assert found == ("skipped", "missing='interpolate': missing values are imputed")
