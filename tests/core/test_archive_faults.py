"""Faults while saving (as far as the file alone is concerned).

Whatever limits or kills a process does so to a child.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deepforecast.core.encoding import read_archive as read
from deepforecast.core.encoding import write_archive as write

RunChild = Callable[..., str]

# Saving where it cannot be


def test_save_beyond_the_file_size_limit_keeps_the_old_file(tmp_path: Path, child: RunChild) -> None:
    code = """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        path = sys.argv[1]
        save(path, 1)
        size = os.path.getsize(path)
        results = []
        for limit in (1, 64, size // 2, size - 1, size):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            result = saved(path, 2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            results.append({**result, "holds": load(path), "folder": os.listdir(os.path.dirname(path))})
        print(json.dumps(results))
    """
    *failed, done = json.loads(child(code, tmp_path / "m"))
    assert len(failed) == 4
    for result in failed:
        assert "File too large" in result["error"]
        assert str(tmp_path / "m") in result["error"]
        assert (result["holds"], result["folder"]) == (1, ["m"])
    assert done == {"error": None, "holds": 2, "folder": ["m"]}


@pytest.fixture(scope="session")
def own_mounts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The start of a command whose mounts nobody else sees, and which end with it."""
    launcher = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None:
        pytest.skip("needs a small tmpfs: there is no command unshare")
    mount = ["mount", "-t", "tmpfs", "none", str(tmp_path_factory.mktemp("mount"))]
    trial = subprocess.run([*launcher, *mount], capture_output=True, text=True)
    if trial.returncode:
        pytest.skip(f"needs a small tmpfs, which cannot be mounted here: {trial.stderr.strip()}")
    return launcher


def test_save_on_a_full_disk_keeps_the_old_file(tmp_path: Path, child: RunChild, own_mounts: list[str]) -> None:
    code = """
        path = sys.argv[1]
        save(path, 1)
        result = saved(path, 2, 40_000)
        print(json.dumps({**result, "holds": load(path), "folder": os.listdir(os.path.dirname(path))}))
    """
    mount = ["sh", "-c", 'mount -t tmpfs -o size=400k none "$0" && exec "$@"', str(tmp_path)]
    result = json.loads(child(code, tmp_path / "m", launcher=[*own_mounts, *mount]))
    assert "No space left on device" in result["error"]
    assert str(tmp_path / "m") in result["error"]
    assert (result["holds"], result["folder"]) == (1, ["m"])


def test_save_on_a_read_only_mount(tmp_path: Path, child: RunChild, own_mounts: list[str]) -> None:
    write(tmp_path / "m", {"old": 1}, {})
    code = """
        results = [saved(sys.argv[1], 2), saved(os.path.dirname(sys.argv[1]) + "/new folder/m", 2)]
        print(json.dumps([results, read(sys.argv[1])[0], os.listdir(os.path.dirname(sys.argv[1]))]))
    """
    mount = ["sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"', str(tmp_path)]
    results, manifest, folder = json.loads(child(code, tmp_path / "m", launcher=[*own_mounts, *mount]))
    assert all("Read-only file system" in result["error"] for result in results)
    assert str(tmp_path / "m") in results[0]["error"]
    assert (manifest, folder) == ({"old": 1}, ["m"])


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_save_without_write_permission(open_folder: Path, child: RunChild) -> None:
    for name in ("locked", "free"):
        (open_folder / name).mkdir()
        write(open_folder / name / "m", {"old": 1}, {})
    (open_folder / "free" / "m").chmod(0o444)
    (open_folder / "locked").chmod(0o555)
    code = """
        if os.geteuid() == 0:  # for root there are no permissions
            os.chown(sys.argv[1] + "/free", 65534, 65534)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        results = []
        for path in ("locked/m", "locked/new", "locked/folder/new", "free/m", "free/new"):
            results.append([os.path.join(sys.argv[1], path), saved(os.path.join(sys.argv[1], path), 2)])
        print(json.dumps(results))
    """
    results = json.loads(child(code, open_folder))
    for path, result in results[:-1]:
        assert "Permission denied" in result["error"]
        assert path in result["error"]
    assert results[-1][1] == {"error": None}
    assert os.listdir(open_folder / "locked") == ["m"]
    assert sorted(os.listdir(open_folder / "free")) == ["m", "new"]
    assert read(open_folder / "locked" / "m")[0] == read(open_folder / "free" / "m")[0] == {"old": 1}


def test_save_under_a_regular_file_and_in_a_missing_folder(tmp_path: Path, child: RunChild) -> None:
    (tmp_path / "file").write_bytes(b"x")
    code = """
        folder = sys.argv[1]
        results = [saved(f"{folder}/{path}", 2) for path in ("file/m", "file/deeper/m", "missing/deeper/m")]
        print(json.dumps([*results, load(f"{folder}/missing/deeper/m")]))
    """
    under, deeper, missing, holds = json.loads(child(code, tmp_path))
    assert "Not a directory" in under["error"]
    assert "Not a directory" in deeper["error"]
    assert f"{tmp_path}/file/deeper/m" in deeper["error"]
    assert (missing, holds) == ({"error": None}, 2)
    assert (tmp_path / "file").read_bytes() == b"x"


# Saving while something else happens


@pytest.mark.slow
def test_process_killed_while_saving_leaves_a_complete_file(tmp_path: Path, child: RunChild) -> None:
    code = """
        import random
        path, delays = sys.argv[1], random.Random(0)
        save(path, 1)
        found = []
        def enough():  # on a busy machine many kills come before the first save has begun
            return len(found) >= 50 and {1, 2} <= set(found) and len(os.listdir(os.path.dirname(path))) > 1

        while not enough() and len(found) < 1000:
            process = os.fork()
            if process == 0:
                while True:
                    save(path, 1)
                    save(path, 2)
            time.sleep(delays.uniform(0.001, 0.03))
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            found.append(load(path))
        print(json.dumps(found))
    """
    found = json.loads(child(code, tmp_path / "m"))
    assert len(found) >= 50
    assert set(found) == {1, 2}
    left = [name for name in os.listdir(tmp_path) if name != "m"]
    assert left, "no kill came during a save, so nothing was tested"
    assert all(name.startswith(".deepforecast-") and name.endswith(".tmp") for name in left)


SAVE = """
    saves = 0
    while saves < 200 or not os.path.exists(sys.argv[1] + "/stop"):
        save(sys.argv[1] + "/m", int(sys.argv[2]))
        saves += 1
"""
LOAD = """
    found, until = [], time.monotonic() + 60
    while (len(found) < 200 or 1 not in found or sys.argv[2] not in map(str, found)) and time.monotonic() < until:
        found.append(load(sys.argv[1] + "/m"))
    open(sys.argv[1] + "/stop", "x").close()
    print(json.dumps(found))
"""


def loads_beside_savers(child: RunChild, folder: Path, savers: list[int]) -> list[int]:
    """What one process loads, each time, while others save until it has seen enough."""
    child('save(sys.argv[1] + "/m", 2)', folder)
    with ThreadPoolExecutor(3) as pool:
        saving = [pool.submit(child, SAVE, folder, number) for number in savers]
        found = json.loads(child(LOAD, folder, savers[-1]))
        for done in saving:
            done.result()
    assert sorted(os.listdir(folder)) == ["m", "stop"]
    return list(found)


@pytest.mark.slow
def test_two_processes_save_to_one_path(tmp_path: Path, child: RunChild) -> None:
    found = loads_beside_savers(child, tmp_path, [1, 2])
    assert len(found) >= 200
    assert set(found) == {1, 2}


@pytest.mark.slow
def test_one_process_saves_while_another_loads(tmp_path: Path, child: RunChild) -> None:
    found = loads_beside_savers(child, tmp_path, [1])
    assert len(found) >= 200
    assert set(found) <= {1, 2}
    assert found[-1] == 1
