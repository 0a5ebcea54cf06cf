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

N_STARTUP_TRIALS = 10  # random trials before a sampler uses a model
MIN_COMPARED_TRIALS = 3  # completed trials required for pruning
PRUNING_QUANTILES = {STEPS_PER_FOLD // 8: 2 / 3, STEPS_PER_FOLD // 4: 1 / 2, STEPS_PER_FOLD // 2: 1 / 3}
"""Step within a window -> quantile of the completed trials above which a trial is pruned; stricter for later steps, which are
more reliable. At the end of a window, which may be atypical, it is the median."""


def make_sampler(options: TuningOptions, space: Space, trial_number: int, multi_objective: bool) -> Any:
    """The sampler for a trial, seeded by its number so that processes draw different values."""
    name = options.sampler
    seed = options.seed
    if not isinstance(name, str):
        return name
    # a prime factor, so that close seeds do not share the seeds of trials
    trial_seed = (seed * 1_000_003 + trial_number) % 2**32
    with silence_optuna():
        if name == "random":
            return samplers.RandomSampler(seed=trial_seed)
        if name == "grid":
            return FullGridSampler(space.grid(), seed=seed)
        if name == "gp":
            return GaussianProcessSampler(seed=trial_seed, n_startup_trials=N_STARTUP_TRIALS, warn_independent_sampling=False)
        if name == "sobol":
            independent_sampler = samplers.RandomSampler(seed=trial_seed)
            return SobolSampler(
                seed=seed, scramble=True, independent_sampler=independent_sampler, warn_independent_sampling=False
            )
        if name == "cma":
            if find_spec("cmaes") is None:
                raise DependencyError(
                    "sampler='cma' requires the package cmaes.", hint="Install it with pip install cmaes, or set sampler='tpe'."
                )
            return EvolutionSampler(seed=trial_seed, warn_independent_sampling=False)
        return samplers.TPESampler(seed=trial_seed, n_startup_trials=N_STARTUP_TRIALS, multivariate=True, group=True)


def make_pruner(options: TuningOptions, n_steps: int, multi_objective: bool) -> Any:
    """The pruner; none for several objectives, which Optuna cannot prune."""
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
    """A view of a study for samplers that need the same parameters in all trials.

    It leaves out given trials that lack some of the parameters `names` (such as a default of "auto"
    outside its range), or all given trials if `names` is None.
    """

    def __init__(self, study: Any, names: Collection[str] | None = None) -> None:
        self._study = study
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def _get_trials(self, *args: Any, **kwargs: Any) -> list[FrozenTrial]:
        trials: list[FrozenTrial] = self._study._get_trials(*args, **kwargs)
        return [trial for trial in trials if GIVEN_CONFIGURATION not in trial.user_attrs or self._has_params(trial)]

    def _has_params(self, trial: FrozenTrial) -> bool:
        return self._names is not None and set(self._names) <= set(trial.params)


class _DrawnTrialsSampler(samplers.BaseSampler):
    """Infers its search space from sampled trials, and uses all trials with these parameters."""

    def infer_relative_search_space(self, study: Any, trial: FrozenTrial) -> Any:
        """Ranges of the parameters that are sampled jointly."""
        return super().infer_relative_search_space(DrawnTrials(study), trial)  # type: ignore[safe-super, arg-type]

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Any:
        """Sample the values of these parameters."""
        return super().sample_relative(DrawnTrials(study, search_space), trial, search_space)  # type: ignore[safe-super, arg-type]


class GaussianProcessSampler(_DrawnTrialsSampler, samplers.GPSampler):
    """Gaussian process sampler."""


class EvolutionSampler(_DrawnTrialsSampler, samplers.CmaEsSampler):
    """CMA-ES sampler."""


class SobolSampler(_DrawnTrialsSampler, samplers.QMCSampler):
    """Quasi-random sampler that indexes the sequence by trial number, so that processes never share
    a point."""

    _sample_id = 0

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Any:
        """Sample the point of this trial."""
        self._sample_id = trial.number
        return super().sample_relative(study, trial, search_space)

    def _find_sample_id(self, *_: Any) -> int:
        return self._sample_id


class FullGridSampler(samplers.GridSampler):
    """Grid sampler without the `after_trial` of Optuna, which stops the study and fails on given
    trials."""

    def after_trial(self, *_: Any) -> None:
        """Do nothing: the runner checks whether the grid is exhausted."""


class QuantilePruner(pruners.BasePruner):
    """Prune trials that are worse than a quantile of the completed trials at the same step
    (`PRUNING_QUANTILES`)."""

    def prune(self, study: Any, trial: Any) -> bool:
        """Compare the last report only, because scores do not decrease with steps as losses do."""
        step = trial.last_step  # None before the first report
        if step is None:
            return False
        completed_trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        other_scores = [
            complete_trial.intermediate_values[step]
            for complete_trial in completed_trials
            if step in complete_trial.intermediate_values
        ]
        threshold = (
            np.quantile(other_scores, PRUNING_QUANTILES.get(step % STEPS_PER_FOLD, 1 / 2))
            if len(other_scores) >= MIN_COMPARED_TRIALS
            else np.inf
        )
        return bool(trial.intermediate_values[step] > threshold)
