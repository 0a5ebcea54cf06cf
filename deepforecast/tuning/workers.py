"""Trials in several processes of this machine: each works on the study by itself, one that dies is replaced."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from deepforecast.core import threads
from deepforecast.core.parallel import in_worker
from deepforecast.errors import ParameterError, TrainingError, format_value
from deepforecast.tuning import survival
from deepforecast.tuning.objective import Objective
from deepforecast.tuning.storage import opened, quiet, said
from deepforecast.tuning.study import TuningOptions

LOOK = 0.3  # seconds between two looks at how far the workers are
MOMENT = 2.0  # seconds that workers have to end by themselves
STARTING = 300.0  # seconds after which a worker without a trial counts as one that will never have one
MOST_DEATHS = 5  # of workers in a row without a trial between them: then it is not the trials


@dataclass(frozen=True)
class Job:
    """What a worker needs. `until` counts from the start of this process, as clocks of processes differ."""

    storage: Any
    name: str
    objective: Objective
    options: TuningOptions
    n_trials: int
    until: float


def work(job: Job, parent: int, left: float, hired: str) -> BaseException | None:
    """What one worker does: trials until there are enough; the last cause of a failure."""
    from deepforecast.tuning.running import Runner
    from deepforecast.tuning.sampling import pruner_for

    signal.signal(signal.SIGINT, signal.default_int_handler)
    objective = job.objective
    with in_worker(), quiet():
        try:
            held = opened(job.storage, lambda study, trial: survival.tried_again(study, trial, job.options.retries))
            study = optuna.load_study(storage=held, study_name=job.name)
            if not isinstance(job.options.sampler, str):
                job.options.sampler.reseed_rng()  # or all workers would draw the same
            study.pruner = pruner_for(job.options, objective.length, len(objective.objectives) > 1)
            runner = Runner(study, objective, job.options, job.n_trials, time.monotonic() + left, parent, hired=hired)
            runner.run()
        except KeyboardInterrupt:
            return None
        except optuna.exceptions.StorageInternalError as error:  # what it came from does not travel with it
            raise optuna.exceptions.StorageInternalError(said(error)) from None
        if os.getppid() != parent:
            os._exit(1)  # nobody is left to be answered, and the pool would wait for its next task for ever
        return None if runner.cause is None else RuntimeError(f"{type(runner.cause).__name__}: {runner.cause}")


def side_by_side(job: Job, study: optuna.Study, n_jobs: int, tick: Callable[[], object]) -> BaseException | None:
    """So many workers until the study has its trials; the cause of a failed trial, if there was one."""
    crew = Crew(job, study)
    try:
        for _ in range(min(n_jobs, crew.left)):
            crew.hire()
        while crew.hired:
            done, _ = wait(crew.hired, timeout=LOOK, return_when=FIRST_COMPLETED)
            with quiet():
                tick()
                crew.dismiss_who_never_began()
            for one in done:
                crew.leaves(one)
        return crew.cause
    except BaseException:
        wait(crew.hired, timeout=MOMENT)  # a Ctrl-C in a terminal reaches them too, and they give their trials back
        for worker in crew.hired.values():
            worker.pool.shutdown(wait=False, kill_workers=True)
        with quiet():
            time.sleep(LOOK)
            survival.bury(study, job.options.retries, job.options.heartbeat_timeout)
        raise


@dataclass
class Hired:
    """A process that works on a study: its name there, when it was hired, and whether a trial of its own is known."""

    pool: Any
    name: str
    since: float
    began: bool = False


@dataclass(eq=False)
class Crew:
    """The workers of a call."""

    job: Job
    study: optuna.Study
    hired: dict[Future[Any], Hired] = field(default_factory=dict)
    cause: BaseException | None = None
    deaths: int = 0
    ended: int = -1

    @property
    def left(self) -> int:
        """Trials that have not ended."""
        return self.job.n_trials - sum(one.state.is_finished() for one in self._counting())

    def hire(self) -> None:
        """One more."""
        with threads.keep_unset("KMP_INIT_AT_FORK"):  # joblib's import sets it
            from joblib.externals.loky.process_executor import ProcessPoolExecutor

        pool, name = ProcessPoolExecutor(max_workers=1), uuid.uuid4().hex
        task = pool.submit(work, self.job, os.getpid(), self.job.until - time.monotonic(), name)
        self.hired[task] = Hired(pool, name, time.monotonic())

    def leaves(self, task: Future[Any]) -> None:
        """One has ended: well, or it is replaced."""
        from joblib.externals.loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        pool = self.hired.pop(task).pool
        pool.shutdown(wait=False, kill_workers=True)
        error = task.exception()
        if error is None:
            self.cause = task.result() or self.cause
            return
        if type(error).__name__ == "PicklingError":
            raise ParameterError(
                f"n_jobs={self.job.options.n_jobs} sends models, data and metrics to other processes; they cannot be sent: "
                f"{format_value(_last_line(error.__cause__ or error), 300)}. Hold nothing in them that cannot be, or say n_jobs=1."
            ) from error
        if not isinstance(error, BrokenProcessPool | ShutdownExecutorError):  # the second of those that are dismissed
            raise error
        with quiet():
            survival.bury(self.study, self.job.options.retries, self.job.options.heartbeat_timeout)
        begun = len(self._counting())
        self.deaths = self.deaths + 1 if begun == self.ended else 0
        self.ended = begun
        if self.deaths > MOST_DEATHS:
            raise TrainingError(
                f"n_jobs={self.job.options.n_jobs} runs trials in processes of their own; {self.deaths + 1} of them ended one "
                f"after the other before a trial: {format_value(_last_line(error), 300)} Say n_jobs=1 to see why."
            ) from error
        if self.left > 0 and time.monotonic() < self.job.until:
            self.hire()

    def dismiss_who_never_began(self) -> None:
        """Kill those that hang before their first trial; they count as dead."""
        late = [one for one in self.hired.values() if not one.began and time.monotonic() - one.since > STARTING]
        known = {trial.user_attrs.get(survival.WORKER, {}).get("hired") for trial in self._counting()} if late else set()
        for one in late:
            one.began = one.name in known
            if not one.began:
                one.pool.shutdown(wait=False, kill_workers=True)

    def _counting(self) -> list[FrozenTrial]:
        with quiet():
            return survival.counted(self.study, self.job.options.retries)


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).replace('"""', "").splitlines() if line.strip() and "faulthandler" not in line]
    return lines[-1] if lines else type(error).__name__
