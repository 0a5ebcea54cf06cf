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
from deepforecast.evaluation.backtesting import checked_models, planned
from deepforecast.tuning.study import PLAIN, TuningOptions, checked_study

if TYPE_CHECKING:
    from deepforecast.tuning.objective import Objective
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import Configuration, Space

LONGEST = 500  # letters of a name that all databases take


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
    options: TuningOptions = PLAIN,
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
    options, given = checked_study(options), checked_models(model, horizon)
    total = validate_integer(n_trials, "n_trials")
    until = time.monotonic() + _seconds(timeout)
    _refuse_name(study_name)
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
    warn_undeclared(panel.undeclared)
    if options.separate_studies and len(given) > 1:
        from deepforecast.tuning.apart import searched_apart

        def search(one: Forecaster, part: int, share: float, own: TuningOptions) -> TuningResult:
            title = f"{study_name or 'apart'}-{one.name}-h{one.default_horizon}"
            return _searched([one], panel, part, share, metric, storage, title, own)

        return searched_apart(given, total, until, options, search)
    return _searched(given, panel, total, until, metric, storage, study_name, options)


def _searched(
    models: Sequence[Forecaster],
    panel: Panel,
    total: int,
    until: float,
    metric: Any,
    storage: Any,
    name: Any,
    options: TuningOptions,
) -> TuningResult:
    """One study."""
    from deepforecast.tuning.conducting import conducted
    from deepforecast.tuning.holding import held_out
    from deepforecast.tuning.space import space_for

    plan = planned(models, panel, options.n_windows, options.step_size, options.backtest)
    searched = _before_holdout(panel, plan, options.holdout)
    rows = int(backtest_windows(searched, plan)[0].cutoff.max())
    space = space_for(models, options.space, seasons(panel.calendar.frequency), rows, options.separate_studies)
    objective = objective_for(space, searched, plan, metric, options)
    starts = starts_of(space, options.initial_params)
    name = name or "-".join(space.names) + f"-h{plan.horizon}"
    result = conducted(objective, searched, starts, options, total, until, storage, name)
    if not options.holdout:
        return result
    last = objective_for(space, panel, replace(plan, n_windows=options.holdout, step=plan.horizon), metric, options)
    return replace(result, holdout=held_out(result, last))


def objective_for(space: Space, panel: Panel, plan: BacktestPlan, metric: Any, options: TuningOptions) -> Objective:
    """What a configuration is worth on these windows of a panel."""
    from deepforecast.tuning.objective import SECONDS, Objective
    from deepforecast.tuning.scoring import Scorer, metrics_of

    refit_every(options.refit, True)
    asked = metrics_of(metric, bool(seasons(panel.calendar.frequency)))
    metrics = [one for one in asked if one != SECONDS]
    if not metrics:
        raise ParameterError("metric names at least one metric beside 'seconds'; leave it out for MASE.")
    panels = [panel] if len(space.models) == 1 else [drop_unusable(panel, model.capabilities)[0] for model in space.models]
    workers = [model.clone(horizon=plan.gap + plan.horizon) for model in space.models]
    plan = replace(plan, min_observations=max(one._min_observations_to_fit(own) for one, own in zip(workers, panels, strict=True)))
    scorer = Scorer.of(panel, plan, metrics, None)
    names = iter(scorer.columns)
    objectives = tuple(SECONDS if one == SECONDS else next(names) for one in asked)
    return Objective(space, panels, plan, scorer, objectives, options.refit, options.n_seeds, options.pruner == "wilcoxon")


def starts_of(space: Space, start: Any) -> list[Configuration]:
    """The configurations to begin with: each model as it is, then those of the caller."""
    from deepforecast.tuning.ranges import refuse_fixed
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import MODEL, Configuration

    found = [Configuration(number, {}) for number in range(len(space.models))]
    for one in start if isinstance(start, list | tuple) else [start]:
        for params in one.best_configurations(3) if isinstance(one, TuningResult) else [one]:
            if not isinstance(params, Mapping):
                raise ParameterTypeError(f"start holds dicts of parameters or TuningResults; got {format_value(params)}.")
            name = params.get(MODEL) if len(space.models) > 1 else space.names[0]
            if name not in space.names:
                known = format_list(space.names)
                raise ParameterError(f"start says which model: {{'{MODEL}': ...}}, one of {known}; got {format_value(name)}.")
            own = {key: value for key, value in params.items() if key != MODEL or len(space.models) == 1}
            refuse_fixed(own, "start holds")
            given = Configuration(space.names.index(name), own)
            space.built(given)
            if given not in found:
                found.append(given)
    return found


def _before_holdout(panel: Panel, plan: BacktestPlan, count: int) -> Panel:
    """The rows before the first window held out."""
    if not count:
        return panel
    first = backtest_windows(panel, replace(plan, n_windows=count, step=plan.horizon))[0]
    found = first.history(panel)
    if len(found) < len(panel):
        warn(f"{len(panel) - len(found)} series begin after the search ends (holdout={count}) and are not searched on.")
    return found


def _seconds(timeout: Any) -> float:
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ParameterTypeError(f"timeout is a number of seconds or None; got {format_value(timeout)}.")
    if not timeout > 0:
        raise ParameterError(f"timeout is a number of seconds above 0; got {timeout}.")
    return float(timeout)


def _refuse_name(name: Any) -> None:
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= LONGEST or not name.isprintable()):
        raise ParameterTypeError(f"study_name is a text of 1 to {LONGEST} printable characters; got {format_value(name)}.")
