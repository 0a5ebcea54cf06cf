"""How long a comparison will take, from trials on a few series: to be said before a long run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import FOLD, Monitor
from deepforecast.core.preparing import usable
from deepforecast.core.rolling import roll
from deepforecast.core.threads import available_cpus
from deepforecast.data.cutoffs import Plan
from deepforecast.data.panel import Panel
from deepforecast.errors import quietly

WORTH_SAYING = 30.0  # seconds from which a run is announced
WORTH_TRYING = 10  # series times windows from which a trial on one of them is a small part of the whole
FIRST, GROWTH = 4, 8  # series of the first trial, and how many times more of each further one
LONG_ENOUGH = 0.1  # seconds of a trial from which its overhead no longer counts
PATIENCE = 2.0  # seconds after which a model that listens is told to end its trial
SCORING = 4e-7  # seconds to put together and score one forecast of one model, and to draw one series for its interval

Ready = Callable[[Forecaster], Forecaster]


def as_it_is(model: Forecaster) -> Forecaster:
    """No preparation."""
    return model


def seconds_to_run(
    models: Sequence[Forecaster], panel: Panel, plan: Plan, every: Sequence[int], workers: int | None, ready: Ready = as_it_is
) -> float | None:
    """Seconds until the board is there, right within a factor of about two; None where trials would be most of the work.

    Each model, made `ready` as for the run, is tried on one window of a few series, then, if the whole would be long, on more
    of them, until the trials tell what a series costs and what the call.
    """
    if len(panel) * plan.n_windows < WORTH_TRYING:
        return None
    trials = [_Trials(model, panel, plan, often, ready) for model, often in zip(models, every, strict=True)]
    scoring = SCORING * len(models) * len(panel) * (plan.horizon * plan.n_windows + 5)
    with quietly():  # the run itself will say it
        for trial in trials:
            trial.run(1 if len(panel) * plan.n_windows < WORTH_TRYING * FIRST else FIRST)
        if scoring + sum(trial.total() for trial in trials) > WORTH_SAYING:
            for trial in trials:
                trial.refine()
    totals = [trial.total() for trial in trials]
    return scoring + max(sum(totals) / (available_cpus() if workers == -1 else workers or 1), *totals)


def announce(seconds: float | None, models: int, plan: Plan, panel: Panel, progress: bool | None) -> None:
    """A line on stderr before a long run: in a terminal, or where progress is asked for."""
    if seconds is None or seconds < WORTH_SAYING or sys.stderr is None:
        return
    if progress if progress is not None else sys.stderr.isatty():
        long = f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
        told = f"{seconds:.0f} s" if seconds < 90 else long
        sys.stderr.write(f"compare: {models} models, {plan.n_windows} windows, {len(panel):,} series: about {told}\n")


class _Trials:
    """One model on the last window of more and more series; `seen` holds (series, seconds) of each trial."""

    def __init__(self, model: Forecaster, panel: Panel, plan: Plan, every: int, ready: Ready) -> None:
        self.model, self.panel, self.ready = model, panel, ready
        self.plan = replace(plan, n_windows=1)
        self.fits = 1 if every == 0 else -(-plan.n_windows // every)
        self.seen: list[tuple[int, float]] = []

    def run(self, count: int) -> float:
        """Seconds of a fit and a forecast on `count` series; of a fit told to end, what its own reports say it would take."""
        if not self.model.capabilities.local and len(self.panel) * self.fits < WORTH_TRYING:
            self.seen.append((count, 0.0))  # one fit is much of the work: better no estimate than twice the time
            return 0.0
        some_series = self.panel.take(np.linspace(0, len(self.panel) - 1, count).astype(np.int64))
        done: list[int] = [0]
        monitor = Monitor(lambda value, place: done.append(place), deadline=time.monotonic() + PATIENCE)
        started = time.perf_counter()
        try:
            own, _ = usable(some_series, self.model.capabilities)
            for _fold in roll(self.ready(self.model), own, self.plan, every=1, monitor=monitor):
                pass
        except Exception:  # it will fail in the run too, and there be told; what it took until then is what it takes
            done = [FOLD]
        spent = time.perf_counter() - started
        stopped = spent >= PATIENCE and 0 < done[-1] < FOLD
        self.seen.append((count, spent * FOLD / done[-1] if stopped else spent))
        return spent

    def refine(self) -> None:
        """Try more series until a trial is long enough to tell, the first once more if it had much to load."""
        count, spent = self.seen[0]
        if LONG_ENOUGH <= spent < PATIENCE:
            self.seen.clear()
            spent = self.run(count)
        once = not self.model.capabilities.local and spent < PATIENCE  # only a second trial tells whether series cost anything
        while (spent < LONG_ENOUGH or once) and count * GROWTH < len(self.panel) / 4:
            count, once = count * GROWTH, False
            spent = self.run(count)

    def total(self) -> float:
        """Seconds for all series and windows: along the line through the last two trials."""
        count, spent = self.seen[-1]
        if len(self.seen) > 1:
            fewer, before = self.seen[-2]
            each = max(0.0, spent - before) / (count - fewer)
            return self.fits * (spent + each * (len(self.panel) - count))
        return self.fits * spent * (len(self.panel) / count if self.model.capabilities.local else 1)
