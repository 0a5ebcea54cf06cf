"""Run the trials of a study sequentially in one process."""

from __future__ import annotations

import gc
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from deepforecast.core.monitor import STEPS_PER_FOLD, hide_progress
from deepforecast.errors import TrainingError, suppress_warnings
from deepforecast.tuning import trial_recovery
from deepforecast.tuning.database import database_of
from deepforecast.tuning.objective import Objective, PrunedError, TrialScore, format_error, is_refused
from deepforecast.tuning.samplers import make_sampler
from deepforecast.tuning.space import Configuration, parse_params
from deepforecast.tuning.storage import silence_optuna
from deepforecast.tuning.study import TuningOptions

# trial_timeout="auto": multiple of the seconds of the first trial, and smallest value in seconds
TIMEOUT_FACTOR = 20.0
MIN_TIMEOUT = 60.0
MIN_SECONDS_LEFT = 0.05  # seconds before the deadline from which no trial is started


class _FailedTrialError(Exception):
    """A trial failed and the reason is recorded; any other exception is one of the storage."""


@dataclass(eq=False)
class TrialRunner:
    """Runs trials until the budget is used up.

    `deadline`: end of the search in `time.monotonic`. `parent_pid`: process with whose end this one
    stops. `worker_name`: the name given to this worker by the parent.
    """

    study: optuna.Study
    objective: Objective
    options: TuningOptions
    n_trials: int
    deadline: float = math.inf
    parent_pid: int | None = None
    on_trial_end: Callable[[], object] = lambda: None
    worker_name: str = ""
    cause: BaseException | None = field(default=None, repr=False)
    _is_full: bool = False
    _mark: str = ""

    def run(self) -> None:
        """Run trials until the budget or the time is used up; Ctrl-C returns the current trial and
        is re-raised."""
        with silence_optuna(), hide_progress(), suppress_warnings():
            while not self._is_over():
                try:
                    self.study.optimize(self._run_trial, n_trials=1, catch=(_FailedTrialError,))
                except KeyboardInterrupt:
                    trial_recovery.requeue_lost(self.study, self.options.retries, self._mark)
                    raise
                except ValueError as error:
                    if "Cannot tell" not in str(error):  # the trial was taken for dead and requeued
                        raise
                finally:
                    trial_recovery.ACTIVE_MARKS.discard(self._mark)
                trial_recovery.requeue_lost(self.study, self.options.retries, self._mark)
                self.on_trial_end()

    def _is_over(self) -> bool:
        """Whether no trial may be started; otherwise the sampler of the next trial is set.

        Trials of dead processes are set to failed first, so that they are repeated.
        """
        if (
            self._is_full
            or time.monotonic() > self.deadline - MIN_SECONDS_LEFT
            or (self.parent_pid is not None and os.getppid() != self.parent_pid)
        ):
            return True
        trial_recovery.fail_dead_trials(self.study, self.options.retries, self.options.heartbeat_timeout)
        n_begun = len(trial_recovery.budget_trials(self.study, self.options.retries))
        if n_begun >= self.n_trials:
            return True
        self.study.sampler = make_sampler(self.options, self.objective.space, n_begun, len(self.objective.objectives) > 1)
        return self.options.sampler == "grid" and bool(self.study.sampler.is_exhausted(self.study))

    def _run_trial(self, trial: optuna.Trial) -> list[float] | float:
        """Run one trial; the outcome is recorded before its state is set."""
        timeout = self._trial_timeout()
        worker = trial_recovery.describe_worker(timeout, self.worker_name)
        self._mark = worker["mark"]
        trial_recovery.ACTIVE_MARKS.add(self._mark)
        trial.set_user_attr(trial_recovery.WORKER, worker)
        self._claim(trial)
        start_time = time.perf_counter()
        outcome: dict[str, Any] = {}
        try:
            score = self._score_trial(trial, outcome, timeout)
        except KeyboardInterrupt:
            trial.set_user_attr(trial_recovery.INTERRUPTED, True)
            raise
        except optuna.exceptions.StorageInternalError:
            raise
        except Exception as error:
            if time.monotonic() > self.deadline and isinstance(error, PrunedError):
                trial.set_user_attr(trial_recovery.INTERRUPTED, True)
                raise _FailedTrialError from error
            self.cause = error
            _free_memory(error)
            seconds = time.perf_counter() - start_time
            pruned = isinstance(error, PrunedError) or is_refused(error)
            outcome |= {"reason": format_error(error), "seconds": seconds, "state": "pruned" if pruned else "failed"}
            trial.set_user_attr(trial_recovery.OUTCOME, outcome | ({"refused": True} if is_refused(error) else {}))
            if pruned:
                raise optuna.TrialPruned(format_error(error)) from error
            raise _FailedTrialError from error
        trial.set_user_attr(trial_recovery.OUTCOME, outcome | {"seconds": score.seconds, "state": "complete"})
        return score.values if len(score.values) > 1 else score.values[0]

    def _claim(self, trial: optuna.Trial) -> None:
        """Withdraw a trial whose number is beyond the budget: set its attribute, stop this runner and
        raise `_FailedTrialError`."""
        trials = trial_recovery.budget_trials(self.study, self.options.retries)
        if sum(counted_trial.number < trial.number for counted_trial in trials) >= self.n_trials:
            trial.set_user_attr(trial_recovery.WITHDRAWN, True)
            self._is_full = True
            raise _FailedTrialError

    def _score_trial(self, trial: optuna.Trial, outcome: dict[str, Any], timeout: float | None) -> TrialScore:
        """Sample or read the configuration of a trial and score it; a repeated configuration gets the
        score of the earlier trial. `outcome` receives what is recorded about the trial."""
        given_configuration = trial.user_attrs.get(trial_recovery.GIVEN_CONFIGURATION)
        space = self.objective.space
        multi_objective = len(self.objective.objectives) > 1
        if given_configuration is not None:
            configuration = Configuration(int(given_configuration["model"]), parse_params(given_configuration["params"]))
            space.draw_given(trial, configuration)
        else:
            if self.options.sampler != "grid":
                self.study.sampler = make_sampler(self.options, space, trial.number, multi_objective)
            configuration = space.draw(trial)
        database = database_of(self.study)
        if database is not None:  # a trial whose process dies is repeated with the same parameters
            database.flush()
        outcome |= {"model": configuration.model, "key": space.configuration_key(configuration)}
        if (duplicate := self._find_duplicate(outcome["key"])) is not None:
            return _copy_score(duplicate, outcome)
        self.objective.warm_up(configuration)
        deadline = min(self.deadline, math.inf if timeout is None else time.monotonic() + timeout)
        listener = None if multi_objective or self.options.pruner is None else TrialReporter(trial, given_configuration is None)
        score = self.objective.run(configuration, listener, None if deadline == math.inf else deadline)
        if not all(map(math.isfinite, score.values)):
            raise TrainingError(
                f"The score of a trial must be finite, got {score.values} for {', '.join(self.objective.objectives)}: actual "
                "values are missing in all windows, or the scale is zero.",
                hint="Use other windows or another metric.",
            )
        return score

    def _find_duplicate(self, key: str) -> FrozenTrial | None:
        """A completed or pruned trial of the same configuration."""
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)):
            if trial.user_attrs.get(trial_recovery.OUTCOME, {}).get("key") == key:
                return trial
        return None

    def _trial_timeout(self) -> float | None:
        """Time limit of a trial in seconds; None: no limit, as for "auto" before the first complete
        trial."""
        timeout = self.options.trial_timeout
        if not isinstance(timeout, str):
            return timeout
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            if trial_recovery.OUTCOME in trial.user_attrs:
                return max(TIMEOUT_FACTOR * float(trial.user_attrs[trial_recovery.OUTCOME]["seconds"]), MIN_TIMEOUT)
        return None


@dataclass(eq=False)
class TrialReporter:
    """Reports scores to the study and returns whether to prune, which never applies to given
    configurations."""

    trial: optuna.Trial
    may_prune: bool

    def __call__(self, value: float, step: int) -> bool:
        """Report a score and return whether to prune the trial."""
        if not math.isfinite(value):
            return False
        self.trial.report(value, step)
        return self.may_prune and bool(self.trial.should_prune())


def _copy_score(duplicate: FrozenTrial, outcome: dict[str, Any]) -> TrialScore:
    """The score of an earlier trial of the same configuration, in 0 seconds; if that was pruned, so is
    this one (`PrunedError`)."""
    outcome["copy_of"] = duplicate.number
    if duplicate.state == TrialState.PRUNED:
        reason = duplicate.user_attrs[trial_recovery.OUTCOME].get("reason", "")
        raise PrunedError(f"The configuration is that of trial {duplicate.number}, which was pruned: {reason}")
    return TrialScore([float(value) for value in duplicate.values], 0.0)


def _free_memory(error: BaseException) -> None:
    """Free the memory of a trial that ran out of memory."""
    if not isinstance(error, MemoryError) and "out of memory" not in format_error(error).lower():
        return
    error.__traceback__ = None  # it references all locals of the trial
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def count_steps(trial: FrozenTrial, n_steps: int, by_window: bool) -> int:
    """Progress of a trial in hundredths of a window."""
    if trial.state == TrialState.COMPLETE:
        return n_steps
    if trial.last_step is None:
        return 0
    return min(STEPS_PER_FOLD * (trial.last_step + 1) if by_window else trial.last_step, n_steps)
