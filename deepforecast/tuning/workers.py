"""Trials in several processes of this machine: each works on the study by itself, one that dies is replaced."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

import optuna

from deepforecast.core import threads
from deepforecast.core.parallel import beside_others
from deepforecast.tuning import survival
from deepforecast.tuning.objective import Objective
from deepforecast.tuning.storage import opened, quiet
from deepforecast.tuning.study import Study

LOOK = 0.3  # seconds between two looks at how far the workers are
MOMENT = 2.0  # seconds that workers have to end by themselves
MOST_DEATHS = 5  # of workers in a row without a trial between them: then it is not the trials


@dataclass(frozen=True)
class Job:
    """What a worker needs. `until` counts from the start of this process, as clocks of processes differ."""

    storage: Any
    name: str
    objective: Objective
    options: Study
    n_trials: int
    until: float


def work(job: Job, parent: int, left: float) -> BaseException | None:
    """What one worker does: trials until there are enough; the last cause of a failure."""
    from deepforecast.tuning.running import Runner
    from deepforecast.tuning.sampling import pruner_for

    signal.signal(signal.SIGINT, signal.default_int_handler)
    objective = job.objective
    with beside_others(), quiet():
        held = opened(job.storage, lambda study, trial: survival.tried_again(study, trial, job.options.retries))
        study = optuna.load_study(storage=held, study_name=job.name)
        study.pruner = pruner_for(job.options, objective.length, len(objective.objectives) > 1)
        runner = Runner(study, objective, job.options, job.n_trials, time.monotonic() + left, parent)
        try:
            runner.run()
        except KeyboardInterrupt:
            return None
        if os.getppid() != parent:
            os._exit(1)  # nobody is left to be answered, and the pool would wait for its next task for ever
        return None if runner.cause is None else RuntimeError(f"{type(runner.cause).__name__}: {runner.cause}")


def side_by_side(job: Job, study: optuna.Study, n_jobs: int, tick: Callable[[], object]) -> BaseException | None:
    """So many workers until the study has its trials; the cause of a failed trial, if there was one."""
    with threads.unset("KMP_INIT_AT_FORK"):  # joblib's import sets it
        from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

    crew: dict[Future[Any], Any] = {}
    cause: BaseException | None = None
    deaths = 0

    def hire() -> None:
        pool = ProcessPoolExecutor(max_workers=1)
        crew[pool.submit(work, job, os.getpid(), job.until - time.monotonic())] = pool

    try:
        for _ in range(n_jobs):
            hire()
        ended = -1
        while crew:
            done, _ = wait(crew, timeout=LOOK, return_when=FIRST_COMPLETED)
            with quiet():
                tick()
            for one in done:
                pool = crew.pop(one)
                pool.shutdown(wait=False, kill_workers=True)
                error = one.exception()
                if error is None:
                    cause = one.result() or cause
                    continue
                if not isinstance(error, BrokenProcessPool):
                    raise error
                with quiet():
                    survival.bury(study, job.options.retries, job.options.grace)
                    every = survival.counting(study.get_trials(deepcopy=False), job.options.retries)
                deaths = deaths + 1 if len(every) == ended else 0
                ended = len(every)
                if deaths > MOST_DEATHS:
                    raise error
                if sum(trial.state.is_finished() for trial in every) < job.n_trials and time.monotonic() < job.until:
                    hire()
        return cause
    except BaseException:
        wait(crew, timeout=MOMENT)  # a Ctrl-C in a terminal reaches them too, and they give their trials back
        for pool in crew.values():
            pool.shutdown(wait=False, kill_workers=True)
        with quiet():
            time.sleep(LOOK)
            survival.bury(study, job.options.retries, job.options.grace)
        raise
