"""How long a comparison will take, from trials on a few series: to be said before a long run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np

from deepforecast.core.backtest import rolling_folds
from deepforecast.core.forecast import output_columns
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import STEPS_PER_FOLD, Monitor
from deepforecast.core.parallel import in_worker
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.core.progress import hide_progress
from deepforecast.core.threads import available_cpus
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan
from deepforecast.data.terminal import shows_live_output
from deepforecast.errors import suppress_warnings
from deepforecast.evaluation.warm_up import warm_up

MIN_ANNOUNCED_SECONDS = 30.0  # seconds from which a run is announced
MIN_SERIES_WINDOWS = 10  # series times windows from which a trial on one of them is a small part of the whole
FIRST_TRIAL_SERIES, GROWTH = 4, 8  # series of the first trial, and how many times more at most of each further one
MAX_TRIALS = 5  # of one model
MIN_TRIAL_SECONDS = 0.1  # seconds of a trial from which its overhead no longer counts
MAX_TRIAL_SECONDS = 2.0  # seconds after which a model that listens is told to end its trial
MAX_TRIAL_SHARE = 0.1  # of what a model may take in the run: what one trial of it may take, if that is more than PATIENCE
TIMING_NOISE = 0.1  # how far a trial may be off: two trials of one size differ by as much on a machine that does other things too
MAX_NARROW_RATIO = 2.0  # how far apart the ends of an estimate may lie to be told as one number
SCORING_SECONDS = 4e-7  # seconds to put together and score one forecast of one model, and to draw one series for its interval

PrepareModel = Callable[[Forecaster], Forecaster]


@dataclass(frozen=True)
class RuntimeEstimate:
    """What a run takes: most likely, and the ends between which it lies as far as the trials can tell."""

    low: float
    likely: float
    high: float

    @property
    def is_narrow(self) -> bool:
        """Whether one number tells it."""
        return self.high <= MAX_NARROW_RATIO * self.low


def keep_model(model: Forecaster) -> Forecaster:
    """No preparation."""
    return model


def estimate_runtime(
    models: Sequence[Forecaster],
    panel: Panel,
    plan: BacktestPlan,
    refit_intervals: Sequence[int],
    prepare: PrepareModel = keep_model,
    levels: Sequence[float] = (),
    *,
    n_jobs: int | None,
) -> RuntimeEstimate | None:
    """Seconds until the board is there; None where trials would be most of the work.

    Each model, made `prepare` as for the run, is tried on one window of a few series, then, if the whole would be long, on more
    of them, until the trials tell what a series costs and what the call. A first trial in which kernels were compiled or read
    does not count: that is over when the run begins. `n_jobs`: None for as many as there are CPUs.
    """
    if len(panel) * plan.n_windows < MIN_SERIES_WINDOWS:
        return None
    trials = [_ModelTrials(model, panel, plan, refit_interval, prepare, levels) for model, refit_interval in zip(models, refit_intervals, strict=True)]
    scoring = SCORING_SECONDS * len(models) * len(panel) * (plan.horizon * plan.n_windows + 5)
    single_process = n_jobs == 1 or len(models) == 1
    context: AbstractContextManager[None] = hide_progress() if single_process else in_worker()
    with suppress_warnings(), context:  # the run itself will say it
        for trial in trials:
            warm_up(trial.model, panel, levels)
            trial.run(1 if len(panel) * plan.n_windows < MIN_SERIES_WINDOWS * FIRST_TRIAL_SERIES else FIRST_TRIAL_SERIES)
        if scoring + sum(trial.total().high for trial in trials) > MIN_ANNOUNCED_SECONDS:
            for trial in trials:
                trial.refine()
    totals = [trial.total() for trial in trials]
    n_parallel = available_cpus() if n_jobs in (None, -1) else n_jobs or 1

    def total_seconds(model_seconds: list[float]) -> float:
        return scoring + max(sum(model_seconds) / n_parallel, *model_seconds)

    low, likely, high = zip(*((estimate.low, estimate.likely, estimate.high) for estimate in totals), strict=True)
    return RuntimeEstimate(total_seconds([*low]), total_seconds([*likely]), total_seconds([*high]))


def announce_runtime(estimate: RuntimeEstimate | None, n_models: int, plan: BacktestPlan, panel: Panel, progress: bool | None) -> None:
    """A line on stderr before a long run: in a terminal or a notebook, or where progress is asked for."""
    if estimate is None or estimate.high < MIN_ANNOUNCED_SECONDS or sys.stderr is None:
        return
    if progress if progress is not None else shows_live_output(sys.stderr):
        text = f"about {_format_seconds(estimate.likely)}" if estimate.is_narrow else f"{_format_seconds(estimate.low)} to {_format_seconds(estimate.high)}"
        sys.stderr.write(f"compare: {n_models} models, {plan.n_windows} windows, {len(panel):,} series: {text}\n")


def _format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _ModelTrials:
    """One model on the last window of more and more series; `timings` holds (series, seconds) of each trial."""

    def __init__(
        self, model: Forecaster, panel: Panel, plan: BacktestPlan, refit_interval: int, prepare: PrepareModel, levels: Sequence[float]
    ) -> None:
        self.model, self.panel, self.prepare, self.levels = model, panel, prepare, levels
        self.plan = replace(plan, n_windows=1)
        self.n_fits = 1 if refit_interval == 0 else -(-plan.n_windows // refit_interval)
        self.timings: list[tuple[int, float]] = []
        self.seconds_spent = 0.0
        self.is_warm = False

    def run(self, count: int) -> float:
        """Seconds of a fit and a forecast on `count` series; of a fit told to end, what its own reports say it would take."""
        if not self.model.capabilities.by_series and len(self.panel) * self.n_fits < MIN_SERIES_WINDOWS:
            self.timings.append((count, 0.0))  # one fit is much of the work: better no estimate than twice the time
            return 0.0
        elapsed, seconds = self._time_trial(count)
        if not self.timings and not self.is_warm and elapsed >= MIN_TRIAL_SECONDS and self._has_kernels:
            self.is_warm = True
            elapsed, seconds = self._time_trial(count)
        if self.timings and seconds * (1 + TIMING_NOISE) < self.timings[-1][1] * (1 - TIMING_NOISE):
            self.timings, self.seconds_spent = [], 0.0  # fewer series took longer: what was loaded or compiled then is there now
        self.timings.append((count, seconds))
        self.seconds_spent += elapsed
        return elapsed

    @property
    def _has_kernels(self) -> bool:
        """Whether a first trial may have compiled something: only series by series, and only with what compiles."""
        return self.model.capabilities.by_series and "numba" in sys.modules

    def _time_trial(self, count: int) -> tuple[float, float]:
        """Seconds spent in a trial, and seconds that it takes if it is not told to end."""
        sample = self.panel.take(np.linspace(0, len(self.panel) - 1, count).astype(np.int64))
        progress: list[int] = [0]
        monitor = Monitor(lambda value, position: progress.append(position), deadline=time.monotonic() + MAX_TRIAL_SECONDS)
        start_time = time.perf_counter()
        try:
            usable_panel, _ = drop_unusable(sample, self.model.capabilities)
            model = self.prepare(self.model)
            for fold in rolling_folds(model, usable_panel, self.plan, refit_interval=1, monitor=monitor):
                output_columns(fold.forecast, model.name, model.point_kind, self.levels, [])
        except Exception:  # it will fail in the run too, and there be told; what it took until then is what it takes
            progress = [STEPS_PER_FOLD]
        elapsed = time.perf_counter() - start_time
        stopped = elapsed >= MAX_TRIAL_SECONDS and 0 < progress[-1] < STEPS_PER_FOLD
        return elapsed, elapsed * STEPS_PER_FOLD / progress[-1] if stopped else elapsed

    def refine(self) -> None:
        """Try more series until the trials tell; the first once more if it had much to load."""
        count, seconds = self.timings[0]
        if MIN_TRIAL_SECONDS <= seconds < MAX_TRIAL_SECONDS and not self.is_warm:
            self.timings.clear()
            self.run(count)
        # What does not depend on the number of series in one trial may do so in the next, unless the model said how far it was.
        reports_progress = not self.model.capabilities.by_series and seconds >= MAX_TRIAL_SECONDS
        for _ in range(MAX_TRIALS - 1):
            is_certain = self.total().is_narrow and (reports_progress or len(self.timings) > 1) and self.timings[-1][1] >= MIN_TRIAL_SECONDS
            next_count = self._next_count()
            if is_certain or next_count < 2 * self.timings[-1][0] or self.seconds_spent > max(3 * MAX_TRIAL_SECONDS, self.total().low / 3):
                return
            self.run(next_count)

    def total(self) -> RuntimeEstimate:
        """Seconds for all series and windows: along the line through the last two trials, or as much off it as they allow."""
        count, seconds = self.timings[-1]
        n_remaining = len(self.panel) - count
        return RuntimeEstimate(*(self.n_fits * (seconds + per_series * n_remaining) for per_series in self._seconds_per_series()))

    def _seconds_per_series(self) -> tuple[float, float, float]:
        """What a further series costs: at least, most likely, at most. From one trial alone: nothing, or as the ones before."""
        count, seconds = self.timings[-1]
        if len(self.timings) == 1:
            return (0.0, seconds / count, seconds / count) if self.model.capabilities.by_series else (0.0, 0.0, 0.0)
        previous_count, previous_seconds = self.timings[-2]
        upper_bound = seconds * (1 + TIMING_NOISE) / count  # no further series costs more than those before it, their share of the call in
        estimates = (seconds * (1 + noise) - previous_seconds * (1 - noise) for noise in (-TIMING_NOISE, 0.0, TIMING_NOISE))
        low, likely, high = (min(max(0.0, estimate / (count - previous_count)), upper_bound) for estimate in estimates)
        return low, likely, high

    def _next_count(self) -> int:
        """How many series to try next: many more, so that they tell much, but only as many as may take their time."""
        count, seconds = self.timings[-1]
        per_series, total_seconds = self._seconds_per_series()[2], self.total().high
        max_count = min(count * (GROWTH if seconds < MAX_TRIAL_SECONDS else GROWTH // 2), len(self.panel) // 4)
        seconds_left = max(MAX_TRIAL_SECONDS, MAX_TRIAL_SHARE * total_seconds) - seconds
        return max_count if per_series == 0 else min(max_count, count + max(0, int(seconds_left / per_series)))
