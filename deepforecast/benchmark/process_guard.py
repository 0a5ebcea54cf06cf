"""A guard process that kills the jobs of a server when its parent process or the server itself ends.

A signal handler or a thread in the job runs only between Python instructions, so a job inside compiled
code would not notice the end. The guard process does not depend on the jobs: no process keeps running
after the parent process was killed.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from typing import Any, NoReturn

GRACE_SECONDS = 1.0  # for the server to end by itself after its parent


class Guard:
    """Handle of the guard process in the server.

    Parameters
    ----------
    requests_fd : int
        Pipe from the parent of the server. The guard detects that it is closed, and never reads
        from it.
    """

    def __init__(self, requests_fd: int) -> None:
        read_fd, self.write_fd = os.pipe()
        server = os.getpid()
        if not os.fork():
            os.close(self.write_fd)
            _watch(requests_fd, read_fd, server)
        os.close(read_fd)

    def close(self) -> None:
        """Close the pipe to the guard in a forked process; the guard takes open pipes for a running server."""
        os.close(self.write_fd)

    def register(self, pid: int) -> None:
        """Register a process that is killed when the server ends."""
        os.write(self.write_fd, b"+%d\n" % pid)

    def unregister(self, pid: int) -> None:
        """Unregister a process that has ended."""
        os.write(self.write_fd, b"-%d\n" % pid)


def kill_process(pid: int, *kill_functions: Any) -> None:
    """Kill a process and its process group; a process that has ended is ignored.

    Parameters
    ----------
    pid : int
        Process id.
    *kill_functions : callable
        Functions to use, by default `os.killpg` and `os.kill`.
    """
    for kill_function in kill_functions or (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill_function(pid, signal.SIGKILL)


def _watch(requests_fd: int, read_fd: int, server: int) -> NoReturn:
    """Wait for the end of the parent or the server, then kill the remaining processes."""
    os.setsid()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    null_fd = os.open(os.devnull, os.O_RDWR)
    for fd in (1, 2):
        os.dup2(null_fd, fd)  # a reader of the server's output must get EOF although the guard still runs
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
