"""A PostgreSQL of our own, for a test: its files in a folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(control: Path, folder: Path) -> Iterator[int]:
    """The port of a server that runs inside the block, as a user that may: root must not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, user = folder / "postgres", None
    data.mkdir()
    if os.geteuid() == 0:
        user = "postgres"
        shutil.chown(data, user)
        for one in (folder, *folder.parents):
            if one.stat().st_uid == 0 and one != Path("/") and one.is_relative_to("/tmp"):
                one.chmod(one.stat().st_mode | 0o711)
    binaries = Path(os.path.realpath(control)).parent
    run(user, str(binaries / "initdb"), "-D", str(data), "-U", "tester", "-A", "trust")
    options = f"-p {port} -k {data} -c listen_addresses=127.0.0.1"
    run(user, str(binaries / "pg_ctl"), "-D", str(data), "-w", "-l", str(data / "log"), "-o", options, "start")
    try:
        yield port
    finally:
        run(user, str(binaries / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")


def run(user: str | None, *command: str) -> None:
    """Run a command, as a user."""
    subprocess.run(command, user=user, check=True, capture_output=True, cwd="/")
