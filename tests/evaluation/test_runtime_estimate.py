"""How long a comparison will take: near enough, cheap to find out, silent when it is short."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from deepforecast import BacktestOptions, Naive, compare, param
from deepforecast.core import threads
from deepforecast.core.parallel import map_chunks
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan
from deepforecast.evaluation import runtime_estimate
from tests.clock import stopped
from tests.evaluation.boards import LastValue, Trainer, seasonal
from tests.screen import opened

# The seasonal series are few and short: their intervals cover little, which is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning")

FRAME = seasonal()


def exactly(seconds: float) -> runtime_estimate.RuntimeEstimate:
    return runtime_estimate.RuntimeEstimate(seconds, seconds, seconds)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a tenth of a second are worth announcing, trials of two hundredths long enough."""
    monkeypatch.setattr(runtime_estimate, "MIN_ANNOUNCED_SECONDS", 0.1)
    monkeypatch.setattr(runtime_estimate, "MIN_TRIAL_SECONDS", 0.02)
    monkeypatch.setattr(runtime_estimate, "MAX_TRIAL_SECONDS", 0.2)
    monkeypatch.setattr(runtime_estimate._ModelTrials, "_has_kernels", False)  # whatever other tests have imported
    stopped(monkeypatch)


@pytest.mark.usefixtures("soon")
def test_local_models_take_as_long_as_they_have_series() -> None:
    frame = seasonal(150)
    board = compare([LastValue(pause=0.002), Naive()], frame, horizon=4, n_windows=2)
    fitted = board.table["fit_seconds"].sum()
    assert fitted > 0.6
    assert fitted / 2 < board.settings["estimate_seconds"] < 2 * fitted


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("refit", "fits"), [("auto", 1), (True, 4), (2, 2)])
def test_a_trial_of_a_global_model_is_ended_and_its_reports_tell_the_rest(refit: object, fits: int) -> None:
    started = time.perf_counter()
    every = {"auto": 0, True: 1, 2: 2}[refit]
    found = runtime_estimate.estimate_runtime(
        [Trainer(horizon=4, steps=500)], Panel.from_frame(FRAME), BacktestPlan(4, 4, 4), [every], n_jobs=1
    )
    assert time.perf_counter() - started < 2
    assert found.is_narrow
    assert 0.6 < found.likely / (5.0 * fits) < 1.6


@pytest.mark.usefixtures("soon")
def test_workers_share_the_work_but_not_one_model() -> None:
    panel, plan = Panel.from_frame(seasonal(60)), BacktestPlan(4, 1, 4)
    models = [LastValue(horizon=4, pause=0.01, alias=alias) for alias in "ABCD"]
    alone, shared = (runtime_estimate.estimate_runtime(models, panel, plan, [1] * 4, n_jobs=workers) for workers in (1, 2))
    assert alone.likely / shared.likely == pytest.approx(2, rel=0.4)
    assert runtime_estimate.estimate_runtime(models[:1], panel, plan, [1], n_jobs=4).likely > 0.4


class Loader(LastValue):
    """Takes `load` seconds a fit, however many series there are, and `first` more the first time."""

    load: float = param(default=0.05, help="seconds of each fit")
    first: float = param(default=0.0, help="seconds more of the first one")

    def _fit(self, panel: Any, monitor: Any) -> Any:
        SIZES.append(len(panel))
        time.sleep(self.load + (self.first if len(SIZES) == 1 else 0.0))
        return super()._fit(panel, monitor)


SIZES: list[int] = []


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("first", [0.0, 0.3], ids=["at once", "after loading something"])
@pytest.mark.parametrize("each", [0.0, 0.002], ids=["the call", "the call and each series"])
def test_what_a_call_costs_is_told_from_what_a_series_costs(first: float, each: float) -> None:
    SIZES.clear()
    panel, plan = Panel.from_frame(seasonal(400)), BacktestPlan(4, 4, 4)
    found = runtime_estimate.estimate_runtime(
        [Loader(horizon=4, load=0.05, first=first, pause=each)], panel, plan, [1], n_jobs=1
    )
    true = 4 * (0.05 + 400 * each)
    assert true / 2.5 < found.likely < 2.5 * true  # 100 times as much, where the first trial is taken for series alone
    assert found.low < 1.6 * true
    assert found.high > true / 1.6
    assert max(SIZES) <= 100
    assert len(SIZES) <= 6


@pytest.mark.usefixtures("soon")
def test_a_first_trial_that_compiles_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_estimate._ModelTrials, "_has_kernels", True)
    SIZES.clear()
    # Too few series for a trial that tells it to be an exception.
    panel, plan = (
        Panel.from_frame(seasonal(30)),
        BacktestPlan(4, 3, 4),
    )
    found = runtime_estimate.estimate_runtime([Loader(horizon=4, load=0.0, first=0.8, pause=0.005)], panel, plan, [1], n_jobs=1)
    assert SIZES[:2] == [4, 4]
    assert 0.3 < found.likely <= found.high < 0.9  # 3 windows of 30 series take 0.45


def test_kernels_may_be_there_once_their_compiler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    panel, plan = Panel.from_frame(FRAME), BacktestPlan(4, 2, 4)
    local, shared = (
        runtime_estimate._ModelTrials(model, panel, plan, 1, runtime_estimate.keep_model, ()) for model in (Naive(), Trainer())
    )
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert (local._has_kernels, shared._has_kernels) == (True, False)
    monkeypatch.delitem(sys.modules, "numba")
    assert not local._has_kernels


def test_trials_make_the_bands_that_the_run_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, make = [], runtime_estimate.output_columns

    def noted(*given: Any) -> Any:
        asked.append(given[3])
        return make(*given)

    monkeypatch.setattr(runtime_estimate, "output_columns", noted)
    compare([Naive()], FRAME, horizon=4, n_windows=3, level=[80, 95])
    assert asked == [[80.0, 95.0]]


@pytest.mark.usefixtures("soon")
def test_what_trials_cannot_tell_is_told_as_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    SIZES.clear()
    panel, plan = Panel.from_frame(seasonal(120)), BacktestPlan(4, 3, 4)
    found = runtime_estimate.estimate_runtime([Loader(horizon=4, load=0.6)], panel, plan, [1], n_jobs=1)  # enough for one trial
    assert len(SIZES) <= 2
    assert found.low == pytest.approx(1.8, rel=0.2)
    assert found.high > 2 * found.low
    runtime_estimate.announce_runtime(runtime_estimate.RuntimeEstimate(60, 500, 3000), 2, plan, panel, True)
    assert capsys.readouterr().err.endswith(": 60 s to 50 min\n")


def test_trials_show_no_bar_and_have_the_threads_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Threaded(LastValue):
        def _fit(self, panel: Any, monitor: Any) -> Any:
            seen.append(threads.allowed_threads())
            map_chunks(lambda part: time.sleep(0.05), len(panel), cost=1.0)
            return super()._fit(panel, monitor)

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    seen: list[int] = []
    panel, plan = Panel.from_frame(FRAME), BacktestPlan(4, 2, 4)
    models = [Threaded(horizon=4, alias=alias) for alias in "AB"]
    screen = opened(monkeypatch)
    for workers, allowed in ((1, threads.available_cpus()), (2, 1)):
        seen.clear()
        runtime_estimate.estimate_runtime(models, panel, plan, [1, 1], n_jobs=workers)
        assert set(seen) == {allowed}
    assert screen.getvalue() == ""


def test_a_long_run_is_announced_where_progress_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for progress, said in ((True, "compare: 1 models, 2 windows, 12 series: about 3 min\n"), (None, ""), (False, "")):
        monkeypatch.setattr(sys.modules[compare.__module__], "estimate_runtime", lambda *_, **__: exactly(200.0))
        compare([Naive()], FRAME, horizon=4, n_windows=2, options=BacktestOptions(progress=progress))
        found = capsys.readouterr()
        assert found.out == ""
        assert found.err.partition("windows:")[0].strip("\r") == said


@pytest.mark.parametrize(("seconds", "told"), [(31, "31 s"), (100, "2 min"), (7200, "2.0 h")])
def test_time_is_told_in_the_unit_that_suits(seconds: float, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    runtime_estimate.announce_runtime(exactly(seconds), 2, BacktestPlan(4, 3, 4), Panel.from_frame(FRAME), True)
    assert capsys.readouterr().err == f"compare: 2 models, 3 windows, 12 series: about {told}\n"


def test_a_short_run_is_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    board = compare([Naive()], FRAME, horizon=4, n_windows=2, options=BacktestOptions(progress=True))
    assert "compare:" not in capsys.readouterr().err
    assert board.settings["estimate_seconds"] < 30


def test_no_trial_where_it_would_be_much_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    one = FRAME[FRAME["unique_id"] == "s7"]
    assert compare([Naive()], one, horizon=4, n_windows=3).settings["estimate_seconds"] is None
    fits, fit = [], Trainer._fit

    def counted(self: Trainer, panel: Any, monitor: Any) -> Any:
        fits.append(len(panel))
        return fit(self, panel, monitor)

    monkeypatch.setattr(Trainer, "_fit", counted)
    compare([Trainer()], FRAME[FRAME["unique_id"].isin(["s1", "s2", "s3", "s4", "s5"])], horizon=4, n_windows=3)
    assert fits == [5]
    compare([Trainer()], FRAME, horizon=4, n_windows=3)
    assert fits == [5, 1, 12]


def test_a_model_that_fails_its_trial_fails_in_the_run() -> None:
    board = compare([Naive(), LastValue(how="wordless")], FRAME, horizon=4, n_windows=3)
    assert board.failed == ["LastValue"]
