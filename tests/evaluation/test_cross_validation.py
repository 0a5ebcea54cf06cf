from __future__ import annotations

import math
import threading
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import (
    BacktestOptions,
    Conformal,
    Drift,
    Forecaster,
    LinearModel,
    Mean,
    Naive,
    SeasonalNaive,
    WindowMean,
    compare,
    cross_validate,
    param,
    score,
)
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, DataError, DataWarning, ParameterError, ParameterTypeError, TrainingError
from deepforecast.evaluation.backtesting import validate_models, with_seed
from tests.evaluation.boards import LastValue
from tests.frames import LIBRARIES, D, P, converted, joined, plain, same
from tests.helpers_models import FutureRegression, PooledRegression
from tests.screen import opened


def noisy(k: int = 3, n: int = 40) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=frame.y + np.random.default_rng(0).normal(size=len(frame)))


def ragged() -> pd.DataFrame:
    """A ends late, B early, C begins late, D is long gone."""
    return joined(D("A", 60), D("B", 50), D("C", 20, start="2024-02-10"), D("D", 20))


class Points(Forecaster):
    """A seeded forecast without a distribution."""

    capabilities = Capabilities()
    seed: int = param(default=0, at_least=0)

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        return LearnedState({"level": np.random.default_rng(self.seed).normal(size=len(panel))})

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return learned

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
        return PointForecast(np.repeat(learned["level"][:, None], steps, axis=1), self.name)


# -- what comes out -------------------------------------------------------------------------------------------------------


def test_the_frame_is_that_of_a_plain_loop() -> None:
    frame = noisy()
    model = SeasonalNaive(season_length=7)
    found = cross_validate(
        model, frame, horizon=4, n_windows=3, step_size=2, level=[80], gap=1, options=BacktestOptions(train_size=20)
    )
    parts = []
    for _, one in frame.groupby("unique_id"):
        for cut in (40 - 5 - 4, 40 - 5 - 2, 40 - 5):
            history, ahead = one.iloc[cut - 20 : cut], one.iloc[cut + 1 : cut + 5]
            forecast = model.clone().fit(history).predict(5, level=80).iloc[1:]
            forecast.insert(2, "cutoff", history.ds.iloc[-1])
            forecast.insert(3, "y", ahead.y.to_numpy())
            assert (forecast.ds.to_numpy() == ahead.ds.to_numpy()).all()
            parts.append(forecast)
    same(found, joined(*parts))


def test_cutoff_is_the_last_training_stamp_and_y_equals_the_frame() -> None:
    frame = noisy()
    found = cross_validate([Naive(), Drift()], frame, horizon=5, n_windows=4)
    assert list(found.columns) == ["unique_id", "ds", "cutoff", "y", "Naive", "Drift"]
    joint = found.merge(frame, on=["unique_id", "ds"], suffixes=("", "_frame"))
    assert len(joint) == len(found) == 3 * 4 * 5
    assert (joint.y == joint.y_frame).all()
    last = frame.rename(columns={"ds": "cutoff", "y": "last"}).merge(found, on=["unique_id", "cutoff"])
    assert (last["last"] == last.Naive).all()
    assert (found.ds > found.cutoff).all()
    assert found.equals(found.sort_values(["unique_id", "cutoff", "ds"], ignore_index=True))


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gets_its_own_back(library: str) -> None:
    frame = noisy().assign(promo=1.0)
    want = cross_validate([Naive(), Mean()], frame[["unique_id", "ds", "y"]], horizon=3, n_windows=2, level=80)
    given = converted(frame.sample(frac=1, random_state=0), library)
    with pytest.warns(DataWarning, match="Columns without a role are ignored: promo"):
        found = cross_validate([Naive(), Mean()], given, horizon=3, n_windows=2, level=80)
    assert type(found) is type(given)
    same(found, want, types=library == "pandas")


def test_without_an_id_column_and_with_names_of_the_callers_own() -> None:
    frame = D("A", 30).drop(columns="unique_id")
    found = cross_validate(Naive(), frame, horizon=3, n_windows=2)
    assert list(found.columns) == ["ds", "cutoff", "y", "Naive"]
    assert len(found) == 6
    own = noisy().rename(columns={"unique_id": "shop", "ds": "day", "y": "sales"})
    named = {"id": "shop", "time": "day", "target": "sales"}
    assert list(cross_validate(Naive(), own, horizon=2, columns=named).columns) == ["shop", "day", "cutoff", "sales", "Naive"]
    items = noisy().rename(columns={"unique_id": "item_id", "ds": "timestamp", "y": "target"})
    assert list(cross_validate(Naive(), items, horizon=2).columns) == ["item_id", "timestamp", "cutoff", "target", "Naive"]


def test_integer_time_and_zones_keep_their_types() -> None:
    frame = pd.DataFrame({"unique_id": 7, "ds": np.arange(0, 100, 5, dtype="int32"), "y": np.arange(20.0)})
    found = cross_validate(Naive(), frame, horizon=2, n_windows=2, freq=5)
    assert found.dtypes[["unique_id", "ds", "cutoff"]].astype(str).tolist() == ["int64", "int32", "int32"]
    assert found.cutoff.tolist() == [75, 75, 85, 85]
    frame = D("A", 30, "h", start="2024-03-30 12:00", tz="Europe/Berlin")
    found = cross_validate(Naive(), frame, horizon=4, n_windows=3)
    assert str(found.cutoff.dtype) == str(found.ds.dtype) == str(frame.ds.dtype)
    assert found.ds.tolist() == frame.ds.iloc[-12:].tolist()


def test_values_missing_in_the_frame_are_missing_in_y() -> None:
    frame = noisy(1).drop(index=38)
    found = cross_validate(Naive(), frame, horizon=2, n_windows=3, step_size=1)
    assert found.y.isna().tolist() == [False, False, False, True, True, False]
    assert found.Naive.notna().all()


def test_input_frame_is_not_modified() -> None:
    frame = noisy().sample(frac=1, random_state=1)
    copy = frame.copy(deep=True)
    cross_validate([Naive(), Mean()], frame, horizon=3)
    pd.testing.assert_frame_equal(frame, copy)


def test_models_agree_on_the_horizon_or_are_told() -> None:
    frame = noisy()
    want = cross_validate(Naive(), frame, horizon=3)
    same(cross_validate(Naive(horizon=3), frame), want)
    same(cross_validate([Naive(horizon=9)], frame, horizon=3), want)
    assert len(cross_validate([Naive(horizon=3), Mean()], frame)) == len(want)
    assert len(cross_validate(Conformal(Naive(horizon=3)), frame)) == len(want)
    with pytest.raises(ParameterError, match=r"the same horizon; got 3, 4. Pass `horizon`"):
        cross_validate([Naive(horizon=3), Mean(horizon=4)], frame)
    with pytest.raises(ParameterError, match="no model has a `horizon`"):
        cross_validate(Naive(), frame)
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ParameterError, match="horizon"):
            cross_validate(Naive(), frame, horizon=wrong)


def test_a_fitted_model_stays_as_it_is() -> None:
    model = Naive(horizon=3).fit(noisy())
    before = model.predict()
    cross_validate(model, noisy().assign(y=0.0), n_windows=2)
    same(model.predict(), before)


# -- which windows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", True, None, math.nan])
@pytest.mark.parametrize("name", ["n_windows", "step_size"])
def test_invalid_number_of_windows_is_refused(name: str, wrong: Any) -> None:
    if name == "step_size" and wrong is None:
        return
    with pytest.raises(ParameterError, match=f"`{name}` must be (an integer of )?at least 1, got"):
        cross_validate(Naive(), noisy(), horizon=3, **{name: wrong})


def test_message_of_too_many_windows_names_series_and_required_length() -> None:
    frame = joined(noisy(), D("short", 16))
    assert len(cross_validate(Naive(), frame, horizon=5, n_windows=3)) == 4 * 15
    with pytest.raises(ParameterError, match=r"n_windows=4 with horizon=5 .* series short has 16 rows\. Use fewer"):
        cross_validate(Naive(), frame, horizon=5, n_windows=4)
    with pytest.raises(ParameterError, match=r"n_windows=3 with horizon=5 \(step 5, gap 0\) requires 7 values for trai"):
        cross_validate([Naive(), SeasonalNaive(season_length=7)], frame, horizon=5, n_windows=3)
    with pytest.raises(ParameterError, match=r"n_windows=2 .* requires 7 values for training .* series short has 16 rows"):
        cross_validate(Conformal(Naive()), frame, horizon=5, n_windows=2, gap=1)


def test_every_series_is_in_every_window_by_its_own_end() -> None:
    found = cross_validate(Naive(), ragged(), horizon=3, n_windows=4)
    assert found.groupby("unique_id").cutoff.nunique().tolist() == [4, 4, 4, 4]
    assert found.groupby("unique_id").ds.max().tolist() == ragged().groupby("unique_id").ds.max().tolist()


def test_by_calendar_no_series_is_seen_past_a_cutoff_and_none_goes_silently() -> None:
    frame = ragged()
    with pytest.warns(DataWarning, match=r"Some series are in no window, as they end before the first step .*: D\.") as said:
        found = cross_validate(WindowMean(window=5), frame, horizon=3, n_windows=4, options=BacktestOptions(align="calendar"))
    assert len(said) == 1
    latest = pd.Timestamp("2024-02-29")
    cutoffs = [latest - pd.Timedelta(days=3 * one) for one in (4, 3, 2, 1)]
    assert sorted(found.cutoff.unique()) == cutoffs
    windows = found.groupby("unique_id").cutoff.unique().map(list).to_dict()
    assert windows["A"] == cutoffs
    assert windows["C"] == cutoffs  # 9 rows before the first
    assert windows["B"] == cutoffs[:1]  # it ends on the 19th
    assert len(found[(found.unique_id == "B")]) == 2
    new = joined(D("A", 60), D("new", 6, start="2024-02-24"))
    found = cross_validate(WindowMean(window=3), new, horizon=1, n_windows=4, options=BacktestOptions(align="calendar"))
    assert found.groupby("unique_id").cutoff.nunique().to_dict() == {"A": 4, "new": 3}
    with pytest.warns(DataWarning, match="Some series are in no window, as .*: new"):
        cross_validate([Naive(), WindowMean(window=6)], new, horizon=1, n_windows=4, options=BacktestOptions(align="calendar"))


def test_a_window_wants_what_is_known_ahead_of_all_its_steps() -> None:
    frame = ragged().assign(promo=lambda one: (np.arange(len(one)) % 3 == 0).astype(float))
    columns = {"future": ["promo"]}
    said_so: dict[str, Any] = {"horizon": 3, "n_windows": 4, "columns": columns, "options": BacktestOptions(align="calendar")}
    with pytest.warns(DataWarning, match="Some series are in no window, as .*: B, D"):
        found = cross_validate(FutureRegression(), frame, **said_so)
    assert found.groupby("unique_id").size().to_dict() == {"A": 12, "C": 12}
    with pytest.warns(
        DataWarning, match="Some series are in no window|Naive runs without the columns it cannot use: promo"
    ) as said:
        both = cross_validate([FutureRegression(), Naive()], frame, **said_so)
    assert len(said) == 2
    same(both.drop(columns="Naive"), found)
    assert both.Naive.notna().all()


@pytest.mark.parametrize("align", ["series", "calendar"])
@pytest.mark.parametrize("how", ["flipped", "noise", "constant", "deleted"])
def test_values_after_a_cutoff_do_not_change_the_forecast(how: str, align: str) -> None:
    bands = [Conformal(WindowMean(window=5)), Conformal(Naive(), alias="A", method="adaptive")]
    bands += [Conformal(Naive(), alias="P", pool=True)]
    models = [Naive(), SeasonalNaive(season_length=7), WindowMean(window=5), Mean(), Drift(), *bands]
    frame, options = noisy(), BacktestOptions(align=align)  # type: ignore[arg-type]
    before = cross_validate(models, frame, horizon=3, n_windows=3, level=75, options=options)
    cutoff = before.cutoff.unique()[1]
    later = frame.ds > cutoff
    if how == "deleted":  # what is left ends a window earlier
        other = frame[frame.ds <= cutoff + pd.Timedelta(days=3)]
        found = cross_validate(models, other, horizon=3, n_windows=2, level=75, options=options)
    else:
        rng = np.random.default_rng(3)
        new = {"flipped": -37 * frame.y + 1e5, "noise": rng.normal(size=len(frame)), "constant": 4.0}[how]
        other = frame.assign(y=frame.y.where(~later, new))
        found = cross_validate(models, other, horizon=3, n_windows=3, level=75, options=options)
    names = [name for name in before if name != "y"]
    before, found = before[before.cutoff <= cutoff], found[found.cutoff <= cutoff]
    same(before[names].reset_index(drop=True), found[names].reset_index(drop=True))


class Pooled(PooledRegression):
    """The mean of all series: what one of them says late reaches the others."""

    capabilities = Capabilities(local=False)

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        return LearnedState({"zero": np.zeros(len(panel))}, {"mean": np.array(panel.y.mean())})

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return LearnedState({"zero": np.zeros(len(panel))}, learned.shared)

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
        return PointForecast(np.repeat(learned["zero"][:, None] + learned["mean"], steps, axis=1), self.name)


@pytest.mark.parametrize(
    "model",
    [Pooled(), Conformal(Naive(), alias="Pooled", pool=True), Conformal(Conformal(Naive(), pool=True), alias="Pooled")],
    ids=["global", "pooled bands", "pooled within"],
)
def test_global_models_cut_series_of_different_ends_at_one_time(model: Forecaster) -> None:
    frame = joined(noisy(1, 60), D("B", 52))
    told: dict[str, Any] = {"horizon": 3, "n_windows": 3, "level": 80 if model.capabilities.distribution else None}
    with pytest.warns(DataWarning, match=r"train on all series at once: Pooled.*BacktestOptions\(align='calendar'\)") as said:
        before = cross_validate([Naive(), model], frame, **told)
    assert len(said) == 1
    cutoff = before.cutoff.min()
    assert before[before.unique_id == "B"].cutoff.unique().tolist() == [cutoff]
    later = frame.assign(y=frame.y.where(frame.ds <= cutoff, 1e4))
    after = cross_validate([Naive(), model], later, **told, options=BacktestOptions(align="calendar"))
    names = [name for name in before if name != "y"]
    same(before[names][before.cutoff == cutoff], after[names][after.cutoff == cutoff])
    own = cross_validate(model, frame, **told, options=BacktestOptions(align="series"))
    assert own.groupby("unique_id").cutoff.nunique().tolist() == [3, 3]


def test_alignment_is_each_series_own_where_nothing_can_leak() -> None:
    frame = joined(D("A", 60), D("B", 52))
    own = cross_validate([Naive(), Mean()], frame, horizon=3)  # local models
    assert own.groupby("unique_id").cutoff.nunique().tolist() == [3, 3]
    found, by_series = (
        cross_validate(Pooled(), noisy(), horizon=3, options=BacktestOptions(align=one)) for one in ("auto", "series")
    )
    same(found, by_series)


@pytest.mark.parametrize("wrong", [{"gap": 1}, None, BacktestOptions, "calendar"], ids=str)
def test_options_are_a_backtest(wrong: Any) -> None:
    for call in (cross_validate, compare):
        with pytest.raises(ParameterTypeError, match=r"`options` must be a BacktestOptions, got"):
            call([Naive()], noisy(), horizon=3, options=wrong)


# -- levels ---------------------------------------------------------------------------------------------------------------


def test_levels_of_several_models() -> None:
    found = cross_validate([Naive(), Naive(alias="C", intervals="conformal")], noisy(), horizon=2, level=[50, 80.5])
    bands = [f"{name}{end}" for name in ("Naive", "C") for end in ("", "-lo-50", "-hi-50", "-lo-80.5", "-hi-80.5")]
    assert list(found.columns)[4:] == bands
    assert (found["C-lo-80.5"] <= found["C-lo-50"]).all()
    assert (found["C"] == found["Naive"]).all()
    for wrong in ([0], [101], ["80"]):
        with pytest.raises(ParameterError, match="level"):
            cross_validate(Naive(), noisy(), horizon=2, level=wrong)


@pytest.mark.filterwarnings("ignore:.*lie far outside the history:UserWarning")
def test_a_level_of_a_model_without_a_distribution_is_refused_before_any_fit() -> None:
    class Never(Points):
        def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
            raise AssertionError("it was fitted")

    with pytest.raises(CapabilityError, match=r"Never cannot forecast levels .*intervals='conformal'"):
        cross_validate([Naive(), Never()], noisy(), horizon=2, level=80)
    assert cross_validate(Points(intervals="conformal"), noisy(), horizon=2, level=80)["Points-lo-80"].notna().all()


# -- models ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "kind", "words"),
    [
        ([], ParameterError, "must contain at least one model"),
        (Naive, ParameterTypeError, r"Did you mean Naive\(\)\?"),
        (["Naive"], ParameterTypeError, r"got Naive \(str\)\. Did you mean Naive\(\)\?"),
        ([Naive(), SeasonalNaive], ParameterTypeError, r"Did you mean SeasonalNaive\(\)\?"),
        ("Naive", ParameterTypeError, "`models` must contain model objects, got Naive"),
        (None, ParameterTypeError, "`models` must contain model objects, got None"),
    ],
)
def test_arguments_that_are_not_models_are_refused(models: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        cross_validate(models, noisy(), horizon=2)


def test_duplicate_model_names_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"must be unique, got more than once: Naive. Set `alias`"):
        cross_validate([Naive(), Mean(), Naive()], noisy(), horizon=2)
    assert len(validate_models([Naive(), Naive(alias="other")], 2)) == 2


@pytest.mark.parametrize(
    ("alias", "target"),
    [("y", "y"), ("ds", "y"), ("cutoff", "y"), ("unique_id", "y"), (None, "cutoff"), ("Mean-lo-80", "y"), (None, "Naive")],
)
def test_columns_that_would_stand_twice_are_named(alias: str | None, target: str) -> None:
    frame = noisy().rename(columns={"y": target})
    name = alias or target
    with pytest.raises(ParameterError, match=rf"these are repeated: {name}\."):
        cross_validate([Naive(alias=alias), Mean()], frame, horizon=2, level=80, columns={"target": target})


def test_models_run_without_the_covariates_they_cannot_use() -> None:
    frame = noisy().assign(promo=1.0, past=2.0, shop=pd.Categorical(["a", "b"] * 60))
    columns = {"future": ["promo"], "past": ["past"]}
    with pytest.warns(DataWarning, match="Naive runs without the columns it cannot use: promo, past"):
        cross_validate(Naive(), frame.drop(columns="shop"), horizon=2, columns=columns)
    with pytest.warns(DataWarning) as said:
        found = cross_validate(
            [Naive(), FutureRegression(), PooledRegression()], frame.drop(columns="shop"), horizon=2, columns=columns
        )
    assert sorted(str(one.message) for one in said) == [
        "FutureRegression runs without the columns it cannot use: past.",
        "Naive runs without the columns it cannot use: promo, past.",
    ]
    assert {one.filename for one in said} == {__file__}
    same(found[["Naive"]], cross_validate(Naive(), frame[["unique_id", "ds", "y"]], horizon=2)[["Naive"]])


def test_weights_count_before_each_cutoff_alone() -> None:
    """Weights of the test rows, errors of weight 0 among them, change neither forecasts nor scores."""
    frame = noisy().assign(w=lambda one: 1.0 + one.index % 3)
    is_last = frame.groupby("unique_id").cumcount(ascending=False) < 2
    options: dict[str, Any] = {"horizon": 2, "n_windows": 1, "columns": {"weight": "w"}}
    model = LinearModel(season_length=7)
    found = cross_validate(model, frame, **options)
    same(found, cross_validate(model, frame.assign(w=frame["w"].where(~is_last, 0.0)), **options))
    history, actual = frame[~is_last], frame[is_last]
    fitted = model.clone(horizon=2).fit(history, columns={"weight": "w"}).predict()
    np.testing.assert_array_equal(found["LinearModel"], fitted["LinearModel"])
    errors = np.abs(found["LinearModel"].to_numpy() - actual["y"].to_numpy()).reshape(-1, 2)
    np.testing.assert_allclose(score(found, metrics=["mae"], columns={"weight": "w"})["mae"], [errors.mean()])
    with pytest.warns(DataWarning, match="Naive runs without the columns it cannot use: w"):
        plain = cross_validate(Naive(), frame, **options)
    same(plain, cross_validate(Naive(), frame.drop(columns="w"), horizon=2, n_windows=1))


def test_static_columns_reach_the_models() -> None:
    size = pd.DataFrame({"unique_id": ["s003", "s001", "s002"], "size": [30.0, 10.0, 20.0]})
    frame = noisy().assign(y=lambda one: one.unique_id.map(size.set_index("unique_id")["size"]))
    found = cross_validate(PooledRegression(), frame, horizon=2, static=size)
    np.testing.assert_allclose(found.PooledRegression, found.y)


def test_a_model_that_fails_says_so() -> None:
    with pytest.raises(DataError, match="cannot handle missing values"):
        cross_validate(Points(), noisy().drop(index=5), horizon=2)


def test_refit() -> None:
    frame = noisy()
    every = cross_validate(WindowMean(window=5), frame, horizon=2, level=80)
    once = cross_validate(WindowMean(window=5), frame, horizon=2, level=80, refit=False)
    same(cross_validate(WindowMean(window=5), frame, horizon=2, level=80, refit=1), every)
    same(cross_validate(WindowMean(window=5), frame, horizon=2, level=80, refit=9), once)
    assert (every.WindowMean == once.WindowMean).all()  # the state moves on
    first = every.cutoff == every.groupby("unique_id").cutoff.transform("min")
    assert ((every["WindowMean-hi-80"] == once["WindowMean-hi-80"]) == first).all()  # the deviation stays
    for wrong in (0, -1, 1.5, "always"):
        with pytest.raises(ParameterError, match="`refit` must be 'auto', True, False or a number of windows"):
            cross_validate(Naive(), frame, horizon=2, refit=wrong)


# -- options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"train_size": 0}, {"train_size": "9"}, {"align": "end"}, {"seed": -1}, {"seed": 1.5}, {"progress": "yes"},
    ],
    ids=str,
)  # fmt: skip
def test_options_are_checked_where_they_are_given(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"^`?{next(iter(wrong))}`? (is|must be) "):
        BacktestOptions(**wrong)


@pytest.mark.parametrize("evaluate", [cross_validate, compare])
@pytest.mark.parametrize(
    "wrong",
    [
        {"gap": -1}, {"gap": 1.5}, {"gap": True}, {"n_jobs": 0}, {"n_jobs": -2}, {"n_jobs": 1.5}, {"step_size": 0},
        {"step_size": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_keywords_of_the_windows_are_checked(evaluate: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match=f"^`?{next(iter(wrong))}`? must be "):
        evaluate([Naive()], noisy(), horizon=2, **wrong)


@pytest.mark.filterwarnings("ignore:.*lie far outside the history:UserWarning")
def test_seeds_reach_every_model_that_has_one() -> None:
    frame = noisy()
    models = [Points(), Points(alias="B", seed=5), Naive(), Conformal(Points(), alias="C")]
    found = cross_validate(models, frame, horizon=2, options=BacktestOptions(seed=3))
    assert (found.Points == found.B).all()
    assert (found.Points == found.C).all()
    assert (found.Points != cross_validate(models, frame, horizon=2).Points).all()
    assert models[0].seed == 0  # type: ignore[attr-defined]
    assert with_seed(Naive(), 3) == Naive()


@pytest.mark.slow
def test_two_workers_give_the_bits_of_one() -> None:
    frame = noisy().drop(index=5)
    models = [Naive(), SeasonalNaive(season_length=7), WindowMean(window=5), Mean()]
    with pytest.warns(DataWarning) as said:
        one = cross_validate(models, frame, horizon=3, level=80)
    with pytest.warns(DataWarning) as again:
        two = cross_validate(models, frame, horizon=3, level=80, n_jobs=2)
    same(one, two)
    assert [str(each.message) for each in said] == [str(each.message) for each in again]
    assert len(said) == 1
    assert {each.filename for each in [*said, *again]} == {__file__}


def test_what_is_said_points_at_the_callers_line() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cross_validate([Naive(), Mean()], noisy().drop(index=5).assign(note="x"), horizon=2, n_windows=4)
    assert len(said) == 2
    assert {one.filename for one in said} == {__file__}


def test_what_several_models_say_is_said_once_with_their_names() -> None:
    frame = noisy().drop(index=5).assign(promo=1.0)
    with pytest.warns(DataWarning) as said:
        cross_validate([Naive(), FutureRegression(), Mean(), Drift()], frame, horizon=2, columns={"future": ["promo"]})
    runs, missing, other = sorted((str(one.message) for one in said), key=lambda one: "missing" in one)
    assert runs == "Naive runs without the columns it cannot use: promo. The same holds for Mean, Drift."
    assert missing.startswith("Naive forecasts through missing values: column y is missing in 1 row of series s001, first at ")
    assert missing.endswith(". The same holds for Mean, Drift.")
    assert other.startswith("FutureRegression forecasts through missing values: column y is missing")


def test_no_model_shows_skill_on_white_noise() -> None:
    rng = np.random.default_rng(11)
    noise = plain(P(200, 40)).assign(y=rng.normal(size=8000))
    models = [Mean(), Naive(), SeasonalNaive(season_length=7), WindowMean(window=7), Drift()]
    found = cross_validate(models, noise, horizon=3, n_windows=4)
    error = {model.name: float((found.y - found[model.name]).abs().mean()) for model in models}
    assert min(error.values()) > 0.97 * error["Mean"]
    assert error["Naive"] > 1.2 * error["Mean"]  # or the errors were not errors at all


def test_functions_of_the_evaluation_reach_the_processes_of_any_backend() -> None:
    import joblib

    frame, models = P(3, 60), [Naive(), Mean()]
    wanted = cross_validate(models, frame, horizon=2)
    for backend in ("loky", "multiprocessing"):
        with joblib.parallel_config(backend=backend):
            same(cross_validate(models, frame, horizon=2, n_jobs=2), wanted)


@pytest.mark.slow
def test_model_that_kills_its_worker_is_an_error() -> None:
    with pytest.raises(TrainingError, match=r"^LastValue: its worker process ended with exit status 3\."):
        cross_validate([Naive(), LastValue(how="exit")], noisy(), horizon=2, n_jobs=2)


@pytest.mark.parametrize("workers", [None, 2])
def test_a_bar_counts_windows_in_one_process_and_models_in_several(
    workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, models = P(3, 60), [Naive(), LastValue(pause=0.1)]
    screen = opened(monkeypatch)
    cross_validate(models, frame, horizon=2, n_jobs=workers)
    said = screen.getvalue()
    assert ("models: 100%" if workers else "windows: 100%") in said
    assert ("2/2 [" if workers else "4/6 [") in said
    assert "<00:0" in said
    screen = opened(monkeypatch)
    cross_validate(models, frame, horizon=2, n_jobs=workers, options=BacktestOptions(progress=False))
    assert screen.getvalue() == ""


def test_no_bar_outside_a_terminal_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    frame = P(2, 30)
    cross_validate([Naive(), LastValue(pause=0.3)], frame, horizon=2)
    assert capsys.readouterr() == ("", "")
    cross_validate(Naive(), frame, horizon=2, options=BacktestOptions(progress=True))
    said = capsys.readouterr()
    assert said.out == ""
    assert "windows: 100%" in said.err
    assert "3/3 [" in said.err


def test_a_model_of_each_series_is_fitted_at_every_window_also_where_its_bands_are_shared() -> None:
    frame, bands = noisy(3, 60), Conformal(Mean(), pool=True, alias="Bands")
    each, once = (cross_validate(bands, frame, horizon=2, level=80, refit=refit) for refit in (True, False))
    assert each["Bands-lo-80"].tolist() != once["Bands-lo-80"].tolist()
    same(cross_validate(bands, frame, horizon=2, level=80), each)


def test_a_users_joblib_configuration_is_honoured() -> None:
    import joblib

    frame, models = P(3, 60), [Naive(), Mean()]
    wanted = cross_validate(models, frame, horizon=2)
    names: set[str] = set()

    class Noting(Naive):
        def _fit(self, panel: Any, monitor: Any) -> Any:
            names.add(threading.current_thread().name)
            return super()._fit(panel, monitor)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        found = cross_validate([Noting(alias="Naive"), Mean()], frame, horizon=2)
    assert threading.main_thread().name not in names
    same(found, wanted)


@pytest.mark.parametrize("aliases", [("A-lo-80", "A-hi-80", "A"), ("A-q-0.5", "A"), ("sample",), ("step", "A")])
def test_names_that_score_would_take_for_something_else_are_refused(aliases: tuple[str, ...]) -> None:
    models = [Naive(alias=alias) for alias in aliases]
    with pytest.raises(ParameterError, match=r"another `?alias"):
        cross_validate(models, P(2, 30), horizon=3)
