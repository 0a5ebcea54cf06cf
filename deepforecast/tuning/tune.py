"""`tune`: search for the hyperparameters of one model or several, on rolling cross-validation of the data given."""

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

MAX_NAME_LENGTH = 500  # letters of a name that all databases take


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
    """Search for the configuration whose forecasts at rolling cutoffs are best: `result.best_model.fit(frame)` uses it.

    What is searched are the ranges that the model declares, but for parameters that you set on it;
    `options=TuningOptions(space=...)` says others. The first trial is the model as it is, and is never ended early, so the
    best is at least as good. Several models are searched in one study: which one is a parameter.

    `n_trials` counts all trials of the study, those of earlier and of other processes included: with `storage` (a path: a
    journal file, the fastest on one machine and safe on a network's file system; `.db`: SQLite; a URL: a database) a call
    that was cut short goes on where it was by the same call, and the same call elsewhere joins in. `study_name` tells
    several studies of one storage apart. Other data, models, ranges, metrics or windows than the study was begun
    with are refused. A trial that fails is a row with its reason. Ctrl-C or `timeout` (seconds) give what was found
    so far; the trials they cut short are done first next time.

    `metric`: a name, function or `Metric`, as in `compare` (default: MASE, or MAE where no season is known), or several of
    them, "seconds" too: then `result.pareto` has the trials that none beats in all. Nothing is learned from rows that are
    judged; still the best of many trials looks better than it is, and `TuningOptions(holdout=1)` tells by how much.

    >>> from deepforecast import WindowMean, datasets, tune
    >>> found = tune(WindowMean(horizon=12), datasets.load("air_passengers"), n_trials=8)
    >>> found.trials["state"].tolist()[0], found.best_model.window > 1
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

        def search(single_model: Forecaster, model_trials: int, model_deadline: float, model_options: TuningOptions) -> TuningResult:
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
    """One study."""
    from deepforecast.tuning.holdout import score_holdout
    from deepforecast.tuning.search import run_search
    from deepforecast.tuning.space import make_space

    plan = make_plan(models, panel, options.n_windows, options.step_size, options.backtest)
    search_panel = _before_holdout(panel, plan, options.holdout)
    rows = int(backtest_windows(search_panel, plan)[0].cutoff.max())
    space = make_space(models, options.space, seasons(panel.calendar.frequency), rows, options.separate_studies)
    objective = make_objective(space, search_panel, plan, metric, options)
    starts = initial_configurations(space, options.initial_params)
    name = name or "-".join(space.names) + f"-h{plan.horizon}"
    tuning_result = run_search(objective, search_panel, starts, options, n_trials, deadline, storage, name)
    if not options.holdout:
        return tuning_result
    holdout_objective = make_objective(space, panel, replace(plan, n_windows=options.holdout, step=plan.horizon), metric, options)
    return replace(tuning_result, holdout=score_holdout(tuning_result, holdout_objective))


def make_objective(space: Space, panel: Panel, plan: BacktestPlan, metric: Any, options: TuningOptions) -> Objective:
    """What a configuration is worth on these windows of a panel."""
    from deepforecast.tuning.objective import SECONDS, Objective
    from deepforecast.tuning.scorer import Scorer, resolve_metrics

    refit_every(options.refit, True)
    requested = resolve_metrics(metric, bool(seasons(panel.calendar.frequency)))
    metrics = [entry for entry in requested if entry != SECONDS]
    if not metrics:
        raise ParameterError("metric names at least one metric beside 'seconds'; leave it out for MASE.")
    panels = [panel] if len(space.models) == 1 else [drop_unusable(panel, model.capabilities)[0] for model in space.models]
    extended_models = [model.clone(horizon=plan.gap + plan.horizon) for model in space.models]
    plan = replace(plan, min_observations=max(entry._min_observations_to_fit(usable_panel) for entry, usable_panel in zip(extended_models, panels, strict=True)))
    scorer = Scorer.from_plan(panel, plan, metrics, None)
    names = iter(scorer.columns)
    objectives = tuple(SECONDS if entry == SECONDS else next(names) for entry in requested)
    return Objective(space, panels, plan, scorer, objectives, options.refit, options.n_seeds, options.pruner == "wilcoxon")


def initial_configurations(space: Space, initial_params: Any) -> list[Configuration]:
    """The configurations to begin with: each model as it is, then those of the caller."""
    from deepforecast.tuning.ranges import refuse_fixed
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import MODEL_PARAM, Configuration

    configurations = [Configuration(number, {}) for number in range(len(space.models))]
    for candidate in initial_params if isinstance(initial_params, list | tuple) else [initial_params]:
        for start_params in candidate.best_configurations(3) if isinstance(candidate, TuningResult) else [candidate]:
            if not isinstance(start_params, Mapping):
                raise ParameterTypeError(f"start holds dicts of parameters or TuningResults; got {format_value(start_params)}.")
            name = start_params.get(MODEL_PARAM) if len(space.models) > 1 else space.names[0]
            if name not in space.names:
                names = format_list(space.names)
                raise ParameterError(f"start says which model: {{'{MODEL_PARAM}': ...}}, one of {names}; got {format_value(name)}.")
            searched_params = {key: value for key, value in start_params.items() if key != MODEL_PARAM or len(space.models) == 1}
            refuse_fixed(searched_params, "start holds")
            configuration = Configuration(space.names.index(name), searched_params)
            space.build_model(configuration)
            if configuration not in configurations:
                configurations.append(configuration)
    return configurations


def _before_holdout(panel: Panel, plan: BacktestPlan, n_holdout: int) -> Panel:
    """The rows before the first window held out."""
    if not n_holdout:
        return panel
    first = backtest_windows(panel, replace(plan, n_windows=n_holdout, step=plan.horizon))[0]
    search_panel = first.history(panel)
    if len(search_panel) < len(panel):
        warn(f"{len(panel) - len(search_panel)} series begin after the search ends (holdout={n_holdout}) and are not searched on.")
    return search_panel


def _validate_timeout(timeout: Any) -> float:
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ParameterTypeError(f"timeout is a number of seconds or None; got {format_value(timeout)}.")
    if not timeout > 0:
        raise ParameterError(f"timeout is a number of seconds above 0; got {timeout}.")
    return float(timeout)


def _validate_study_name(name: Any) -> None:
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable()):
        raise ParameterTypeError(f"study_name is a text of 1 to {MAX_NAME_LENGTH} printable characters; got {format_value(name)}.")
