from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.base
import sklearn.exceptions

from deepforecast import (
    Conformal,
    Drift,
    Forecaster,
    Mean,
    Naive,
    Naive2,
    SeasonalMean,
    SeasonalNaive,
    WindowMean,
    compare,
    cross_validate,
    load,
)
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, DataError, DataWarning, NotFittedError, ParameterError
from tests.frames import LIBRARIES, D, P, converted, same
from tests.helpers_models import FutureRegression

MODELS: list[Forecaster] = [
    Naive(), SeasonalNaive(season_length=7), SeasonalMean(season_length=7), WindowMean(window=5), Drift(), Mean(),
    Naive2(season_length=7), Conformal(Naive()), Naive(alias="bands", intervals="conformal"),
]  # fmt: skip
named = pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)


def noisy(k: int = 3, n: int = 40) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=frame.y + np.random.default_rng(0).normal(size=len(frame)))


@named
def test_methods_before_fit_raise_not_fitted(model: Forecaster, tmp_path: Path) -> None:
    calls = {
        "predict": lambda: model.predict(3),
        "save": lambda: model.save(tmp_path / "model"),
        "simulate": lambda: model.simulate(2, 3),
        "update": lambda: model.update(noisy()),
        "fine_tune": lambda: model.fine_tune(noisy()),
        "explain": lambda: model.explain(3),
        "future_frame": lambda: model.future_frame(3),
    }
    for call in calls.values():
        with pytest.raises(NotFittedError, match=r"has not been fitted\. Call fit\(frame\) first") as caught:
            call()
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, sklearn.exceptions.NotFittedError)
    assert list(tmp_path.iterdir()) == []


@named
def test_refit_discards_previous_state(model: Forecaster) -> None:
    fitted = model.clone(horizon=3)
    want = fitted.fit(noisy()).predict(level=80)
    fitted.fit(noisy(2, 60).assign(y=lambda one: one.y * -3)).predict()
    same(fitted.fit(noisy()).predict(level=80), want)
    same(model.clone(horizon=3).fit(noisy()).predict(level=80), want)


@named
@pytest.mark.parametrize("library", LIBRARIES)
def test_deepcopy_clone_and_pickle_of_a_fitted_model(model: Forecaster, library: str) -> None:
    fitted = model.clone(horizon=3).fit(converted(noisy(), library))
    want = fitted.predict(level=80)
    for twin in (copy.deepcopy(fitted), copy.copy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert twin == fitted
        same(twin.predict(level=80), want)
    fresh = sklearn.base.clone(fitted)
    assert fresh == fitted
    with pytest.raises(NotFittedError):
        fresh.predict()


@named
def test_four_fits_in_four_threads(model: Forecaster) -> None:
    frames = [noisy(k, 40 + k) for k in (1, 2, 3, 4)]
    want = [model.clone(horizon=3).fit(frame).predict(level=80) for frame in frames]
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        found[number] = model.clone(horizon=3).fit(frames[number]).predict(level=80)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        same(found[number], want[number])


class Wrong(Forecaster):
    """Forecasts a given value."""

    capabilities = Capabilities()
    what: Any = np.nan

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        return LearnedState({"level": np.zeros(len(panel))})

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
        mean = np.zeros((len(learned["level"]), steps))
        mean[1, -1] = self.what
        return PointForecast(mean, self.name)


@pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf])
def test_forecast_that_is_not_finite_raises_naming_the_series(what: float) -> None:
    model = Wrong(horizon=2).fit(noisy())
    model.what = what
    with pytest.raises(DataError, match="Forecasts must be finite, but those of Wrong for series s002 are not"):
        model.predict()


def test_what_a_model_cannot_do_is_said() -> None:
    model = Wrong(horizon=2).fit(noisy())
    with pytest.raises(CapabilityError, match="Wrong cannot simulate"):
        model.simulate(3)
    with pytest.raises(CapabilityError, match="Wrong cannot explain"):
        model.explain()
    model.what = 1.0
    with pytest.raises(CapabilityError, match=r"Wrong cannot forecast levels .*Conformal\(model\)"):
        model.predict(level=80)
    with pytest.warns(DataWarning, match="Wrong: forecasts of series s003 lie far outside the history"):
        assert len(model.predict(1)) == 3


def test_what_intervals_take_away_is_said() -> None:
    frame = noisy()
    with pytest.raises(
        CapabilityError, match=r"Naive cannot simulate sample paths with intervals='conformal', which correct the intervals"
    ):
        Naive(horizon=2, intervals="conformal").fit(frame).simulate(2)
    assert len(Naive(horizon=2).fit(frame).simulate(2)) == 12


def test_assignment_to_a_parameter_is_set_params() -> None:
    model = SeasonalNaive(horizon=2, season_length=7).fit(noisy())
    with pytest.raises(ParameterError, match="season_length"):
        model.season_length = 0
    assert model.season_length == 7
    model.alias, model.horizon = "other", 3
    assert list(model.predict().columns)[-1] == "other"
    model.season_length = 5
    assert repr(model) == "SeasonalNaive(horizon=3, alias='other', season_length=5)"
    with pytest.raises(NotFittedError):
        model.predict()


@named
def test_models_with_equal_parameters_are_equal_and_unhashable(model: Forecaster) -> None:
    assert model == model.clone()
    assert model != model.clone(horizon=17)
    assert model != "model"
    with pytest.raises(TypeError):
        hash(model)
    assert eval(repr(model), {type(one).__name__: type(one) for one in MODELS}) == model


@pytest.mark.parametrize("changed", [{"season_length": 5}, {"intervals": "conformal"}, {"missing": "zero"}])
def test_a_change_of_what_a_fit_depends_on_unfits_the_model(changed: dict[str, Any]) -> None:
    model = SeasonalNaive(horizon=2).fit(noisy())
    with pytest.raises(NotFittedError):
        model.set_params(**changed).predict()


def test_a_change_of_what_is_said_at_predict_does_not() -> None:
    model = SeasonalNaive(horizon=2).fit(noisy()).set_params(horizon=3, alias="other", point="median", season_length="auto")
    assert list(model.predict().columns)[-1] == "other"


def test_future_covariate_equal_to_the_target_warns() -> None:
    frame = noisy().assign(x=lambda one: 2 * one.y)
    with pytest.warns(DataWarning, match="almost perfectly correlated with the target: x"):
        FutureRegression(horizon=2).fit(frame, columns={"future": ["x"]})


def test_a_hook_that_is_not_there_is_named() -> None:
    class Half(Forecaster):
        def _fit(self, panel: Any, monitor: Any) -> LearnedState:
            return LearnedState({"last": panel.y[panel.indptr[1:] - 1]})

    with pytest.raises(CapabilityError, match=r"Half does not support this operation, as its class does not define _forecast"):
        Half(horizon=2).fit(noisy()).predict()


def test_the_error_before_fit_travels() -> None:
    with pytest.raises(NotFittedError) as caught:
        Naive(horizon=2).predict()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_static_without_histories_is_refused() -> None:
    model = Naive(horizon=2).fit(noisy())
    for call in (model.predict, model.explain, lambda **given: model.simulate(2, **given)):
        with pytest.raises(ParameterError, match=r"`static` cannot be passed without `frame`"):
            call(static=pd.DataFrame({"unique_id": ["s001"], "size": [1.0]}))


def ended_early(n: int = 60, left: int = 20) -> pd.DataFrame:
    """Two series of `n` days; the first has only the first `left`."""
    frame = P(2, n)
    return frame[(frame.unique_id != "s001") | (frame.ds < frame.ds[0] + pd.Timedelta(days=left))].reset_index(drop=True)


ENDED = r"Naive: all forecasts \(3 steps\) are before 2024-02-29, .* series \(last timestamp\): s001 \(2024-01-20\)\. "


def test_predict_warns_once_of_series_whose_forecasts_all_lie_in_the_past(tmp_path: Path) -> None:
    frame = ended_early()
    model = Naive(horizon=3).fit(frame)
    for call in (
        model.predict,
        lambda: model.simulate(2),
        lambda: Naive(horizon=3).fit(P(2, 9)).predict(frame=frame),
    ):
        with pytest.warns(DataWarning, match=ENDED) as caught:
            call()
        assert len(caught) == 1
    model.save(tmp_path / "model")
    with pytest.warns(DataWarning, match=ENDED):
        load(tmp_path / "model").predict()
    with pytest.warns(DataWarning, match=ENDED.replace("3 steps", "39 steps")):
        model.predict(39)
    model.predict(40)  # one of its steps is the last time of the panel
    late = P(2, 60)[lambda one: (one.unique_id == "s001") & (one.ds > "2024-01-20")]
    model.update(late).predict()


def test_series_are_judged_by_the_horizon_and_may_be_a_week_late() -> None:
    frame = P(4, 80)
    last = dict(zip(["s001", "s002", "s003", "s004"], [20, 65, 74, 80], strict=True))  # 60, 15, 6, 0 steps behind
    model = Naive(horizon=20).fit(frame[frame.groupby("unique_id").cumcount() < frame.unique_id.map(last)])
    with pytest.warns(DataWarning, match=r"20 steps.*: s001 \(2024-01-20\)\. "):
        model.predict()
    with pytest.warns(DataWarning, match=r"3 steps.*: s001 \(2024-01-20\), s002 \(2024-03-05\)\. "):
        model.predict(3)


def test_update_of_some_series_leaves_the_others_behind() -> None:
    model = Naive(horizon=3).fit(P(2, 20))
    model.update(D("s002", 7, start="2024-01-21")).predict()  # a week late
    model.update(D("s002", 1, start="2024-01-28"))
    with pytest.warns(DataWarning, match=r"before 2024-01-28, .*: s001 \(2024-01-20\)"):
        model.predict()


@pytest.mark.parametrize("library", LIBRARIES)
def test_past_forecasts_of_integer_time_are_warned_of(library: str) -> None:
    frame = ended_early().assign(ds=lambda one: 5 * one.groupby("unique_id").cumcount())
    model = Naive(horizon=3).fit(converted(frame, library), freq=5)
    with pytest.warns(DataWarning, match=r"before 295, the last timestamp of the panel, .*: s001 \(95\)"):
        model.predict()


def test_backtests_do_not_repeat_the_warning_of_past_forecasts(recwarn: pytest.WarningsRecorder) -> None:
    cross_validate([Naive(), Drift()], ended_early(), horizon=3, n_windows=2)
    compare([Naive(), Drift()], ended_early(), horizon=3, n_windows=2)
    assert not [one for one in recwarn if "are before" in str(one.message)]
