"""Reports of intermediate scores from a fit, requests to stop it, and progress bars.

A fit receives a `Monitor`, reports scores and checks `should_stop` between steps. When it is to
stop, it does not raise but returns the best result so far. The callback decides what follows from a
report, e.g. pruning or a progress bar.

Progress bars are on stderr, shown in terminals and notebooks or if requested.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any

from deepforecast.core.threads import set_variable
from deepforecast.data.terminal import is_notebook, shows_live_output

STEPS_PER_FOLD = 100
"""Length of a fold on the common axis of steps, for any number of steps of its fit."""


class Monitor:
    """Receives the reports of a fit and requests it to stop.

    Parameters
    ----------
    on_report : callable, optional
        Called with (value, step), never concurrently, even if folds are fitted in parallel. Smaller
        values are better. The fit stops if it returns True.
    stop_when : callable, optional
        Returns True if the fit must stop, e.g. `threading.Event().is_set`.
    deadline : float, optional
        Time at which the fit must stop, on the clock of `time.monotonic()`.

    Examples
    --------
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
        """Report `value` after `step` steps (from 1) of at most `n_steps`."""
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
        """Set the function that returns the training panel and the current learned state; None removes it."""
        if self._parent is not None:
            self._parent.set_snapshot(snapshot)
        elif self._on_report is not None:
            self._snapshot = snapshot

    def snapshot(self) -> Any:
        """The training panel and the current learned state, or None if the fit does not provide them."""
        return None if self._snapshot is None else self._snapshot()

    @property
    def should_stop(self) -> bool:
        """Whether the fit must stop now and return the best result so far."""
        if self._stop_requested or self.time_left() <= 0 or (self._stop_when is not None and self._stop_when()):
            return True
        return self._parent is not None and self._parent.should_stop

    @property
    def cancelled(self) -> bool:
        """Whether the callback requested to stop, so that the result of the fit is not needed."""
        return self._stop_requested or (self._parent is not None and self._parent.cancelled)

    @property
    def is_outermost(self) -> bool:
        """Whether this is not the monitor of a fold."""
        return self._parent is None

    def time_left(self) -> float:
        """Seconds until the deadline: infinite without one, negative after it."""
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def fold(self, number: int) -> Monitor:
        """Return the monitor of fold `number`, counted from 0, which reports to this one.

        Step s of n in fold k is reported as step F k + F s // n with F = STEPS_PER_FOLD, so a step
        belongs to fold (step - 1) // F. Reports that do not advance are dropped. A fit without
        inner steps calls `report(value, 1, n_steps=1)`.
        """
        view = Monitor(deadline=self.deadline)
        view._parent = self
        view._start = view._last = STEPS_PER_FOLD * number
        return view

    def __reduce__(self) -> tuple[object, ...]:
        if self._on_report or self._stop_when or self._parent:
            raise TypeError("A Monitor with callbacks cannot be pickled for another process. Set n_jobs=1.")
        return _rebuild, (self.time_left(),)


def _rebuild(seconds: float) -> Monitor:
    """Unpickle in another process, whose monotonic clock may differ."""
    return Monitor(deadline=None if seconds == math.inf else time.monotonic() + seconds)


SILENT = Monitor()
"""A monitor that ignores reports and never stops a fit."""


Tick = Callable[[int], object]

if is_notebook(sys.stderr):
    with warnings.catch_warnings():  # without ipywidgets tqdm warns on import, which Optuna and Lightning trigger
        warnings.simplefilter("ignore")
        import tqdm.auto  # noqa: F401

BAR_DELAY = 0.5  # seconds after which a bar appears
REDRAW_SECONDS = 1.0  # seconds between updates of the elapsed time


@contextmanager
def progress_bar(n_items: int, label: str, progress: bool | None = None, *, alone: bool = False) -> Iterator[Tick]:
    """Show a progress bar for the block; yields a function that takes the number of items completed.

    Parameters
    ----------
    n_items : int
        Number of items.
    label : str
        Label of the bar.
    progress : bool, optional
        True: always show the bar; False: never; None: in terminals and notebooks, if the block takes longer than BAR_DELAY. If
        there is no bar, nested blocks show none either, unless `progress` is True there.
    alone : bool, default False
        Whether to hide the bars of nested blocks.

    Examples
    --------
    >>> with progress_bar(3, "series") as tick:
    ...     for number in range(3):
    ...         _ = tick(1)
    """
    is_interactive = shows_live_output(sys.stderr)
    shows_bar = progress is not False and sys.stderr is not None and (bool(progress) or (is_interactive and not _hidden.get()))
    bar = _draw_bar(n_items, label, 0.0 if progress else BAR_DELAY, is_interactive) if shows_bar else nullcontext(ignore_count)
    with set_variable(_hidden, _hidden.get() or alone or not shows_bar), bar as tick:
        yield tick


def hide_progress() -> AbstractContextManager[None]:
    """Hide progress bars inside the block, unless they are requested by progress=True."""
    return set_variable(_hidden, True)


def ignore_count(n_items: int) -> None:
    """Ignore the number of completed items; used without a bar."""


@contextmanager
def _draw_bar(n_items: int, label: str, delay: float, is_interactive: bool) -> Iterator[Tick]:
    """Draw the bar; bars of nested blocks are below each other, and only the outermost stays at the end."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # tqdm is not typed
        monitor_interval = 0  # no thread of tqdm, which would outlive the bar

    width = {"ncols": 80, "nrows": 24} if is_interactive and _has_unknown_width(sys.stderr) else {"dynamic_ncols": True}
    with Bar(total=n_items, desc=label, file=sys.stderr, delay=delay, leave=None, **width) as bar:
        finished = threading.Event()
        redraw_thread = threading.Thread(target=_redraw, args=(bar, delay, finished), name="deepforecast-progress", daemon=True)
        if is_interactive:
            redraw_thread.start()
        try:
            yield bar.update
        finally:
            finished.set()
            if is_interactive:
                redraw_thread.join()


def _has_unknown_width(terminal: Any) -> bool:
    """Whether the terminal reports no width, or 0, for which tqdm would draw no bar."""
    if is_notebook(terminal):
        return True
    try:
        return os.get_terminal_size(terminal.fileno()).columns == 0
    except (OSError, ValueError, AttributeError):
        return False


def _redraw(bar: Any, delay: float, finished: threading.Event) -> None:
    """Draw the bar after the delay, and then every second, even if nothing was counted."""
    interval = delay or REDRAW_SECONDS
    with suppress(OSError, ValueError):  # the terminal was closed; the block will notice, too
        while not finished.wait(interval):
            bar.delay, interval = 0.0, REDRAW_SECONDS  # visible now, so tqdm must clear it at the end
            bar.refresh()


_hidden: ContextVar[bool] = ContextVar("deepforecast_silent", default=False)
