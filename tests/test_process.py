"""The process around the library: languages, flags, folders, streams, few files, threads and forks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.everything import elsewhere, same, settled

ROOT = Path(__file__).resolve().parents[1]
DECIMAL_COMMA = """
import locale
set_to = locale.setlocale(locale.LC_ALL, "")
assert locale.localeconv()["decimal_point"] == ",", set_to
"""


def run(code: str, *arguments: str, flags: tuple[str, ...] = (), stdin: str | None = None, **environment: str) -> str:
    """What a fresh process prints that runs `code`; it may say nothing on stderr."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    source = ["-"] if stdin is not None else ["-c", textwrap.dedent(code)]
    command = [sys.executable, *flags, *source, *arguments]
    done = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


# -- languages and flags ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What to set so that these locales are found: made here where the system has their sources but not them."""
    made = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef") is None:
        return {}
    for name in ("tr_TR", "de_DE"):
        command = ["localedef", "-i", name, "-f", "UTF-8", str(made / f"{name}.UTF-8")]
        subprocess.run(command, capture_output=True, timeout=240, check=False)
    return {"LOCPATH": str(made)} if len(list(made.iterdir())) == 2 else {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tr_TR.UTF-8", "de_DE.UTF-8"])
def test_locale_with_a_decimal_comma(locales: dict[str, str], name: str) -> None:
    """The caller has set the locale of the whole process, where it can be had; else only the variables say it."""
    code = DECIMAL_COMMA if locales else ""
    same(elsewhere(code, LC_ALL=name, LANG=name, **locales), settled())


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O",), ("-OO",), ("-X", "utf8=0"), ("-X", "dev")], ids=" ".join)
def test_python_optimization_flags(flags: tuple[str, ...]) -> None:
    """-O takes asserts away, -OO docstrings too: every result and every error is the same."""
    same(elsewhere(flags=flags), settled())


@pytest.mark.slow
def test_python_optimization_by_environment_variable() -> None:
    same(elsewhere("import sys; assert sys.flags.optimize == 2", PYTHONOPTIMIZE="2", LC_ALL="C"), settled())


# -- folders -----------------------------------------------------------------------------------------------------------


NO_HOME = """
import os
os.environ.pop("HOME", None)
os.environ.update({home})
os.chdir({folder!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize("home", [{}, {"HOME": "/dev/null/nowhere"}], ids=["HOME unset", "HOME not writable"])
def test_works_without_a_home_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, home: dict[str, str]
) -> None:
    """Everything, where no cache and no settings can be kept; nothing is left in the folder it works in."""
    nowhere = {"XDG_CACHE_HOME": "/dev/null/nowhere", "XDG_CONFIG_HOME": "/dev/null/nowhere"}
    nowhere["MPLCONFIGDIR"] = str(tmp_path_factory.mktemp("matplotlib"))  # catboost imports matplotlib, which warns
    same(elsewhere(NO_HOME.format(home=home, folder=str(tmp_path)), **nowhere), settled())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_plot_without_a_home_folder(tmp_path: Path) -> None:
    """matplotlib may say that it keeps no cache; the picture is drawn."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/dev/null/nowhere", "MPLCONFIGDIR": "/dev/null/nowhere"}
    done = subprocess.run([sys.executable, "-c", PICTURE], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


PICTURE = """
from deepforecast import Naive, plot
from tests.everything import days
plot(days(), Naive(horizon=3).fit(days()).predict(level=80)).savefig("picture.png")
"""


# -- few files ---------------------------------------------------------------------------------------------------------

FEW = """
import os, resource, sys
from deepforecast import Drift, Naive, SeasonalNaive, compare, cross_validate, load
from deepforecast.errors import ModelFileError, SaveError
from tests.everything import days

path, frame = sys.argv[1], days()
Naive(horizon=3).fit(frame).save(path)
wanted = load(path).predict()
cross_validate([Naive(), Drift()], frame, horizon=3)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
"""


@pytest.mark.slow
def test_no_file_descriptor_stays_open(tmp_path: Path) -> None:
    """64 files at most, and more often than that what opens any; a file that is refused is closed too."""
    code = FEW + """
def act():
    Naive(horizon=3).fit(frame).save(path)
    assert load(path).predict().equals(wanted)
    open(path + ".cut", "wb").write(open(path, "rb").read()[:-9])
    try:
        load(path + ".cut")
    except ModelFileError:
        pass

def judge():
    board = compare([Naive(), SeasonalNaive()], frame, horizon=3)
    board.report(path + ".html")

act(), judge()
before = os.listdir("/proc/self/fd")
for number in range(70):
    act()
judge()
print(os.listdir("/proc/self/fd") == before)
"""
    assert run(code, str(tmp_path / "model")) == "True\n"


@pytest.mark.slow
def test_workers_with_few_file_descriptors(tmp_path: Path) -> None:
    """Workers need pipes: they find them within 64 files."""
    code = FEW + """
alone = cross_validate([Naive(), Drift()], frame, horizon=3, n_jobs=1)
for _ in range(3):
    assert cross_validate([Naive(), Drift()], frame, horizon=3, n_jobs=2).equals(alone)
print("done")
"""
    assert run(code, str(tmp_path / "model")) == "done\n"


def test_no_file_descriptor_left_is_a_clear_error(tmp_path: Path) -> None:
    """What needs no file works; what needs one says which, and works again when there is one."""
    code = FEW + """
held = []
try:
    while True:
        held.append(open(os.devnull))
except OSError:
    pass
model = Drift(horizon=3).fit(frame)
model.predict(level=80)
cross_validate([Naive(), Drift()], frame, horizon=3)
for act in (lambda: model.save(path), lambda: load(path)):
    try:
        act()
    except (SaveError, ModelFileError) as error:
        print(type(error).__name__, "Too many open files" in str(error), path in str(error))
for one in held:
    one.close()
assert load(path).predict().equals(wanted)
model.save(path)
print(sorted(os.listdir(os.path.dirname(path))))
"""
    assert run(code, str(tmp_path / "model")).splitlines() == [
        "SaveError True True",
        "ModelFileError True True",
        "['model']",
    ]


# -- threads and forks -------------------------------------------------------------------------------------------------

FITTED = """
import os, threading
from deepforecast import Conformal, Drift, Naive, SeasonalNaive, compare, cross_validate
from tests.everything import days, text

frame = days()
models = [Naive(), SeasonalNaive(), Drift(), Conformal(Naive(), alias="Bands")]

def work(workers=1):
    fitted = [text(model.clone(horizon=3).fit(frame).predict(level=50)) for model in models]
    return fitted, text(cross_validate(models, frame, horizon=3, n_windows=2, level=50, n_jobs=workers))

wanted = work()
"""


def test_fit_in_a_thread_and_fork_after_fit() -> None:
    code = FITTED + """
found = []
thread = threading.Thread(target=lambda: found.append(work()))
thread.start()
thread.join(60)
print(found == [wanted], flush=True)
child = os.fork()
if not child:
    print(work() == wanted, flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], work() == wanted)
"""
    assert run(code).splitlines() == ["True", "True", "0 True"]


@pytest.mark.slow
def test_four_comparisons_on_workers_in_four_threads() -> None:
    code = FITTED + """
found = {}
threads = [threading.Thread(target=lambda number=number: found.update({number: work(2)})) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(100)
print([found.get(number) == wanted for number in range(4)])
"""
    assert run(code) == "[True, True, True, True]\n"


CELL = """
import numpy as np
from deepforecast import Capabilities, Forecaster, Naive, cross_validate, register
from deepforecast.core.forecast import PointForecast
from deepforecast.core.state import LearnedState
from tests.everything import days, text

class Last(Forecaster):
    capabilities = Capabilities()

    def _fit(self, panel, monitor):
        return LearnedState({"last": panel.padded(1)[:, 0]})

    def _advance(self, learned, panel, fresh):
        return self._fit(panel, None)

    def _forecast(self, learned, steps, future):
        return PointForecast(np.repeat(learned["last"][:, None], steps, axis=1), self.name)

found = cross_validate([Last(), Naive()], days(), horizon=3, n_jobs=2)
print(found["Last"].equals(found["Naive"].rename("Last")))
"""


@pytest.mark.slow
def test_workers_from_a_notebook_cell() -> None:
    """No file, no guard around the main module, a model of the cell's own."""
    assert run("", stdin=CELL) == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_fitted_model_forecasts_in_a_multiprocessing_pool(method: str) -> None:
    code = FITTED + """
import multiprocessing, sys
model = models[3].clone(horizon=3).fit(frame)
with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
    found = [pool.apply(model.predict, (4,)), pool.apply(model.clone().fit, (frame,)).predict(4)]
print([text(one) == text(model.predict(4)) for one in found])
"""
    assert run(code, method) == "[True, True]\n"
