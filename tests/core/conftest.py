"""What the tests of this package share: a model file built by hand, and code run in a child process."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from deepforecast import errors
from deepforecast.core.encoding import FORMAT_VERSION

# What a child that saves and loads starts with. Its model says one number in four places, so that a mixture of two would show.
CHILD = """
import json, os, resource, signal, sys, time
import numpy as np
from deepforecast.errors import ModelFileError, SaveError
from deepforecast.core.encoding import read_archive as read, write_archive as write

def save(path, number, size=20_000):
    arrays = {"a": np.full(size, number), "b": np.full(7, number, "i1")}
    write(path, {"number": number, "text": str(number) * 1_000}, arrays)

def load(path):
    manifest, arrays = read(path)
    numbers = {manifest["number"], *arrays["a"].tolist(), *arrays["b"].tolist()}
    assert len(numbers) == 1 and manifest["text"] == str(manifest["number"]) * 1_000, numbers
    return manifest["number"]

def saved(path, number, size=20_000):
    try:
        save(path, number, size)
    except SaveError as error:
        return {"error": str(error), "errno": error.errno}
    return {"error": None}

def peak():  # in megabytes; ru_maxrss would include that of the process this one was started from
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
"""

MAGIC = b"\x89DFC\r\n\x1a\n"


def seal(manifest: bytes, block: bytes, version: int = FORMAT_VERSION, manifest_length: int | None = None) -> bytes:
    """A model file with a true checksum around whatever content, built without the library."""
    start = MAGIC + struct.pack("<I", version)
    rest = struct.pack("<Q", len(manifest) if manifest_length is None else manifest_length) + manifest + block
    return start + hashlib.sha256(start + rest).digest() + rest


@pytest.fixture(scope="session")
def sealed() -> Callable[..., bytes]:
    return seal


@pytest.fixture(scope="session")
def run_child() -> Callable[..., str]:
    """Runs Python code in a child process, and returns what it prints."""

    def run(code: str, *arguments: object, launcher: Sequence[str] = (), timeout: float = 120, **environment: str) -> str:
        package = str(Path(errors.__file__).parents[1])
        done = subprocess.run(
            [*launcher, sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": package, **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def child(run_child: Callable[..., str]) -> Callable[..., str]:
    """Runs code in a child process that has `save`, `load`, `saved` (a save whose outcome is data) and `peak` (memory)."""
    return lambda code, *arguments, **options: run_child(CHILD + textwrap.dedent(code), *arguments, **options)
