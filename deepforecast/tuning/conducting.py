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
from deepforecast.evaluation.estimate import WORTH_SAYING, seconds_to_run
from deepforecast.tuning import survival
from deepforecast.tuning.database import database_of
from deepforecast.tuning.identity import begun, identity_of
from deepforecast.tuning.objective import Objective
from deepforecast.tuning.result import TuningResult
from deepforecast.tuning.running import Runner
from deepforecast.tuning.sampling import pruner_for, sampler_for
from deepforecast.tuning.space import Configuration
from deepforecast.tuning.storage import lost, opened, place_of, quiet
from deepforecast.tuning.study import TuningOptions
from deepforecast.tuning.workers import Job, side_by_side


def conducted(
    objective: Objective, panel: Panel, starts: Sequence[Configuration], options: TuningOptions, total: int, until: float,
    storage: Any, name: str,
) -> TuningResult:  # fmt: skip
    """Search until the study has so many trials or time is over."""
    _say_what_is_ignored(objective, options)
    _refuse_memory(storage, options)
    _refuse_pickles(storage, options)
    with _kept(storage, options) as place:
        several = len(objective.objectives) > 1
        sampler_for(options, objective.space, 0, several)  # refused before anything is written
        _announce(objective, options, total)
        settings: dict[str, Any] = {"length": objective.length, "by_window": objective.by_window, "retries": options.retries,
                                    "n_trials": total, "study_name": name}  # fmt: skip
        study = None
        try:
            with quiet():
                held = opened(place, lambda study, trial: survival.tried_again(study, trial, options.retries))
                study = begun(held, name, identity_of(panel, objective, options.holdout), starts, objective, place)
                survival.queue_lost(study, options.retries)
            study.pruner = pruner_for(options, objective.length, several)
            result = TuningResult(study, objective.space, objective.objectives, None, settings)
            _run(Runner(study, objective, options, total, until), result, place)
            with quiet():
                return (_detached(result) if place is not storage else result).as_it_is()
        except (DeepForecastError, KeyboardInterrupt):
            raise
        except Exception as error:  # trials catch what they raise: this is the storage, or the sampler
            raise lost(place, error, _best_so_far(settings)) from error
        finally:
            database = database_of(study) if study is not None else None
            if database is not None:
                database.engine.dispose()  # its connections; the study opens others when it is asked again


def _run(runner: Runner, result: TuningResult, place: Any) -> None:
    """All trials, with a bar; the end said, where it is not the usual one."""
    options, interrupted = runner.options, False
    try:
        with _bar(runner, result) as tick:
            runner.after = tick
            if options.n_jobs == 1:
                runner.run()
            else:
                job = Job(place_of(place), runner.study.study_name, runner.objective, options, runner.n_trials, runner.until)
                runner.cause = side_by_side(job, runner.study, options.n_jobs, tick)
    except KeyboardInterrupt:
        interrupted = result.settings["interrupted"] = True  # type: ignore[index]
        if not _done(runner.study):
            raise
    _say_the_end(runner, interrupted)


def _say_the_end(runner: Runner, interrupted: bool) -> None:
    with quiet():
        every = survival.counted(runner.study, runner.options.retries)
    done = [one for one in every if one.state == TrialState.COMPLETE]
    ended = sum(one.state.is_finished() for one in every)
    if not done:
        _raise_if_none(runner, every)
    if interrupted:
        warn(f"The search was interrupted after {ended} of {runner.n_trials} trials; the result is the best of these. With "
            "storage= the same call goes on from there.", TrainingWarning)  # fmt: skip
    elif ended < runner.n_trials and time.monotonic() >= runner.until - 1:
        warn(f"The search ended after {ended} of {runner.n_trials} trials, as its timeout= says.", TrainingWarning)
    _say_which([one for one in every if one.state == TrialState.FAIL], "failed", len(every))
    refused = [one for one in every if one.user_attrs.get(survival.TOLD, {}).get("refused")]
    _say_which(refused, "were refused", len(every))


def _say_which(some: Sequence[Any], what: str, total: int) -> None:
    if some:
        first = some[0].user_attrs.get(survival.TOLD, {}).get("reason", "its process died")
        warn(f"{len(some)} of {total} trials {what}, the first: {format_value(first, 300).rstrip('.')}. result.trials has all reasons.",
            TrainingWarning)  # fmt: skip


def _raise_if_none(runner: Runner, every: Sequence[Any]) -> None:
    """No trial ended well: the last reason, and where there is one its cause."""
    reasons = [one.user_attrs[survival.TOLD].get("reason", "") for one in every if survival.TOLD in one.user_attrs]
    if not reasons and time.monotonic() >= runner.until - 1:
        raise TrainingError("A search needs time for one trial at least; timeout= was over before the first had ended.")
    last = format_value(reasons[-1], 500) if reasons else "no trial was begun, or the process of each died"
    raise TrainingError(
        f"A search needs a trial that ends well; none of {len(every)} did. The last: {last.rstrip('.')}. The first was the "
        "model as it is: what it says holds for compare() and fit() too."
    ) from runner.cause


def _done(study: optuna.Study) -> bool:
    with quiet():
        return bool(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def _best_so_far(settings: Mapping[str, Any]) -> str:
    """As far as it is known without the storage."""
    known = settings.get("best")
    return f"Best so far: {known}." if known else "No trial had ended."


@contextmanager
def _kept(storage: Any, options: TuningOptions) -> Iterator[Any]:
    """Where the study is kept while it runs: several processes need a file, which is removed if nobody asked for it."""
    if storage is not None or options.n_jobs == 1:
        yield storage
        return
    with tempfile.TemporaryDirectory(prefix="deepforecast-study-") as folder:
        yield os.path.join(folder, "study.log")


def _detached(result: TuningResult) -> TuningResult:
    """The study in memory: its file goes."""
    memory = opened(None)
    name = result.study.study_name
    optuna.copy_study(from_study_name=name, from_storage=result.study._storage, to_storage=memory)
    return replace(result, study=optuna.load_study(study_name=name, storage=memory))


@contextmanager
def _bar(runner: Runner, result: TuningResult) -> Iterator[Callable[[], None]]:
    """A bar over the trials of the whole study, with the best so far."""
    with quiet():
        before = sum(one.state.is_finished() for one in survival.counted(runner.study, runner.options.retries))
    with progress_bar(max(runner.n_trials - before, 0), "trials", runner.options.progress, alone=True) as count:
        seen = [before]
        bar = getattr(count, "__self__", None)  # tqdm's, where there is one: it can tell the best, too

        def tick() -> None:
            every = survival.counted(runner.study, runner.options.retries)
            done = [one for one in every if one.state == TrialState.COMPLETE]
            if done:
                best = min(done, key=lambda one: float(one.values[0]))
                result.settings["best"] = f"{best.values[0]:.6g} in trial {best.number}, {format_value(best.params, 300)}"  # type: ignore[index]
                if bar is not None:
                    bar.set_postfix_str(f"best {best.values[0]:.4g}", refresh=False)
            finished = sum(one.state.is_finished() for one in every)
            count(finished - seen[0])
            seen[0] = finished

        tick()
        yield tick


def _announce(objective: Objective, options: TuningOptions, total: int) -> None:
    """A line on stderr before a long search: in a terminal or a notebook, or where progress is asked for."""
    wanted = options.progress if options.progress is not None else shows_live_output(sys.stderr)
    if not wanted or sys.stderr is None or options.n_jobs > 1:  # a model that kills its process would kill this one
        return
    space = objective.space
    every = [refit_every(objective.refit, model.capabilities.by_series) for model in space.models]
    found = seconds_to_run(space.models, objective.panels[0], objective.plan, every, workers=1)
    if found is None:
        return
    seconds = found.likely / len(space.models) * total * objective.n_seeds
    if seconds >= WORTH_SAYING:
        each = f"{found.likely / len(space.models):.1f} s"
        sys.stderr.write(f"tune: {total} trials of about {each} each as the model is: {_long(seconds)} if all are like it\n")


def _long(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _refuse_memory(storage: Any, options: TuningOptions) -> None:
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


def _say_what_is_ignored(objective: Objective, options: TuningOptions) -> None:
    if len(objective.objectives) > 1 and options.pruner is not None and options.pruner != "median":
        warn("Trials with several objectives are not ended early: there is no order between them. pruner= has no effect.")
