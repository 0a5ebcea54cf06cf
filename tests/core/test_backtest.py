from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Forecaster, Naive, Panel, SeasonalNaive, WindowMean
from deepforecast.core.backtest import Fold, refit_every, rolling_folds
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.windows import BacktestPlan
from deepforecast.errors import DataError, DataWarning, ParameterError, TrainingWarning, warn
from tests.frames import P
from tests.helpers_models import FutureRegression, PooledRegression

FUTURE = {"future": ["x", "kind"]}


def noisy(k: int = 3, n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = P(k, n)
    return frame.assign(y=frame.y + rng.normal(size=len(frame)))


def with_covariates(frame: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x, kind = rng.normal(size=len(frame)), rng.choice(["low", "mid", "top"], len(frame))
    return frame.assign(x=x, kind=pd.Categorical(kind), past=rng.normal(size=len(frame)), y=frame.y + 3 * x + (kind == "top"))


def points(folds: list[Fold]) -> list[np.ndarray]:
    return [fold.forecast.mean for fold in folds]


class Counted(Naive):
    """Says and counts what it does."""

    done: list[str]

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        COUNT.append("fit")
        warn(f"It was fitted: on {len(panel.y)} rows.", TrainingWarning)
        return super()._fit(panel, monitor)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        COUNT.append("move")
        return super()._advance(learned, panel, fresh)


COUNT: list[str] = []


@pytest.mark.parametrize(
    ("every", "done"),
    [(0, "fit move move move move"), (1, "fit fit fit fit fit"), (2, "fit move fit move fit"), (3, "fit move move fit move")],
)
def test_when_a_model_is_fitted_again(every: int, done: str) -> None:
    COUNT.clear()
    panel = Panel.from_frame(noisy())
    with pytest.warns(TrainingWarning, match="It was fitted: on") as said:
        list(rolling_folds(Counted(), panel, BacktestPlan(3, 5, 3), refit_interval=every))
    assert " ".join(COUNT) == done
    assert len(said) == 1
    last = {0: 40 - 15, 1: 40 - 3, 2: 40 - 3, 3: 40 - 6}[every]
    assert str(said[0].message) == f"It was fitted: on {3 * last} rows."
    assert said[0].filename == __file__


def test_refit_in_words() -> None:
    assert [refit_every("auto", local) for local in (True, False)] == [1, 0]
    assert [refit_every(refit, True) for refit in (True, False)] == [1, 0]
    assert refit_every(np.int64(4), True) == 4
    for wrong in (0, -1, 1.5, "never", None, [1]):
        with pytest.raises(ParameterError, match="`refit` must be 'auto', True, False or a number of windows"):
            refit_every(wrong, True)


MODELS: list[tuple[Forecaster, dict[str, Any]]] = [
    (Naive(), {}),
    (SeasonalNaive(season_length=7), {}),
    (WindowMean(window=5), {}),
    (FutureRegression(), {"future": ["x", "kind"]}),
    (PooledRegression(), {"future": ["kind"], "past": ["past"]}),
]


@pytest.mark.parametrize("every", [0, 1, 2])
@pytest.mark.parametrize("size", [None, 12])
@pytest.mark.parametrize(("model", "columns"), MODELS, ids=lambda one: type(one).__name__)
def test_a_window_is_predict_of_its_history_with_the_last_fit(
    model: Forecaster, columns: Any, size: int | None, every: int
) -> None:
    frame = with_covariates(noisy())
    keep = ["unique_id", "ds", "y", *(name for names in columns.values() for name in names)]
    frame, gap, horizon = frame[keep], 1, 3
    panel = Panel.from_frame(frame, columns=columns)
    fitted = model
    for fold in rolling_folds(model, panel, BacktestPlan(horizon, 4, 2, gap, size), refit_interval=every):
        cut = int(fold.window.cutoff[0])
        begin = 0 if size is None else cut - size
        history = frame.groupby("unique_id").nth(range(begin, cut))
        ahead = frame.groupby("unique_id").nth(range(cut, cut + gap + horizon))
        if fold.window.number == 0 or (every and fold.window.number % every == 0):
            fitted = model.clone().fit(history, columns=columns)
        future = ahead.drop(columns="y") if columns.get("future") else None
        found = fitted.predict(gap + horizon, frame=history, future=future)[model.name].to_numpy().reshape(3, -1)
        assert (fold.forecast.mean == found[:, gap:]).all()
        assert (fold.actual == ahead.y.to_numpy().reshape(3, -1)[:, gap:]).all()


def changed(frame: pd.DataFrame, how: str, after: int) -> pd.DataFrame:
    """The frame with everything after row `after` of each series replaced."""
    later = frame.groupby("unique_id").cumcount() >= after
    rng = np.random.default_rng(7)
    frame = frame.copy()
    new = {"flipped": -37 * frame.y + 1e5, "noise": rng.normal(size=len(frame)), "constant": 5.0, "missing": np.nan}
    frame["y"] = frame.y.where(~later, new.get(how, frame.y))
    if "past" in frame and how != "missing":
        frame["past"] = frame.past.where(~later, rng.normal(size=len(frame)) * 1e3)
    if how == "categories" and "kind" in frame:
        frame["kind"] = pd.Categorical(frame.kind.astype(object).where(~later, "aaa new"))
        frame["x"] = frame.x.where(~later, 1e6)
    return frame


@pytest.mark.parametrize("how", ["flipped", "noise", "constant", "missing", "categories"])
@pytest.mark.parametrize("every", [0, 1, 3])
@pytest.mark.parametrize(("model", "columns"), MODELS, ids=lambda one: type(one).__name__)
@pytest.mark.filterwarnings("ignore:.*forecasts through missing values")
@pytest.mark.filterwarnings("ignore:.*not seen in fit")
def test_values_after_a_cutoff_do_not_change_the_forecast(model: Forecaster, columns: Any, every: int, how: str) -> None:
    frame, plan = with_covariates(noisy()), BacktestPlan(3, 4, 3)
    before = points(list(rolling_folds(model, Panel.from_frame(frame, columns=columns), plan, refit_interval=every)))
    for number in range(plan.n_windows):
        cut = 40 - 3 * (4 - number)
        after = cut + 3 if how == "categories" else cut  # what is known ahead may be used, but no further
        other = Panel.from_frame(changed(frame, how, after), columns=columns)
        found = points(list(rolling_folds(model, other, plan, refit_interval=every)))
        assert all((one == two).all() for one, two in zip(before[: number + 1], found, strict=False))
        if how == "flipped" and number == 0 and not columns:  # or nothing would have been changed
            assert (before[-1] != found[-1]).any()


@pytest.mark.parametrize("filling", ["interpolate", "ffill", "zero"])
@pytest.mark.parametrize("every", [0, 1])
def test_missing_values_are_filled_from_before_the_cutoff_only(filling: str, every: int) -> None:
    frame, plan = noisy(), BacktestPlan(4, 3, 4)
    hole = frame.groupby("unique_id").cumcount().isin([26, 27, 28, 29, 33])  # across the first cutoff, at 28
    frame["y"] = frame.y.mask(hole)
    model = Naive(missing=filling)
    before = points(list(rolling_folds(model, Panel.from_frame(frame), plan, refit_interval=every)))
    other = changed(frame, "flipped", 28)
    assert (points(list(rolling_folds(model, Panel.from_frame(other), plan, refit_interval=every)))[0] == before[0]).all()
    absent = points(list(rolling_folds(model, Panel.from_frame(frame[~hole]), plan, refit_interval=every)))
    assert all((a == b).all() for a, b in zip(absent, before, strict=True))


def test_a_window_without_a_single_value_is_refused_by_name() -> None:
    frame = noisy()
    frame.loc[(frame.unique_id == "s002") & (frame.ds > "2024-01-20") & (frame.ds < "2024-02-05"), "y"] = np.nan
    panel = Panel.from_frame(frame)
    with pytest.raises(ParameterError, match=r"series s002 has 0 non-missing values before cutoff 1"):
        list(rolling_folds(Naive(), panel, BacktestPlan(5, 1, 5, train_size=10), refit_interval=1))


def test_categories_are_those_the_history_has_seen() -> None:
    frame = with_covariates(noisy(1)).assign(kind="a")
    frame.loc[frame.index[-4:], "kind"] = "A, sorted first"
    frame["kind"] = frame.kind.astype("category")
    panel = Panel.from_frame(frame, columns={"future": ["kind"]})

    class Sizes(FutureRegression):
        def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
            found.append((future["kind"].categories, future["kind"].values[0].tolist()))
            return PointForecast(np.zeros((1, steps)), self.name)

    found: list[Any] = []
    with pytest.warns(
        DataWarning, match="kind has categories not seen in fit, which are treated as unknown: A, sorted first"
    ) as said:
        list(rolling_folds(Sizes(), panel, BacktestPlan(4, 2, 4), refit_interval=1))
    assert found == [(("a",), [0.0] * 4), (("a",), [-1.0] * 4)]
    assert len(said) == 1
    list(rolling_folds(Sizes(), panel.between(np.array([0]), np.array([36])), BacktestPlan(4, 2, 4), refit_interval=0))


def test_what_is_known_ahead_is_refused_where_it_is_missing() -> None:
    frame = with_covariates(noisy()).drop(columns=["kind", "past"])
    frame.loc[(frame.unique_id == "s002") & (frame.ds == "2024-02-07"), "x"] = np.nan
    panel = Panel.from_frame(frame, columns={"future": ["x"]})
    COUNT.clear()
    with pytest.raises(DataError, match=r"series s002\. Column x is missing at 2024-02-07.* Fill in"):
        list(rolling_folds(FutureRegression(missing="interpolate"), panel, BacktestPlan(3, 2, 3), refit_interval=1))
    with pytest.warns(DataWarning, match="through missing values"):
        list(rolling_folds(FutureRegression(), panel, BacktestPlan(2, 1, 2), refit_interval=1))  # it lies in the history only


def test_what_is_said_in_many_windows_is_said_once_of_each_thing() -> None:
    frame = noisy().drop(index=[3, 44])
    for every in (0, 1):
        with pytest.warns(DataWarning) as said:
            list(rolling_folds(Naive(), Panel.from_frame(frame), BacktestPlan(3, 4, 3), refit_interval=every))
        assert [str(one.message)[:63] for one in said] == ["Naive forecasts through missing values: column y is missing in "]
    with pytest.warns(DataWarning) as said:  # it is gone from the last window, and said all the same
        list(rolling_folds(Naive(), Panel.from_frame(frame), BacktestPlan(3, 4, 3, train_size=29), refit_interval=1))
    assert len(said) == 1


def test_a_series_that_comes_later_is_fitted_when_it_is_there() -> None:
    frame = noisy()
    frame = frame[(frame.unique_id != "s002") | (frame.ds > "2024-01-30")]
    panel, plan = Panel.from_frame(frame), BacktestPlan(3, 4, 3, align="calendar")
    with pytest.warns(DataWarning, match="not seen in fit are fitted now: s002") as said:
        folds = list(rolling_folds(Naive(), panel, plan, refit_interval=0))
    assert len(said) == 1
    assert [len(fold.window.series) for fold in folds] == [2, 3, 3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = list(rolling_folds(Naive(), panel, plan, refit_interval=1))
    assert all((a == b).all() for a, b in zip(points(folds), points(again), strict=True))


def test_the_model_is_left_as_it_was() -> None:
    model = SeasonalNaive(horizon=9, season_length=7).fit(noisy())
    state, params = model.state_, model.get_params()
    list(rolling_folds(model, Panel.from_frame(noisy()), BacktestPlan(3, 2, 3), refit_interval=1))
    assert model.state_ is state
    assert model.get_params() == params


def test_a_monitor_sees_one_fold_a_window() -> None:
    class Reporting(Naive):
        capabilities = Capabilities(missing=True)

        def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
            monitor.report(1.0, 1, n_steps=1)
            return super()._fit(panel, monitor)

    seen: list[int] = []
    monitor = Monitor(lambda value, step: seen.append(step))
    list(rolling_folds(Reporting(), Panel.from_frame(noisy()), BacktestPlan(3, 3, 3), refit_interval=1, monitor=monitor))
    assert seen == [100, 200, 300]
