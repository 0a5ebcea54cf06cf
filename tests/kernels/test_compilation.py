"""Kernels are kept on disk, stay current, and live in memory where nothing can be written."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numba
import pytest

import deepforecast.kernels
from deepforecast.kernels import compilation
from deepforecast.kernels.compilation import compile_notice, compiled

KERNELS = Path(deepforecast.kernels.__file__).parent

PACKAGE = {
    "deepforecast/__init__.py": "",
    "deepforecast/data/__init__.py": "",
    "deepforecast/kernels/__init__.py": "",
    "deepforecast/kernels/inner.py": """
        from deepforecast.kernels.compilation import compiled

        @compiled
        def inner(x):
            return x + 1.0
        """,
    "deepforecast/kernels/outer.py": """
        from deepforecast.kernels.compilation import compiled
        from deepforecast.kernels.inner import inner

        @compiled
        def outer(x):
            return 10.0 * inner(x)
        """,
}


@pytest.fixture
def small(tmp_path):
    """A package with two kernels in files of their own, one calling the other; a function that runs Python in its folder."""
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    shutil.copy(KERNELS.parent / "data/terminal.py", tmp_path / "deepforecast/data")
    for name in ("compilation.py", "numba_pipeline.py"):
        shutil.copy(KERNELS / name, tmp_path / "deepforecast/kernels" / name)

    def run(code, **environment):
        held = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        held.pop("NUMBA_CACHE_DIR", None)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=held, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return tmp_path, run


CALL = "from deepforecast.kernels.outer import outer; print(outer(1.0), sum(outer.stats.cache_hits.values()))"


@pytest.mark.slow
def test_a_kernel_is_compiled_once_on_a_machine(small):
    _, run = small
    assert run(CALL) == "20.0 0"
    assert run(CALL) == "20.0 1"


@pytest.mark.slow
def test_a_change_in_what_a_kernel_calls_is_seen(small):
    folder, run = small
    assert run(CALL) == "20.0 0"
    inner = folder / "deepforecast/kernels/inner.py"
    before = inner.stat()
    inner.write_text(inner.read_text().replace("1.0", "2.0"))
    os.utime(inner, ns=(before.st_atime_ns, before.st_mtime_ns))  # as files of a wheel may all have one time
    assert run(CALL) == "30.0 0"


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x04cut", pickle.dumps(numba.__version__) + b"cdeepforecast.kernels.inner\nGone\n."],
    ids=["empty", "damaged", "names a class that is gone"],
)
def test_a_cache_index_of_other_sources_is_not_read(content):
    @compiled
    def add(x):
        return x + 1.0

    index = Path(add._cache._cache_file._index_path)
    index.parent.mkdir(exist_ok=True)
    index.write_bytes(content)
    try:
        assert add(1.0) == 2.0
        assert index.read_bytes() != content  # and the kernel is stored again
    finally:
        for path in index.parent.glob(index.stem + ".*"):
            path.unlink()


def test_kernels_run_as_plain_python_where_numba_is_told_not_to_compile(small):
    _, run = small
    assert run("from deepforecast.kernels.outer import outer; print(outer(1.0))", NUMBA_DISABLE_JIT="1") == "20.0"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_kernels_live_in_memory_where_the_disk_is_full(small):
    _, run = small
    full = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
        """
    assert run(textwrap.dedent(full) + CALL) == "20.0 0"
    assert run(CALL) == "20.0 0"  # and nothing half written is taken for a kernel


@pytest.mark.slow
def test_kernels_live_in_memory_where_no_folder_can_be_written(small):
    folder, run = small
    (folder / "deepforecast/kernels/__pycache__").write_text("a file where the folder would be")
    (folder / "home").write_text("a file where the user's folder would be")
    nowhere = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home"), "LOCALAPPDATA": str(folder / "home")}
    assert run(CALL, **nowhere) == "20.0 0"
    assert run(CALL, **nowhere) == "20.0 0"


def test_compiling_is_said_once_and_in_a_terminal_only(capsys, monkeypatch):
    monkeypatch.setattr(compilation, "_source_digest", lambda: str(time.time_ns()))  # nothing that an earlier run has kept
    monkeypatch.setattr(compilation, "_notified", set())

    def fresh():
        def add(x):
            return x + 1.0

        def twice(x):
            return 2.0 * x

        return compiled(add), compiled(twice)

    add, twice = fresh()
    with compile_notice("sums"):
        assert add(1.0) == 2.0
    assert capsys.readouterr() == ("", "")
    add, twice = fresh()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with compile_notice("sums"):
        assert add(1.0) == 2.0
    with compile_notice("sums"):
        assert twice(2.0) == 4.0  # compiled only now, as kernels of fit and predict are
    with compile_notice("products"):
        assert fresh()[1](2.0) == 4.0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "".join(f"deepforecast: compiling {what}, once on this machine ...\n" for what in ("sums", "products"))
