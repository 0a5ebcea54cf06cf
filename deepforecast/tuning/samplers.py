"""Samplers and pruners by name."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

import numpy as np
from optuna import pruners, samplers
from optuna.trial import FrozenTrial, TrialState

from deepforecast.core.monitor import STEPS_PER_FOLD
from deepforecast.errors import DependencyError
from deepforecast.tuning.space import Space
from deepforecast.tuning.storage import silence_optuna
from deepforecast.tuning.study import TuningOptions
from deepforecast.tuning.trial_recovery import GIVEN_CONFIGURATION

N_STARTUP_TRIALS = 10  # random trials before a sampler learns from them
MIN_COMPARED_TRIALS = 3  # finished trials before one is compared with them
PRUNING_QUANTILES = {STEPS_PER_FOLD // 8: 2 / 3, STEPS_PER_FOLD // 4: 1 / 2, STEPS_PER_FOLD // 2: 1 / 3}
"""Place in a window -> the share of finished trials, the best ones, that a trial is to be no worse than: the further it is, the
more it tells. At the end of a window, which may be an odd one: half."""


def make_sampler(options: TuningOptions, space: Space, number: int, multi_objective: bool) -> Any:
    """The sampler for the trial of a number: another stream for each, so that two processes do not draw the same."""
    name, seed = options.sampler, options.seed
    if not isinstance(name, str):
        return name
    trial_seed = (seed * 1_000_003 + number) % 2**32
    with silence_optuna():
        if name == "random":
            return samplers.RandomSampler(seed=trial_seed)
        if name == "grid":
            return FullGridSampler(space.grid(), seed=seed)
        if name == "gp":
            return GaussianProcessSampler(seed=trial_seed, n_startup_trials=N_STARTUP_TRIALS, warn_independent_sampling=False)
        if name == "sobol":
            independent_sampler = samplers.RandomSampler(seed=trial_seed)
            return SobolSampler(seed=seed, scramble=True, independent_sampler=independent_sampler, warn_independent_sampling=False)
        if name == "cma":
            if find_spec("cmaes") is None:
                raise DependencyError("sampler='cma' needs the package cmaes: pip install cmaes. Or say sampler='tpe'.")
            return EvolutionSampler(seed=trial_seed, warn_independent_sampling=False)
        return samplers.TPESampler(seed=trial_seed, n_startup_trials=N_STARTUP_TRIALS, multivariate=True, group=True)


def make_pruner(options: TuningOptions, n_steps: int, multi_objective: bool) -> Any:
    """The pruner; with several objectives none, which Optuna cannot prune by."""
    name = options.pruner
    if name is None or multi_objective:
        return pruners.NopPruner()
    if not isinstance(name, str):
        return name
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=STEPS_PER_FOLD // 4, max_resource=n_steps, reduction_factor=3)
    if name == "wilcoxon":
        with silence_optuna():
            return pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=3)
    return QuantilePruner()


class DrawnTrials:
    """A study as a sampler sees it that needs the same parameters in all trials: without those that were given and lack some,
    such as a model whose "auto" is in no range. Without `names`: without any that was given."""

    def __init__(self, study: Any, names: Collection[str] | None = None) -> None:
        self._study, self._names = study, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def _get_trials(self, *args: Any, **kwargs: Any) -> list[FrozenTrial]:
        trials: list[FrozenTrial] = self._study._get_trials(*args, **kwargs)
        return [trial for trial in trials if GIVEN_CONFIGURATION not in trial.user_attrs or self._has_params(trial)]

    def _has_params(self, trial: FrozenTrial) -> bool:
        return self._names is not None and set(self._names) <= set(trial.params)


class _DrawnTrialsSampler(samplers.BaseSampler):
    """Finds its ranges in the trials that were drawn, and draws by all that have these parameters."""

    def infer_relative_search_space(self, study: Any, trial: FrozenTrial) -> Any:
        """The ranges of the parameters that are drawn together."""
        return super().infer_relative_search_space(DrawnTrials(study), trial)  # type: ignore[safe-super, arg-type]

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Any:
        """Their values."""
        return super().sample_relative(DrawnTrials(study, search_space), trial, search_space)  # type: ignore[safe-super, arg-type]


class GaussianProcessSampler(_DrawnTrialsSampler, samplers.GPSampler):
    """A Gaussian process."""


class EvolutionSampler(_DrawnTrialsSampler, samplers.CmaEsSampler):
    """CMA-ES."""


class SobolSampler(_DrawnTrialsSampler, samplers.QMCSampler):
    """A sequence of which each trial takes the place of its own number: two processes never the same one."""

    _sample_id = 0

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Any:
        """The point of this trial."""
        self._sample_id = trial.number
        return super().sample_relative(study, trial, search_space)

    def _find_sample_id(self, *_: Any) -> int:
        return self._sample_id


class FullGridSampler(samplers.GridSampler):
    """Optuna's, but for what it does after a trial: it would stop the study, and fails at one that it did not choose."""

    def after_trial(self, *_: Any) -> None:
        """Nothing: when all is tried, no trial is begun."""


class QuantilePruner(pruners.BasePruner):
    """Ends what is worse than half of the finished trials were at the same step; on the way through a window see `PRUNING_QUANTILES`."""

    def prune(self, study: Any, trial: Any) -> bool:
        """By the last report alone: scores of windows so far do not fall from step to step as losses do."""
        step = trial.last_step
        if step is None:
            return False
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        other_scores = [complete_trial.intermediate_values[step] for complete_trial in complete if step in complete_trial.intermediate_values]
        threshold = np.quantile(other_scores, PRUNING_QUANTILES.get(step % STEPS_PER_FOLD, 1 / 2)) if len(other_scores) >= MIN_COMPARED_TRIALS else np.inf
        return bool(trial.intermediate_values[step] > threshold)
