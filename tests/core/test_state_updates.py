from __future__ import annotations

import re
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast import Conformal, Drift, Mean, Naive, Naive2, SeasonalNaive, WindowMean
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.state import LearnedState
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, DataError, DataWarning
from tests.frames import LIBRARIES, D, P, converted, joined, plain, same
from tests.helpers_models import FutureRegression, PooledRegression

LOCAL: list[Forecaster] = [Naive(), SeasonalNaive(season_length=7), WindowMean(window=5), Drift(), Mean()]
SHOPS = {"unique_id": ["s001", "s002", "s003", "s004"], "size": [1.0, 2.0, 4.0, 8.0], "kind": ["a", "b", "a", "b"]}


def noisy(k: int = 3, n: int = 40) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=frame.y + np.random.default_rng(0).normal(size=len(frame)))


def shops() -> pd.DataFrame:
    return pd.DataFrame(SHOPS).astype({"kind": "category"})


def by_shop(k: int = 3) -> pd.DataFrame:
    """A frame in which y is five times the shop's size, and three more for kind b."""
    known = shops().set_index("unique_id")
    frame = P(k, 20)
    return frame.assign(y=5 * frame.unique_id.map(known["size"]) + 3 * (frame.unique_id.map(known.kind) == "b"))


# -- predict(frame=...) ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", LOCAL, ids=lambda one: one.name)
def test_known_series_keep_their_parameters_and_move_their_state(model: Forecaster) -> None:
    frame = noisy()
    model = model.clone().fit(frame.groupby("unique_id").head(30))
    found = model.predict(3, frame=frame, level=80)
    assert found.ds.min() == frame.ds.max() + pd.Timedelta(days=1)
    fresh = model.clone().fit(frame).predict(3, level=80)
    if model.name in ("Naive", "SeasonalNaive", "WindowMean"):
        assert (found[model.name] == fresh[model.name]).all()  # the state alone makes their points
    assert (found[f"{model.name}-hi-80"] != fresh[f"{model.name}-hi-80"]).all()
    same(model.predict(3, level=80), model.clone().fit(frame.groupby("unique_id").head(30)).predict(3, level=80))


@pytest.mark.parametrize("model", LOCAL, ids=lambda one: one.name)
def test_unseen_series_are_fitted_aloud_and_stand_among_the_known(model: Forecaster) -> None:
    frame = noisy(4)
    model = model.clone().fit(frame[frame.unique_id.isin(["s001", "s003"])])
    with pytest.warns(
        DataWarning, match=r"series separately, so series that were not seen in fit are fitted now: s002, s004"
    ) as said:
        found = model.predict(3, frame=frame, level=80)
    assert len(said) == 1
    same(found, model.clone().fit(frame).predict(3, level=80))
    with pytest.warns(DataWarning, match="not seen in fit are fitted now: s002"):
        found = model.predict(3, frame=frame[frame.unique_id == "s002"])
    same(found, model.clone().fit(frame[frame.unique_id == "s002"]).predict(3))


def test_some_of_the_series_in_any_order() -> None:
    frame = noisy(4)
    model = SeasonalNaive(season_length=7).fit(frame)
    some = frame[frame.unique_id.isin(["s004", "s002"])].sample(frac=1, random_state=0)
    all_of_them = model.predict(3, level=80)
    wanted = all_of_them[all_of_them.unique_id.isin(["s002", "s004"])]
    same(model.predict(3, frame=some, level=80), wanted.reset_index(drop=True))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_history_comes_back_in_its_own_library(library: str) -> None:
    frame = noisy()
    model = Naive().fit(frame)
    found = model.predict(3, frame=converted(frame, library))
    assert type(found) is type(converted(frame, library))
    same(found, model.predict(3), types=False)
    assert type(model.predict(3)) is pd.DataFrame


def test_a_frame_without_the_id_column_cannot_be_told() -> None:
    model = Naive().fit(noisy())
    for act in (lambda frame: model.predict(3, frame=frame), model.update, model.fine_tune):
        with pytest.raises(DataError, match="must have the id column unique_id, as in fit"):
            act(D("A", 50).drop(columns="unique_id"))
        with pytest.raises(DataError, match="must have the id column unique_id, as in fit"):  # before repeated timestamps
            act(noisy().drop(columns="unique_id"))


def test_a_single_series_without_ids_moves_and_goes_on() -> None:
    frame = D("A", 40).drop(columns="unique_id")
    model = Naive(horizon=2).fit(frame.head(30))
    same(model.predict(frame=frame), Naive(horizon=2).fit(frame).predict())
    same(model.update(frame.tail(10)).predict(), Naive(horizon=2).fit(frame).predict())


def test_a_history_too_short_for_the_model() -> None:
    model = SeasonalNaive(horizon=3, season_length=7).fit(noisy())
    with pytest.raises(DataError, match=r"SeasonalNaive requires at least 7 values of history per series, .* s003 have 6 each"):
        model.predict(frame=noisy(3, 6))


def test_missing_values_of_a_history_are_filled_or_said() -> None:
    frame = noisy().drop(index=[38, 45])
    with pytest.warns(DataWarning, match="2 rows of series s001, s002, first at 2024-02-08"):
        Naive().fit(noisy()).predict(2, frame=frame)
    filled = Naive(missing="ffill").fit(noisy()).predict(2, frame=frame)
    assert filled.Naive.iloc[0] == frame[frame.unique_id == "s001"].y.iloc[-1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_without_a_role_warn_in_every_call_that_reads_them(library: str) -> None:
    frame = noisy().assign(note="x")
    later = frame.assign(ds=frame.ds + pd.Timedelta(days=40), price=1.0)
    more = later.assign(ds=later.ds + pd.Timedelta(days=40))
    rows, after, beyond = (converted(one, library) for one in (frame.assign(price=1.0), later, more))
    with pytest.warns(DataWarning, match="ignored: note. Declare") as said:
        model = Naive(horizon=2).fit(converted(frame, library))
    assert len(said) == 1
    for call in (lambda: model.predict(frame=rows), lambda: model.predict(frame=rows), lambda: model.update(after)):
        with pytest.warns(DataWarning, match="ignored: price. Declare") as said:
            call()
        assert len(said) == 1
        assert said[0].filename == __file__
    want = plain(Naive(horizon=2).fit(later[["unique_id", "ds", "y"]]).predict())
    same(model.predict(), want, types=False)
    model.update(beyond)  # said before: not again
    with pytest.warns(DataWarning, match="ignored: size. Declare"):
        model.fine_tune(converted(more.assign(size=2.0), library))
    model.fine_tune(converted(more.assign(size=2.0), library))


# -- covariates -----------------------------------------------------------------------------------------------------------


def test_static_columns_of_known_series_are_those_of_the_fit() -> None:
    columns = {"static": ["size", "kind"]}
    frame = by_shop()
    apart = PooledRegression(horizon=2).fit(frame, static=shops(), columns=columns)
    inside = PooledRegression(horizon=2).fit(frame.merge(shops()), columns=columns)
    undeclared = PooledRegression(horizon=2).fit(frame, static=shops())
    for model in (apart, inside, undeclared):
        want = model.predict()
        np.testing.assert_allclose(want.PooledRegression.to_numpy()[::2], [5, 13, 20])
        same(model.predict(frame=frame), want)
        same(model.predict(frame=frame, static=shops()), want)
        same(model.predict(frame=frame.merge(shops())), want)
        model.update(frame.assign(ds=frame.ds + pd.Timedelta(days=20)))
        np.testing.assert_allclose(model.predict()[model.name], want[model.name])
        new = by_shop(4)[lambda one: one.unique_id == "s004"]
        with pytest.raises(DataError, match=r"New series must have static covariates; missing for series s004: size, kind"):
            model.predict(frame=new)
        np.testing.assert_allclose(model.predict(frame=new, static=shops()).PooledRegression, 43)


def test_categories_are_those_of_the_fit_and_new_ones_are_said() -> None:
    frame = D("A", 30).assign(kind=pd.Categorical(["b", "c"] * 15))
    frame["y"] = np.where(frame.kind == "c", 9.0, 4.0)
    model = FutureRegression(horizon=2).fit(frame, columns={"future": ["kind"]})
    ahead = model.future_frame()
    for kinds, want in ((["c", "b"], [9, 4]), (["b", "b"], [4, 4])):
        found = model.predict(future=ahead.assign(kind=pd.Categorical(kinds)))
        np.testing.assert_allclose(found.FutureRegression, want)
    history = frame.assign(kind=pd.Categorical(["a", "c"] * 15))
    with pytest.warns(DataWarning, match="kind has categories not seen in fit, which are treated as unknown: a"):
        found = model.predict(frame=history, future=ahead.assign(kind=pd.Categorical(["b", "c"])))
    np.testing.assert_allclose(found.FutureRegression, [4, 9])


def test_a_global_model_forecasts_series_it_has_not_seen_without_a_word() -> None:
    frame = P(4, 30).assign(past=lambda one: np.arange(len(one)) % 5.0)
    frame["y"] = frame.groupby("unique_id").past.shift(1).fillna(0.0) * 2 + 1
    model = PooledRegression(horizon=1).fit(frame[frame.unique_id < "s003"], columns={"past": ["past"]})
    want = PooledRegression(horizon=1).fit(frame, columns={"past": ["past"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict(frame=frame)
    assert len(found) == 4
    assert np.isfinite(found.PooledRegression).all()
    assert want.predict().columns.tolist() == found.columns.tolist()


# -- update ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", LOCAL[:3], ids=lambda one: one.name)
@given(cuts=st.lists(st.integers(31, 39), max_size=3, unique=True))
def test_update_in_any_portions_is_the_state_after_all_rows(model: Forecaster, cuts: list[int]) -> None:
    frame = noisy()
    row = frame.groupby("unique_id").cumcount()
    fitted = model.clone(horizon=3).fit(frame[row < 30])
    bounds = [30, *sorted(cuts), 40]
    for start, end in pairwise(bounds):
        assert fitted.update(frame[(row >= start) & (row < end)].sample(frac=1, random_state=1)) is fitted
    same(fitted.predict(), model.clone(horizon=3).fit(frame).predict())


@pytest.mark.parametrize("model", [Naive(), PooledRegression()], ids=lambda one: one.name)
def test_update_of_some_series_leaves_the_others(model: Forecaster) -> None:
    frame = noisy(3, 40).assign(past=lambda one: one.y.shift(1).fillna(0))
    row = frame.groupby("unique_id").cumcount()
    columns = {"past": ["past"]} if model.capabilities.past else {}
    keep = ["unique_id", "ds", "y", *columns.get("past", [])]
    fitted = model.clone(horizon=2).fit(frame.loc[row < 30, keep], columns=columns)
    before = fitted.predict()
    fitted.update(frame.loc[(row >= 30) & (frame.unique_id == "s002"), keep])
    with pytest.warns(DataWarning, match=r"are before 2024-02-09.*s001 \(2024-01-30\), s003 \(2024-01-30\)"):
        after = fitted.predict()
    others = before.unique_id != "s002"
    same(after[others], before[others])
    assert after.ds[2] == pd.Timestamp("2024-02-10")
    fitted = model.clone(horizon=2).fit(frame.loc[row < 30, keep], columns=columns)
    want = fitted.predict(frame=frame.loc[frame.unique_id == "s002", keep])
    same(after[~others].reset_index(drop=True), want)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            D("s001", 5, start="2024-02-09"),
            "series s001 is known up to 2024-02-09 and its new rows start at 2024-02-09",
        ),
        (D("s001", 50), "its new rows start at 2024-01-01. Pass only new rows"),
        (
            joined(D("s001", 5, start="2024-02-10"), D("new", 5, start="2024-02-10")),
            "cannot add new series, but these were not seen in fit: new. Fit again with these series",
        ),
        (D("s001", 5, start="2024-02-10 12:00"), "grid"),
    ],
    ids=["last", "all", "unknown", "off"],
)
def test_update_takes_new_rows_of_known_series_only(rows: pd.DataFrame, words: str) -> None:
    model = Naive(horizon=2).fit(noisy())
    state = model.state_
    with pytest.raises(DataError, match=words):
        model.update(rows)
    assert model.state_ is state


def test_update_on_another_grid_of_whole_numbers() -> None:
    model = Naive(horizon=2).fit(pd.DataFrame({"ds": np.arange(0, 50, 5), "y": 1.0}), freq=5)
    with pytest.raises(DataError, match=r"on the same time grid, but .* known up to 45 and its new rows start at 53"):
        model.update(pd.DataFrame({"ds": [53, 58], "y": 1.0}))
    assert model.update(pd.DataFrame({"ds": [50, 55], "y": 2.0})).predict().ds.tolist() == [60, 65]


def test_a_gap_before_an_update_is_missing_values() -> None:
    frame = noisy()
    row = frame.groupby("unique_id").cumcount()
    with pytest.warns(DataWarning, match="column y is missing in 12 rows of series s001, s002, s003, first at 2024-01-31"):
        fitted = SeasonalNaive(horizon=3, season_length=7).fit(frame[row < 30]).update(frame[row >= 34])
    with pytest.warns(DataWarning, match="missing"):
        want = SeasonalNaive(horizon=3, season_length=7).fit(frame[(row < 30) | (row >= 34)])
    same(fitted.predict(), want.predict())
    for filling in ("interpolate", "ffill", "zero"):
        model = SeasonalNaive(horizon=3, season_length=7, missing=filling).fit(frame[row < 30])
        with pytest.raises(DataError, match=rf"cannot fill a gap .*'{filling}'.*up to 2024-01-30 .* start at 2024-02-04"):
            model.update(frame[row >= 34])
        model.update(frame[row >= 30])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_far_stamp_is_refused_before_memory_is_taken_for_the_rows_between(library: str) -> None:
    model = Naive(horizon=2).fit(converted(pd.DataFrame({"ds": np.arange(10), "y": 1.0}), library))
    far = converted(pd.DataFrame({"ds": [10**13], "y": 1.0}), library)
    words = r"'1': 9,999,999,999,990 rows are missing .* there are 11; series \(no id\) is known up to 9 .* start at 10000000000000\."
    with pytest.raises(DataError, match=words):
        model.update(far)
    near = converted(pd.DataFrame({"ds": [9 + 12 * 11], "y": 1.0}), library)
    with pytest.warns(DataWarning, match="missing in 131 rows"):
        assert plain(model.update(near).predict()).ds.tolist() == [142, 143]


def test_a_far_stamp_of_one_series_of_several_is_named() -> None:
    seconds = joined(*(D(name, 600, "s") for name in "ABC"))
    later = joined(D("A", 5, "s", start="2024-01-01 00:10"), D("C", 5, "s", start="2025-01-01"))
    with pytest.raises(DataError, match=r"series C is known up to 2024-01-01 00:09:59 and its new rows start at 2025-01-01\."):
        Naive(horizon=2).fit(seconds).update(later)


# -- fine_tune ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*LOCAL, Conformal(Naive())], ids=lambda one: one.name)
def test_fine_tune_of_a_closed_form_is_a_fit_of_what_it_is_given(model: Forecaster) -> None:
    frame = noisy(4)
    fitted = model.clone(horizon=2).fit(frame[frame.unique_id != "s002"].groupby("unique_id").head(25))
    assert fitted.fine_tune(frame) is fitted
    same(fitted.predict(level=80), model.clone(horizon=2).fit(frame).predict(level=80))


@pytest.mark.filterwarnings("ignore:Future covariates are almost perfectly correlated with the target")
def test_fine_tune_goes_on_from_the_parameters_found() -> None:
    class Steps(PooledRegression):
        def _fine_tune(self, learned: LearnedState, panel: Panel) -> LearnedState:
            return LearnedState(self._fit(panel, None).by_series, {"weights": learned["weights"] + 1})

    columns = {"future": ["x"]}
    frame = noisy().assign(x=lambda one: one.y / 2)
    model = Steps(horizon=2, intervals="conformal").fit(frame, columns=columns)
    future = model.future_frame().assign(x=1.0)
    with pytest.warns(DataWarning, match="Steps: forecasts of series s003 lie far outside"):
        before = model.predict(future=future)
    other = frame[frame.unique_id < "s003"]
    model.fine_tune(other)
    after = model.predict(future=future[future.unique_id < "s003"], level=80)
    np.testing.assert_allclose(after.Steps, before.Steps[before.unique_id < "s003"] + 2)
    assert len(after) == 4


# -- what a model can take ------------------------------------------------------------------------------------------------


def test_covariates_that_cannot_be_used_are_refused_by_name() -> None:
    frame = by_shop().merge(shops()).assign(promo=1.0, day=pd.Categorical(["x"] * 60))
    for columns, words in (
        ({"future": ["promo"]}, "Naive cannot use future covariates (promo)"),
        ({"past": ["promo"]}, "Naive cannot use past covariates (promo)"),
        ({"static": ["size"]}, "Naive cannot use static covariates (size)"),
    ):
        with pytest.raises(CapabilityError, match=re.escape(words)):
            Naive().fit(frame[["unique_id", "ds", "y", *next(iter(columns.values()))]], columns=columns)

    class Numbers(FutureRegression):
        capabilities = FutureRegression.capabilities.__class__(future=True)

    with pytest.raises(CapabilityError, match=r"Numbers cannot use categorical covariates \(day\)"):
        Numbers().fit(frame[["unique_id", "ds", "y", "day"]], columns={"future": ["day"]})


def test_every_column_that_is_missing_is_named() -> None:
    frame = noisy().assign(x=1.0, kind=pd.Categorical(["a", "b"] * 60))
    frame.loc[3, "x"] = np.nan
    frame.loc[50, "kind"] = None
    columns = {"future": ["x", "kind"]}

    class Complete(FutureRegression):
        capabilities = FutureRegression.capabilities.__class__(future=True, categorical=True)

    with pytest.raises(DataError, match=r"column x is missing in 1 row of series s001, first at 2024-01-04 \(also in"):
        Complete().fit(frame, columns=columns)
    with pytest.warns(DataWarning, match=r"through missing values: column x .*also in kind"):
        FutureRegression().fit(frame, columns=columns)
    for filling in ("interpolate", "ffill", "zero"):
        with pytest.warns(DataWarning, match="categories as unknown: column kind is missing in 1 row of series s002"):
            Complete(missing=filling).fit(frame, columns=columns)


def test_a_column_without_any_value_in_a_series_is_not_filled_from_another() -> None:
    frame = noisy().assign(x=1.0)
    frame.loc[frame.unique_id == "s002", "x"] = np.nan
    columns = {"future": ["x"]}
    for filling in ("interpolate", "ffill"):
        with pytest.raises(DataError, match="all values of column x are missing in series s002, from 2024-01-01 to 2024-02-09"):
            FutureRegression(missing=filling).fit(frame, columns=columns)
    FutureRegression(missing="zero").fit(frame, columns=columns)
    with pytest.raises(DataError, match=r"Every series must have at least one value in column y; all values are missing"):
        Naive(missing="zero").fit(noisy().assign(y=lambda one: one.y.mask(one.unique_id == "s002")))


def test_failed_fit_leaves_the_model_unchanged() -> None:
    model = SeasonalNaive(horizon=2, season_length=7).fit(noisy())
    before = model.predict()
    for bad in (noisy(3, 5), noisy().assign(y="a"), noisy().iloc[:0]):
        with pytest.raises(DataError):
            model.fit(bad)
        same(model.predict(), before)
        with pytest.raises(DataError):
            model.fine_tune(bad)
        same(model.predict(), before)
    same(plain(model.fit(noisy(2)).predict()), before[before.unique_id < "s003"])


@pytest.mark.parametrize("act", ["predict", "fine_tune"])
@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (lambda ds: ds.dt.tz_localize("America/New_York"), "type and time zone"),
        (lambda ds: ds + pd.Timedelta(hours=3), "time grid as in fit"),
        (lambda ds: ds + pd.Timedelta(hours=12), "time grid as in fit"),
    ],
)
def test_histories_must_match_the_time_dtype_and_frequency_of_the_fit(act: str, moved: Any, words: str) -> None:
    frame = D("A", 35)
    model = Naive2(horizon=3).fit(frame)
    other = frame.assign(ds=moved(frame["ds"]))
    with pytest.raises(DataError, match=words):
        model.predict(frame=other) if act == "predict" else model.fine_tune(other)


def test_histories_in_another_time_zone_give_the_same_forecast() -> None:
    frame = D("A", 35)
    frame["ds"] = frame["ds"].dt.tz_localize("Europe/Berlin")
    model = Naive2(horizon=3).fit(frame)
    same(model.predict(frame=frame.assign(ds=frame["ds"].dt.tz_convert("UTC"))), model.predict())
