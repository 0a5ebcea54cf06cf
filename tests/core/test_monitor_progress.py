"""The bar: where it is wanted and nowhere else, with counts and the time left, gone without a trace when it is over."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable

import numba
import pytest

from deepforecast import datasets
from deepforecast.core import monitor
from deepforecast.core.monitor import hide_progress, progress_bar
from deepforecast.data.panel import Panel
from deepforecast.data.terminal import shows_live_output
from deepforecast.data.windows import BacktestPlan
from deepforecast.evaluation.runtime_estimate import RuntimeEstimate, announce_runtime
from deepforecast.kernels.compilation import compile_notice
from tests.clock import stopped
from tests.screen import opened


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds, for a minute at most."""
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def test_counts_and_the_time_left_are_shown_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = opened(monkeypatch), stopped(monkeypatch)
    with progress_bar(4, "windows") as tick:
        for _ in range(4):
            clock.sleep(0.2)
            tick(1)
    said = screen.getvalue()
    assert "windows:  50%" in said
    assert "2/4 [00:00<00:00" in said
    assert said.rstrip(" ").endswith("\n")


def test_a_bar_is_there_before_anything_is_counted_and_time_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = opened(monkeypatch)
    with progress_bar(2, "windows"):
        until(lambda: screen.getvalue().count("0/2") >= 3)
    assert screen.getvalue().endswith("\n")


def test_a_short_call_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = opened(monkeypatch, later=20.0), stopped(monkeypatch)
    with progress_bar(2, "windows") as tick:
        clock.sleep(15.0)
        tick(2)
    assert screen.getvalue() == ""
    with progress_bar(2, "windows") as tick:
        clock.sleep(25.0)
        tick(2)
    assert "2/2" in screen.getvalue()


class CellOutput(io.StringIO):
    """The stream of a notebook's cell as ipykernel makes it: no terminal, without a width, whatever its file descriptor is."""

    __module__ = "ipykernel.iostream"

    def fileno(self) -> int:
        raise AssertionError("the file behind a cell is another one")


@pytest.mark.parametrize("closed", [False, True])
def test_notebooks_show_what_terminals_show(monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    cell = CellOutput()
    if closed:
        cell.close()
    assert shows_live_output(cell) is not closed
    if closed:
        return
    monkeypatch.setattr(sys, "stderr", cell)
    monkeypatch.setattr(monitor, "BAR_DELAY", 0.0)
    with progress_bar(2, "windows") as tick:
        tick(2)
    with compile_notice("a kernel"):
        numba.njit(lambda x: x)(1)
    announce_runtime(
        RuntimeEstimate(100.0, 100.0, 100.0), 2, BacktestPlan(4, 3, 4), Panel.from_frame(datasets.load("air_passengers")), None
    )
    shown = cell.getvalue()
    assert "windows: 100%|" in shown
    assert "2/2" in shown
    assert "deepforecast: compiling a kernel, once on this machine ...\n" in shown
    assert shown.endswith("compare: 2 models, 3 windows, 1 series: about 2 min\n")


def test_missing_widgets_are_no_warning_in_a_notebook() -> None:
    code = """
import io, sys, types, warnings
warnings.simplefilter("always")
Cell = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
sys.modules["ipykernel.zmqshell"] = types.SimpleNamespace()
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: None, version_info=(9,))
sys.modules["ipywidgets"] = None
sys.stderr = Cell()
import deepforecast.core.monitor, optuna
print("tqdm.auto" in sys.modules, repr(sys.stderr.getvalue()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "True ''\n"


@pytest.mark.parametrize(("asked", "bar"), [(None, False), (False, False), (True, True)])
def test_elsewhere_only_what_is_asked_for(
    asked: bool | None, bar: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "BAR_DELAY", 0.0)
    with progress_bar(2, "windows", asked) as tick:
        tick(2)
    said = capsys.readouterr()
    assert said.out == ""
    assert ("2/2" in said.err) == bar


@pytest.mark.parametrize("gone", [None, "closed"])
def test_no_bar_without_standard_error(gone: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", None if gone is None else stream)
    for asked in (None, True) if gone is None else (None,):
        with progress_bar(2, "windows", asked) as tick:
            tick(2)


@pytest.mark.parametrize(("alone", "asked", "inner"), [(False, None, True), (True, None, False), (False, False, False)])
def test_blocks_inside_show_theirs_where_the_outer_lets_them(
    monkeypatch: pytest.MonkeyPatch, alone: bool, asked: bool | None, inner: bool
) -> None:
    screen = opened(monkeypatch)
    with progress_bar(1, "outer", asked, alone=alone), progress_bar(1, "inner"):
        pass
    assert ("inner" in screen.getvalue()) == inner
    assert ("outer" in screen.getvalue()) == (asked is None)


def test_silence_holds_for_what_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = opened(monkeypatch)
    with hide_progress(), progress_bar(1, "quiet"):
        pass
    assert screen.getvalue() == ""
    with hide_progress(), progress_bar(1, "loud", True) as tick:
        tick(1)
    assert "loud" in screen.getvalue()


def test_an_error_passes_and_nothing_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = opened(monkeypatch)
    threads, filters = set(threading.enumerate()), list(warnings.filters)

    def interrupted() -> None:
        with progress_bar(3, "windows"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "windows" in screen.getvalue()
    assert set(threading.enumerate()) == threads
    assert warnings.filters == filters


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminals there")
def test_a_terminal_that_does_not_know_its_width_shows_a_bar():
    import os
    import pty

    code = "from deepforecast.core.monitor import progress_bar\nwith progress_bar(2, 'series', True) as tick:\n    tick(2)\n"
    outer, inner = pty.openpty()  # of 0 columns
    child = subprocess.Popen([sys.executable, "-c", code], stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    said = b""
    while True:
        try:
            more = os.read(outer, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
    os.close(outer)
    assert child.wait(timeout=240) == 0
    assert b"series: 100%" in said
    assert b"2/2" in said
