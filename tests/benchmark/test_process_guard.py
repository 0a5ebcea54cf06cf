"""The guard of a server and its jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A server that is busy and a job that lets no other Python of its process run: neither can notice anything by itself.
SERVER = """
import ctypes, os, sys
from deepforecast.benchmark.process_guard import Guard
guard = Guard(0)
asleep = lambda: ctypes.PyDLL(None).sleep(60)
for own in ("ended", "busy"):
    job = os.fork()
    if not job:
        guard.close()
        asleep() if own == "busy" else os._exit(0)
    guard.register(job)
    if own == "ended":
        os.waitpid(job, 0)
        guard.unregister(job)
print(job, flush=True)
asleep()
"""


def there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("gone", ["owner", "server"])
def test_no_process_is_left_at_work_once_the_owner_or_the_server_is_gone(gone: str) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    job = int(server.stdout.readline())
    assert there(job)
    if gone == "owner":
        server.stdin.close()  # as the system does for a process that was killed
    else:
        server.kill()
    until = time.monotonic() + 120
    while there(job) and time.monotonic() < until:
        time.sleep(0.02)
    assert not there(job)
    assert server.wait(120) == -signal.SIGKILL
    assert server.stdout.read() == b""  # the guard is no writer of it
    server.stdout.close()
    server.stdin.close()
