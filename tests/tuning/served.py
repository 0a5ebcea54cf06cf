"""Database servers of our own, for a test: their files in a folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest


@dataclass
class Server:
    """One that runs: the URL of its database, and how to stop and start it."""

    url: str
    stop: Callable[[], object]
    start: Callable[[], object]


@contextmanager
def postgresql() -> Iterator[Server]:
    """A PostgreSQL that runs inside the block; the test is skipped where there is none, or no driver."""
    control = shutil.which("pg_ctl") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")), None)
    if control is None:
        pytest.skip("no PostgreSQL here: pg_ctl is not found (Debian: apt install postgresql)")
    driver, binaries = _driver("PostgreSQL", "psycopg2", "psycopg", "pg8000"), Path(os.path.realpath(control)).parent
    with _folder("postgres") as (folder, user, port):
        data = f"{folder}/data"
        _run(user, str(binaries / "initdb"), "-D", data, "-U", "tester", "-A", "trust")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"

        def start() -> None:
            _run(user, str(binaries / "pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")

        def stop() -> None:
            _run(user, str(binaries / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")

        start()
        try:
            yield Server(f"postgresql+{driver}://tester@127.0.0.1:{port}/postgres", stop, start)
        finally:
            stop()


@contextmanager
def mariadb() -> Iterator[Server]:
    """A MariaDB, or a MySQL by its name, that runs inside the block; the test is skipped where there is none, or no driver."""
    daemon, installs = shutil.which("mariadbd", path=MISSING_ROWS), shutil.which("mariadb-install-db", path=MISSING_ROWS)
    if daemon is None or installs is None:
        pytest.skip("no MariaDB here: mariadbd is not found (Debian: apt install mariadb-server)")
    driver = _driver("MySQL", "pymysql", "MySQLdb")
    with _folder("mysql") as (folder, user, port):
        own = [f"--user={user}"] if user else []
        _run(None, installs, "--no-defaults", f"--datadir={folder}/data", "--auth-root-authentication-method=normal", *own)
        grant = "GRANT ALL ON *.* TO tester@'127.0.0.1' IDENTIFIED BY ''"
        Path(f"{folder}/first.sql").write_text(f"CREATE DATABASE tester;\n{grant};\n")
        options = [f"--datadir={folder}/data", f"--port={port}", f"--socket={folder}/s", f"--pid-file={folder}/pid",
                   "--bind-address=127.0.0.1", "--skip-name-resolve", *own]  # fmt: skip
        held: list[subprocess.Popen[bytes]] = []

        def start() -> None:
            first = [] if held else [f"--init-file={folder}/first.sql"]
            command = [daemon, "--no-defaults", *options, *first]
            held.append(subprocess.Popen(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            _listening(port, held[-1])

        def stop() -> None:
            held[-1].kill()
            held[-1].wait(60)

        start()
        try:
            yield Server(f"mysql+{driver}://tester@127.0.0.1:{port}/tester", stop, start)
        finally:
            stop()


MISSING_ROWS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


def _driver(server: str, *names: str) -> str:
    found = next((one for one in names if find_spec(one)), None)
    if found is None:
        pytest.skip(f"no driver of {server} here: none of {', '.join(names)} can be imported")
    return found.lower()


@contextmanager
def _folder(account: str) -> Iterator[tuple[str, str | None, int]]:
    """A folder, the account that a server runs by, where root must not, and a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="df-db-")  # short: a socket's path must be
    user = account if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    try:
        yield folder, user, port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _listening(port: int, process: subprocess.Popen[bytes]) -> None:
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < 240:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not start")


def _run(user: str | None, *command: str) -> None:
    """Run a command, as a user; what it starts holds none of our pipes."""
    subprocess.run(command, user=user, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
