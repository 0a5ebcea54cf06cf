"""A PostgreSQL of our own, for a test: its files in a folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(control: Path) -> Iterator[int]:
    """The port of a server that runs inside the block, as a user that may: root must not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="df-pg-")  # short: a socket's path must be
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data, binaries = f"{folder}/data", Path(os.path.realpath(control)).parent
    try:
        run(user, str(binaries / "initdb"), "-D", data, "-U", "tester", "-A", "trust")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
        run(user, str(binaries / "pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield port
        finally:
            run(user, str(binaries / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(user: str | None, *command: str) -> None:
    """Run a command, as a user; what it starts holds none of our pipes."""
    subprocess.run(command, user=user, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
