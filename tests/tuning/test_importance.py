"""Importances of parameters in searches whose score is a known function of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import optuna
import pytest
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState

from deepforecast.errors import ParameterError
from deepforecast.tuning.result import TuningResult
from deepforecast.tuning.storage import silence_optuna

Score = Callable[[Trial, np.random.Generator], float]


def rate(trial: Trial, random: np.random.Generator) -> float:
    """The decisive parameter has a log range; the optimum lies inside."""
    others = 0.05 * trial.suggest_float("dropout", 0, 0.5) + 0.001 * trial.suggest_int("width", 1, 100)
    trial.suggest_categorical("activation", ["relu", "gelu", "tanh"])
    return abs(math.log10(trial.suggest_float("rate", 1e-4, 1.0, log=True)) + 2) + others + 0.02 * random.normal()


def units(trial: Trial, random: np.random.Generator) -> float:
    """Integers on a log range; the optimum lies at its end."""
    others = 0.02 * trial.suggest_float("dropout", 0, 0.5) + 0.1 * trial.suggest_float("rate", 1e-4, 1e-1, log=True)
    return 0.02 * (math.log2(trial.suggest_int("units", 8, 512, log=True)) - 9) ** 2 + others + 0.01 * random.normal()


def kind(trial: Trial, random: np.random.Generator) -> float:
    """A choice, of which one is much better than the others."""
    others = 0.1 * (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + 0.003 * trial.suggest_int("y", 1, 20)
    return {"a": 0.0, "b": 1.0, "c": 0.7, "d": 0.9}[trial.suggest_categorical("kind", "abcd")] + others + 0.02 * random.normal()


def poor_kind(trial: Trial, random: np.random.Generator) -> float:
    """A choice, of which one is much worse than the others: a sampler soon avoids it."""
    others = 0.1 * trial.suggest_float("x", 0, 1) + 0.05 * trial.suggest_float("y", 0, 1)
    return 3.0 * (trial.suggest_categorical("poor_kind", "abcde") == "e") + others + 0.02 * random.normal()


def first(trial: Trial, random: np.random.Generator) -> float:
    """One slope of six is five times the next."""
    values = [trial.suggest_float(name, 0, 1) for name in ("first", *"abcde")]
    return 1 + values[0] + 0.2 * values[1] + 0.05 * sum(values[2:]) + 0.02 * random.normal()


def threshold(trial: Trial, random: np.random.Generator) -> float:
    """Poor below a threshold, flat above, where a sampler soon stays."""
    others = 0.05 * trial.suggest_float("x", 0, 1) + 0.01 * trial.suggest_int("y", 1, 9)
    return 1.0 * (trial.suggest_float("threshold", 0, 1) < 0.4) + others + 0.01 * random.normal()


def result(score: Score, n_trials: int, seed: int = 0) -> TuningResult:
    random = np.random.default_rng(seed)
    with silence_optuna():
        study = optuna.create_study(sampler=TPESampler(seed=seed, multivariate=True, group=True))
        study.optimize(lambda trial: score(trial, random), n_trials=n_trials, catch=(ArithmeticError,))
    return TuningResult(study, None, ("score",), None, {"retries": 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("score", [rate, units, kind, poor_kind, first, threshold], ids=lambda score: score.__name__)
def test_decisive_parameter_is_first(score: Score, seed: int) -> None:
    table = result(score, 40, seed).importance()
    assert table["parameter"][0] == score.__name__
    assert table["importance"][0] > 0.5
    assert table["importance"].sum() == pytest.approx(1)


def test_parameter_of_some_trials_only_has_no_importance() -> None:
    def conditional(trial: Trial, random: np.random.Generator) -> float:
        if trial.suggest_categorical("season", [True, False]):
            return 5 * trial.suggest_float("strength", 0, 1) + trial.suggest_float("x", 0, 1)
        return 2 + trial.suggest_float("x", 0, 1) + 0.01 * random.normal()

    table = result(conditional, 30).importance()
    assert set(table["parameter"][:2]) == {"season", "x"}
    assert table["parameter"][2] == "strength"
    assert math.isnan(table["importance"][2])
    assert table["importance"].sum() == pytest.approx(1)


def test_pruned_and_failed_trials_do_not_count() -> None:
    def stopping(trial: Trial, random: np.random.Generator) -> float:
        x, width = trial.suggest_float("x", 0, 1), trial.suggest_float("width", 0, 1)
        if trial.number % 3 == 1:
            trial.report(1000 * width, 1)
            raise optuna.TrialPruned
        if trial.number % 3 == 2:
            raise ArithmeticError
        return x + 0.1 * width + 0.01 * random.normal()

    found = result(stopping, 60)
    assert {one.state for one in found.study.trials} == {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL}
    complete = [one for one in found.study.trials if one.state == TrialState.COMPLETE]
    table = found.importance()
    assert table["parameter"].tolist() == ["x", "width"]
    assert table.equals(of(complete).importance())


def of(trials: list[FrozenTrial]) -> TuningResult:
    with silence_optuna():
        study = optuna.create_study()
        study.add_trials(trials)
    return TuningResult(study, None, ("score",), None, {"retries": 0})  # type: ignore[arg-type]


@pytest.mark.parametrize(("score", "n_trials"), [(rate, 9), (lambda trial, _: 0 * trial.suggest_float("x", 0, 1), 30)])
def test_importance_of_too_few_trials_or_a_constant_score_is_refused(score: Score, n_trials: int) -> None:
    with pytest.raises(
        ParameterError, match=r"at least 10 complete trials .* differ, got (9 trials with 9|30 trials with 1) different"
    ):
        result(score, n_trials).importance()


def test_shares_are_of_the_variance_over_the_ranges_or_over_the_trials() -> None:
    random, kinds = np.random.default_rng(0), {name: optuna.distributions.FloatDistribution(0, 1) for name in ("step", "slope")}
    trials = []
    for number in range(100):  # a search that soon left the poor half of `step`, which has 3/4 of the variance over the ranges
        step, slope = random.uniform(0, 0.5) if number < 8 else random.uniform(0.5, 1), random.uniform()
        params = {"step": step, "slope": slope}
        trials.append(optuna.create_trial(params=params, distributions=kinds, value=(step < 0.5) + slope))
    found = of(trials)
    assert found.importance().set_index("parameter")["importance"]["step"] == pytest.approx(0.75, abs=0.1)
    assert found.importance(by="fanova").equals(found.importance())
    assert found.importance(by="mean_decrease_impurity")["parameter"][0] == "slope"
