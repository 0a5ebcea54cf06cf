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

from deepforecast.data.terminal import is_notebook, shows_live_output

Tick = Callable[[int], object]

if is_notebook(sys.stderr):
    with warnings.catch_warnings():  # Optuna and Lightning import it: where ipywidgets is missing tqdm warns of it, once
        warnings.simplefilter("ignore")
        import tqdm.auto  # noqa: F401

BAR_DELAY = 0.5  # seconds from which a call is worth a bar
REDRAW_SECONDS = 1.0  # seconds after which a bar is drawn anew though nothing was counted: time passes


@contextmanager
def progress_bar(total: int, label: str, progress: bool | None = None, *, alone: bool = False) -> Iterator[Tick]:
    """Count up to `total` inside the block: what is given has to be told how many more are done.

    progress: True for a bar wherever stderr leads, False for none, None for one in a terminal or a notebook and only if the
        block takes its time. Without a bar, blocks inside this one show none either (unless they are asked to).
    alone: whether blocks inside this one show none even where this one does: they would come and go too often.

    >>> with progress_bar(3, "series") as tick:
    ...     for number in range(3):
    ...         _ = tick(1)
    """
    is_interactive = shows_live_output(sys.stderr)
    shows_bar = progress is not False and sys.stderr is not None and (bool(progress) or (is_interactive and not _hidden.get()))
    token = _hidden.set(_hidden.get() or alone or not shows_bar)
    try:
        if not shows_bar:
            yield ignore_count
            return
        with _draw_bar(total, label, 0.0 if progress else BAR_DELAY, is_interactive) as tick:
            yield tick
    finally:
        _hidden.reset(token)


@contextmanager
def hide_progress() -> Iterator[None]:
    """Show no bar inside the block that is not asked for: for work that repeats, tries out, or runs beside other work."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


def ignore_count(count: int) -> None:
    """Take a count that nobody looks at."""


@contextmanager
def _draw_bar(total: int, label: str, delay: float, is_interactive: bool) -> Iterator[Tick]:
    """The bar itself; one below the other where blocks are nested, and only the outermost stays when it is over."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # tqdm is not typed
        monitor_interval = 0  # no thread that outlives the bar

    width = {"ncols": 80, "nrows": 24} if is_interactive and _has_unknown_width(sys.stderr) else {"dynamic_ncols": True}
    with Bar(total=total, desc=label, file=sys.stderr, delay=delay, leave=None, **width) as bar:
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
    """A notebook does not tell how wide it is, nor may a terminal; it says 0 then, and a bar that fits in there is none."""
    if is_notebook(terminal):
        return True
    try:
        return os.get_terminal_size(terminal.fileno()).columns == 0
    except (OSError, ValueError, AttributeError):
        return False


def _redraw(bar: Any, delay: float, finished: threading.Event) -> None:
    """Draw the bar when it is due and then every second, also while nothing is counted."""
    interval = delay or REDRAW_SECONDS
    with suppress(OSError, ValueError):  # a terminal that went away: the block meets it too
        while not finished.wait(interval):
            bar.delay, interval = 0.0, REDRAW_SECONDS  # it is on the screen now, so that it has to be wiped off there, too
            bar.refresh()


_hidden: ContextVar[bool] = ContextVar("deepforecast_silent", default=False)
