"""Series that a model cannot fit, forecasts of some ids, and bounds."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deepforecast as d
from deepforecast.core.monitor import Monitor
from deepforecast.core.state import LearnedState
from deepforecast.data.panel import Panel
from deepforecast.errors import (
    CalibrationError,
    CapabilityError,
    DataError,
    DataWarning,
    ParameterError,
    ParameterTypeError,
    TrainingError,
)
from tests.frames import converted, plain


def months(series_id: str, n_rows: int, values: Any = None, end: str = "2024-12-01") -> pd.DataFrame:
    step = np.arange(n_rows)
    y = 50 + 10 * np.sin(step * np.pi / 6) + step % 5 if values is None else values
    return pd.DataFrame({"unique_id": series_id, "ds": pd.date_range(end=end, periods=n_rows, freq="MS"), "y": y})


GOOD = ["a", "c", "e"]
FRAME = pd.concat(
    [months("a", 48), months("b", 1), months("c", 48), months("d", 30, np.nan), months("e", 48), months("f", 15)],
    ignore_index=True,
)
FRAME = FRAME.sample(frac=1, random_state=0)


class Picky(d.Naive):
    """Fits no series that ends with 7; the error names none."""

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        if (panel.y[panel.indptr[1:] - 1] == 7).any():
            raise TrainingError("The optimizer diverged.")
        return super()._fit(panel, monitor)


class Unbounded(d.Naive):
    """Forecasts infinity for series that end with 7."""

    def _mean(self, learned: LearnedState, steps: int) -> Any:
        mean = super()._mean(learned, steps)
        return np.where(mean == 7, np.inf, mean)


@pytest.fixture
def fallback() -> d.SeasonalNaive:
    with pytest.warns(DataWarning, match=r"could not be fitted to 2 of 6 series \(b, d\): 1 by Naive, 1 without a forecast"):
        return d.SeasonalNaive(horizon=3, on_failure="fallback").fit(FRAME)


def test_an_error_lists_the_series_and_the_fix() -> None:
    with pytest.raises(DataError, match="missing in series d") as caught:
        d.SeasonalNaive(horizon=3).fit(FRAME)
    assert caught.value.series == ("d",)
    assert "on_failure='fallback'" in caught.value.hint
    with pytest.raises(DataError, match="requires at least 12 values per series, but series b has 1") as caught:
        d.SeasonalNaive(horizon=3).fit(FRAME[FRAME["unique_id"] != "d"])
    assert caught.value.series == ("b",)


def test_each_series_with_a_value_has_a_forecast(fallback: d.SeasonalNaive) -> None:
    forecast = fallback.predict()
    assert forecast["unique_id"].tolist() == np.repeat(["a", "b", "c", "e", "f"], 3).tolist()
    assert forecast.loc[forecast["unique_id"] == "b", "SeasonalNaive"].tolist() == [50.0] * 3
    failures = fallback.failures_
    assert failures["unique_id"].tolist() == ["b", "d"]
    assert failures["model"].tolist() == ["Naive", ""]
    assert failures["reason"].iloc[1] == "It has no values."


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_the_others_are_forecast_as_without_them(fallback: d.SeasonalNaive) -> None:
    others = fallback.predict(level=80)
    others = others[others["unique_id"].isin(GOOD)].reset_index(drop=True)
    expected = d.SeasonalNaive(horizon=3).fit(FRAME[FRAME["unique_id"].isin(GOOD)]).predict(level=80)
    pd.testing.assert_frame_equal(others, expected)


def test_intervals_that_cannot_be_estimated_are_missing_with_a_warning(fallback: d.SeasonalNaive) -> None:
    with pytest.warns(DataWarning, match="are missing for series that are too short for them: b"):
        forecast = fallback.predict(level=80)
    missing = forecast["SeasonalNaive-lo-80"].isna()
    assert set(forecast.loc[missing, "unique_id"]) == {"b"}


def test_drop_leaves_them_out() -> None:
    with pytest.warns(DataWarning, match="2 without a forecast"):
        model = d.SeasonalNaive(horizon=3, on_failure="drop").fit(FRAME)
    assert sorted(set(model.predict()["unique_id"])) == ["a", "c", "e", "f"]
    assert model.failures_["unique_id"].tolist() == ["b", "d"]
    with pytest.raises(ParameterError, match="got b"):
        model.predict(ids="b")


def test_a_model_that_fits_all_series_has_no_failures() -> None:
    model = d.Naive(horizon=2, on_failure="fallback").fit(months("a", 9))
    assert model.failures_.columns.tolist() == ["unique_id", "reason", "model"]
    assert len(model.failures_) == 0


def test_a_panel_without_any_forecast_is_an_error() -> None:
    with pytest.raises(DataError, match="requires at least 12 values"):
        d.SeasonalNaive(horizon=3, on_failure="drop").fit(pd.concat([months("a", 1), months("b", 2)]))
    with pytest.raises(DataError, match="At least one series must have values"):
        d.SeasonalNaive(horizon=3, on_failure="fallback").fit(months("a", 20, np.nan))


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_a_failure_in_the_middle_of_a_fit_is_found_by_bisection() -> None:
    frame = pd.concat([months(f"s{i}", 20, np.full(20, 7.0 if i in (3, 8) else 5.0)) for i in range(11)])
    model = Picky(horizon=2, on_failure="fallback").fit(frame)
    assert model.failures_["unique_id"].tolist() == ["s3", "s8"]
    assert set(model.failures_["reason"]) == {"The optimizer diverged."}
    assert len(model.predict()) == 22
    with pytest.raises(TrainingError, match="diverged"):
        Picky(horizon=2).fit(frame)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_a_forecast_that_is_not_finite_falls_back() -> None:
    frame = pd.concat([months("a", 20, np.full(20, 7.0)), months("b", 20, np.full(20, 5.0))])
    model = Unbounded(horizon=2, on_failure="fallback").fit(frame)
    assert model.failures_.iloc[0].tolist() == ["a", "The forecast of Unbounded is not finite.", "SeasonalNaive"]
    assert model.predict()["Unbounded"].tolist() == [7.0, 7.0, 5.0, 5.0]


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_integer_time_has_no_season_and_falls_back_to_naive() -> None:
    frame = pd.concat([months("a", 30), months("b", 2)]).assign(ds=lambda x: x.groupby("unique_id").cumcount())
    model = d.SeasonalNaive(horizon=2, season_length=7, on_failure="fallback").fit(frame)
    assert model.failures_["model"].tolist() == ["Naive"]


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_a_global_model_forecasts_short_series_as_unseen_ones() -> None:
    frame = pd.concat([months("a", 60), months("b", 60), months("c", 6), months("d", 1)])
    model = d.Conformal(d.Regression("ridge", lags=[1, 2]), horizon=6, pool=True)
    fitted = model.clone(on_failure="fallback").fit(frame)
    assert fitted.failures_["unique_id"].tolist() == ["c", "d"]
    assert fitted.failures_["model"].tolist() == ["Conformal", "Naive"]
    unseen = model.fit(frame[frame["unique_id"].isin(["a", "b"])]).predict(frame=months("c", 6), level=80)
    pd.testing.assert_frame_equal(fitted.predict(ids="c", level=80), unseen)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_saving_keeps_the_naive_methods(fallback: d.SeasonalNaive, tmp_path: Path) -> None:
    fallback.save(tmp_path / "model.dfc")
    loaded = d.load(tmp_path / "model.dfc")
    pd.testing.assert_frame_equal(loaded.predict(level=80), fallback.predict(level=80))
    pd.testing.assert_frame_equal(loaded.failures_, fallback.failures_)


def test_update_moves_all_models(fallback: d.SeasonalNaive) -> None:
    new = pd.DataFrame({"unique_id": ["b", "a"], "ds": pd.Timestamp("2025-01-01"), "y": [70.0, 80.0]})
    fallback.update(new)
    forecast = fallback.predict(horizon=12, ids=["a", "b"])
    assert forecast.loc[forecast["unique_id"] == "b", "SeasonalNaive"].tolist() == [70.0] * 12
    assert forecast.loc[forecast["unique_id"] == "a", "SeasonalNaive"].tolist()[-1] == 80.0
    with pytest.raises(DataError, match="cannot append to series without a forecast"):
        fallback.update(new.iloc[:1].assign(unique_id="d"))


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_other_histories_fall_back_too(fallback: d.SeasonalNaive) -> None:
    forecast = fallback.predict(frame=pd.concat([months("b", 30), months("new", 2, [3.0, 4.0]), months("a", 20)]))
    assert len(forecast) == 9
    assert forecast.loc[forecast["unique_id"] == "new", "SeasonalNaive"].tolist() == [4.0] * 3
    assert fallback.predict(frame=months("x", 1, [9.0]))["SeasonalNaive"].tolist() == [9.0] * 3


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_sample_paths_of_all_series_with_a_forecast(fallback: d.SeasonalNaive) -> None:
    paths = fallback.simulate(4)
    assert len(paths) == 5 * 4 * 3
    assert set(paths["unique_id"]) == {"a", "b", "c", "e", "f"}
    alone = d.SeasonalNaive(horizon=3).fit(FRAME[FRAME["unique_id"].isin(GOOD)]).simulate(4)
    pd.testing.assert_frame_equal(paths[paths["unique_id"].isin(GOOD)].reset_index(drop=True), alone)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_backtests_forecast_short_series_by_a_naive_method() -> None:
    frame = FRAME[FRAME["unique_id"] != "b"]
    board = d.compare([d.SeasonalNaive(), d.Naive()], frame, horizon=3, n_windows=2, level=80)
    assert board.table.set_index("model")["failed_series"].to_dict() == {"SeasonalNaive": 1, "Naive": 0}
    assert "could not fit or forecast 1 series" in str(board)
    assert set(board.forecasts["unique_id"]) == {"a", "c", "e", "f"}
    assert board.best_model.on_failure == "raise"
    dropped = d.compare([d.SeasonalNaive(), d.Naive()], frame, horizon=3, n_windows=2, on_failure="drop")
    assert set(dropped.forecasts["unique_id"]) == set(GOOD)
    assert (dropped.forecasts["unique_id"].tolist(), dropped.forecasts["ds"].tolist()) == (
        board.forecasts.loc[board.forecasts["unique_id"] != "f", "unique_id"].tolist(),
        board.forecasts.loc[board.forecasts["unique_id"] != "f", "ds"].tolist(),
    )
    forecasts = d.cross_validate(d.SeasonalNaive(on_failure="fallback"), frame, horizon=3, n_windows=2)
    assert not forecasts["SeasonalNaive"].isna().any()
    with pytest.raises(ParameterError, match="`on_failure` must be 'raise', 'fallback' or 'drop'"):
        d.compare([d.Naive()], frame, horizon=3, on_failure="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", ["c", ["c"], np.array(["c"]), pd.Series(["c"])], ids=["text", "list", "array", "series"])
def test_forecasts_of_some_ids_are_those_of_all(ids: Any) -> None:
    model = d.AutoETS(horizon=3).fit(FRAME[FRAME["unique_id"].isin(GOOD)])
    forecast = model.predict(level=80)
    expected = forecast[forecast["unique_id"] == "c"].reset_index(drop=True)
    pd.testing.assert_frame_equal(model.predict(ids=ids, level=80), expected)


@pytest.mark.parametrize("ids", ["x", ["a", "x"], [], 3, None], ids=str)
def test_unknown_ids_are_refused(ids: Any) -> None:
    model = d.Naive(horizon=3).fit(FRAME[FRAME["unique_id"].isin(GOOD)])
    if ids is None:
        assert len(model.predict(ids=ids)) == 9
        return
    with pytest.raises(ParameterError, match=r"`ids` must be ids of series seen in fit, got .*Pass ids such as 'a'") as caught:
        model.predict(ids=ids)
    assert caught.value.parameter == "ids"
    with pytest.raises(ParameterError, match="without an id column"):
        d.Naive(horizon=3).fit(months("a", 9).drop(columns="unique_id")).predict(ids="a")


@pytest.mark.parametrize("bounds", [(0, None), (None, 51), (48.5, 51)], ids=str)
def test_points_intervals_and_paths_are_within_bounds(bounds: tuple[Any, Any]) -> None:
    low, high = (-np.inf if bounds[0] is None else bounds[0], np.inf if bounds[1] is None else bounds[1])
    model = d.AutoETS(horizon=12, bounds=bounds).fit(months("a", 48))
    free = d.AutoETS(horizon=12).fit(months("a", 48))
    forecast, expected = model.predict(level=[80, 95]).iloc[:, 2:], free.predict(level=[80, 95]).iloc[:, 2:]
    pd.testing.assert_frame_equal(forecast, expected.clip(low, high))
    assert model.simulate(50)["AutoETS"].between(low, high).all()
    components = model.explain().groupby("ds")["value"].sum()
    np.testing.assert_allclose(components.to_numpy(), forecast["AutoETS"].to_numpy())


@pytest.mark.parametrize("bounds", [(1, 1), (3, 1)], ids=str)
def test_bounds_must_increase(bounds: tuple[Any, Any]) -> None:
    with pytest.raises(ParameterError, match="`bounds` must be a lower and a larger upper bound"):
        d.Naive(horizon=1, bounds=bounds).fit(months("a", 9))


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize("mode", ["fallback", "drop"])
def test_a_frame_none_of_whose_series_can_be_forecast_is_refused(mode: Any) -> None:
    model = d.SeasonalNaive(horizon=3, on_failure=mode).fit(FRAME)
    empty = months("x", 5, np.nan)
    for call in (model.predict, lambda frame: model.simulate(2, frame=frame)):
        with pytest.raises(DataError, match="cannot forecast any series of the frame"):
            call(frame=empty)
    if mode == "drop":
        with pytest.raises(DataError, match="cannot forecast any series of the frame"):
            model.predict(frame=months("x", 5))


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_paths_of_naive_methods_are_within_bounds() -> None:
    frame = pd.concat([months("a", 48), months("b", 4, [1.0, 9.0, 0.5, 8.0])])
    model = d.SeasonalNaive(horizon=6, bounds=(0, None), on_failure="fallback").fit(frame)
    assert (model.simulate(50)["SeasonalNaive"] >= 0).all()


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_series_that_cannot_be_calibrated_or_have_missing_values_fall_back() -> None:
    frame = pd.concat([months("a", 48), months("b", 3), months("c", 48).iloc[[*range(20), *range(22, 48)]]])
    conformal = d.Conformal(d.Naive(), horizon=2, pool=True, on_failure="fallback").fit(frame)
    assert "b" in conformal.failures_["unique_id"].tolist()
    naive2 = d.Naive2(horizon=2, on_failure="fallback").fit(frame[frame["unique_id"] != "b"])
    assert naive2.failures_[["unique_id", "reason", "model"]].to_numpy().tolist() == [
        ["c", "It has missing values, which Naive2 cannot handle.", "SeasonalNaive"]
    ]


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_fine_tuning_falls_back_too() -> None:
    model = d.SeasonalNaive(horizon=3, on_failure="fallback").fit(FRAME)
    model.fine_tune(pd.concat([months("a", 30), months("b", 2)]))
    assert model.failures_["unique_id"].tolist() == ["b"]
    assert len(model.predict()) == 6


def test_reasons_are_those_of_the_series() -> None:
    with pytest.warns(DataWarning):
        model = d.SeasonalNaive(horizon=3, on_failure="fallback").fit(FRAME)
    assert model.failures_["reason"].tolist() == [
        "It has fewer than the 12 values that SeasonalNaive requires.", "It has no values.",
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize("model", [d.HoltWinters(season_length=12), d.LightGBM(n_estimators=2)], ids=["local", "global"])
def test_naive_methods_may_forecast_all_series(model: Any, tmp_path: Path) -> None:
    frame = pd.concat([months("a", 2, [3.0, 4.0]), months("b", 2, [2.0, 5.0])])
    fitted = model.clone(horizon=2, on_failure="fallback").fit(frame)
    assert fitted.predict()[model.name].tolist() == [4.0, 4.0, 5.0, 5.0]
    fitted.save(tmp_path / "m")
    pd.testing.assert_frame_equal(d.load(tmp_path / "m").predict(), fitted.predict())
    assert len(fitted.predict(frame=months("c", 2))) == 2
    assert len(fitted.predict(ids="b")) == 2
    single = frame[frame["unique_id"] == "a"].drop(columns="unique_id")
    assert len(model.clone(horizon=2, on_failure="fallback").fit(single, freq="MS").predict()) == 2
    if isinstance(model, d.HoltWinters):  # scores of naive methods alone would not be those of the model
        board = d.compare([model, d.Naive()], pd.concat([months("a", 18), months("b", 18)]), horizon=3, n_windows=3)
        assert board.failed == ["HoltWinters"]


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_new_bounds_reach_the_naive_methods(fallback: d.SeasonalNaive) -> None:
    fallback.set_params(bounds=(0, 45))
    assert fallback.predict(ids="b")["SeasonalNaive"].tolist() == [45.0] * 3
    fallback.set_params(bounds=None)
    assert fallback.predict(ids="b")["SeasonalNaive"].tolist() == [50.0] * 3


@pytest.mark.parametrize("parameters", [{"bounds": (0, None)}, {"on_failure": "drop"}], ids=str)
def test_the_model_of_a_wrapper_has_neither_bounds_nor_fallback(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="has no effect on the model of Conformal"):
        d.Conformal(d.Naive(**parameters), horizon=2).fit(months("a", 30))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_failures_are_text_in_every_library(library: str) -> None:
    frame = converted(FRAME.reset_index(drop=True), library)
    failures = d.SeasonalNaive(horizon=3, on_failure="drop").fit(frame).failures_
    assert plain(failures)["model"].tolist() == ["", ""]
    assert "bject" not in str(failures.schema)


def test_series_without_an_interval_have_missing_ones_with_a_warning() -> None:
    frame = pd.concat([months("a", 30), months("b", 2, [3.0, 5.0])])
    with pytest.raises(DataError, match="Drift-lo-80 for series b are not"):
        d.Drift(horizon=2).fit(frame).predict(level=80)
    model = d.Drift(horizon=2, on_failure="fallback").fit(frame)
    assert len(model.failures_) == 0
    with pytest.warns(DataWarning, match="missing for series that are too short for them: b"):
        forecast = model.predict(level=80)
    assert forecast.loc[forecast["unique_id"] == "a"].notna().all(axis=None)
    assert forecast["Drift"].notna().all()


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize("model", [d.Prophet(), d.AutoARIMA()], ids=str)
@pytest.mark.parametrize("mode", ["fallback", "drop"])
def test_future_covariates_are_those_of_the_fitted_series(model: Any, mode: str) -> None:
    frame = pd.concat([months("a", 48), months("b", 1), months("c", 48)])
    frame = frame.assign(x=np.random.default_rng(0).normal(size=len(frame)))
    fitted = model.clone(horizon=3, on_failure=mode).fit(frame, columns={"future": ["x"]})
    future = fitted.future_frame().assign(x=1.0)
    good = model.clone(horizon=3).fit(frame[frame["unique_id"] != "b"], columns={"future": ["x"]})
    good_future = future[future["unique_id"] != "b"]
    forecast, expected = fitted.predict(future=future), good.predict(future=good_future)
    others = forecast[forecast["unique_id"] != "b"].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, expected)
    pd.testing.assert_frame_equal(fitted.predict(future=good_future), forecast)  # naive methods use no covariates
    assert set(future["unique_id"]) == set(forecast["unique_id"])
    forecasts = d.cross_validate(model.clone(on_failure=mode), frame, horizon=3, n_windows=2, columns={"future": ["x"]})
    assert set(forecasts["unique_id"]) == {"a", "c"}


@pytest.mark.parametrize("mode", ["fallback", "drop"])
def test_levels_change_no_point_forecast(mode: Any) -> None:
    frame = pd.concat([months("a", 48), months("season", 13), months("two", 3), months("c", 48)])  # 12 and 2 before the window
    options = {"horizon": 1, "n_windows": 1, "on_failure": mode}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        points = d.compare([d.SeasonalNaive(), d.Drift(), d.AutoETS()], frame, **options)
        assert "intervals" not in "".join(str(warning.message) for warning in caught)
        board = d.compare([d.SeasonalNaive(), d.Drift(), d.AutoETS()], frame, level=80, **options)
    text = "".join(str(warning.message) for warning in caught)
    assert "SeasonalNaive: intervals and sample paths are missing for series that are too short for them: season." in text
    pd.testing.assert_frame_equal(board.forecasts[points.forecasts.columns], points.forecasts)
    by_series = board.forecasts.set_index("unique_id")
    assert by_series["SeasonalNaive-lo-80"].isna().tolist() == (by_series.index == "season").tolist()
    assert "points where coverage-80 is undefined" in str(board)
    assert ("two" in by_series.index) == (mode == "fallback")
    assert ("left out for all models" in str(board).lower()) == (mode == "drop")
    lacks_interval = board.by_series[board.by_series["coverage-80"].isna()]
    assert set(lacks_interval["unique_id"]) == {"season", "two"} & set(by_series.index)  # for all models: the same points
    assert len(lacks_interval) == 3 * lacks_interval["unique_id"].nunique()


def test_intervals_of_too_few_values_are_refused_by_default() -> None:
    frame = pd.concat([months("a", 48), months("season", 13)])
    with pytest.raises(DataError, match="cannot estimate intervals for series with too few values before a cutoff: season") as caught:
        d.cross_validate(d.SeasonalNaive(), frame, horizon=1, n_windows=1, level=80)
    assert caught.value.series == ("season",)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize(
    "model",
    [d.HoltWinters(season_length=6), d.MSTL(season_length=[6, 13]), d.Conformal(d.HoltWinters(season_length=6), horizon=6)],
    ids=str,
)
def test_naive_methods_have_the_season_of_the_model(model: Any) -> None:
    pattern = np.array([1.0, 2.0, 3.0, 40.0, 5.0, 6.0])
    frame = pd.concat([months("a", 60, np.tile(pattern, 10)), months("b", 10, np.tile(pattern, 2)[:10])])
    for time in (frame["ds"], frame.groupby("unique_id").cumcount()):  # integer time has no season of its own
        fitted = model.clone(horizon=6, on_failure="fallback").fit(frame.assign(ds=time))
        forecast = fitted.predict()
        assert fitted.failures_["model"].tolist() == ["SeasonalNaive"]
        assert forecast.loc[forecast["unique_id"] == "b", fitted.name].tolist() == [5, 6, 1, 2, 3, 40]


@pytest.mark.parametrize(
    ("model", "n_rows"), [(d.SeasonalNaive(intervals="conformal"), 15), (d.Conformal(d.SES()), 6)], ids=str
)
def test_conformal_intervals_are_missing_where_errors_are_too_few(model: Any, n_rows: int) -> None:
    frame = pd.concat([months("a", 48), months("b", n_rows), months("c", 48)])
    fitted = model.clone(horizon=2, on_failure="fallback").fit(frame)
    assert not len(fitted.failures_)
    with pytest.warns(DataWarning, match=r"missing for series that are too short for them: b\."):
        forecast = fitted.predict(level=80).set_index("unique_id")
    good = model.clone(horizon=2).fit(frame[frame["unique_id"] != "b"]).predict(level=80).set_index("unique_id")
    assert forecast.loc["b", f"{fitted.name}-lo-80"].isna().all()
    assert forecast[fitted.name].notna().all()
    with pytest.warns(DataWarning, match=r"them: b\."):  # whatever the other series
        assert fitted.predict(level=80, ids="b").iloc[:, -2:].isna().all(axis=None)
    with pytest.raises(CalibrationError, match="requires at least 999"):
        fitted.predict(level=99.9)
    pd.testing.assert_frame_equal(forecast.loc[["a", "c"]], good)
    with pytest.raises(CalibrationError, match=r"requires at least 4 calibration errors .*pool=True"):
        model.clone(horizon=2).fit(frame).predict(level=80)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_a_missing_future_value_fails_one_series_only() -> None:
    frame = pd.concat([months("a", 48), months("b", 48), months("c", 48)], ignore_index=True)
    frame["x"] = np.arange(len(frame)) % 5.0
    frame.loc[frame.index[-1], "x"] = np.nan
    models, columns = [d.ARIMA(order=(1, 0, 0)), d.SeasonalNaive()], {"future": ["x"]}
    with pytest.warns(DataWarning, match=r"ARIMA cannot forecast series c; naive methods .* Column x is missing at 2024-12-01"):
        board = d.compare(models, frame, horizon=2, n_windows=1, columns=columns)
    assert board.table.set_index("model")["failed_series"].to_dict() == {"ARIMA": 1, "SeasonalNaive": 0}
    dropped = d.cross_validate(models[0].clone(on_failure="drop"), frame, horizon=2, n_windows=1, columns=columns)
    assert set(dropped["unique_id"]) == {"a", "b"}
    with pytest.raises(DataError, match=r"series c\. Column x is missing at 2024-12-01") as caught:
        d.cross_validate(models[0], frame, horizon=2, n_windows=1, columns=columns)
    assert caught.value.series == ("c",)
    frame.loc[frame["ds"] == "2024-12-01", "x"] = np.nan
    for mode in ("fallback", "drop"):  # scores would be those of naive methods alone
        with pytest.raises(DataError, match=r"series a, b, c\. Column x is missing"):
            d.cross_validate(models[0].clone(on_failure=mode), frame, horizon=2, n_windows=1, columns=columns)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize("name", ["model", "reason"])
def test_the_id_column_of_failures_may_have_any_name(name: str) -> None:
    frame = pd.concat([months("a", 30), months("z", 1)]).rename(columns={"unique_id": name})
    model = d.SeasonalNaive(horizon=1, on_failure="fallback").fit(frame, columns={"id": name})
    assert model.failures_.to_dict("list") == {name: ["z"], "reason_": model.failures_["reason_"].tolist(), "model_": ["Naive"]}


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_failures_have_the_same_types_with_and_without_rows(library: str) -> None:
    model = d.Naive(horizon=1, on_failure="drop")
    none = model.fit(converted(months("a", 30), library)).failures_
    with pytest.warns(DataWarning):
        some = model.fit(converted(pd.concat([months("a", 30), months("z", 3, np.nan)]), library)).failures_
    assert len(some) == 1
    assert none.schema == some.schema


def test_advice_is_not_what_is_set_already() -> None:
    with pytest.raises(DataError) as caught:
        d.AutoETS(horizon=1, on_failure="drop").fit(pd.concat([months("a", 2), months("b", 1)]))
    assert "on_failure" not in str(caught.value)
    with pytest.raises(DataError, match="MSTL requires at least") as caught:
        d.cross_validate(d.MSTL(season_length=(7,), on_failure="fallback"), months("a", 16), horizon=2, n_windows=3)
    assert "on_failure" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_networks_that_fit_no_series_forecast_by_naive_methods(tmp_path: Path) -> None:
    frame = pd.concat([months("a", 1), months("b", 1)])
    for model in (d.MLP(horizon=2, max_steps=1), d.HoltWinters(horizon=2, season_length=12)):
        fitted = model.clone(on_failure="fallback").fit(frame, freq="MS")
        assert len(fitted.predict(level=80)) == 4
    with pytest.raises(CapabilityError, match="could be fitted to none of the series"):
        fitted.explain()


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_intervals_are_calibrated_on_histories_after_a_fit_of_no_series(tmp_path: Path) -> None:
    model = d.AutoETS(intervals="conformal", on_failure="fallback", horizon=3).fit(months("a", 2))
    model.save(tmp_path / "m")
    history = months("b", 48)
    expected = d.AutoETS(intervals="conformal", horizon=3).fit(history).predict(level=80)
    pd.testing.assert_frame_equal(d.load(tmp_path / "m").predict(frame=history, level=80), expected)


def test_booleans_are_no_ids() -> None:
    frame = pd.concat([months("a", 9), months("b", 9)]).assign(unique_id=np.repeat([0, 1], 9))
    with pytest.raises(ParameterTypeError, match="`ids` must be an id or a flat list of ids"):
        d.Naive(horizon=1).fit(frame).predict(ids=np.array([True, False]))
