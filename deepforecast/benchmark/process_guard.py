"""A guard process that ends the jobs of a server after its owner or the server itself has ended.

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

GRACE_SECONDS = 1.0  # for the server to end by itself after its owner


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
        """Close the pipe in a forked process, so that the guard does not wait for it."""
        os.close(self.write_fd)

    def register(self, pid: int) -> None:
        """Add a process to be ended with the server."""
        os.write(self.write_fd, b"+%d\n" % pid)

    def unregister(self, pid: int) -> None:
        """Remove a process that has ended."""
        os.write(self.write_fd, b"-%d\n" % pid)


def kill_process(pid: int, *kill_functions: Any) -> None:
    """Kill a process and its group, or only by the given functions."""
    for kill_function in kill_functions or (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill_function(pid, signal.SIGKILL)


def _watch(requests_fd: int, read_fd: int, server: int) -> NoReturn:
    """Wait for the end of owner or server, then kill the remaining processes."""
    os.setsid()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    null_fd = os.open(os.devnull, os.O_RDWR)
    for fd in (1, 2):
        os.dup2(null_fd, fd)  # whoever reads what the server writes sees its end, not this process's
    poller = select.poll()
    poller.register(requests_fd, 0)  # hang-up is always reported; pending data are not read
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
