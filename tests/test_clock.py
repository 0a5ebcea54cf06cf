"""Time zone and clock of the machine reach no forecast, and durations come from the clock that only goes forward."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import tqdm  # noqa: F401  # before any clock goes back: it keeps the clock that is there when it is imported

from deepforecast import BacktestOptions, Conformal, Naive, SeasonalNaive, compare, load
from deepforecast.core.parallel import map_chunks
from deepforecast.testing.subject import Subject
from tests.bad_input import ALL, made
from tests.evaluation.boards import Trainer, seasonal
from tests.everything import days, elsewhere, hours, same, settled
from tests.frames import plain
from tests.frames import same as same_frame

PACKAGE = Path(__file__).resolve().parents[1] / "deepforecast"
ACROSS_MACHINES = {"tuning/trial_recovery.py"}  # when a worker on another machine was last heard of: no other clock is shared
WALL = {"time", "time_ns", "ctime", "localtime", "mktime"}  # functions of the module time that follow the wall clock


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Sets the zone of the process, and puts it back."""
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati"])
def test_time_zone_of_the_machine_does_not_matter(name: str) -> None:
    same(elsewhere(f"import time; assert time.tzname[0] != 'UTC', {name!r}", TZ=name), settled())


@pytest.mark.parametrize("frame", [days, hours], ids=["naive days", "Berlin's hours"])
@ALL
def test_time_zone_change_between_fit_and_predict(
    subject: Subject, frame: Callable[[], Any], zone: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    zone.setenv("TZ", "UTC")
    time.tzset()
    model = made(subject).fit(frame())
    wanted = plain(model.predict())
    model.save(tmp_path / "model")
    zone.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    assert time.timezone == -20700
    same_frame(model.predict(), wanted)
    same_frame(load(tmp_path / "model").predict(), wanted)
    same_frame(made(subject).fit(frame()).predict(), wanted)


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock goes back by an hour each time it is looked at."""
    start, steps, real = time.time(), count(), time.time_ns()
    monkeypatch.setattr(time, "time", lambda: start - 3600.0 * next(steps))
    monkeypatch.setattr(time, "time_ns", lambda: real - 3600 * 10**9 * next(steps))


@pytest.mark.usefixtures("backwards")
def test_clock_set_back_during_a_comparison() -> None:
    begin, first, second = time.perf_counter(), time.time(), time.time()
    assert second < first
    models = [Naive(), SeasonalNaive(), Conformal(Naive()), Trainer(steps=4)]
    board = compare(models, seasonal(12), horizon=4, n_windows=2, options=BacktestOptions(progress=True))
    whole = time.perf_counter() - begin
    assert board.failed == []
    told = board.table[["fit_seconds", "predict_seconds"]]
    assert (told > 0).all(axis=None)
    assert float(told.to_numpy().sum()) <= board.settings["seconds"] <= whole
    trained = board.table.set_index("model").loc["Trainer", "fit_seconds"]
    assert 0.04 <= trained <= whole  # one fit of four hundredths of a second
    assert 0 < board.settings["estimate_seconds"] < 60


@pytest.mark.usefixtures("backwards")
def test_progress_bar_with_a_clock_set_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert map_chunks(lambda part: part.start, 20, n_jobs=2, cost=1.0, progress=True) == list(range(20))
    assert "20/20" in capsys.readouterr().err


def test_wall_clock_is_read_for_dates_only() -> None:
    files = sorted(path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)) not in ACROSS_MACHINES)
    found = [f"{path.relative_to(PACKAGE)}:{line}" for path in files for line in wall_clock(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\nbegin = time.time()", [2]),
        ("from time import monotonic, time", [1]),
        ("from datetime import datetime\ntook = datetime.now() - begin", [2]),
        ("import time\nbegin = time.perf_counter()\nmade = datetime.now(UTC)", []),
    ],
)
def test_a_wall_clock_is_noticed(source: str, lines: list[int]) -> None:
    assert wall_clock(source) == lines


def wall_clock(source: str) -> list[int]:
    """Lines that take a time of the wall clock for a duration: the module time's, or a date without a zone."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            lines += [node.lineno for alias in node.names if alias.name in WALL]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            lines += [node.lineno] if node.value.id == "time" and node.attr in WALL else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
            lines += [node.lineno] if node.func.attr in ("now", "utcnow", "today") else []
    return sorted(lines)
