"""Hyperparameter search for one or several models by rolling cross-validation."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepforecast.core.backtest import refit_every
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.frames import Frame
from deepforecast.data.frequency import seasons
from deepforecast.data.integers import validate_integer
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan, backtest_windows
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value, warn
from deepforecast.evaluation.backtesting import make_plan, validate_models
from deepforecast.tuning.study import DEFAULT_TUNING_OPTIONS, TuningOptions, validate_tuning_options

if TYPE_CHECKING:
    from deepforecast.tuning.objective import Objective
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import Configuration, Space

MAX_NAME_LENGTH = 500  # characters that all databases accept


def tune(
    model: Forecaster | Sequence[Forecaster],
    frame: Frame,
    *,
    n_trials: int,
    horizon: int | None = None,
    timeout: float | None = None,
    metric: Any = None,
    storage: Any = None,
    study_name: str | None = None,
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    static: Frame | None = None,
    options: TuningOptions = DEFAULT_TUNING_OPTIONS,
) -> TuningResult:
    """Search for the hyperparameters with the best forecasts in rolling cross-validation.

    The search covers the ranges declared by the model, except for parameters that were set
    explicitly; `TuningOptions(space=...)` sets other ranges. The first trial is the model as
    passed. It is never pruned, so the best trial is at least as good. Ctrl-C and `timeout` end the
    search with the best result so far. A failed trial is a row with its reason.

    Parameters
    ----------
    model : Forecaster or sequence of Forecaster
        The model to tune. Several models are searched in one study, with the model as a
        parameter.
    frame : DataFrame
        Long frame with the series to forecast.
    n_trials : int
        Total number of trials of the study, including those of earlier calls and of other
        processes.
    horizon : int, optional
        Number of steps to forecast. None: the `horizon` of the models.
    timeout : float, optional
        Seconds after which the search ends. Interrupted trials are repeated when it is resumed.
    metric : str, callable, Metric or list of these, optional
        Objective as in `compare`. None: MASE, or MAE if the season is unknown. Several
        objectives, which may include "seconds", give a Pareto front (`result.pareto`).
    storage : str, path-like or optuna storage, optional
        Where the study is stored, so that the same call resumes it, or joins it from another
        process: a path to a journal file (fast, safe on network file systems), a path ending in
        `.db` (SQLite) or the URL of a database. None: memory.
    study_name : str, optional
        Name of the study in the storage. None: from the models and the horizon.
    freq : str or int, optional
        Frequency of the time column. None: inferred.
    columns : Columns or dict, optional
        Names of the columns and roles of the covariates.
    static : DataFrame, optional
        Static covariates, one row per series.
    options : TuningOptions, optional
        Search space, windows, sampler, pruner and processes.

    Returns
    -------
    TuningResult
        `best_model`, `best_params`, `trials` and more.

    Raises
    ------
    ParameterError
        If the stored study was created for other data, models, ranges, metrics or windows.
    TrainingError
        If no trial succeeds.

    See Also
    --------
    compare : Compare models with fixed hyperparameters.

    Notes
    -----
    Evaluated rows are never used for training, but the best of many trials is overly optimistic.
    `TuningOptions(holdout=1)` measures the score on windows that the search does not use.

    Examples
    --------
    >>> from deepforecast import WindowMean, datasets, tune
    >>> result = tune(WindowMean(horizon=12), datasets.load("air_passengers"), n_trials=8)
    >>> result.trials["state"].tolist()[0], result.best_model.window > 1
    ('complete', True)
    """
    options, models = validate_tuning_options(options), validate_models(model, horizon)
    total = validate_integer(n_trials, "n_trials")
    deadline = time.monotonic() + _validate_timeout(timeout)
    _validate_study_name(study_name)
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
    warn_undeclared(panel.undeclared)
    if options.separate_studies and len(models) > 1:
        from deepforecast.tuning.separate_studies import tune_separately

        def search(
            single_model: Forecaster, model_trials: int, model_deadline: float, model_options: TuningOptions
        ) -> TuningResult:
            title = f"{study_name or 'apart'}-{single_model.name}-h{single_model.default_horizon}"
            return _tune_study([single_model], panel, model_trials, model_deadline, metric, storage, title, model_options)

        return tune_separately(models, total, deadline, options, search)
    return _tune_study(models, panel, total, deadline, metric, storage, study_name, options)


def _tune_study(
    models: Sequence[Forecaster],
    panel: Panel,
    n_trials: int,
    deadline: float,
    metric: Any,
    storage: Any,
    name: Any,
    options: TuningOptions,
) -> TuningResult:
    from deepforecast.tuning.holdout import score_holdout
    from deepforecast.tuning.search import run_search
    from deepforecast.tuning.space import make_space

    n_windows, step_size, gap = options.n_windows, options.step_size, options.gap
    plan = make_plan(models, panel, options.backtest, n_windows=n_windows, step_size=step_size, gap=gap)
    search_panel = _before_holdout(panel, plan, options.holdout)
    rows = int(backtest_windows(search_panel, plan)[0].cutoff.max())
    space = make_space(models, options.space, seasons(panel.calendar.frequency), rows, options.separate_studies)
    objective = make_objective(space, search_panel, plan, metric, options)
    starts = initial_configurations(space, options.initial_params)
    name = name or "-".join(space.names) + f"-h{plan.horizon}"
    tuning_result = run_search(objective, search_panel, starts, options, n_trials, deadline, storage, name)
    if not options.holdout:
        return tuning_result
    holdout_objective = make_objective(
        space, panel, replace(plan, n_windows=options.holdout, step=plan.horizon), metric, options
    )
    return replace(tuning_result, holdout=score_holdout(tuning_result, holdout_objective))


def make_objective(space: Space, panel: Panel, plan: BacktestPlan, metric: Any, options: TuningOptions) -> Objective:
    """The objective that scores configurations on these windows of a panel."""
    from deepforecast.tuning.objective import SECONDS, Objective
    from deepforecast.tuning.scorer import Scorer, resolve_metrics

    refit_every(options.refit, True)
    requested = resolve_metrics(metric, bool(seasons(panel.calendar.frequency)))
    metrics = [entry for entry in requested if entry != SECONDS]
    if not metrics:
        raise ParameterError("`metric` must have at least one metric besides 'seconds'. Pass one, or leave it out for MASE.")
    panels = [panel] if len(space.models) == 1 else [drop_unusable(panel, model.capabilities)[0] for model in space.models]
    extended_models = [model.clone(horizon=plan.gap + plan.horizon) for model in space.models]
    min_observations = [
        model._min_observations_to_fit(usable_panel) for model, usable_panel in zip(extended_models, panels, strict=True)
    ]
    plan = replace(plan, min_observations=max(min_observations))
    scorer = Scorer.from_plan(panel, plan, metrics, None)
    names = iter(scorer.columns)
    objectives = tuple(SECONDS if entry == SECONDS else next(names) for entry in requested)
    return Objective(space, panels, plan, scorer, objectives, options.refit, options.n_seeds, options.pruner == "wilcoxon")


def initial_configurations(space: Space, initial_params: Any) -> list[Configuration]:
    """The first configurations: each model as passed, then `initial_params`."""
    from deepforecast.tuning.ranges import refuse_fixed
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import MODEL_PARAM, Configuration

    configurations = [Configuration(number, {}) for number in range(len(space.models))]
    for candidate in initial_params if isinstance(initial_params, list | tuple) else [initial_params]:
        for start_params in candidate.best_configurations(3) if isinstance(candidate, TuningResult) else [candidate]:
            if not isinstance(start_params, Mapping):
                raise ParameterTypeError(
                    f"`initial_params` must be dicts of parameters or TuningResults, got {format_value(start_params)}."
                )
            name = start_params.get(MODEL_PARAM) if len(space.models) > 1 else space.names[0]
            if name not in space.names:
                names = format_list(space.names)
                raise ParameterError(f"'{MODEL_PARAM}' in `initial_params` must be one of {names}, got {format_value(name)}.")
            searched_params = {
                key: value for key, value in start_params.items() if key != MODEL_PARAM or len(space.models) == 1
            }
            refuse_fixed(searched_params, "initial_params")
            configuration = Configuration(space.names.index(name), searched_params)
            space.build_model(configuration)
            if configuration not in configurations:
                configurations.append(configuration)
    return configurations


def _before_holdout(panel: Panel, plan: BacktestPlan, n_holdout: int) -> Panel:
    """The rows before the first holdout window."""
    if not n_holdout:
        return panel
    first = backtest_windows(panel, replace(plan, n_windows=n_holdout, step=plan.horizon))[0]
    search_panel = first.history(panel)
    if len(search_panel) < len(panel):
        warn(
            f"{len(panel) - len(search_panel)} series start in the holdout windows (holdout={n_holdout}) and "
            "are not used in the search."
        )
    return search_panel


def _validate_timeout(timeout: Any) -> float:
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ParameterTypeError(f"`timeout` must be a number of seconds or None, got {format_value(timeout)}.")
    if not timeout > 0:
        raise ParameterError(f"`timeout` must be above 0 seconds, got {timeout}.")
    return float(timeout)


def _validate_study_name(name: Any) -> None:
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable()):
        raise ParameterTypeError(
            f"`study_name` must be a str of 1 to {MAX_NAME_LENGTH} printable characters, got {format_value(name)}."
        )
