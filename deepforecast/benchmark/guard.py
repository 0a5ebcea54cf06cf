"""What ends a server's jobs when nobody is left to do it: a small process that waits for the end of the owner or the server.

A signal handler or a thread of a job would have to wait until the job's own work lets Python run; this process never waits
for any of them, so that a killed owner leaves nothing at work.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from typing import Any, NoReturn

GRACE = 1.0  # seconds a server has to end by itself when its owner is gone


class Guard:
    """The server's end. `requests` is the pipe its owner holds the other end of; it is watched and never read from."""

    def __init__(self, requests: int) -> None:
        reading, self.told = os.pipe()
        server = os.getpid()
        if not os.fork():
            os.close(self.told)
            _watch(requests, reading, server)
        os.close(reading)

    def forget(self) -> None:
        """In a process that was forked from the server and is not the server: its end must not hold the guard up."""
        os.close(self.told)

    def begun(self, pid: int) -> None:
        """A process that is ended with the server."""
        os.write(self.told, b"+%d\n" % pid)

    def over(self, pid: int) -> None:
        """It has ended by itself."""
        os.write(self.told, b"-%d\n" % pid)


def kill(pid: int, *ends: Any) -> None:
    """End a process and the group it leads; or by these of the two ways alone."""
    for end in ends or (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _watch(requests: int, told: int, server: int) -> NoReturn:
    """Until either is gone; then no process is left."""
    os.setsid()
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nothing, number)  # whoever reads what the server writes sees its end, not this process's
    watched = select.poll()
    watched.register(requests, 0)  # its end is told without asking, and what waits to be read is left alone
    watched.register(told, select.POLLIN)
    running: set[int] = set()
    rest, until = b"", float("inf")
    while time.monotonic() < until:
        ready = dict(watched.poll(None if until == float("inf") else 50))
        if requests in ready:
            watched.unregister(requests)
            until = time.monotonic() + GRACE
        if told in ready:
            held = os.read(told, 1 << 16)
            if not held:
                break
            *lines, rest = (rest + held).split(b"\n")
            for line in lines:
                (running.add if line[:1] == b"+" else running.discard)(int(line[1:]))
        if until < float("inf"):
            for pid in running:
                kill(pid)
    else:
        kill(server)
    for pid in running:
        kill(pid)
    os._exit(0)
