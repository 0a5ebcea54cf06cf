"""How a fit talks to whoever waits for it: it reports how well it does, and asks whether to go on.

A fit is given a `Monitor`, reports a score now and then, and looks at `should_stop` between two steps. It raises nothing
when it is to stop: it ends with the best it has found. What follows from a report (a pruner, a progress bar, a plot) is the
business of the callback.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

STEPS_PER_FOLD = 100
"""Length of one fold on the axis of steps that all folds of all fits share: a step there is a hundredth of a fold."""


class Monitor:
    """Takes the reports of a fit, and tells it when to end: because the callback said so, or because time is up.

    on_report: called with (value, step), one call at a time, also for folds fitted side by side; if it gives True, the
        fit is to end. Smaller values are better.
    stop_when: asked whenever the fit asks, for instance `threading.Event().is_set`.
    deadline: when time is up, on the clock of `time.monotonic()`.

    >>> monitor = Monitor(lambda value, step: print(step, value))
    >>> fold = monitor.fold(2)
    >>> for step in (1, 40, 80):
    ...     fold.report(1.0 / step, step, n_steps=80)
    201 1.0
    250 0.025
    300 0.0125
    >>> monitor.should_stop
    False
    """

    def __init__(
        self,
        on_report: Callable[[float, int], bool | None] | None = None,
        *,
        stop_when: Callable[[], bool] | None = None,
        deadline: float | None = None,
    ) -> None:
        self.deadline = deadline
        self._on_report = on_report
        self._stop_when = stop_when
        self._stop_requested = False
        self._snapshot: Callable[[], Any] | None = None
        self._parent: Monitor | None = None
        self._start, self._last = 0, 0
        self._lock = threading.Lock()

    def report(self, value: float, step: int, n_steps: int | None = None) -> None:
        """Report `value` after `step` steps of the fit, counted from 1, of which there will be at most `n_steps`."""
        if self._parent is not None:
            fold_steps = min(step, n_steps) * STEPS_PER_FOLD // n_steps if n_steps else min(step, STEPS_PER_FOLD)
            position = self._start + fold_steps
            with self._lock:
                if position <= self._last:
                    return
                self._last = position
            self._parent.report(value, position, STEPS_PER_FOLD)
        elif self._on_report is not None:
            with self._lock:
                if self._on_report(float(value), step):
                    self._stop_requested = True

    def set_snapshot(self, snapshot: Callable[[], Any] | None) -> None:
        """Let who listens see what has been learned so far: `snapshot()` gives it as it is at that moment; None: no longer.

        By convention `snapshot()` is (the panel that is learned from, what a `_fit` would return now).
        """
        root = self
        while root._parent is not None:
            root = root._parent
        if root._on_report is not None:
            root._snapshot = snapshot

    def snapshot(self) -> Any:
        """What has been learned so far, for who listens and is being reported to; None where a fit does not show it."""
        return None if self._snapshot is None else self._snapshot()

    @property
    def should_stop(self) -> bool:
        """Whether the fit is to end now, with the best it has."""
        if self._stop_requested or self.time_left() <= 0 or (self._stop_when is not None and self._stop_when()):
            return True
        return self._parent is not None and self._parent.should_stop

    @property
    def cancelled(self) -> bool:
        """Whether who listens has said to end: what the fit gives then, nobody waits for."""
        return self._stop_requested or (self._parent is not None and self._parent.cancelled)

    @property
    def is_outermost(self) -> bool:
        """Whether the fit is all there is: not a fold, whose forecasts of its horizon are judged before it is forgotten."""
        return self._parent is None

    def time_left(self) -> float:
        """Seconds until the deadline: infinite without one, negative after it."""
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def fold(self, number: int) -> Monitor:
        """Give the view for the fit on fold `number`, counted from 0.

        All folds are equally long, however many steps their fits take: step s of n in fold k is `STEPS_PER_FOLD * k + FOLD * s // n`
        on the axis of `on_report`. A fit without inner steps reports once, `report(value, 1, of=1)`. A report that does
        not move on along the axis is left out. The fold that a step belongs to is `(step - 1) // FOLD`.
        """
        view = Monitor(deadline=self.deadline)
        view._parent = self
        view._start = view._last = STEPS_PER_FOLD * number
        return view

    def __reduce__(self) -> tuple[object, ...]:
        if self._on_report or self._stop_when or self._parent:
            raise TypeError("A Monitor that somebody listens to stays in its process: fit there, with workers=1.")
        return _rebuild, (self.time_left(),)


def _rebuild(seconds: float) -> Monitor:
    """Set up in a worker again, where the clock may be another one."""
    return Monitor(deadline=None if seconds == math.inf else time.monotonic() + seconds)


SILENT = Monitor()
"""Listens to nobody and never stops a fit."""
