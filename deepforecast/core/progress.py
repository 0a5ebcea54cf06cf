"""Progress bars on stderr, shown in terminals and notebooks or if requested."""

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
    token = _hidden.set(_hidden.get() or alone or not shows_bar)
    try:
        if not shows_bar:
            yield ignore_count
            return
        with _draw_bar(n_items, label, 0.0 if progress else BAR_DELAY, is_interactive) as tick:
            yield tick
    finally:
        _hidden.reset(token)


@contextmanager
def hide_progress() -> Iterator[None]:
    """Hide progress bars inside the block, unless they are requested by progress=True."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


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
