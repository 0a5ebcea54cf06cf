"""Reliability of future covariates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.covariates import leaking_columns
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from deepforecast.testing.assertions import collect_warnings
from deepforecast.testing.subject import Subject
from tests.bad_input import KINDS, made
from tests.frames import LIBRARIES, D, P, converted, joined, plain, same
from tests.helpers_models import FutureRegression, PooledRegression


def promoted(k: int = 3, n: int = 60) -> pd.DataFrame:
    """P(k, n) with a column known ahead whose effect is 7, beside a pattern that least squares tells from it exactly."""
    frame = P(k, n)
    day = frame.groupby("unique_id").cumcount() % 5
    promo = (day == 0).astype(float)
    pattern = np.array([0.0, 3.0, -3.0, 3.0, -3.0])[day]
    return frame.assign(y=100 + 7 * promo + pattern + 10 * frame.unique_id.str[1:].astype(int), promo=promo)


def with_future(library: str = "pandas", h: int = 5) -> tuple[FutureRegression, pd.DataFrame]:
    """A fitted model and its future frame (in pandas)."""
    model = FutureRegression(horizon=h).fit(converted(promoted(), library), columns={"future": ["promo"]})
    future = plain(model.future_frame())
    return model, future.assign(promo=(np.arange(len(future)) % 2).astype(float))


def test_covariate_known_ahead_is_used() -> None:
    model, future = with_future()
    found = model.predict(future=future)
    wanted = 100 + 7 * future.promo + 10 * future.unique_id.str[1:].astype(int)
    np.testing.assert_allclose(found.FutureRegression, wanted, rtol=1e-9)


def test_future_omitted() -> None:
    with pytest.raises(DataError, match=r"`future` must contain the future covariates seen in fit \(promo\) for the"):
        with_future()[0].predict()


@pytest.mark.parametrize("library", LIBRARIES)
def test_future_without_a_column(library: str) -> None:
    model, future = with_future(library)
    with pytest.raises(DataError, match=r"future frame.*lacks promo"):
        model.predict(future=converted(future.drop(columns="promo"), library))


@pytest.mark.parametrize("library", LIBRARIES)
def test_future_without_a_row(library: str) -> None:
    model, future = with_future(library)
    incomplete = future.drop(index=future.index[future.unique_id == "s002"][2])
    with pytest.raises(DataError, match=r"rows are missing.*s002.*2024-03-03, 1 step in all.*future_frame"):
        model.predict(future=converted(incomplete.reset_index(drop=True), library))
    whole = future[future.unique_id != "s003"].reset_index(drop=True)
    with pytest.raises(DataError, match=r"rows are missing.*s003.*2024-03-01, 5 steps in all"):
        model.predict(future=converted(whole, library))


@pytest.mark.parametrize("value", [np.nan, np.inf, "much"])
def test_invalid_value_in_future(value: Any) -> None:
    model, future = with_future()
    future = future.astype({"promo": object}) if value == "much" else future
    future.loc[future.index[future.unique_id == "s002"][1], "promo"] = value
    with pytest.raises(DataError, match=r"(?s)s00[12].*promo|promo.*s002.*2024-03-02"):
        model.predict(future=future)


@pytest.mark.parametrize("library", LIBRARIES)
def test_future_rows_in_any_order(library: str) -> None:
    model, future = with_future(library)
    wanted = model.predict(future=converted(future, library))
    shuffled = future.sample(frac=1, random_state=2)
    shuffled.index = pd.Index(np.zeros(len(shuffled), dtype=int))
    same(model.predict(future=converted(shuffled, library)), wanted)


def test_future_rows_that_are_not_needed() -> None:
    model, future = with_future()
    wanted = model.predict(future=future)
    beyond = future.assign(ds=future.ds + pd.Timedelta(days=5), promo=np.nan)
    before = future.assign(ds=future.ds - pd.Timedelta(days=5), promo=np.inf)
    others = future.assign(unique_id="zz", ds=future.ds + pd.Timedelta(hours=5) * np.arange(len(future)), promo=np.nan)
    same(model.predict(future=joined(others, beyond, future, before)), wanted)
    same(model.predict(3, future=future), wanted.groupby("unique_id").head(3).reset_index(drop=True))


def test_duplicate_row_in_future() -> None:
    model, future = with_future()
    with pytest.raises(DataError, match=r"future frame.*s001.*2024-03-02"):
        model.predict(future=joined(future, future.iloc[[1]]))


def test_target_column_in_future_is_ignored() -> None:
    model, future = with_future()
    same(model.predict(future=future.assign(y=1e6)), model.predict(future=future))


def test_columns_ahead_without_a_role_are_said_once_but_those_said_in_fit() -> None:
    frame = promoted().assign(note=1)
    with collect_warnings() as said:
        model = FutureRegression(horizon=5).fit(frame, columns={"future": "promo"})
    assert [one.split(".")[0] for one in said] == ["Columns without a role are ignored: note"]
    future = model.future_frame().assign(promo=1.0, note=1, y=0.0)
    wanted = model.predict(future=future)
    with collect_warnings() as said:
        same(model.predict(future=future.assign(prmo=2.0, pronto=3.0)), wanted)
    assert said == ["Columns without a role are ignored: prmo, pronto. Declare them in columns= or drop them."]


def test_static_columns_beside_the_frame_without_a_role_are_said() -> None:
    beside = pd.DataFrame({"unique_id": ["s001", "s002"], "size": [1.0, 2.0], "colour": [3.0, 4.0]})
    with collect_warnings() as said:
        PooledRegression(horizon=5).fit(P(2, 60), columns={"static": "size"}, static=beside)
    assert said == ["Columns without a role are ignored: colour. Declare them in columns= or drop them."]


@KINDS
def test_future_for_a_model_without_covariates(subject: Subject) -> None:
    model = made(subject).fit(P(2, 60))
    with collect_warnings() as said:
        found = model.predict(future=D().assign(promo=1.0))
    assert len(said) == 1
    assert "future" in said[0]
    same(found, model.predict())


def test_constant_covariate() -> None:
    frame = promoted().assign(promo=1.0)
    model = FutureRegression(horizon=5).fit(frame, columns={"future": "promo"})
    found = model.predict(future=model.future_frame().assign(promo=1.0))
    np.testing.assert_allclose(found.FutureRegression, frame.groupby("unique_id").y.mean().repeat(5), rtol=1e-9)
    assert leaking_columns(Panel.from_frame(frame, columns={"future": "promo"})) == []


def test_covariate_that_leaks_the_target() -> None:
    frame = P(4, 80).assign(y=lambda x: x.y + np.random.default_rng(0).normal(size=len(x)))
    frame["ahead"] = frame.groupby("unique_id").y.shift(-1)
    frame["itself"] = 3 - 2 * frame.y
    frame["honest"] = np.random.default_rng(1).normal(size=len(frame))
    columns = {"future": ["ahead", "honest", "itself"]}
    assert leaking_columns(Panel.from_frame(frame, columns=columns)) == ["ahead", "itself"]
    with collect_warnings() as said:
        FutureRegression(horizon=5).set_params(missing="ffill").fit(frame, columns=columns)
    assert len(said) == 1
    assert "ahead, itself" in said[0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_category_unseen_in_fit(library: str) -> None:
    frame = promoted()
    frame["kind"] = pd.Categorical(np.where(frame.promo > 0, "sale", "none"))
    columns = {"future": ["kind"]}
    model = FutureRegression(horizon=2).fit(converted(frame.drop(columns="promo"), library), columns=columns)
    future = plain(model.future_frame())
    kinds = pd.Categorical(["sale", "flood", "none", "sale", "none", "sale"], categories=["flood", "unused", "sale", "none"])
    with collect_warnings() as said:
        found = model.predict(future=converted(future.assign(kind=kinds), library))
    assert len(said) == 2  # the effect of an unknown category leads the forecast far away
    assert "s001 lie far outside the history" in said[1]
    assert "kind" in said[0]
    assert "flood" in said[0]
    assert "unused" not in said[0]
    assert np.isfinite(plain(found).FutureRegression).all()
    expected = 100 + 7 * (kinds == "sale") + 10 * future.unique_id.str[1:].astype(int)
    known = np.asarray(kinds != "flood")
    np.testing.assert_allclose(plain(found).FutureRegression[known], expected[known], rtol=1e-9)


def test_missing_category_in_future_is_refused() -> None:
    frame = promoted()
    frame["kind"] = pd.Categorical(np.where(frame.promo > 0, "sale", "none"))
    model = FutureRegression(horizon=2).fit(frame.drop(columns="promo"), columns={"future": "kind"})
    future = model.future_frame().assign(kind=pd.Categorical(["sale", None, "none", "sale", "none", "sale"]))
    with pytest.raises(DataError, match=r"kind.*s001.*2024-03-02"):
        model.predict(future=future)


def test_global_model_with_every_role() -> None:
    frame = promoted(6)
    frame["load"] = np.arange(len(frame)) % 3.0
    static = pd.DataFrame(
        {"unique_id": [f"s{i:03d}" for i in (6, 5, 4, 3, 2, 1, 9)], "size": np.array([6, 5, 4, 3, 2, 1, 9.0])}
    )
    columns = {"future": "promo", "past": "load", "static": "size"}
    model = PooledRegression(horizon=4).fit(frame, columns=columns, static=static)
    future = model.future_frame().assign(promo=1.0)
    found = model.predict(future=future)
    np.testing.assert_allclose(found.PooledRegression, 107 + 10 * found.unique_id.str[1:].astype(int), rtol=1e-6)
