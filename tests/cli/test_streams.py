"""Closed streams, readers that leave, full disks and interrupts, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepforecast.cli import streams

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "deepforecast"]


def environment(**changed: str) -> dict[str, str]:
    held = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**held, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **changed}


def shell(line: str, folder: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `df` is the command."""
    script = f'df() {{ "{sys.executable}" -m deepforecast "$@"; }}\n{line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment(**changed), capture_output=True, text=True, timeout=60
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.dfc."""
    import pandas as pd

    from deepforecast import SeasonalNaive

    folder = tmp_path_factory.mktemp("model")
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=30), "y": [float(i % 7) for i in range(30)]})
    SeasonalNaive(horizon=3).fit(frame).save(folder / "model.dfc")
    return folder


def test_stdout_closed(model: Path) -> None:
    done = shell("df predict model.dfc >&-; echo $? >code", model)
    assert (model / "code").read_text() == "2\n"
    assert done.stderr == "error: The result cannot be written because standard output is closed. Pass --output FILE.\n"
    assert shell("df predict model.dfc --output f.csv >&-", model).returncode == 0
    assert (model / "f.csv").read_text().startswith("ds,SeasonalNaive\n2024-01-31,2.0\n")


def test_stdin_closed_and_empty(model: Path) -> None:
    done = shell("df check - <&-", model)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Standard input cannot be read because it is closed" in done.stderr
    assert "standard input is empty" in shell("df check - </dev/null", model).stderr


def test_all_streams_closed_writes_into_no_file(model: Path) -> None:
    done = shell("df predict model.dfc --output all.csv <&- >&- 2>&-", model)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (model / "all.csv").read_text().count("\n") == 4
    assert shell("df predict nowhere.dfc <&- >&- 2>&-", model).returncode == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["predict model.dfc", "predict model.dfc --json", "--help"])
def test_pipe_closed_before_the_first_line(model: Path, command: str, unbuffered: str) -> None:
    done = shell(f"df {command} | true; exit ${{PIPESTATUS[0]}}", model, PYTHONUNBUFFERED=unbuffered)
    # A command that is done before the reader leaves ends well; it never complains.
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_pipe_closed_in_the_middle(model: Path, unbuffered: str) -> None:
    done = shell("df predict model.dfc --horizon 50000 | head -1; exit ${PIPESTATUS[0]}", model, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stdout, done.stderr) == (141, "ds,SeasonalNaive\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["predict model.dfc", "predict model.dfc --json"])
def test_full_disk(model: Path, command: str, unbuffered: str) -> None:
    done = shell(f"df {command} >/dev/full", model, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")
    assert shell("df predict nowhere.dfc 2>/dev/full", model).returncode == 2


def test_a_locale_without_the_letters(model: Path) -> None:
    import pandas as pd

    from deepforecast import Naive

    frame = pd.DataFrame({"unique_id": "日本", "ds": pd.date_range("2024-01-01", periods=3), "y": 1.0})
    Naive(horizon=1).fit(frame).save(model / "j.dfc")
    done = shell("df predict j.dfc", model, PYTHONIOENCODING="ascii")
    assert done.stdout == "unique_id,ds,Naive\n日本,2024-01-04,1.0\n"  # data are UTF-8 everywhere
    listed = shell("df models Conformal", model, PYTHONIOENCODING="ascii")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "Cand\\xe8s" in listed.stdout


def wait_until_it_waits(pid: int) -> None:
    """Until all is imported and the process has slept, and computed nothing, for half a second."""
    deadline, before, idle = time.monotonic() + 240, "", 0
    while idle < 10 and time.monotonic() < deadline:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        spent = " ".join(rest[10:12])  # its CPU time
        ready = state == "S" and "pyarrow" in Path(f"/proc/{pid}/maps").read_text()
        idle, before = (idle + 1 if ready and spent == before else 0), spent
        time.sleep(0.05)


def test_interrupted(model: Path) -> None:
    # It waits for its input, so it is interrupted in the middle of its work whatever the machine is doing.
    process = subprocess.Popen(
        [*COMMAND, "check", "-"],
        cwd=model,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's job in the background ignores it
    )
    wait_until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_start_up_loads_little(tmp_path: Path) -> None:
    code = (
        "import sys, time; begin = time.process_time(); from deepforecast.cli import main; main(['--help']);"
        "sys.stderr.write(f'{time.process_time() - begin} ' + ' '.join({n.split('.')[0] for n in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=240)
    seconds, *modules = done.stderr.split()
    assert {"pandas", "numpy", "torch", "pyarrow", "matplotlib", "scipy", "narwhals", "joblib"} & set(modules) == set()
    assert float(seconds) < 5.0  # ten times what is promised: only a blow-up fails


def test_models_load_neither_pandas_nor_torch(tmp_path: Path) -> None:
    code = "import sys; from deepforecast.cli import main; main(['models']); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=240)
    assert {"pandas", "torch", "pyarrow", "matplotlib"} & set(done.stderr.split()) == set()


def test_styles_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        closed = False

        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert streams.paint("x", "red", Terminal()) == "\x1b[1;31mx\x1b[0m"
    assert streams.paint("x", "", Terminal()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert streams.paint("x", "red", Terminal()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert streams.paint("x", "red", Terminal()) == "x"


def test_streams_without_bytes_below_take_text(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    held = io.StringIO()
    monkeypatch.setattr("sys.stdout", held)
    streams.print_text("a")
    streams.write_result("ü\n".encode())
    assert held.getvalue() == "a\nü\n"
