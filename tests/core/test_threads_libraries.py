"""Shared libraries that were loaded are noticed, without going through all of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deepforecast.core import threads
from deepforecast.core.threads import load_counts

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only there the linker counts")
LATER = """
from deepforecast.core import threads
from deepforecast.core.threads import load_counts
import numpy, threadpoolctl
with threads.limit_threads(1):
    first = load_counts(), len(threads._controllers())
import scipy.linalg  # brings a BLAS of its own
with threads.limit_threads(1):
    print([one["num_threads"] for one in threadpoolctl.threadpool_info()], len(threads._controllers()) > first[1])
print(load_counts()[0] > first[0][0])
"""


@LINUX
def test_a_library_loaded_later_is_noticed_and_limited() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    numbers, more = done.stdout.splitlines()[0].rsplit(" ", 1)
    assert set(numbers.strip("[]").split(", ")) == {"1"}
    assert (more, done.stdout.splitlines()[1]) == ("True", "True")


@LINUX
def test_as_long_as_nothing_is_loaded_nobody_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with threads.limit_threads(1):
        before, known = load_counts(), threads._controllers()
    monkeypatch.setattr(threads, "_threadpoolctl", lambda: pytest.fail("looked again"))
    with threads.limit_threads(1):
        assert threads._controllers() is known
    assert load_counts() == before


def test_where_nobody_counts_every_look_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "load_counts", lambda: None)
    assert threads._controllers() is not threads._controllers()
