"""Trials one after the other, by one process, until the study's budget is used up: here, in a worker, or on another machine."""

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

from deepforecast.core.monitor import STEPS_PER_FOLD
from deepforecast.core.progress import hide_progress
from deepforecast.errors import TrainingError, suppress_warnings
from deepforecast.tuning import survival
from deepforecast.tuning.database import database_of
from deepforecast.tuning.objective import Found, Objective, Pruned, reason, refused
from deepforecast.tuning.sampling import sampler_for
from deepforecast.tuning.space import Configuration, read
from deepforecast.tuning.storage import quiet
from deepforecast.tuning.study import TuningOptions

TIMES, LEAST = 20.0, 60.0  # of the first trial, and seconds at least: how long a trial may take if nobody says
GONE = 0.05  # seconds before the end of the search from which no trial is begun


class _Ended(Exception):
    """A trial did not end well, and why is noted; whatever else comes out of one is the storage's."""


@dataclass(eq=False)
class Runner:
    """What one process does for a study. `until`: when the search ends, of `time.monotonic`; `parent`: whose end is its own,
    that hired it under a name."""

    study: optuna.Study
    objective: Objective
    options: TuningOptions
    n_trials: int
    until: float = math.inf
    parent: int | None = None
    after: Callable[[], object] = lambda: None
    hired: str = ""
    cause: BaseException | None = field(default=None, repr=False)
    _full: bool = False
    _at: str = ""

    def run(self) -> None:
        """Until the budget is used up or time is over; a Ctrl-C comes through, its trial given back."""
        with quiet(), hide_progress(), suppress_warnings():
            while not self._over():
                try:
                    self.study.optimize(self._trial, n_trials=1, catch=(_Ended,))
                except KeyboardInterrupt:
                    survival.queue_lost(self.study, self.options.retries, self._at)
                    raise
                except ValueError as error:
                    if "Cannot tell" not in str(error):  # the trial was taken for dead, and is another's now
                        raise
                finally:
                    survival.AT_WORK.discard(self._at)
                survival.queue_lost(self.study, self.options.retries, self._at)
                self.after()

    def _over(self) -> bool:
        if self._full or time.monotonic() > self.until - GONE or (self.parent is not None and os.getppid() != self.parent):
            return True
        survival.bury(self.study, self.options.retries, self.options.heartbeat_timeout)
        begun = len(survival.counted(self.study, self.options.retries))
        if begun >= self.n_trials:
            return True
        self.study.sampler = sampler_for(self.options, self.objective.space, begun, len(self.objective.objectives) > 1)
        return self.options.sampler == "grid" and bool(self.study.sampler.is_exhausted(self.study))

    def _trial(self, trial: optuna.Trial) -> list[float] | float:
        """One trial: claimed, drawn, run; whatever comes of it is noted before its state is set."""
        limit = self._limit()
        me = survival.worker(limit, self.hired)
        self._at = me["mark"]
        survival.AT_WORK.add(self._at)
        trial.set_user_attr(survival.WORKER, me)
        self._claim(trial)
        started, note = time.perf_counter(), dict[str, Any]()
        try:
            found = self._tried(trial, note, limit)
        except KeyboardInterrupt:
            trial.set_user_attr(survival.INTERRUPTED, True)
            raise
        except optuna.exceptions.StorageInternalError:
            raise
        except Exception as error:
            if time.monotonic() > self.until and isinstance(error, Pruned):
                trial.set_user_attr(survival.INTERRUPTED, True)
                raise _Ended from error
            self.cause = error
            _make_room(error)
            seconds = time.perf_counter() - started
            pruned = isinstance(error, Pruned) or refused(error)
            note |= {"reason": reason(error), "seconds": seconds, "state": "pruned" if pruned else "failed"}
            trial.set_user_attr(survival.TOLD, note | ({"refused": True} if refused(error) else {}))
            if pruned:
                raise optuna.TrialPruned(reason(error)) from error
            raise _Ended from error
        trial.set_user_attr(survival.TOLD, note | {"seconds": found.seconds, "state": "complete"})
        return found.values if len(found.values) > 1 else found.values[0]

    def _claim(self, trial: optuna.Trial) -> None:
        """Trials are numbered by their storage: those beyond the budget are given back."""
        every = survival.counted(self.study, self.options.retries)
        if sum(one.number < trial.number for one in every) >= self.n_trials:
            trial.set_user_attr(survival.WITHDRAWN, True)
            self._full = True
            raise _Ended

    def _tried(self, trial: optuna.Trial, note: dict[str, Any], limit: float | None) -> Found:
        given = trial.user_attrs.get(survival.GIVEN)
        space, several = self.objective.space, len(self.objective.objectives) > 1
        if given is not None:
            tried = Configuration(int(given["model"]), read(given["params"]))
            space.draw_given(trial, tried)
        else:
            if self.options.sampler != "grid":
                self.study.sampler = sampler_for(self.options, space, trial.number, several)
            tried = space.draw(trial)
        database = database_of(self.study)
        if database is not None:  # a trial whose process dies is tried again with the same parameters
            database.flush()
        note |= {"model": tried.model, "key": space.key(tried)}
        if (same := self._done_before(note["key"])) is not None:
            return _copied(same, note)
        self.objective.warm_up(tried)
        until = min(self.until, math.inf if limit is None else time.monotonic() + limit)
        listener = None if several or self.options.pruner is None else Listener(trial, given is None)
        found = self.objective.run(tried, listener, None if until == math.inf else until)
        if not all(map(math.isfinite, found.values)):
            raise TrainingError(
                f"A trial has a score; {', '.join(self.objective.objectives)} came out as {found.values}: actual values are "
                "missing in all windows, or there is nothing to scale by. Choose other windows or another metric."
            )
        return found

    def _done_before(self, key: str) -> FrozenTrial | None:
        """A trial of the same configuration that has ended by itself."""
        for one in self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)):
            if one.user_attrs.get(survival.TOLD, {}).get("key") == key:
                return one
        return None

    def _limit(self) -> float | None:
        """Seconds that a trial may take."""
        said = self.options.trial_timeout
        if not isinstance(said, str):
            return said
        for one in self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            if survival.TOLD in one.user_attrs:
                return max(TIMES * float(one.user_attrs[survival.TOLD]["seconds"]), LEAST)
        return None


@dataclass(eq=False)
class Listener:
    """Passes on to the study what a trial reports, and says whether it is to end: never where its configuration was given."""

    trial: optuna.Trial
    may_end: bool

    def __call__(self, value: float, step: int) -> bool:
        """Report; whether the pruner has enough of it."""
        if not math.isfinite(value):
            return False
        self.trial.report(value, step)
        return self.may_end and bool(self.trial.should_prune())


def _copied(same: FrozenTrial, note: dict[str, Any]) -> Found:
    """What came of a configuration before comes of it again."""
    note["copy_of"] = same.number
    if same.state == TrialState.PRUNED:
        raise Pruned(f"as trial {same.number}: {same.user_attrs[survival.TOLD].get('reason', '')}")
    return Found([float(value) for value in same.values], 0.0)


def _make_room(error: BaseException) -> None:
    """Give back what a trial held that ran out of memory."""
    if not isinstance(error, MemoryError) and "out of memory" not in reason(error).lower():
        return
    error.__traceback__ = None  # which holds all that the trial saw
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def steps_of(trial: FrozenTrial, length: int, by_window: bool) -> int:
    """How far a trial came, in hundredths of a window: through all of them where it ended well."""
    if trial.state == TrialState.COMPLETE:
        return length
    if trial.last_step is None:
        return 0
    return min(STEPS_PER_FOLD * (trial.last_step + 1) if by_window else trial.last_step, length)
