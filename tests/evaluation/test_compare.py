"""compare: whatever a model does is its row; everything else is refused before any model runs."""

from __future__ import annotations

import threading
import time
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import BacktestOptions, Conformal, Drift, Mean, Naive, Naive2, SeasonalNaive, compare, cross_validate, score
from deepforecast.core import threads
from deepforecast.core.parallel import map_chunks
from deepforecast.core.state import LearnedState
from deepforecast.errors import DataError, DataWarning, NotFittedError, ParameterError, ParameterTypeError, TrainingError
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.significance import holm, signed_rank
from tests.evaluation.boards import FAILURES, LastValue, Trainer, Wordless, seasonal
from tests.frames import LIBRARIES, converted, plain, same
from tests.helpers_models import FutureRegression
from tests.screen import opened

# The seasonal series are few and short: their intervals cover little, which is not what is tested here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*lie far outside the history:UserWarning"),  # of models that are made to fail
]

FRAME = seasonal()
TIMES = ["fit_seconds", "predict_seconds", "peak_mb"]


def board(*models: Any, frame: Any = FRAME, **options: Any) -> Leaderboard:
    return compare(list(models), frame, **{"horizon": 4, "n_windows": 2, **options})


def test_numbers_are_those_of_score_on_cross_validate() -> None:
    found = board(Naive(), SeasonalNaive(), Mean(), level=80, metrics=["rmse", "mase", "coverage-80"])
    rolled = cross_validate([Naive(), SeasonalNaive(), Mean()], FRAME, horizon=4, n_windows=2, level=80)
    same(found.forecasts, rolled)
    each = score(rolled, metrics=["rmse", "mase", "coverage-80"], train=FRAME, by="series")
    for row in found.table.itertuples():
        own = each[each["model"] == row.model]
        assert row.rmse == pytest.approx(own["rmse"].mean(), rel=1e-6)
        assert row.mase == pytest.approx(own["mase"].mean(), rel=1e-6)
        assert found.table.loc[row.Index, "coverage-80"] == pytest.approx(own["coverage-80"].mean(), rel=1e-6)
    ranks = each.pivot(index="unique_id", columns="model", values="rmse").rank(axis=1)
    assert found.table.set_index("model")["rank"].to_dict() == pytest.approx(ranks.mean().to_dict())
    assert found.table.set_index("model")["rank-median"].to_dict() == pytest.approx(ranks.median().to_dict())
    assert (found.table["rmse-low"] < found.table["rmse"]).all()
    assert (found.table["rmse-high"] > found.table["rmse"]).all()
    assert found.table["rmse"].is_monotonic_increasing
    assert found.best_name == found.table["model"].iloc[0]


def test_every_series_counts_once_unlike_in_a_pooled_rmse() -> None:
    found = board(Naive(), metrics="rmse")
    pooled = score(found.forecasts, metrics="rmse")["rmse"].iloc[0]
    assert found.table["rmse"].iloc[0] < pooled


def test_windows_are_those_of_the_keywords() -> None:
    found = board(Naive(), horizon=3, n_windows=2, step_size=1, gap=2)
    expected = cross_validate(Naive(), FRAME, horizon=3, n_windows=2, step_size=1, gap=2)
    same(found.forecasts, expected)
    assert found.settings["gap"] == 2
    last = found.forecasts.groupby("cutoff")["ds"].max()
    assert len(last) == 2


def test_the_best_model_is_unfitted_and_forecasts_as_it_was_ranked() -> None:
    found = board(Mean(), LastValue(), horizon=3, level=80)
    model = found.best_model
    assert model.name == found.best_name
    assert model is not found.best_model
    with pytest.raises(NotFittedError):
        model.predict()
    assert model.horizon == 3
    assert "LastValue-hi-80" in found.models["LastValue"].fit(FRAME).predict(level=80)


def test_each_kind_of_failure_is_a_row_with_its_error() -> None:
    found = board(Naive(), *[LastValue(how=how, alias=how) for how in FAILURES], LastValue())
    assert found.failed == list(FAILURES)
    assert found.table["model"].tolist() == ["Naive", "LastValue", *FAILURES]
    told = found.table.set_index("model")["error"]
    assert told["Naive"] == told["LastValue"] == ""
    assert told["fit"].startswith("ValueError: no <b>fit</b>")
    assert told["predict"] == "RuntimeError: no forecast"
    assert told["data"] == "DataError: A rule of mine is broken."
    assert told["memory"] == "MemoryError"
    assert told["wordless"] == "Wordless: (its message cannot be read: RuntimeError)"
    assert "huge is 1e+305 for series s0 at 2018-05-01 (96 such values)" in told["huge"]
    assert not set(FAILURES) & set(found.forecasts.columns)
    assert found.table.loc[2:, ["rank", "mase", "mase-low"]].isna().all(axis=None)
    assert np.isfinite(found.table.loc[:1, ["rank", "mase", "mase-low"]]).all(axis=None)


def test_a_model_that_fails_changes_nothing_for_the_others() -> None:
    clean, failing = board(Naive(), Drift()), board(LastValue(how="fit"), Naive(), LastValue(how="huge", alias="huge"), Drift())
    same(clean.table.drop(columns=TIMES), failing.table.iloc[:2].drop(columns=TIMES))
    assert clean.table.dtypes.to_dict() == failing.table.dtypes.to_dict()
    same(clean.by_series, failing.by_series)
    same(clean.forecasts, failing.forecasts)
    same(clean.significance, failing.significance)


@pytest.mark.parametrize("workers", [1, 2])
def test_all_failing_is_an_error_chained_with_the_first(workers: int) -> None:
    models = [LastValue(how="wordless", alias="A"), LastValue(how="memory", alias="B")]
    said = r"All models failed.* A failed: Wordless.*B failed: MemoryError"
    with pytest.raises(TrainingError, match=said) as caught:
        board(*models, n_jobs=workers)
    if workers == 1:
        assert isinstance(caught.value.__cause__, Wordless)
    else:
        assert "raise Wordless(1, 2)" in str(caught.value.__cause__)


@pytest.mark.parametrize("series", [1, 12], ids=["in the run", "in the trial before it"])
def test_an_interrupt_is_no_failure(series: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        board(Naive(), LastValue(how="interrupt"), frame=FRAME[: 48 * series])


def test_two_workers_find_what_one_finds() -> None:
    models = [Naive(), SeasonalNaive(), LastValue(how="wordless", alias="W"), LastValue(how="fit", alias="F"), Naive2()]
    one, two = (board(*models, level=[50, 80], n_jobs=workers) for workers in (1, 2))
    same(one.table.drop(columns=TIMES), two.table.drop(columns=TIMES))
    same(one.by_series, two.by_series)
    same(one.forecasts, two.forecasts)
    same(one.significance, two.significance)


@pytest.mark.parametrize(
    "series", [pytest.param(1, id="in the run"), pytest.param(12, id="in the trial before it", marks=pytest.mark.slow)]
)
def test_model_that_kills_its_worker_is_a_failed_row(series: int) -> None:
    models, frame = [Naive(), LastValue(how="exit", alias="Dying"), SeasonalNaive()], FRAME[: 48 * series]
    alone = board(Naive(), SeasonalNaive(), frame=frame)
    found = board(*models, frame=frame, n_jobs=2)
    assert found.failed == ["Dying"]
    assert "Dying: its worker process ended with exit status 3." in found.table["error"].iloc[-1]
    same(found.table.iloc[:2].drop(columns=TIMES), alone.table.drop(columns=TIMES))
    same(found.forecasts, alone.forecasts)


@pytest.mark.slow
def test_board_without_a_model_that_survives_its_worker_is_an_error() -> None:
    with pytest.raises(TrainingError, match=r"All models failed.*A: its .* exit status 3.*B: its .* exit status 3"):
        board(*(LastValue(how="exit", alias=alias) for alias in "AB"), frame=FRAME[:48], n_jobs=2)


def test_bands_of_a_model_without_a_distribution_are_conformal() -> None:
    found = board(Naive(), LastValue(), level=[50, 80])
    own = Conformal(LastValue(), alias="LastValue")
    rolled = cross_validate(own, FRAME, horizon=4, n_windows=2, level=[50, 80])
    bands = [f"LastValue-{side}-{level}" for side in ("lo", "hi") for level in (50, 80)]
    same(found.forecasts[["LastValue", *bands]], rolled[["LastValue", *bands]])
    assert np.isfinite(found.table[["coverage-50", "coverage-80", "width-50", "winkler-80"]]).all(axis=None)


def test_bands_without_a_spread_are_a_failure_of_that_model_only() -> None:
    short = FRAME.groupby("unique_id").head(10)
    found = board(Naive(), SeasonalNaive(season_length=6), frame=short, level=80, n_windows=1, metrics="mae", on_failure="raise")
    assert found.failed == ["SeasonalNaive"]
    assert "cannot estimate intervals for series with too few values before a cutoff: s0" in found.table["error"].iloc[1]


def test_covariates_a_model_cannot_use_are_named() -> None:
    frame = FRAME.assign(promotion=np.tile([0.0, 0.0, 1.0], len(FRAME) // 3), shop=3.0, price=1.0)
    roles = {"future": ["promotion"], "past": ["price"], "static": ["shop"]}
    found = board(Naive(), FutureRegression(), frame=frame, columns=roles)
    unused = found.table.set_index("model")["unused"]
    assert unused["Naive"] == "promotion, price, shop"
    assert unused["FutureRegression"] == "price, shop"
    assert not found.failed
    assert "Naive ran without columns it cannot use: promotion, price, shop." in str(found).replace("\n  ", " ")


def test_columns_without_a_role_are_said_once_and_kept_for_the_report() -> None:
    with pytest.warns(DataWarning, match="Columns without a role are ignored: weather") as caught:
        found = board(Naive(), Drift(), frame=FRAME.assign(weather=1.0))
    assert len(caught) == 1
    assert found.settings["undeclared"] == ["weather"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_any_library_in_the_same_library_out(library: str) -> None:
    frame = FRAME.rename(columns={"unique_id": "store", "ds": "month", "y": "sales"})
    columns = {"id": "store", "time": "month", "target": "sales"}
    there = converted(frame, library)
    found, expected = (board(Naive(), Drift(), frame=one, columns=columns, level=80) for one in (there, frame))
    assert type(found.forecasts) is type(there)
    assert list(plain(found.forecasts).columns[:4]) == ["store", "month", "cutoff", "sales"]
    same(found.table.drop(columns=TIMES), expected.table.drop(columns=TIMES))
    same(found.by_series, expected.by_series, types=False)
    assert isinstance(found.by_series, pd.DataFrame)


def test_one_series_with_an_id_without_one_and_as_a_series() -> None:
    own = FRAME[FRAME["unique_id"] == "s7"]
    boards = [board(Naive(), SeasonalNaive(), frame=one) for one in (own, own[["ds", "y"]], own.set_index("ds")["y"])]
    for found in boards:
        same(found.table.drop(columns=TIMES), boards[0].table.drop(columns=TIMES))
        assert found.table["mase-low"].isna().all()
        assert "the difference cannot be tested on one series" in str(found)
    assert "unique_id" in boards[0].by_series


def test_integer_time_scales_by_the_season_given() -> None:
    frame = FRAME.assign(ds=FRAME.groupby("unique_id").cumcount())
    assert board(Naive(), Drift(), frame=frame).metrics == ("mae", "rmse", "smape", "relative_bias")
    dated, counted = (board(Naive(), Drift(), frame=one, metrics="mase", season_length=12) for one in (FRAME, frame))
    assert counted.table["mase"].tolist() == dated.table["mase"].tolist()
    assert counted.table["mase"].tolist() != board(Naive(), Drift(), metrics="mase", season_length=1).table["mase"].tolist()
    with pytest.raises(ParameterError, match=r"cannot be inferred from integer timestamps. Pass `season_length`"):
        board(Naive(), Drift(), frame=frame, metrics="mase")


def test_series_where_a_metric_is_undefined_are_left_out_and_counted() -> None:
    flat = FRAME.assign(y=FRAME["y"].where(~FRAME["unique_id"].isin(["s3", "s4"]), 7.0))
    found = board(Naive(), Drift(), frame=flat)
    rest = board(Naive(), Drift(), frame=FRAME[~FRAME["unique_id"].isin(["s3", "s4"])])
    assert found.table["mase"].tolist() == pytest.approx(rest.table["mase"].tolist())
    assert found.table["left_out"].tolist() == [16, 16]
    assert found.significance["series"].tolist() == [10, 10]
    assert "Left out: 16 of 96 points where mase is undefined." in str(found)


def test_the_next_metric_decides_aloud_where_the_first_is_undefined_everywhere() -> None:
    with pytest.warns(DataWarning, match="mase is undefined for all series.*ranked by smape"):
        found = board(Naive(), Mean(), frame=FRAME.assign(y=5.0))
    assert found.metrics == ("smape", "mase", "rmsse", "relative_bias")
    with pytest.raises(DataError, match="At least one of the metrics mase must be defined for at least one series"):
        board(Naive(), Mean(), frame=FRAME.assign(y=5.0), metrics="mase")


def test_missing_actual_values_are_left_out_and_counted() -> None:
    frame = FRAME.copy()
    frame.loc[[46, 47, 95], "y"] = np.nan
    found = board(Naive(), Drift(), frame=frame)
    assert found.table["left_out"].tolist() == [3, 3]
    assert "Left out: 3 of 96 points without an actual value." in str(found)


def test_p_values_are_corrected_for_the_number_of_pairs() -> None:
    found = board(Naive(), SeasonalNaive(), Mean(), Drift())
    values = found.by_series.pivot(index="unique_id", columns="model", values="mase")
    pairs = [frozenset(pair) for pair in combinations(values, 2)]
    corrected = holm([signed_rank(values[one] - values[other]) for one, other in combinations(values, 2)])
    for row in found.significance.itertuples():
        assert row.p_value == pytest.approx(corrected[pairs.index(frozenset((row.model, row.against)))])
        assert row.wins == pytest.approx((values[row.model] < values[row.against]).mean())


def test_a_model_of_all_series_is_compared_on_the_same_cutoffs_for_all() -> None:
    old = FRAME[(FRAME["unique_id"] != "s2") | (FRAME["ds"] < "2018-11-01")]
    with pytest.warns(DataWarning, match="train on all series at once: Trainer") as caught:
        found = board(Naive(), Trainer(), frame=old)
    assert len(caught) == 1
    assert found.settings["align"] == "calendar"
    assert found.forecasts["cutoff"].nunique() == 2
    assert board(Naive(), frame=old).settings["align"] == "series"


def test_series_no_window_judges_do_not_count_as_compared() -> None:
    old = FRAME[(FRAME["unique_id"] != "s2") | (FRAME["ds"] < "2018-01-01")]
    with pytest.warns(DataWarning, match="Some series are in no window, as .*: s2"):
        found = board(Naive(), Drift(), frame=old, options=BacktestOptions(align="calendar"))
    assert found.settings["series"] == 11
    assert "11 series" in str(found)
    assert "These series are in no window: s2." in str(found)


def test_a_new_series_fails_no_model_where_windows_may_leave_it_out() -> None:
    new = FRAME[(FRAME["unique_id"] != "s2") | (FRAME["ds"] >= "2017-09-01")]
    options = BacktestOptions(align="calendar")
    with pytest.warns(DataWarning, match=r"SeasonalNaive could not be fitted to 1 of 12 series \(s2\): 1 by Naive"):
        found = board(Naive(), SeasonalNaive(), frame=new, options=options)
    assert not found.failed
    assert found.table.set_index("model")["failed_series"].to_dict() == {"Naive": 0, "SeasonalNaive": 1}
    with pytest.warns(DataWarning, match="1 without a forecast"):
        assert len(board(Naive(), SeasonalNaive(), frame=new, options=options, on_failure="drop").by_series) == 2 * 11


def test_the_frame_is_left_as_it_was() -> None:
    frame = FRAME.copy()
    board(Naive(), LastValue(how="fit"), frame=frame, level=80)
    same(frame, FRAME)


def test_a_bar_counts_the_windows_of_all_models_also_of_those_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [LastValue(how="predict", alias="F"), LastValue(pause=0.01)]
    screen = opened(monkeypatch)
    board(*models)
    said = screen.getvalue()
    assert "2/4 [" in said  # after the first, which failed in its first window
    assert "windows: 100%" in said
    assert "4/4 [" in said
    assert "series:" not in said  # what the trials before the run would show


class Spread(LastValue):
    """Fits its series in slices on threads, as compiled models do, and forecasts how many of them there were."""

    def _fit(self, panel: Any, monitor: Any) -> LearnedState:
        arrived, expected = set[int](), min(threads.allowed_threads(), len(panel))

        def work(part: slice) -> int:
            arrived.add(threading.get_ident())
            for _ in range(4800):  # until the others have begun too
                time.sleep(0.05)
                if len(arrived) >= expected:
                    break
            return threading.get_ident()

        found = len(set(map_chunks(work, len(panel), cost=1.0)))
        return LearnedState({"last": np.full(len(panel), found * 100 + threads.allowed_threads(), np.float64)})


def test_a_model_of_many_threads_has_one_beside_other_models_and_all_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    together = board(Spread(), Naive(), n_jobs=2, frame=FRAME[:192])
    assert set(together.forecasts["Spread"]) == {101}
    every = threads.available_cpus()
    assert set(board(Spread(), frame=FRAME[:192]).forecasts["Spread"]) == {100 * min(every, 4) + every}


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    board(Naive(), LastValue(how="fit"))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("aliases", "level", "said"),
    [
        (("y", "B"), None, "y of model y is a column of the frame"),
        (("unique_id", "B"), None, "unique_id of model unique_id is a column of the frame"),
        (("cutoff", "B"), None, "cutoff of model cutoff is a reserved column name"),
        (("A", "A-lo-80"), 80, "A-lo-80 of model A-lo-80 is a column of model A"),
        (("A-hi-80", "A"), None, "A-hi-80 looks like a column of A"),
        (("A", "A"), None, "got more than once: A"),
    ],
)
def test_names_that_would_hide_a_column_are_refused(aliases: tuple[str, str], level: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        board(Naive(alias=aliases[0]), LastValue(how="interrupt", alias=aliases[1]), level=level)


@pytest.mark.parametrize("role", ["id", "time", "target"])
def test_a_column_named_cutoff_is_refused(role: str) -> None:
    usual = {"id": "unique_id", "time": "ds", "target": "y"}
    with pytest.raises(ParameterError, match="cannot have a column cutoff"):
        board(LastValue(how="interrupt"), frame=FRAME.rename(columns={usual[role]: "cutoff"}), columns={role: "cutoff"})


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"refit": "never"}, ParameterError, "`refit` must be"),
        ({"n_windows": 0}, ParameterError, r"`n_windows` must be at least 1"),
        ({"n_windows": 30}, ParameterError, "n_windows=30"),
        ({"level": 100}, ParameterError, "level"),
        ({"season_length": 0}, ParameterError, r"`season_length` must be at least 1"),
        ({"season_length": 1.5}, ParameterTypeError, r"`season_length` must be an integer of at least 1"),
        ({"metrics": "msee"}, ParameterError, "Unknown metric 'msee"),
        ({"metrics": []}, ParameterError, "`metrics` must contain at least one metric"),
        ({"metrics": 3}, ParameterTypeError, "A metric must be a name"),
        ({"metrics": "coverage"}, ParameterError, "coverage cannot be computed without intervals"),
        (
            {"metrics": "coverage-70", "level": 80},
            ParameterError,
            "coverage-70 requires intervals of level 70",
        ),
        ({"metrics": "owa"}, ParameterError, "owa cannot be computed per series"),
        ({"metrics": "crps_from_samples"}, ParameterError, "crps_from_samples cannot be computed without sample paths"),
        ({"metrics": ["mae", lambda actual, forecast: 0.0]}, ParameterError, "must have a name"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_model_runs(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        board(LastValue(how="interrupt"), **options)


def test_warnings_of_a_model_are_heard_once_and_not_from_the_trials() -> None:
    frame = FRAME.copy()
    frame.loc[5, "y"] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        board(Naive(), frame=frame)
    assert [str(one.message).partition(":")[0] for one in caught] == ["Naive forecasts through missing values"]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("workers", [1, 2])
def test_missing_values_are_said_once_for_all_models(workers: int) -> None:
    frame = FRAME.copy()
    frame.loc[5, "y"] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        board(Naive(), Mean(), SeasonalNaive(), frame=frame, n_jobs=workers)
    (one,) = caught
    assert str(one.message).startswith("Naive forecasts through missing values: column y is missing in 1 row of series s0")
    assert str(one.message).endswith(" The same holds for Mean, SeasonalNaive.")
    assert one.filename == __file__


def test_boards_made_side_by_side_in_threads_are_right() -> None:
    expected, found, filters = board(Naive(), Drift()), [], list(warnings.filters)
    threads = [threading.Thread(target=lambda: found.append(board(Naive(), Drift()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert warnings.filters == filters
    for one in found:
        same(one.table.drop(columns=TIMES), expected.table.drop(columns=TIMES))
