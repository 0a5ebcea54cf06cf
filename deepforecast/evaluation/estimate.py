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

WORTH_SAYING = 30.0  # seconds from which a run is announced
WORTH_TRYING = 10  # series times windows from which a trial on one of them is a small part of the whole
FIRST, GROWTH = 4, 8  # series of the first trial, and how many times more at most of each further one
MOST_TRIALS = 5  # of one model
LONG_ENOUGH = 0.1  # seconds of a trial from which its overhead no longer counts
PATIENCE = 2.0  # seconds after which a model that listens is told to end its trial
SHARE = 0.1  # of what a model may take in the run: what one trial of it may take, if that is more than PATIENCE
NOISE = 0.1  # how far a trial may be off: two trials of one size differ by as much on a machine that does other things too
CLOSE = 2.0  # how far apart the ends of an estimate may lie to be told as one number
SCORING = 4e-7  # seconds to put together and score one forecast of one model, and to draw one series for its interval

Ready = Callable[[Forecaster], Forecaster]


@dataclass(frozen=True)
class Seconds:
    """What a run takes: most likely, and the ends between which it lies as far as the trials can tell."""

    low: float
    likely: float
    high: float

    @property
    def close(self) -> bool:
        """Whether one number tells it."""
        return self.high <= CLOSE * self.low


def as_it_is(model: Forecaster) -> Forecaster:
    """No preparation."""
    return model


def seconds_to_run(
    models: Sequence[Forecaster],
    panel: Panel,
    plan: BacktestPlan,
    every: Sequence[int],
    ready: Ready = as_it_is,
    levels: Sequence[float] = (),
    *,
    workers: int | None,
) -> Seconds | None:
    """Seconds until the board is there; None where trials would be most of the work.

    Each model, made `ready` as for the run, is tried on one window of a few series, then, if the whole would be long, on more
    of them, until the trials tell what a series costs and what the call. A first trial in which kernels were compiled or read
    does not count: that is over when the run begins. `workers`: None for as many as there are CPUs.
    """
    if len(panel) * plan.n_windows < WORTH_TRYING:
        return None
    trials = [_Trials(model, panel, plan, often, ready, levels) for model, often in zip(models, every, strict=True)]
    scoring = SCORING * len(models) * len(panel) * (plan.horizon * plan.n_windows + 5)
    alone = workers == 1 or len(models) == 1
    surroundings: AbstractContextManager[None] = hide_progress() if alone else in_worker()
    with suppress_warnings(), surroundings:  # the run itself will say it
        for trial in trials:
            warm_up(trial.model, panel, levels)
            trial.run(1 if len(panel) * plan.n_windows < WORTH_TRYING * FIRST else FIRST)
        if scoring + sum(trial.total().high for trial in trials) > WORTH_SAYING:
            for trial in trials:
                trial.refine()
    totals = [trial.total() for trial in trials]
    side_by_side = available_cpus() if workers in (None, -1) else workers or 1

    def together(each: list[float]) -> float:
        return scoring + max(sum(each) / side_by_side, *each)

    low, likely, high = zip(*((one.low, one.likely, one.high) for one in totals), strict=True)
    return Seconds(together([*low]), together([*likely]), together([*high]))


def announce(seconds: Seconds | None, models: int, plan: BacktestPlan, panel: Panel, progress: bool | None) -> None:
    """A line on stderr before a long run: in a terminal or a notebook, or where progress is asked for."""
    if seconds is None or seconds.high < WORTH_SAYING or sys.stderr is None:
        return
    if progress if progress is not None else shows_live_output(sys.stderr):
        told = f"about {_told(seconds.likely)}" if seconds.close else f"{_told(seconds.low)} to {_told(seconds.high)}"
        sys.stderr.write(f"compare: {models} models, {plan.n_windows} windows, {len(panel):,} series: {told}\n")


def _told(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Trials:
    """One model on the last window of more and more series; `seen` holds (series, seconds) of each trial."""

    def __init__(
        self, model: Forecaster, panel: Panel, plan: BacktestPlan, every: int, ready: Ready, levels: Sequence[float]
    ) -> None:
        self.model, self.panel, self.ready, self.levels = model, panel, ready, levels
        self.plan = replace(plan, n_windows=1)
        self.fits = 1 if every == 0 else -(-plan.n_windows // every)
        self.seen: list[tuple[int, float]] = []
        self.spent = 0.0
        self.warm = False

    def run(self, count: int) -> float:
        """Seconds of a fit and a forecast on `count` series; of a fit told to end, what its own reports say it would take."""
        if not self.model.capabilities.by_series and len(self.panel) * self.fits < WORTH_TRYING:
            self.seen.append((count, 0.0))  # one fit is much of the work: better no estimate than twice the time
            return 0.0
        spent, took = self._tried(count)
        if not self.seen and not self.warm and spent >= LONG_ENOUGH and self._has_kernels:
            self.warm = True
            spent, took = self._tried(count)
        if self.seen and took * (1 + NOISE) < self.seen[-1][1] * (1 - NOISE):
            self.seen, self.spent = [], 0.0  # fewer series took longer: what was loaded or compiled then is there now
        self.seen.append((count, took))
        self.spent += spent
        return spent

    @property
    def _has_kernels(self) -> bool:
        """Whether a first trial may have compiled something: only series by series, and only with what compiles."""
        return self.model.capabilities.by_series and "numba" in sys.modules

    def _tried(self, count: int) -> tuple[float, float]:
        """Seconds spent in a trial, and seconds that it takes if it is not told to end."""
        some_series = self.panel.take(np.linspace(0, len(self.panel) - 1, count).astype(np.int64))
        done: list[int] = [0]
        monitor = Monitor(lambda value, place: done.append(place), deadline=time.monotonic() + PATIENCE)
        started = time.perf_counter()
        try:
            own, _ = drop_unusable(some_series, self.model.capabilities)
            model = self.ready(self.model)
            for fold in rolling_folds(model, own, self.plan, refit_interval=1, monitor=monitor):
                output_columns(fold.forecast, model.name, model.point_kind, self.levels, [])
        except Exception:  # it will fail in the run too, and there be told; what it took until then is what it takes
            done = [STEPS_PER_FOLD]
        spent = time.perf_counter() - started
        stopped = spent >= PATIENCE and 0 < done[-1] < STEPS_PER_FOLD
        return spent, spent * STEPS_PER_FOLD / done[-1] if stopped else spent

    def refine(self) -> None:
        """Try more series until the trials tell; the first once more if it had much to load."""
        count, took = self.seen[0]
        if LONG_ENOUGH <= took < PATIENCE and not self.warm:
            self.seen.clear()
            self.run(count)
        # What does not depend on the number of series in one trial may do so in the next, unless the model said how far it was.
        told = not self.model.capabilities.by_series and took >= PATIENCE
        for _ in range(MOST_TRIALS - 1):
            sure = self.total().close and (told or len(self.seen) > 1) and self.seen[-1][1] >= LONG_ENOUGH
            more = self._next()
            if sure or more < 2 * self.seen[-1][0] or self.spent > max(3 * PATIENCE, self.total().low / 3):
                return
            self.run(more)

    def total(self) -> Seconds:
        """Seconds for all series and windows: along the line through the last two trials, or as much off it as they allow."""
        count, took = self.seen[-1]
        rest = len(self.panel) - count
        return Seconds(*(self.fits * (took + each * rest) for each in self._each()))

    def _each(self) -> tuple[float, float, float]:
        """What a further series costs: at least, most likely, at most. From one trial alone: nothing, or as the ones before."""
        count, took = self.seen[-1]
        if len(self.seen) == 1:
            return (0.0, took / count, took / count) if self.model.capabilities.by_series else (0.0, 0.0, 0.0)
        fewer, before = self.seen[-2]
        steepest = took * (1 + NOISE) / count  # no further series costs more than those before it, their share of the call in
        ends = (took * (1 + off) - before * (1 - off) for off in (-NOISE, 0.0, NOISE))
        low, likely, high = (min(max(0.0, end / (count - fewer)), steepest) for end in ends)
        return low, likely, high

    def _next(self) -> int:
        """How many series to try next: many more, so that they tell much, but only as many as may take their time."""
        count, took = self.seen[-1]
        each, whole = self._each()[2], self.total().high
        most = min(count * (GROWTH if took < PATIENCE else GROWTH // 2), len(self.panel) // 4)
        left = max(PATIENCE, SHARE * whole) - took
        return most if each == 0 else min(most, count + max(0, int(left / each)))
