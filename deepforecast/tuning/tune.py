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
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan, backtest_windows
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value, validate_integer, warn
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
    options = validate_tuning_options(options)
    models = validate_models(model, horizon, "model")
    n_trials = validate_integer(n_trials, "n_trials")
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
            return _tune_study(
                [single_model],
                panel,
                n_trials=model_trials,
                deadline=model_deadline,
                metric=metric,
                storage=storage,
                name=title,
                options=model_options,
            )

        return tune_separately(models, n_trials, deadline, options=options, search=search)
    return _tune_study(
        models,
        panel,
        n_trials=n_trials,
        deadline=deadline,
        metric=metric,
        storage=storage,
        name=study_name,
        options=options,
    )


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
    """Run one study over all `models` until `deadline` (`time.monotonic`) and, if requested, score the
    result on the holdout windows."""
    from deepforecast.tuning.holdout import score_holdout
    from deepforecast.tuning.search import run_search
    from deepforecast.tuning.space import make_space

    plan = make_plan(
        models,
        panel,
        options.backtest,
        n_windows=options.n_windows,
        step_size=options.step_size,
        gap=options.gap,
    )
    search_panel = _before_holdout(panel, plan, options.holdout)
    n_rows = int(backtest_windows(search_panel, plan)[0].cutoff.max())
    space = make_space(
        models,
        options.space,
        seasons=seasons(panel.calendar.frequency),
        n_rows=n_rows,
        may_be_empty=options.separate_studies,
    )
    objective = make_objective(space, search_panel, plan, metric=metric, options=options)
    configurations = initial_configurations(space, options.initial_params)
    name = name or "-".join(space.names) + f"-h{plan.horizon}"
    tuning_result = run_search(
        objective,
        search_panel,
        configurations,
        options=options,
        n_trials=n_trials,
        deadline=deadline,
        storage=storage,
        name=name,
    )
    if not options.holdout:
        return tuning_result
    holdout_plan = replace(plan, n_windows=options.holdout, step=plan.horizon)
    holdout_objective = make_objective(space, panel, holdout_plan, metric=metric, options=options)
    return replace(tuning_result, holdout=score_holdout(tuning_result, holdout_objective))


def make_objective(space: Space, panel: Panel, plan: BacktestPlan, metric: Any, options: TuningOptions) -> Objective:
    """The objective that scores configurations on these windows of a panel."""
    from deepforecast.tuning.objective import SECONDS, Objective
    from deepforecast.tuning.scorer import Scorer, resolve_metrics

    refit_every(options.refit, True)  # raises if `refit` is invalid
    requested = resolve_metrics(metric, bool(seasons(panel.calendar.frequency)))
    metrics = [entry for entry in requested if entry != SECONDS]
    if not metrics:
        raise ParameterError(
            "`metric` must contain at least one accuracy metric besides 'seconds'.",
            hint="Add one, or omit `metric` to use MASE.",
            parameter="metric",
        )
    panels = [panel] if len(space.models) == 1 else [drop_unusable(panel, model.capabilities)[0] for model in space.models]
    extended_models = [model.clone(horizon=plan.gap + plan.horizon) for model in space.models]
    min_observations = [
        model._min_observations_to_fit(usable_panel) for model, usable_panel in zip(extended_models, panels, strict=True)
    ]
    plan = replace(plan, min_observations=max(min_observations))
    scorer = Scorer.from_plan(panel, plan, metrics, None)
    names = iter(scorer.columns)
    objectives = tuple(SECONDS if entry == SECONDS else next(names) for entry in requested)
    return Objective(
        space=space,
        panels=panels,
        plan=plan,
        scorer=scorer,
        objectives=objectives,
        refit=options.refit,
        n_seeds=options.n_seeds,
        by_window=options.pruner == "wilcoxon",
    )


def initial_configurations(space: Space, initial_params: Any) -> list[Configuration]:
    """The first configurations: each model as passed, then `initial_params`."""
    from deepforecast.tuning.ranges import refuse_fixed
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import MODEL_PARAM, Configuration

    configurations = [Configuration(model_index, {}) for model_index in range(len(space.models))]
    for candidate in initial_params if isinstance(initial_params, list | tuple) else [initial_params]:
        for start_params in candidate.best_configurations(3) if isinstance(candidate, TuningResult) else [candidate]:
            if not isinstance(start_params, Mapping):
                raise ParameterTypeError(
                    "`initial_params` must be a dict of parameters, a TuningResult or a list of these, got "
                    f"{format_value(start_params)}.",
                    parameter="initial_params",
                    value=start_params,
                )
            model_name = start_params.get(MODEL_PARAM) if len(space.models) > 1 else space.names[0]
            if model_name not in space.names:
                names = format_list(space.names)
                raise ParameterError(
                    f"'{MODEL_PARAM}' in `initial_params` must be one of {names}, got {format_value(model_name)}.",
                    parameter="initial_params",
                )
            searched_params = {
                param_name: value
                for param_name, value in start_params.items()
                if param_name != MODEL_PARAM or len(space.models) == 1
            }
            refuse_fixed(searched_params, "initial_params")
            configuration = Configuration(space.names.index(model_name), searched_params)
            space.build_model(configuration)
            if configuration not in configurations:
                configurations.append(configuration)
    return configurations


def _before_holdout(panel: Panel, plan: BacktestPlan, n_holdout: int) -> Panel:
    """The panel with the rows before the first holdout window; warn about series without any."""
    if not n_holdout:
        return panel
    first_window = backtest_windows(panel, replace(plan, n_windows=n_holdout, step=plan.horizon))[0]
    search_panel = first_window.history(panel)
    if len(search_panel) < len(panel):
        warn(
            f"{len(panel) - len(search_panel)} of {len(panel)} series start in the holdout windows (holdout={n_holdout}) and "
            "are not used in the search. Set a smaller `holdout` to use them."
        )
    return search_panel


def _validate_timeout(timeout: Any) -> float:
    """`timeout` in seconds; infinity for None."""
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ParameterTypeError(
            f"`timeout` must be a number of seconds or None, got {format_value(timeout)}.",
            parameter="timeout",
            value=timeout,
        )
    if not timeout > 0:
        raise ParameterError(f"`timeout` must be above 0 seconds, got {timeout}.", parameter="timeout", value=timeout)
    return float(timeout)


def _validate_study_name(name: Any) -> None:
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable()):
        raise ParameterTypeError(
            f"`study_name` must be a str of 1 to {MAX_NAME_LENGTH} printable characters or None, got {format_value(name)!r}.",
            parameter="study_name",
            value=name,
        )
