"""The rarer options of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepforecast.data.integers import validate_integer
from deepforecast.errors import ParameterError, ParameterTypeError, format_value
from deepforecast.evaluation.backtesting import DEFAULT_OPTIONS, BacktestOptions, validate_options

SAMPLERS = ("tpe", "gp", "cma", "random", "grid", "sobol")
PRUNERS = ("median", "hyperband", "wilcoxon")


@dataclass(frozen=True)
class TuningOptions:
    """The rarer options of `tune`.

    space: what is searched in place of the declared ranges: a dict of parameter -> range, which is a tuple of two numbers, a
    list of choices, or `{"low": 8, "high": 64, "log": True}`; or a function of a trial (`suggest_int`, `suggest_float`,
    `suggest_categorical`) that gives the parameters as a dict. Of several models a dict of model -> such a thing.
    start: configurations to begin with, after the model's own: dicts of parameters, or a `TuningResult`, whose three best.

    n_windows, step_size, refit: as in `cross_validate`; backtest: its rarer options. holdout: windows at the end of the data
    that the search does not see; the best and the model's own configuration are scored there afterwards. n_seeds: how often
    each configuration is tried, with other seeds, where a model has one; its score is the mean.

    sampler: "tpe", "gp" (Gaussian process), "cma" (needs the package cmaes, takes no storage), "random", "grid", "sobol"
    (quasi-random), or one of Optuna's. pruner: what ends a trial early: "median" (worse than half of the finished ones at the
    same step; than two thirds of them an eighth of a window through, than one third halfway), "hyperband", "wilcoxon" (by
    windows, of which it needs five), None, or one of Optuna's; with several objectives there is none. Steps are hundredths of a
    window: a trial is looked at after each window, and where a model shows what it has learned so far (networks) an eighth, a
    quarter and half through, by 32 of the series (few of them over several windows), and ended only while something is left to
    be fitted: models that are fitted once for all windows come to their end. seed: of the sampler; never one of a model.

    n_jobs: processes at a time on this machine, each of one thread. trial_timeout: seconds a trial may take, looked at between
    windows and between the steps of networks; a trial beyond counts as pruned. "auto": twenty times the first one, at least a
    minute. retries: how often a trial is tried again whose process died. grace: seconds after its time limit from which a trial
    of another machine counts as dead. apart: one study for each model, with an equal share of the trials, in place of one
    where the model is a parameter. progress: a bar (default: in terminals and notebooks).
    """

    space: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None = None
    initial_params: Any = ()
    n_windows: int = 3
    step_size: int | None = None
    refit: Any = "auto"
    backtest: BacktestOptions = field(default=DEFAULT_OPTIONS)
    holdout: int = 0
    n_seeds: int = 1
    sampler: Any = "tpe"
    pruner: Any = "median"
    seed: int = 0
    n_jobs: int = 1
    trial_timeout: float | str | None = "auto"
    retries: int = 1
    heartbeat_timeout: float = 3600.0
    separate_studies: bool = False
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name, minimum in (("n_windows", 1), ("holdout", 0), ("n_seeds", 1), ("seed", 0), ("n_jobs", 1), ("retries", 0)):
            validate_integer(getattr(self, name), name, minimum=minimum)
        validate_options(self.backtest)
        _validate_seconds(self.trial_timeout, "trial_timeout", ("auto", None))
        _validate_seconds(self.heartbeat_timeout, "heartbeat_timeout", ())
        _validate_choice(self.sampler, "sampler", SAMPLERS, ["sample_independent"])
        if self.pruner is not None:
            _validate_choice(self.pruner, "pruner", PRUNERS, ["prune"])
        if self.space is not None and not isinstance(self.space, Mapping) and not callable(self.space):
            raise ParameterTypeError(f"space is a dict of ranges or a function of a trial; got {format_value(self.space)}.")
        if self.pruner == "wilcoxon" and self.n_windows * self.n_seeds < 5:
            raise ParameterError(
                f"pruner='wilcoxon' compares trials by their windows, at least 5; n_windows={self.n_windows}. Say more, or "
                "pruner='median'."
            )
        if self.progress not in (None, True, False):
            raise ParameterTypeError(f"progress is True, False or None; got {format_value(self.progress)}.")


def validate_tuning_options(options: Any) -> TuningOptions:
    """The options as they are given, if they are a `TuningOptions`."""
    if not isinstance(options, TuningOptions):
        description = f"{format_value(options)} ({type(options).__name__})"
        raise ParameterTypeError(f"options is a TuningOptions object, e.g. TuningOptions(n_windows=2); got {description}.")
    return options


def _validate_seconds(value: Any, name: str, allowed: Sequence[Any]) -> None:
    if any(value is option or (isinstance(value, str) and value == option) for option in allowed):
        return
    words = "".join(f" or {option!r}" for option in allowed)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterTypeError(f"{name} is a number of seconds{words}; got {format_value(value)}.")
    if not value > 0:
        raise ParameterError(f"{name} is a number of seconds above 0{words}; got {value}.")


def _validate_choice(value: Any, name: str, names: Sequence[str], methods: Sequence[str]) -> None:
    if isinstance(value, str):
        if value not in names:
            raise ParameterError(f"{name} is one of {', '.join(map(repr, names))} or one of Optuna's; got {format_value(value)!r}.")
    elif not all(callable(getattr(value, method, None)) for method in methods) or isinstance(value, type):
        choices = ", ".join(map(repr, names))
        raise ParameterTypeError(f"{name} is one of {choices} or an object of Optuna's; got {format_value(value)}.")


DEFAULT_TUNING_OPTIONS = TuningOptions()
"""The usual options."""
