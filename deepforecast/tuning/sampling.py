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
from deepforecast.tuning.storage import quiet
from deepforecast.tuning.study import TuningOptions
from deepforecast.tuning.survival import GIVEN

STARTUP = 10  # random trials before a sampler learns from them
KNOWN = 3  # finished trials before one is compared with them
SHARES = {STEPS_PER_FOLD // 8: 2 / 3, STEPS_PER_FOLD // 4: 1 / 2, STEPS_PER_FOLD // 2: 1 / 3}
"""Place in a window -> the share of finished trials, the best ones, that a trial is to be no worse than: the further it is, the
more it tells. At the end of a window, which may be an odd one: half."""


def sampler_for(options: TuningOptions, space: Space, number: int, several: bool) -> Any:
    """The sampler for the trial of a number: another stream for each, so that two processes do not draw the same."""
    name, seed = options.sampler, options.seed
    if not isinstance(name, str):
        return name
    mixed = (seed * 1_000_003 + number) % 2**32
    with quiet():
        if name == "random":
            return samplers.RandomSampler(seed=mixed)
        if name == "grid":
            return Grid(space.grid(), seed=seed)
        if name == "gp":
            return Gaussian(seed=mixed, n_startup_trials=STARTUP, warn_independent_sampling=False)
        if name == "sobol":
            other = samplers.RandomSampler(seed=mixed)
            return Sobol(seed=seed, scramble=True, independent_sampler=other, warn_independent_sampling=False)
        if name == "cma":
            if find_spec("cmaes") is None:
                raise DependencyError("sampler='cma' needs the package cmaes: pip install cmaes. Or say sampler='tpe'.")
            return Evolution(seed=mixed, warn_independent_sampling=False)
        return samplers.TPESampler(seed=mixed, n_startup_trials=STARTUP, multivariate=True, group=True)


def pruner_for(options: TuningOptions, length: int, several: bool) -> Any:
    """The pruner; with several objectives none, which Optuna cannot prune by."""
    name = options.pruner
    if name is None or several:
        return pruners.NopPruner()
    if not isinstance(name, str):
        return name
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=STEPS_PER_FOLD // 4, max_resource=length, reduction_factor=3)
    if name == "wilcoxon":
        with quiet():
            return pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=3)
    return Median()


class Drawn:
    """A study as a sampler sees it that needs the same parameters in all trials: without those that were given and lack some,
    such as a model whose "auto" is in no range. Without `names`: without any that was given."""

    def __init__(self, study: Any, names: Collection[str] | None = None) -> None:
        self._study, self._names = study, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def _get_trials(self, *said: Any, **named: Any) -> list[FrozenTrial]:
        every: list[FrozenTrial] = self._study._get_trials(*said, **named)
        return [one for one in every if GIVEN not in one.user_attrs or self._has(one)]

    def _has(self, trial: FrozenTrial) -> bool:
        return self._names is not None and set(self._names) <= set(trial.params)


class _ByDrawn(samplers.BaseSampler):
    """Finds its ranges in the trials that were drawn, and draws by all that have these parameters."""

    def infer_relative_search_space(self, study: Any, trial: FrozenTrial) -> Any:
        """The ranges of the parameters that are drawn together."""
        return super().infer_relative_search_space(Drawn(study), trial)  # type: ignore[safe-super, arg-type]

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Any:
        """Their values."""
        return super().sample_relative(Drawn(study, search_space), trial, search_space)  # type: ignore[safe-super, arg-type]


class Gaussian(_ByDrawn, samplers.GPSampler):
    """A Gaussian process."""


class Evolution(_ByDrawn, samplers.CmaEsSampler):
    """CMA-ES."""


class Sobol(_ByDrawn, samplers.QMCSampler):
    """A sequence of which each trial takes the place of its own number: two processes never the same one."""

    _place = 0

    def sample_relative(self, study: Any, trial: FrozenTrial, search_space: Any) -> Any:
        """The point of this trial."""
        self._place = trial.number
        return super().sample_relative(study, trial, search_space)

    def _find_sample_id(self, *_: Any) -> int:
        return self._place


class Grid(samplers.GridSampler):
    """Optuna's, but for what it does after a trial: it would stop the study, and fails at one that it did not choose."""

    def after_trial(self, *_: Any) -> None:
        """Nothing: when all is tried, no trial is begun."""


class Median(pruners.BasePruner):
    """Ends what is worse than half of the finished trials were at the same step; on the way through a window see `SHARES`."""

    def prune(self, study: Any, trial: Any) -> bool:
        """By the last report alone: scores of windows so far do not fall from step to step as losses do."""
        step = trial.last_step
        if step is None:
            return False
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        others = [one.intermediate_values[step] for one in done if step in one.intermediate_values]
        worst = np.quantile(others, SHARES.get(step % STEPS_PER_FOLD, 1 / 2)) if len(others) >= KNOWN else np.inf
        return bool(trial.intermediate_values[step] > worst)
