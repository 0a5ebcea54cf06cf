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

GRACE_SECONDS = 1.0  # seconds a server has to end by itself when its owner is gone


class Guard:
    """The server's end. `requests` is the pipe its owner holds the other end of; it is watched and never read from."""

    def __init__(self, requests_fd: int) -> None:
        read_fd, self.write_fd = os.pipe()
        server = os.getpid()
        if not os.fork():
            os.close(self.write_fd)
            _watch(requests_fd, read_fd, server)
        os.close(read_fd)

    def close(self) -> None:
        """In a process that was forked from the server and is not the server: its end must not hold the guard up."""
        os.close(self.write_fd)

    def register(self, pid: int) -> None:
        """A process that is ended with the server."""
        os.write(self.write_fd, b"+%d\n" % pid)

    def unregister(self, pid: int) -> None:
        """It has ended by itself."""
        os.write(self.write_fd, b"-%d\n" % pid)


def kill_process(pid: int, *kill_functions: Any) -> None:
    """End a process and the group it leads; or by these of the two ways alone."""
    for kill_function in kill_functions or (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill_function(pid, signal.SIGKILL)


def _watch(requests_fd: int, read_fd: int, server: int) -> NoReturn:
    """Until either is gone; then no process is left."""
    os.setsid()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    null_fd = os.open(os.devnull, os.O_RDWR)
    for fd in (1, 2):
        os.dup2(null_fd, fd)  # whoever reads what the server writes sees its end, not this process's
    poller = select.poll()
    poller.register(requests_fd, 0)  # its end is told without asking, and what waits to be read is left alone
    poller.register(read_fd, select.POLLIN)
    running: set[int] = set()
    buffer, deadline = b"", float("inf")
    while time.monotonic() < deadline:
        ready = dict(poller.poll(None if deadline == float("inf") else 50))
        if requests_fd in ready:
            poller.unregister(requests_fd)
            deadline = time.monotonic() + GRACE_SECONDS
        if read_fd in ready:
            chunk = os.read(read_fd, 1 << 16)
            if not chunk:
                break
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                (running.add if line[:1] == b"+" else running.discard)(int(line[1:]))
        if deadline < float("inf"):
            for pid in running:
                kill_process(pid)
    else:
        kill_process(server)
    for pid in running:
        kill_process(pid)
    os._exit(0)
