from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import deepforecast
from deepforecast.core import atomic
from deepforecast.core.atomic import replace_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        replace_file(tmp_path / "new", [b"x"])
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o666 & ~mask


@pytest.mark.parametrize("permissions", [0o600, 0o664, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, permissions: int) -> None:
    (tmp_path / "m").write_bytes(b"old")
    (tmp_path / "m").chmod(permissions)
    replace_file(tmp_path / "m", [b"n", b"", b"ew"])
    assert mode(tmp_path / "m") == permissions
    assert (tmp_path / "m").read_bytes() == b"new"


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "m").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real/m")
    replace_file(tmp_path / "link", [b"new"])
    assert os.readlink(tmp_path / "link") == "real/m"
    assert (tmp_path / "real" / "m").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]
    assert os.listdir(tmp_path / "real") == ["m"]


def test_a_dangling_link_gets_its_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new folder/m")
    replace_file(tmp_path / "link", [b"new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new folder" / "m").read_bytes() == b"new"


def test_what_is_not_a_file_stays(tmp_path: Path) -> None:
    # No device of the system is tried: root can replace one, and would if the rule broke. A FIFO stands for all of them.
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)  # so that it could be opened for writing
    try:
        for name, says in (("fifo", "Not a regular file"), ("loop", "symbolic links"), ("folder", "Is a directory")):
            with pytest.raises(OSError, match=says):
                replace_file(tmp_path / name, [b"new"])
    finally:
        os.close(reader)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder", "loop"]
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize(
    ("step", "exists"),
    [("chmod", True), *((step, exists) for step in ("chunk", "fsync", "replace") for exists in (True, False))],
)
def test_failure_at_any_step_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: type[BaseException], exists: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    def chunks() -> Iterator[bytes]:
        yield b"new" * 100_000
        if step == "chunk":
            raise error

    if exists:
        (tmp_path / "m").write_bytes(b"old")
    if step != "chunk":
        monkeypatch.setattr(os, step, fail)
    with pytest.raises(error):
        replace_file(tmp_path / "m", chunks())
    monkeypatch.undo()
    assert os.listdir(tmp_path) == (["m"] if exists else [])
    assert not exists or (tmp_path / "m").read_bytes() == b"old"


def test_content_is_on_the_disk_before_it_takes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted_sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        done.append("sync folder" if stat.S_ISDIR(status.st_mode) else f"sync {status.st_size} bytes")
        sync(descriptor)

    def noted_replace(source: str, target: str) -> None:
        done.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    replace_file(tmp_path / "m", [b"new"])
    assert done == ["sync 3 bytes", "replace", "sync folder"]


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    replace_file(tmp_path / "m", [b"new"])
    assert (tmp_path / "m").read_bytes() == b"new"


SAVE_AND_WAIT = """
import sys, time
from deepforecast.core.atomic import replace_file

def chunks():
    yield b"half"
    print("writing", flush=True)
    time.sleep(600)

replace_file(sys.argv[1], chunks())
"""


@contextmanager
def saving(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process in the middle of replacing a file."""
    environment = {**os.environ, "PYTHONPATH": str(Path(deepforecast.__file__).parents[1])}
    command = [sys.executable, "-c", SAVE_AND_WAIT, str(path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            yield process
        finally:
            process.kill()


def temporary_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".deepforecast-*.tmp"))


def test_the_next_save_removes_what_a_killed_save_left_of_its_target(tmp_path: Path) -> None:
    with saving(tmp_path / "m"), saving(tmp_path / "other"):
        pass
    assert len(temporary_files(tmp_path)) == 2
    (tmp_path / "link").symlink_to("m")
    replace_file(tmp_path / "link", [b"new"])
    assert len(temporary_files(tmp_path)) == 1
    replace_file(tmp_path / "other", [b"new"])
    assert sorted(os.listdir(tmp_path)) == ["link", "m", "other"]


def test_a_save_leaves_the_temporary_file_of_a_living_process_alone(tmp_path: Path) -> None:
    with saving(tmp_path / "m"):
        before = temporary_files(tmp_path)
        replace_file(tmp_path / "m", [b"new"])
        assert temporary_files(tmp_path) == before
        assert len(before) == 1
    assert (tmp_path / "m").read_bytes() == b"new"


def test_a_temporary_file_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks: list[int] = []
    lock = fcntl.flock

    def removed_meanwhile(descriptor: int, flags: int) -> None:
        if not locks:
            (tmp_path / temporary_files(tmp_path)[0]).unlink()
        locks.append(descriptor)
        lock(descriptor, flags)

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    replace_file(tmp_path / "m", [b"new"])
    assert len(locks) == 2
    assert os.listdir(tmp_path) == ["m"]


def test_without_locks_files_are_replaced_and_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with saving(tmp_path / "m"):
        pass
    monkeypatch.setattr(atomic, "fcntl", None)  # as on Windows
    replace_file(tmp_path / "m", [b"new"])
    assert (tmp_path / "m").read_bytes() == b"new"
    assert len(temporary_files(tmp_path)) == 1


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        replace_file(tmp_path / "m", [b"new"])
        with pytest.raises(TypeError):
            replace_file(tmp_path / "m", ["no bytes"])  # type: ignore[list-item]
    assert len(os.listdir("/proc/self/fd")) == before
