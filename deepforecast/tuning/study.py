"""Options of a hyperparameter search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepforecast.errors import ParameterError, ParameterTypeError, format_value, validate_integer
from deepforecast.evaluation.backtesting import DEFAULT_OPTIONS, BacktestOptions, validate_options

SAMPLERS = ("tpe", "gp", "cma", "random", "grid", "sobol")
PRUNERS = ("median", "hyperband", "wilcoxon")


@dataclass(frozen=True)
class TuningOptions:
    """Additional options of `tune`.

    Parameters
    ----------
    space : dict or callable, optional
        Search space in place of the declared ranges. A dict maps parameters to ranges: a tuple
        of two numbers, a list of choices, or `{"low": 8, "high": 64, "log": True}`. A callable
        takes a trial (`suggest_int`, `suggest_float`, `suggest_categorical`) and returns a dict
        of parameters. For several models: a dict from model names to such spaces.
    initial_params : dict, TuningResult or list of these, optional
        Configurations to try first, after the model as passed. Of a `TuningResult` the three
        best are used.
    n_windows : int, default 3
        Number of cutoffs, as in `cross_validate`.
    step_size : int, optional
        Time steps between cutoffs. None: the horizon.
    gap : int, default 0
        Number of time steps between a cutoff and the first step that is forecast.
    refit : bool, int or "auto", default "auto"
        When to refit, as in `cross_validate`.
    backtest : BacktestOptions, optional
        Further options of the cross-validation.
    holdout : int, default 0
        Number of windows at the end of the data that the search does not use. The best
        configuration and the model as passed are scored there afterwards.
    n_seeds : int, default 1
        Number of random seeds per configuration; its score is the mean.
    sampler : str or optuna sampler, default "tpe"
        "tpe", "gp" (Gaussian process), "cma" (requires the package cmaes and no storage),
        "random", "grid" or "sobol" (quasi-random).
    pruner : str, optuna pruner or None, default "median"
        "median", "hyperband", "wilcoxon" (at least five windows) or None. Not used with several
        objectives.
    seed : int, default 0
        Random seed of the sampler, not of the models.
    n_jobs : int, default 1
        Number of processes, with one thread each.
    trial_timeout : float, "auto" or None, default "auto"
        Seconds after which a trial is pruned, checked between windows and between training
        steps of neural networks. "auto": 20 times the first trial, at least a minute.
    retries : int, default 1
        Number of times a trial is repeated after its process died.
    heartbeat_timeout : float, default 3600
        Seconds beyond its time limit after which a trial on another machine counts as dead.
    separate_studies : bool, default False
        Whether to run one study per model with equal numbers of trials, instead of one study
        with the model as a parameter.
    progress : bool, optional
        Whether to show a progress bar. None: in terminals and notebooks.

    Notes
    -----
    Scores are reported to the pruner after each window and, for models that can forecast during
    training (neural networks), after 1/8, 1/4 and 1/2 of a fit on up to 32 series. Steps are
    hundredths of a window. "median" prunes a trial that is worse than half of the completed trials
    at the same step (after 1/8 of a fit worse than two thirds, after 1/2 worse than one third).
    Trials are pruned only while a fit remains to be done: models fitted once for all windows run to
    their end.

    Examples
    --------
    >>> from deepforecast import TuningOptions, WindowMean, datasets, tune
    >>> options = TuningOptions(space={"window": [3, 6, 12]}, sampler="grid", n_windows=2)
    >>> frame = datasets.load("air_passengers")
    >>> result = tune(WindowMean(horizon=6), frame, n_trials=4, options=options)
    >>> sorted(result.trials["window"].tolist()[1:])
    [3.0, 6.0, 12.0]
    """

    space: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None = None
    initial_params: Any = ()
    n_windows: int = 3
    step_size: int | None = None
    gap: int = 0
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
        """Check the values."""
        for name, minimum in (
            ("n_windows", 1),
            ("gap", 0),
            ("holdout", 0),
            ("n_seeds", 1),
            ("seed", 0),
            ("n_jobs", 1),
            ("retries", 0),
        ):
            validate_integer(getattr(self, name), name, minimum=minimum)
        validate_options(self.backtest, "backtest")
        _validate_seconds(self.trial_timeout, "trial_timeout", ("auto", None))
        _validate_seconds(self.heartbeat_timeout, "heartbeat_timeout", ())
        _validate_choice(self.sampler, "sampler", SAMPLERS, ["sample_independent"])
        if self.pruner is not None:
            _validate_choice(self.pruner, "pruner", PRUNERS, ["prune"])
        if self.space is not None and not isinstance(self.space, Mapping) and not callable(self.space):
            raise ParameterTypeError(
                f"`space` must be a dict of ranges or a function of a trial, got {format_value(self.space)}.",
                parameter="space",
                value=self.space,
            )
        if self.pruner == "wilcoxon" and self.n_windows * self.n_seeds < 5:
            raise ParameterError(
                "pruner='wilcoxon' requires at least 5 windows (n_windows * n_seeds) to compare trials, got "
                f"n_windows={self.n_windows} and n_seeds={self.n_seeds}.",
                hint="Set a larger `n_windows`, or pruner='median'.",
                parameter="pruner",
            )
        if self.progress not in (None, True, False):
            raise ParameterTypeError(
                f"`progress` must be True, False or None, got {format_value(self.progress)}.",
                parameter="progress",
                value=self.progress,
            )


def validate_tuning_options(options: Any) -> TuningOptions:
    """`options`; anything but a `TuningOptions` raises `ParameterTypeError`."""
    if not isinstance(options, TuningOptions):
        description = f"{format_value(options)} ({type(options).__name__})"
        raise ParameterTypeError(
            f"`options` must be a TuningOptions, got {description}.",
            hint="Pass for example TuningOptions(n_windows=2).",
            parameter="options",
            value=options,
        )
    return options


def _validate_seconds(seconds: Any, name: str, allowed: Sequence[Any]) -> None:
    """Raise unless `seconds` is a positive number or one of the `allowed` other values."""
    if any(seconds is option or (isinstance(seconds, str) and seconds == option) for option in allowed):
        return
    alternatives = "".join(f" or {option!r}" for option in allowed)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ParameterTypeError(
            f"`{name}` must be a number of seconds{alternatives}, got {format_value(seconds)}.",
            parameter=name,
            value=seconds,
        )
    if not seconds > 0:
        raise ParameterError(f"`{name}` must be above 0 seconds{alternatives}, got {seconds}.", parameter=name, value=seconds)


def _validate_choice(value: Any, name: str, names: Sequence[str], methods: Sequence[str]) -> None:
    """Raise unless `value` is one of the `names` or an object with the `methods` of Optuna."""
    if isinstance(value, str):
        if value not in names:
            raise ParameterError(
                f"`{name}` must be one of {', '.join(map(repr, names))} or an Optuna {name}, got {format_value(value)!r}.",
                parameter=name,
                value=value,
            )
    elif not all(callable(getattr(value, method, None)) for method in methods) or isinstance(value, type):
        choices = ", ".join(map(repr, names))
        raise ParameterTypeError(
            f"`{name}` must be one of {choices} or an Optuna {name}, got {format_value(value)}.",
            parameter=name,
            value=value,
        )


DEFAULT_TUNING_OPTIONS = TuningOptions()
"""The default options."""
