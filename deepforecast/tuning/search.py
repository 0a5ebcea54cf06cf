"""A search from its storage to its result: trials here or in workers, a bar, and what is said where it ends."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import optuna
from optuna.trial import TrialState

from deepforecast.core.backtest import refit_every
from deepforecast.core.progress import progress_bar
from deepforecast.data.panel import Panel
from deepforecast.data.terminal import shows_live_output
from deepforecast.errors import DeepForecastError, ParameterError, TrainingError, TrainingWarning, format_value, warn
from deepforecast.evaluation.runtime_estimate import MIN_ANNOUNCED_SECONDS, estimate_runtime
from deepforecast.tuning import trial_recovery
from deepforecast.tuning.database import database_of
from deepforecast.tuning.objective import Objective
from deepforecast.tuning.result import TuningResult
from deepforecast.tuning.samplers import make_pruner, make_sampler
from deepforecast.tuning.space import Configuration
from deepforecast.tuning.storage import open_storage, shareable_location, silence_optuna, storage_error
from deepforecast.tuning.study import TuningOptions
from deepforecast.tuning.study_identity import create_or_load_study, make_identity
from deepforecast.tuning.trial_runner import TrialRunner
from deepforecast.tuning.workers import WorkerJob, run_workers


def run_search(
    objective: Objective, panel: Panel, starts: Sequence[Configuration], options: TuningOptions, n_trials: int, deadline: float,
    storage: Any, name: str,
) -> TuningResult:  # fmt: skip
    """Search until the study has so many trials or time is over."""
    _warn_of_ignored_pruner(objective, options)
    _refuse_in_memory_storage(storage, options)
    _refuse_pickles(storage, options)
    with _study_location(storage, options) as location:
        multi_objective = len(objective.objectives) > 1
        make_sampler(options, objective.space, 0, multi_objective)  # refused before anything is written
        _announce_runtime(objective, options, n_trials)
        settings: dict[str, Any] = {"length": objective.n_steps, "by_window": objective.by_window, "retries": options.retries,
                                    "n_trials": n_trials, "study_name": name}  # fmt: skip
        study = None
        try:
            with silence_optuna():
                opened_storage = open_storage(location, lambda study, trial: trial_recovery.requeue(study, trial, options.retries))
                study = create_or_load_study(opened_storage, name, make_identity(panel, objective, options.holdout), starts, objective, location)
                trial_recovery.requeue_lost(study, options.retries)
            study.pruner = make_pruner(options, objective.n_steps, multi_objective)
            tuning_result = TuningResult(study, objective.space, objective.objectives, None, settings)
            _run_trials(TrialRunner(study, objective, options, n_trials, deadline), tuning_result, location)
            with silence_optuna():
                return (_move_to_memory(tuning_result) if location is not storage else tuning_result).freeze_trials()
        except (DeepForecastError, KeyboardInterrupt):
            raise
        except Exception as error:  # trials catch what they raise: this is the storage, or the sampler
            raise storage_error(location, error, _describe_best(settings)) from error
        finally:
            database = database_of(study) if study is not None else None
            if database is not None:
                database.engine.dispose()  # its connections; the study opens others when it is asked again


def _run_trials(runner: TrialRunner, tuning_result: TuningResult, location: Any) -> None:
    """All trials, with a bar; the end said, where it is not the usual one."""
    options, interrupted = runner.options, False
    try:
        with _progress_bar(runner, tuning_result) as tick:
            runner.on_trial_end = tick
            if options.n_jobs == 1:
                runner.run()
            else:
                job = WorkerJob(shareable_location(location), runner.study.study_name, runner.objective, options, runner.n_trials, runner.deadline)
                runner.cause = run_workers(job, runner.study, options.n_jobs, tick)
    except KeyboardInterrupt:
        interrupted = tuning_result.settings["interrupted"] = True  # type: ignore[index]
        if not _has_complete_trial(runner.study):
            raise
    _warn_at_end(runner, interrupted)


def _warn_at_end(runner: TrialRunner, interrupted: bool) -> None:
    with silence_optuna():
        trials = trial_recovery.budget_trials(runner.study, runner.options.retries)
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    n_ended = sum(trial.state.is_finished() for trial in trials)
    if not complete:
        _raise_if_all_failed(runner, trials)
    if interrupted:
        warn(f"The search was interrupted after {n_ended} of {runner.n_trials} trials; the result is the best of these. With "
            "storage= the same call goes on from there.", TrainingWarning)  # fmt: skip
    elif n_ended < runner.n_trials and time.monotonic() >= runner.deadline - 1:
        warn(f"The search ended after {n_ended} of {runner.n_trials} trials, as its timeout= says.", TrainingWarning)
    _warn_of_trials([trial for trial in trials if trial.state == TrialState.FAIL], "failed", len(trials))
    refused = [trial for trial in trials if trial.user_attrs.get(trial_recovery.OUTCOME, {}).get("refused")]
    _warn_of_trials(refused, "were refused", len(trials))


def _warn_of_trials(trials: Sequence[Any], description: str, n_trials: int) -> None:
    if trials:
        first = trials[0].user_attrs.get(trial_recovery.OUTCOME, {}).get("reason", "its process died")
        warn(f"{len(trials)} of {n_trials} trials {description}, the first: {format_value(first, 300).rstrip('.')}. result.trials has all reasons.",
            TrainingWarning)  # fmt: skip


def _raise_if_all_failed(runner: TrialRunner, trials: Sequence[Any]) -> None:
    """No trial ended well: the last reason, and where there is one its cause."""
    reasons = [trial.user_attrs[trial_recovery.OUTCOME].get("reason", "") for trial in trials if trial_recovery.OUTCOME in trial.user_attrs]
    if not reasons and time.monotonic() >= runner.deadline - 1:
        raise TrainingError("A search needs time for one trial at least; timeout= was over before the first had ended.")
    last = format_value(reasons[-1], 500) if reasons else "no trial was begun, or the process of each died"
    raise TrainingError(
        f"A search needs a trial that ends well; none of {len(trials)} did. The last: {last.rstrip('.')}. The first was the "
        "model as it is: what it says holds for compare() and fit() too."
    ) from runner.cause


def _has_complete_trial(study: optuna.Study) -> bool:
    with silence_optuna():
        return bool(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def _describe_best(settings: Mapping[str, Any]) -> str:
    """As far as it is known without the storage."""
    best = settings.get("best")
    return f"Best so far: {best}." if best else "No trial had ended."


@contextmanager
def _study_location(storage: Any, options: TuningOptions) -> Iterator[Any]:
    """Where the study is kept while it runs: several processes need a file, which is removed if nobody asked for it."""
    if storage is not None or options.n_jobs == 1:
        yield storage
        return
    with tempfile.TemporaryDirectory(prefix="deepforecast-study-") as folder:
        yield os.path.join(folder, "study.log")


def _move_to_memory(tuning_result: TuningResult) -> TuningResult:
    """The study in memory: its file goes."""
    memory = open_storage(None)
    name = tuning_result.study.study_name
    optuna.copy_study(from_study_name=name, from_storage=tuning_result.study._storage, to_storage=memory)
    return replace(tuning_result, study=optuna.load_study(study_name=name, storage=memory))


@contextmanager
def _progress_bar(runner: TrialRunner, tuning_result: TuningResult) -> Iterator[Callable[[], None]]:
    """A bar over the trials of the whole study, with the best so far."""
    with silence_optuna():
        n_before = sum(trial.state.is_finished() for trial in trial_recovery.budget_trials(runner.study, runner.options.retries))
    with progress_bar(max(runner.n_trials - n_before, 0), "trials", runner.options.progress, alone=True) as count:
        last_count = [n_before]
        tqdm_bar = getattr(count, "__self__", None)  # tqdm's, where there is one: it can tell the best, too

        def tick() -> None:
            trials = trial_recovery.budget_trials(runner.study, runner.options.retries)
            complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
            if complete:
                best = min(complete, key=lambda trial: float(trial.values[0]))
                tuning_result.settings["best"] = f"{best.values[0]:.6g} in trial {best.number}, {format_value(best.params, 300)}"  # type: ignore[index]
                if tqdm_bar is not None:
                    tqdm_bar.set_postfix_str(f"best {best.values[0]:.4g}", refresh=False)
            n_finished = sum(trial.state.is_finished() for trial in trials)
            count(n_finished - last_count[0])
            last_count[0] = n_finished

        tick()
        yield tick


def _announce_runtime(objective: Objective, options: TuningOptions, n_trials: int) -> None:
    """A line on stderr before a long search: in a terminal or a notebook, or where progress is asked for."""
    is_shown = options.progress if options.progress is not None else shows_live_output(sys.stderr)
    if not is_shown or sys.stderr is None or options.n_jobs > 1:  # a model that kills its process would kill this one
        return
    space = objective.space
    refit_intervals = [refit_every(objective.refit, model.capabilities.by_series) for model in space.models]
    estimate = estimate_runtime(space.models, objective.panels[0], objective.plan, refit_intervals, n_jobs=1)
    if estimate is None:
        return
    seconds = estimate.likely / len(space.models) * n_trials * objective.n_seeds
    if seconds >= MIN_ANNOUNCED_SECONDS:
        per_trial = f"{estimate.likely / len(space.models):.1f} s"
        sys.stderr.write(f"tune: {n_trials} trials of about {per_trial} each as the model is: {_format_seconds(seconds)} if all are like it\n")


def _format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _refuse_in_memory_storage(storage: Any, options: TuningOptions) -> None:
    if options.n_jobs > 1 and isinstance(storage, optuna.storages.InMemoryStorage):
        raise ParameterError(
            f"n_jobs={options.n_jobs} shares a study between processes; an InMemoryStorage is in one. Leave storage= out, or "
            "say a path."
        )


def _refuse_pickles(storage: Any, options: TuningOptions) -> None:
    """CMA-ES is kept by Optuna as a pickle, and who reads one from a file of somebody else's runs what it says."""
    named = options.sampler == "cma" or type(options.sampler).__name__ == "CmaEsSampler"
    if named and storage is not None:
        raise ParameterError(
            "sampler='cma' keeps its state as a pickle, which would run what somebody else put into a storage; so it takes "
            "none. Leave storage= out, or say sampler='tpe' or 'gp'."
        )


def _warn_of_ignored_pruner(objective: Objective, options: TuningOptions) -> None:
    if len(objective.objectives) > 1 and options.pruner is not None and options.pruner != "median":
        warn("Trials with several objectives are not ended early: there is no order between them. pruner= has no effect.")
