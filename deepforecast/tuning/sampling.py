"""Samplers and pruners by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from optuna import pruners, samplers

from deepforecast.core.monitor import FOLD
from deepforecast.errors import DependencyError
from deepforecast.tuning.space import Space
from deepforecast.tuning.storage import quiet
from deepforecast.tuning.study import Study

STARTUP = 10  # random trials before a sampler learns from them
KNOWN = 5  # finished trials before one is compared with them


def sampler_for(options: Study, space: Space, number: int, several: bool) -> Any:
    """The sampler for the trial of a number: another stream for each, so that two processes do not draw the same."""
    name, seed = options.sampler, options.seed
    if not isinstance(name, str):
        return name
    mixed = (seed * 1_000_003 + number) % 2**32
    with quiet():
        if name == "random":
            return samplers.RandomSampler(seed=mixed)
        if name == "grid":
            return samplers.GridSampler(space.grid(), seed=seed)
        if name == "gp":
            return samplers.GPSampler(seed=mixed, n_startup_trials=STARTUP, warn_independent_sampling=False)
        if name == "sobol":
            return samplers.QMCSampler(seed=seed, scramble=True, warn_independent_sampling=False)
        if name == "cma":
            if find_spec("cmaes") is None:
                raise DependencyError("sampler='cma' needs the package cmaes: pip install cmaes. Or say sampler='tpe'.")
            return samplers.CmaEsSampler(seed=mixed, warn_independent_sampling=False)
        return samplers.TPESampler(seed=mixed, n_startup_trials=STARTUP, multivariate=True, group=True)


def pruner_for(options: Study, length: int, several: bool) -> Any:
    """The pruner; with several objectives none, which Optuna cannot prune by."""
    name = options.pruner
    if name is None or several:
        return pruners.NopPruner()
    if not isinstance(name, str):
        return name
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=FOLD // 4, max_resource=length, reduction_factor=3)
    if name == "wilcoxon":
        with quiet():
            return pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=3)
    return pruners.MedianPruner(n_startup_trials=KNOWN)
