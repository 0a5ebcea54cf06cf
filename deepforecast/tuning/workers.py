"""Worker processes that run the trials of a study; one that dies is replaced."""

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
from deepforecast.tuning import trial_recovery
from deepforecast.tuning.objective import Objective
from deepforecast.tuning.storage import describe_error, open_storage, silence_optuna
from deepforecast.tuning.study import TuningOptions

POLL_SECONDS = 0.3  # seconds between two checks of the workers
SHUTDOWN_SECONDS = 2.0  # seconds for workers to end by themselves
MAX_START_SECONDS = 300.0  # seconds after which a worker without a trial counts as stuck
MAX_DEATHS = 5  # consecutive deaths of workers without a new trial, which trials do not explain


@dataclass(frozen=True)
class WorkerJob:
    """Inputs of a worker. `deadline` is in the monotonic clock of this process, which others do not
    share."""

    storage: Any
    name: str
    objective: Objective
    options: TuningOptions
    n_trials: int
    deadline: float


def run_worker(job: WorkerJob, parent_pid: int, seconds_left: float, worker_name: str) -> BaseException | None:
    """Run trials in a worker until there are enough; return the last cause of a failure."""
    from deepforecast.tuning.samplers import make_pruner
    from deepforecast.tuning.trial_runner import TrialRunner

    signal.signal(signal.SIGINT, signal.default_int_handler)
    objective = job.objective
    with in_worker(), silence_optuna():
        try:
            opened_storage = open_storage(
                job.storage, lambda study, trial: trial_recovery.requeue(study, trial, job.options.retries)
            )
            study = optuna.load_study(storage=opened_storage, study_name=job.name)
            if not isinstance(job.options.sampler, str):
                job.options.sampler.reseed_rng()  # otherwise all workers would draw the same values
            study.pruner = make_pruner(job.options, objective.n_steps, len(objective.objectives) > 1)
            runner = TrialRunner(
                study,
                objective,
                options=job.options,
                n_trials=job.n_trials,
                deadline=time.monotonic() + seconds_left,
                parent_pid=parent_pid,
                worker_name=worker_name,
            )
            runner.run()
        except KeyboardInterrupt:
            return None
        except optuna.exceptions.StorageInternalError as error:  # its cause is lost by pickling
            raise optuna.exceptions.StorageInternalError(describe_error(error)) from None
        if os.getppid() != parent_pid:
            os._exit(1)  # the parent is dead, and the pool would wait for the next task forever
        return None if runner.cause is None else RuntimeError(f"{type(runner.cause).__name__}: {runner.cause}")


def run_workers(job: WorkerJob, study: optuna.Study, n_jobs: int, tick: Callable[[], object]) -> BaseException | None:
    """Run workers until the study has its trials; return the cause of a failed trial, if any."""
    worker_pool = WorkerPool(job, study)
    try:
        for _ in range(min(n_jobs, worker_pool.n_remaining)):
            worker_pool.add_worker()
        while worker_pool.workers:
            finished, _ = wait(worker_pool.workers, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            with silence_optuna():
                tick()
                worker_pool.stop_idle_workers()
            for task in finished:
                worker_pool.on_worker_exit(task)
        return worker_pool.cause
    except BaseException:
        # Ctrl-C in a terminal reaches the workers too, and they return their trials to the study.
        wait(worker_pool.workers, timeout=SHUTDOWN_SECONDS)
        for worker in worker_pool.workers.values():
            worker.pool.shutdown(wait=False, kill_workers=True)
        with silence_optuna():
            time.sleep(POLL_SECONDS)
            trial_recovery.fail_dead_trials(study, job.options.retries, job.options.heartbeat_timeout)
        raise


@dataclass
class Worker:
    """A worker process: its name in the study, its start time, and whether it has started a
    trial."""

    pool: Any
    name: str
    started: float
    has_trial: bool = False


@dataclass(eq=False)
class WorkerPool:
    """The workers of a search.

    `cause`: the error of a failed trial, if any. `n_deaths`: consecutive deaths of workers without a new
    trial. `last_count`: number of trials at the last death.
    """

    job: WorkerJob
    study: optuna.Study
    workers: dict[Future[Any], Worker] = field(default_factory=dict)
    cause: BaseException | None = None
    n_deaths: int = 0
    last_count: int = -1

    @property
    def n_remaining(self) -> int:
        """Number of trials that have not finished."""
        return self.job.n_trials - sum(trial.state.is_finished() for trial in self._budget_trials())

    def add_worker(self) -> None:
        """Start a worker."""
        with threads.keep_unset("KMP_INIT_AT_FORK"):  # set by the import of joblib
            from joblib.externals.loky.process_executor import ProcessPoolExecutor

        pool = ProcessPoolExecutor(max_workers=1)
        name = uuid.uuid4().hex
        task = pool.submit(run_worker, self.job, os.getpid(), self.job.deadline - time.monotonic(), name)
        self.workers[task] = Worker(pool, name, time.monotonic())

    def on_worker_exit(self, task: Future[Any]) -> None:
        """Handle the end of a worker; replace it if it died."""
        from joblib.externals.loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        pool = self.workers.pop(task).pool
        pool.shutdown(wait=False, kill_workers=True)
        error = task.exception()
        if error is None:
            self.cause = task.result() or self.cause
            return
        if type(error).__name__ == "PicklingError":
            raise ParameterError(
                f"Models, data and metrics must be picklable with n_jobs={self.job.options.n_jobs}: "
                f"{format_value(_last_line(error.__cause__ or error), 300)}.",
                hint="Use picklable objects, or set n_jobs=1.",
                parameter="n_jobs",
            ) from error
        if not isinstance(error, BrokenProcessPool | ShutdownExecutorError):  # the latter for workers that were stopped
            raise error
        with silence_optuna():
            trial_recovery.fail_dead_trials(self.study, self.job.options.retries, self.job.options.heartbeat_timeout)
        n_begun = len(self._budget_trials())
        self.n_deaths = self.n_deaths + 1 if n_begun == self.last_count else 0
        self.last_count = n_begun
        if self.n_deaths > MAX_DEATHS:
            raise TrainingError(
                f"Worker processes cannot run trials with n_jobs={self.job.options.n_jobs}: {self.n_deaths + 1} in a row died "
                f"before a trial. Last error: {format_value(_last_line(error), 300)} Set n_jobs=1 to see the cause."
            ) from error
        if self.n_remaining > 0 and time.monotonic() < self.job.deadline:
            self.add_worker()

    def stop_idle_workers(self) -> None:
        """Kill workers that are stuck before their first trial; they count as dead."""
        late_workers = [
            worker
            for worker in self.workers.values()
            if not worker.has_trial and time.monotonic() - worker.started > MAX_START_SECONDS
        ]
        active_names = (
            {trial.user_attrs.get(trial_recovery.WORKER, {}).get("hired") for trial in self._budget_trials()}
            if late_workers
            else set()
        )
        for worker in late_workers:
            worker.has_trial = worker.name in active_names
            if not worker.has_trial:
                worker.pool.shutdown(wait=False, kill_workers=True)

    def _budget_trials(self) -> list[FrozenTrial]:
        with silence_optuna():
            return trial_recovery.budget_trials(self.study, self.job.options.retries)


def _last_line(error: BaseException) -> str:
    """The last line of an error of the process pool, without hints on faulthandler."""
    lines = [line for line in str(error).replace('"""', "").splitlines() if line.strip() and "faulthandler" not in line]
    return lines[-1] if lines else type(error).__name__
