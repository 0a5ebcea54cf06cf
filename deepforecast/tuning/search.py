"""Run a search: storage, trials, progress bar and final warnings."""

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
from deepforecast.core.monitor import progress_bar
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

# seconds before the deadline from which a search counts as ended by its timeout
DEADLINE_TOLERANCE = 1.0


def run_search(
    objective: Objective, panel: Panel, configurations: Sequence[Configuration], options: TuningOptions, n_trials: int, deadline: float,
    storage: Any, name: str,
) -> TuningResult:  # fmt: skip
    """Search until the study has `n_trials` trials or the deadline (`time.monotonic`) has passed.

    `configurations`: the first ones to try in a new study. `name`: that of the study in `storage`.
    """
    _warn_of_ignored_pruner(objective, options)
    _refuse_in_memory_storage(storage, options)
    _refuse_pickles(storage, options)
    with _study_location(storage, options) as location:
        multi_objective = len(objective.objectives) > 1
        make_sampler(options, objective.space, 0, multi_objective)  # raises before anything is written
        _announce_runtime(objective, options, n_trials)
        settings: dict[str, Any] = {"length": objective.n_steps, "by_window": objective.by_window, "retries": options.retries,
                                    "n_trials": n_trials, "study_name": name}  # fmt: skip
        study = None
        try:
            with silence_optuna():
                opened_storage = open_storage(
                    location, lambda study, trial: trial_recovery.requeue(study, trial, options.retries)
                )
                study = create_or_load_study(
                    opened_storage,
                    name,
                    identity=make_identity(panel, objective, options.holdout),
                    configurations=configurations,
                    objective=objective,
                    location=location,
                )
                trial_recovery.requeue_lost(study, options.retries)
            study.pruner = make_pruner(options, objective.n_steps, multi_objective)
            tuning_result = TuningResult(
                study=study,
                space=objective.space,
                objectives=objective.objectives,
                holdout=None,
                settings=settings,
            )
            runner = TrialRunner(study, objective, options=options, n_trials=n_trials, deadline=deadline)
            _run_trials(runner, tuning_result, location)
            with silence_optuna():
                return (_move_to_memory(tuning_result) if location is not storage else tuning_result).freeze_trials()
        except (DeepForecastError, KeyboardInterrupt):
            raise
        except Exception as error:  # errors of trials are caught: this is one of the storage or the sampler
            raise storage_error(location, error, _describe_best(settings)) from error
        finally:
            database = database_of(study) if study is not None else None
            if database is not None:
                database.engine.dispose()  # closes connections; the study opens new ones on demand


def _run_trials(runner: TrialRunner, tuning_result: TuningResult, location: Any) -> None:
    """Run all trials with a progress bar and warn if the search ended early."""
    options = runner.options
    interrupted = False
    try:
        with _progress_bar(runner, tuning_result) as tick:
            runner.on_trial_end = tick
            if options.n_jobs == 1:
                runner.run()
            else:
                job = WorkerJob(
                    storage=shareable_location(location),
                    name=runner.study.study_name,
                    objective=runner.objective,
                    options=options,
                    n_trials=runner.n_trials,
                    deadline=runner.deadline,
                )
                runner.cause = run_workers(job, runner.study, options.n_jobs, tick)
    except KeyboardInterrupt:
        interrupted = tuning_result.settings["interrupted"] = True  # type: ignore[index]
        if not _has_complete_trial(runner.study):
            raise
    _warn_at_end(runner, interrupted)


def _warn_at_end(runner: TrialRunner, interrupted: bool) -> None:
    """Warn if the search ended early or trials failed; raise `TrainingError` if no trial is complete."""
    with silence_optuna():
        trials = trial_recovery.budget_trials(runner.study, runner.options.retries)
    completed_trials = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    n_finished = sum(trial.state.is_finished() for trial in trials)
    if not completed_trials:
        raise _all_failed_error(runner, trials) from runner.cause
    if interrupted:
        warn(f"The search was interrupted after {n_finished} of {runner.n_trials} trials; the result is the best of these. Pass "
            "`storage` to resume it with the same call.", TrainingWarning)  # fmt: skip
    elif n_finished < runner.n_trials and time.monotonic() >= runner.deadline - DEADLINE_TOLERANCE:
        warn(
            f"The search reached its `timeout` after {n_finished} of {runner.n_trials} trials; the result is the best of these. "
            "Set a larger `timeout` to run the others.",
            TrainingWarning,
        )
    _warn_of_trials([trial for trial in trials if trial.state == TrialState.FAIL], "failed", len(trials))
    refused = [trial for trial in trials if trial.user_attrs.get(trial_recovery.OUTCOME, {}).get("refused")]
    _warn_of_trials(refused, "had invalid parameters", len(trials))


def _warn_of_trials(trials: Sequence[Any], description: str, n_trials: int) -> None:
    """Warn about failed or invalid trials, if any, with the reason of the first."""
    if trials:
        first_reason = trials[0].user_attrs.get(trial_recovery.OUTCOME, {}).get("reason", "its process died")
        warn(
            f"{len(trials)} of {n_trials} trials {description}. The first reason: "
            f"{format_value(first_reason, 300).rstrip('.')}. Use result.trials to see all reasons.",
            TrainingWarning,
        )


def _all_failed_error(runner: TrialRunner, trials: Sequence[Any]) -> TrainingError:
    """The error of a search without a complete trial, with the reason of the last failure."""
    reasons = [
        trial.user_attrs[trial_recovery.OUTCOME].get("reason", "")
        for trial in trials
        if trial_recovery.OUTCOME in trial.user_attrs
    ]
    if not reasons and time.monotonic() >= runner.deadline - DEADLINE_TOLERANCE:
        return TrainingError(
            "At least one trial must complete, but the `timeout` was reached before the first one did.",
            hint="Set a larger `timeout`.",
        )
    if not trials:
        return TrainingError(
            "At least one trial must complete, but no trial was started.", hint="Set a larger `n_trials` or `timeout`."
        )
    last_reason = format_value(reasons[-1], 500).rstrip(".") if reasons else "the processes of all trials died"
    return TrainingError(
        f"At least one trial must complete, but all {len(trials)} trials failed. Last error: {last_reason}. The first trial used "
        "the model as passed, so compare() and fit() would fail in the same way: fix that error first."
    )


def _has_complete_trial(study: optuna.Study) -> bool:
    with silence_optuna():
        return bool(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def _describe_best(settings: Mapping[str, Any]) -> str:
    """The best score so far, without access to the storage."""
    best = settings.get("best")
    return f"Best so far: {best}." if best else "No trial was completed."


@contextmanager
def _study_location(storage: Any, options: TuningOptions) -> Iterator[Any]:
    """The storage during the search: several processes need a file, which is temporary if `storage`
    is None."""
    if storage is not None or options.n_jobs == 1:
        yield storage
        return
    with tempfile.TemporaryDirectory(prefix="deepforecast-study-") as folder:
        yield os.path.join(folder, "study.log")


def _move_to_memory(tuning_result: TuningResult) -> TuningResult:
    """Copy the study from its temporary file to memory."""
    memory = open_storage(None)
    name = tuning_result.study.study_name
    optuna.copy_study(from_study_name=name, from_storage=tuning_result.study._storage, to_storage=memory)
    return replace(tuning_result, study=optuna.load_study(study_name=name, storage=memory))


@contextmanager
def _progress_bar(runner: TrialRunner, tuning_result: TuningResult) -> Iterator[Callable[[], None]]:
    """A progress bar over the remaining trials, with the best score."""
    with silence_optuna():
        n_before = sum(
            trial.state.is_finished() for trial in trial_recovery.budget_trials(runner.study, runner.options.retries)
        )
    with progress_bar(max(runner.n_trials - n_before, 0), "trials", runner.options.progress, alone=True) as count:
        last_count = [n_before]
        tqdm_bar = getattr(count, "__self__", None)  # of tqdm, if there is a bar: shows the best score

        def tick() -> None:
            """Count the trials that have finished since the last call, and show the best score."""
            trials = trial_recovery.budget_trials(runner.study, runner.options.retries)
            complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
            if complete:
                best_trial = min(complete, key=lambda trial: float(trial.values[0]))
                score = f"{best_trial.values[0]:.6g} in trial {best_trial.number}, {format_value(best_trial.params, 300)}"
                tuning_result.settings["best"] = score  # type: ignore[index]
                if tqdm_bar is not None:
                    tqdm_bar.set_postfix_str(f"best {best_trial.values[0]:.4g}", refresh=False)
            n_finished = sum(trial.state.is_finished() for trial in trials)
            count(n_finished - last_count[0])
            last_count[0] = n_finished

        tick()
        yield tick


def _announce_runtime(objective: Objective, options: TuningOptions, n_trials: int) -> None:
    """Write an estimate of a long search to stderr, in terminals and notebooks or if `progress` is
    True."""
    is_shown = options.progress if options.progress is not None else shows_live_output(sys.stderr)
    if not is_shown or sys.stderr is None or options.n_jobs > 1:  # a crash of the model must not end this process
        return
    space = objective.space
    refit_intervals = [refit_every(objective.refit, model.capabilities.by_series) for model in space.models]
    estimate = estimate_runtime(space.models, objective.panels[0], objective.plan, refit_intervals, n_jobs=1)
    if estimate is None:
        return
    seconds = estimate.likely / len(space.models) * n_trials * objective.n_seeds
    if seconds >= MIN_ANNOUNCED_SECONDS:
        per_trial = f"{estimate.likely / len(space.models):.1f} s"
        sys.stderr.write(
            f"tune: {n_trials} trials of about {per_trial} each (for the model as passed): {_format_seconds(seconds)}\n"
        )


def _format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _refuse_in_memory_storage(storage: Any, options: TuningOptions) -> None:
    """Refuse a storage in memory for several processes."""
    if options.n_jobs > 1 and isinstance(storage, optuna.storages.InMemoryStorage):
        raise ParameterError(
            f"n_jobs={options.n_jobs} cannot be used with an InMemoryStorage, which other processes cannot read.",
            hint="Leave out `storage`, or pass a path.",
            parameter="n_jobs",
        )


def _refuse_pickles(storage: Any, options: TuningOptions) -> None:
    """Refuse CMA-ES with a storage: Optuna stores its state as a pickle, which could execute code from a
    shared storage."""
    is_cma = options.sampler == "cma" or type(options.sampler).__name__ == "CmaEsSampler"
    if is_cma and storage is not None:
        raise ParameterError(
            "sampler='cma' cannot be used with `storage`, because Optuna stores the state of the sampler as a pickle, which "
            "could execute code from a shared storage.",
            hint="Leave out `storage`, or use sampler='tpe' or 'gp'.",
            parameter="sampler",
        )


def _warn_of_ignored_pruner(objective: Objective, options: TuningOptions) -> None:
    if len(objective.objectives) > 1 and options.pruner is not None and options.pruner != "median":
        warn("`pruner` has no effect, because trials with several objectives cannot be pruned. Set pruner=None.")
