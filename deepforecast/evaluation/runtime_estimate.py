"""Estimates of the duration of a comparison from trial runs on a few series."""

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
from deepforecast.core.monitor import STEPS_PER_FOLD, Monitor, hide_progress
from deepforecast.core.parallel import in_worker
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.core.threads import available_cpus
from deepforecast.data.panel import Panel
from deepforecast.data.terminal import shows_live_output
from deepforecast.data.windows import BacktestPlan
from deepforecast.errors import suppress_warnings
from deepforecast.evaluation.warm_up import warm_up

MIN_ANNOUNCED_SECONDS = 30.0  # seconds from which a run is announced
MIN_SERIES_WINDOWS = 10  # series times windows from which a trial on one of them is cheap
FIRST_TRIAL_SERIES = 4  # series of the first trial
GROWTH = 8  # largest growth factor of the number of series between trials
MAX_TRIALS = 5  # per model
MIN_TRIAL_SECONDS = 0.1  # seconds from which the overhead of a trial is negligible
MAX_TRIAL_SECONDS = 2.0  # seconds after which a model that supports it is stopped
MAX_TRIAL_SHARE = 0.1  # longest trial as a share of the estimated run time of a model, if above MAX_TRIAL_SECONDS
TIMING_NOISE = 0.1  # relative difference between timings of equal trials on a busy machine
MAX_NARROW_RATIO = 2.0  # ratio of the bounds up to which an estimate is reported as one number
SCORING_SECONDS = 4e-7  # seconds to score one forecast of one model, including the bootstrap

PrepareModel = Callable[[Forecaster], Forecaster]


@dataclass(frozen=True)
class RuntimeEstimate:
    """Estimated seconds of a run with lower and upper bounds."""

    low: float
    likely: float
    high: float

    @property
    def is_narrow(self) -> bool:
        """Whether the bounds are close enough to report one number."""
        return self.high <= MAX_NARROW_RATIO * self.low


def keep_model(model: Forecaster) -> Forecaster:
    """The model itself: the default of `prepare`."""
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
    """Estimate the seconds of a comparison; None if trials would be most of the work.

    Each model, modified by `prepare` as in the run, is timed on one window of a few series and, for
    long runs, on more, until the cost per series and the fixed cost are known. A first trial that
    compiles or loads kernels does not count. `n_jobs`: None for the number of CPUs.
    """
    if len(panel) * plan.n_windows < MIN_SERIES_WINDOWS:
        return None
    trials = [
        _ModelTrials(model, panel, plan, refit_interval, prepare=prepare, levels=levels)
        for model, refit_interval in zip(models, refit_intervals, strict=True)
    ]
    # each series costs as much as 5 forecasts in addition
    scoring_seconds = SCORING_SECONDS * len(models) * len(panel) * (plan.horizon * plan.n_windows + 5)
    single_process = n_jobs == 1 or len(models) == 1
    context: AbstractContextManager[None] = hide_progress() if single_process else in_worker()
    with suppress_warnings(), context:  # the run repeats the warnings
        for trial in trials:
            warm_up(trial.model, panel, levels)
            trial.run(1 if len(panel) * plan.n_windows < MIN_SERIES_WINDOWS * FIRST_TRIAL_SERIES else FIRST_TRIAL_SERIES)
        if scoring_seconds + sum(trial.estimate_total().high for trial in trials) > MIN_ANNOUNCED_SECONDS:
            for trial in trials:
                trial.refine()
    totals = [trial.estimate_total() for trial in trials]
    n_parallel = available_cpus() if n_jobs in (None, -1) else n_jobs or 1

    def total_seconds(model_seconds: list[float]) -> float:
        return scoring_seconds + max(sum(model_seconds) / n_parallel, *model_seconds)

    return RuntimeEstimate(
        low=total_seconds([estimate.low for estimate in totals]),
        likely=total_seconds([estimate.likely for estimate in totals]),
        high=total_seconds([estimate.high for estimate in totals]),
    )


def announce_runtime(
    estimate: RuntimeEstimate | None, n_models: int, plan: BacktestPlan, panel: Panel, progress: bool | None
) -> None:
    """Write the estimate of a long run to stderr, in terminals and notebooks or if `progress` is
    True."""
    if estimate is None or estimate.high < MIN_ANNOUNCED_SECONDS or sys.stderr is None:
        return
    if progress if progress is not None else shows_live_output(sys.stderr):
        duration = (
            f"about {_format_seconds(estimate.likely)}"
            if estimate.is_narrow
            else f"{_format_seconds(estimate.low)} to {_format_seconds(estimate.high)}"
        )
        sys.stderr.write(f"compare: {n_models} models, {plan.n_windows} windows, {len(panel):,} series: {duration}\n")


def _format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _ModelTrials:
    """Trials of one model on the last window of more and more series; `timings` has (series,
    seconds) of each."""

    def __init__(
        self,
        model: Forecaster,
        panel: Panel,
        plan: BacktestPlan,
        refit_interval: int,
        prepare: PrepareModel,
        levels: Sequence[float],
    ) -> None:
        self.model = model
        self.panel = panel
        self.prepare = prepare
        self.levels = levels
        self.plan = replace(plan, n_windows=1)
        # refit_interval 0: one fit for all windows; otherwise windows / interval, rounded up
        self.n_fits = 1 if refit_interval == 0 else -(-plan.n_windows // refit_interval)
        self.timings: list[tuple[int, float]] = []
        self.seconds_spent = 0.0
        self.is_warm = False

    def run(self, n_series: int) -> float:
        """Time a fit and a forecast on `n_series` series, add the estimated seconds to `timings`, and
        return the seconds spent; the time of a stopped fit is extrapolated from its progress."""
        if not self.model.capabilities.by_series and len(self.panel) * self.n_fits < MIN_SERIES_WINDOWS:
            self.timings.append((n_series, 0.0))  # one fit is most of the work: a trial would double it
            return 0.0
        elapsed, seconds = self._time_trial(n_series)
        if not self.timings and not self.is_warm and elapsed >= MIN_TRIAL_SECONDS and self._has_kernels:
            self.is_warm = True
            elapsed, seconds = self._time_trial(n_series)
        if self.timings and seconds * (1 + TIMING_NOISE) < self.timings[-1][1] * (1 - TIMING_NOISE):
            # fewer series took longer, due to loading or compilation
            self.timings = []
            self.seconds_spent = 0.0
        self.timings.append((n_series, seconds))
        self.seconds_spent += elapsed
        return elapsed

    @property
    def _has_kernels(self) -> bool:
        """Whether a first trial may have compiled kernels: only models that fit series by series
        with numba."""
        return self.model.capabilities.by_series and "numba" in sys.modules

    def _time_trial(self, n_series: int) -> tuple[float, float]:
        """Seconds spent in a trial, and estimated seconds without stopping it."""
        sample = self.panel.take(np.linspace(0, len(self.panel) - 1, n_series).astype(np.int64))
        progress: list[int] = [0]
        # `position`: progress from 0 to STEPS_PER_FOLD
        monitor = Monitor(lambda value, position: progress.append(position), deadline=time.monotonic() + MAX_TRIAL_SECONDS)
        start_time = time.perf_counter()
        try:
            usable_panel, _ = drop_unusable(sample, self.model.capabilities)
            model = self.prepare(self.model)
            for fold in rolling_folds(model, usable_panel, self.plan, refit_interval=1, monitor=monitor):
                output_columns(fold.forecast, model.name, model.point_kind, self.levels, [])
        except Exception:  # it will be reported by the run; the time until the failure counts
            progress = [STEPS_PER_FOLD]
        elapsed = time.perf_counter() - start_time
        stopped = elapsed >= MAX_TRIAL_SECONDS and 0 < progress[-1] < STEPS_PER_FOLD
        return elapsed, elapsed * STEPS_PER_FOLD / progress[-1] if stopped else elapsed

    def refine(self) -> None:
        """Run more trials until the estimate is narrow; repeat the first one if it may have loaded
        libraries."""
        n_series, seconds = self.timings[0]
        if MIN_TRIAL_SECONDS <= seconds < MAX_TRIAL_SECONDS and not self.is_warm:
            self.timings.clear()
            self.run(n_series)
        # The time may start to depend on the number of series in a larger trial, unless the model reports its progress.
        reports_progress = not self.model.capabilities.by_series and seconds >= MAX_TRIAL_SECONDS
        for _ in range(MAX_TRIALS - 1):
            is_certain = (
                self.estimate_total().is_narrow
                and (reports_progress or len(self.timings) > 1)
                and self.timings[-1][1] >= MIN_TRIAL_SECONDS
            )
            next_n_series = self._next_n_series()
            if (
                is_certain
                or next_n_series < 2 * self.timings[-1][0]
                or self.seconds_spent > max(3 * MAX_TRIAL_SECONDS, self.estimate_total().low / 3)
            ):
                return
            self.run(next_n_series)

    def estimate_total(self) -> RuntimeEstimate:
        """Seconds for all series and windows, extrapolated linearly from the last two trials with
        noise bounds."""
        n_series, seconds = self.timings[-1]
        n_remaining = len(self.panel) - n_series
        return RuntimeEstimate(
            *(self.n_fits * (seconds + per_series * n_remaining) for per_series in self._seconds_per_series())
        )

    def _seconds_per_series(self) -> tuple[float, float, float]:
        """Low, likely and high cost of one more series; with a single trial from 0 to its mean."""
        n_series, seconds = self.timings[-1]
        if len(self.timings) == 1:
            return (0.0, seconds / n_series, seconds / n_series) if self.model.capabilities.by_series else (0.0, 0.0, 0.0)
        previous_n_series, previous_seconds = self.timings[-2]
        # More series do not cost more than the mean so far, which includes the fixed cost.
        upper_bound = seconds * (1 + TIMING_NOISE) / n_series
        estimates = (seconds * (1 + noise) - previous_seconds * (1 - noise) for noise in (-TIMING_NOISE, 0.0, TIMING_NOISE))
        low, likely, high = (min(max(0.0, estimate / (n_series - previous_n_series)), upper_bound) for estimate in estimates)
        return low, likely, high

    def _next_n_series(self) -> int:
        """The number of series of the next trial: as many as the time limit allows, at most a quarter of
        all series."""
        n_series, seconds = self.timings[-1]
        per_series = self._seconds_per_series()[2]
        total_seconds = self.estimate_total().high
        max_n_series = min(n_series * (GROWTH if seconds < MAX_TRIAL_SECONDS else GROWTH // 2), len(self.panel) // 4)
        seconds_left = max(MAX_TRIAL_SECONDS, MAX_TRIAL_SHARE * total_seconds) - seconds
        return max_n_series if per_series == 0 else min(max_n_series, n_series + max(0, int(seconds_left / per_series)))
