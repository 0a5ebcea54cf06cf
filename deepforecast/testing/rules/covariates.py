"""Covariates: refused where a model cannot use them, matched by key where it can, asked for by name."""

from __future__ import annotations

import numpy as np
import pandas as pd

from deepforecast.datasets import COVARIATES
from deepforecast.errors import CapabilityError, DataError, DeepForecastError
from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule
from deepforecast.testing.expect import expect, expect_finite, expect_same, heard, refused, said_once
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON


def _cannot_use(subject: Subject) -> list[str]:
    able_to = subject.capabilities
    return [
        n
        for n, (role, kind) in COVARIATES.items()
        if not able_to.can_use(role) or (kind == "category" and not able_to.categorical)
    ]


def _something_unusable(subject: Subject) -> str | None:
    return None if _cannot_use(subject) else "capabilities: covariates of every role and kind can be used"


@rule(_something_unusable)
def unusable_covariates_are_refused(subject: Subject) -> None:
    """A declared covariate that the model cannot use is refused, naming the column and what the model cannot use."""
    for name in _cannot_use(subject):
        role, _ = COVARIATES[name]
        history, _, columns = worlds.world(name)
        word = role if not subject.capabilities.can_use(role) else "categorical"
        with refused(CapabilityError, name, word, when=f"fitted with the {word} covariate {name}"):
            subject.make().fit(history, columns=columns)


@rule()
def a_future_frame_nobody_needs_is_left_out(subject: Subject) -> None:
    """future= given to a model fitted without columns known ahead changes nothing and is said once."""
    model = subject.fitted()
    with heard() as messages:
        found = model.predict(future=model.future_frame().assign(price=1.0))
    said_once(messages, "future")
    expect_same(found, model.predict(), "the forecast with a future frame that is not needed")


@rule(able("future"))
def missing_future_covariates_are_named(subject: Subject) -> None:
    """A future frame that is not there, or lacks a column, a row or a value, is refused: column, series, stamp."""
    model, future = subject.fitted_with("price"), worlds.world("price")[1]
    last = str(future["ds"].iloc[-1].date())
    with refused(DataError, "future", "price", when="future= is not given"):
        model.predict()
    with refused(DataError, "price", when="future= lacks the column"):
        model.predict(future=future.drop(columns="price"))
    with refused(DataError, "s3", last, when="future= lacks the last row"):
        model.predict(future=future.iloc[:-1])
    with refused(DataError, "s0", "price", when="one step more is asked for than future= has"):
        model.predict(HORIZON + 1, future=future)
    for value in (np.nan, np.inf):
        with refused(DataError, "price", when=f"future= has {value}"):
            model.predict(future=future.assign(price=np.where(np.arange(len(future)) == 4, value, future["price"])))
    with refused(DataError, "price", when="future= has text"):
        model.predict(future=future.assign(price="high"))
    with refused(DataError, "s1", when="future= has a row twice"):
        model.predict(future=worlds.together(future, future[future["unique_id"] == "s1"]))


@rule(able("future"))
def future_rows_are_matched_by_key(subject: Subject) -> None:
    """Future rows in any order, past the horizon, of other series, or with a target in them give the same forecast."""
    model, future = subject.fitted_with("price"), worlds.world("price")[1]
    wanted = model.predict(future=future)
    later = future.assign(ds=future["ds"] + pd.Timedelta(days=HORIZON), price=1e6)
    stranger = future[future["unique_id"] == "s0"].assign(unique_id="stranger", price=-1e6)
    odd = future.sample(frac=1, random_state=0).set_index(pd.Index(np.zeros(len(future))))
    for what, given in (
        ("shuffled", odd),
        ("that go on past the horizon", worlds.together(later, future)),
        ("of more series", worlds.together(future, stranger)),
        ("with a target", future.assign(y=1e6)),
    ):
        before = given.copy(deep=True)
        expect_same(model.predict(future=given), wanted, f"the forecast with future rows {what}")
        expect(given.equals(before), "predict writes to the future frame")


@rule(able("past"))
def past_covariates_end_with_the_horizon(subject: Subject) -> None:
    """With columns known only up to now, a horizon longer than declared is refused, naming them."""
    model = subject.fitted_with("visits")
    expect_finite(model.predict(), model.name, "the forecast with a past covariate")
    with refused(DeepForecastError, "visits", "horizon", when="a longer horizon is asked for than declared"):
        model.predict(HORIZON + 1)


@rule(able("future", "categorical"))
def unseen_categories_are_said(subject: Subject) -> None:
    """A category never seen in fit is taken as unknown, said once with column and category, or refused so."""
    model, future = subject.fitted_with("promotion"), worlds.world("promotion")[1]
    odd = future.assign(promotion=pd.Categorical(["balloon"] + ["none"] * (len(future) - 1)))
    try:
        with heard() as messages:
            found = model.predict(future=odd)
    except DataError as error:
        expect(
            "promotion" in str(error) and "balloon" in str(error), f"the refusal of a new category does not name it: {error}"
        )
        return
    said_once(messages, "promotion", "balloon")
    expect_finite(found, model.name, "the forecast with a category never seen")
