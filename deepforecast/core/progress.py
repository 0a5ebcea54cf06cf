"""How far a long call is: a bar on stderr with counts and the time left. In terminals and notebooks, or if asked for."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from deepforecast.data.interactive import is_notebook, is_watched

Tick = Callable[[int], object]

if is_notebook(sys.stderr):
    with warnings.catch_warnings():  # Optuna and Lightning import it: where ipywidgets is missing tqdm warns of it, once
        warnings.simplefilter("ignore")
        import tqdm.auto  # noqa: F401

LATER = 0.5  # seconds from which a call is worth a bar
BEAT = 1.0  # seconds after which a bar is drawn anew though nothing was counted: time passes


@contextmanager
def counting(total: int, label: str, progress: bool | None = None, *, alone: bool = False) -> Iterator[Tick]:
    """Count up to `total` inside the block: what is given has to be told how many more are done.

    progress: True for a bar wherever stderr leads, False for none, None for one in a terminal or a notebook and only if the
        block takes its time. Without a bar, blocks inside this one show none either (unless they are asked to).
    alone: whether blocks inside this one show none even where this one does: they would come and go too often.

    >>> with counting(3, "series") as tick:
    ...     for number in range(3):
    ...         _ = tick(1)
    """
    watched = is_watched(sys.stderr)
    wanted = progress is not False and sys.stderr is not None and (bool(progress) or (watched and not _silent.get()))
    token = _silent.set(_silent.get() or alone or not wanted)
    try:
        if not wanted:
            yield uncounted
            return
        with _drawn(total, label, 0.0 if progress else LATER, watched) as tick:
            yield tick
    finally:
        _silent.reset(token)


@contextmanager
def silent() -> Iterator[None]:
    """Show no bar inside the block that is not asked for: for work that repeats, tries out, or runs beside other work."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def uncounted(count: int) -> None:
    """Take a count that nobody looks at."""


@contextmanager
def _drawn(total: int, label: str, delay: float, watched: bool) -> Iterator[Tick]:
    """The bar itself; one below the other where blocks are nested, and only the outermost stays when it is over."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # tqdm is not typed
        monitor_interval = 0  # no thread that outlives the bar

    width = {"ncols": 80, "nrows": 24} if watched and _of_unknown_width(sys.stderr) else {"dynamic_ncols": True}
    with Bar(total=total, desc=label, file=sys.stderr, delay=delay, leave=None, **width) as bar:
        over = threading.Event()
        clock = threading.Thread(target=_beat, args=(bar, delay, over), name="deepforecast-progress", daemon=True)
        if watched:
            clock.start()
        try:
            yield bar.update
        finally:
            over.set()
            if watched:
                clock.join()


def _of_unknown_width(terminal: Any) -> bool:
    """A notebook does not tell how wide it is, nor may a terminal; it says 0 then, and a bar that fits in there is none."""
    if is_notebook(terminal):
        return True
    try:
        return os.get_terminal_size(terminal.fileno()).columns == 0
    except (OSError, ValueError, AttributeError):
        return False


def _beat(bar: Any, delay: float, over: threading.Event) -> None:
    """Draw the bar when it is due and then every second, also while nothing is counted."""
    wait = delay or BEAT
    with suppress(OSError, ValueError):  # a terminal that went away: the block meets it too
        while not over.wait(wait):
            bar.delay, wait = 0.0, BEAT  # it is on the screen now, so that it has to be wiped off there, too
            bar.refresh()


_silent: ContextVar[bool] = ContextVar("deepforecast_silent", default=False)
