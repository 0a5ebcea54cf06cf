"""Covariates: unsupported ones are refused, supported ones are matched by key, and missing ones are named in the error."""

from __future__ import annotations

import numpy as np
import pandas as pd

from deepforecast.datasets import COVARIATES
from deepforecast.errors import CapabilityError, DataError, DeepForecastError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import (
    collect_warnings,
    expect,
    expect_error,
    expect_finite,
    expect_one_warning,
    expect_same,
)
from deepforecast.testing.check import requires, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject


def _unusable_covariates(subject: Subject) -> list[str]:
    """Names of test covariates whose role, or categorical type, the model cannot use."""
    capabilities = subject.capabilities
    return [
        name
        for name, (role, value_type) in COVARIATES.items()
        if not capabilities.can_use(role) or (value_type == "category" and not capabilities.categorical)
    ]


def _requires_unusable_covariate(subject: Subject) -> str | None:
    return None if _unusable_covariates(subject) else "capabilities: covariates of every role and kind can be used"


@rule(_requires_unusable_covariate)
def unusable_covariates_are_refused(subject: Subject) -> None:
    """A declared covariate that the model cannot use raises an error with the column and the missing capability."""
    for name in _unusable_covariates(subject):
        role, _ = COVARIATES[name]
        history, _, columns = fixtures.covariate_panel(name)
        capability = role if not subject.capabilities.can_use(role) else "categorical"
        with expect_error(CapabilityError, name, capability, when=f"fit is called with the {capability} covariate {name}"):
            subject.make().fit(history, columns=columns)


@rule()
def a_future_frame_nobody_needs_is_left_out(subject: Subject) -> None:
    """`future` passed to a model fitted without future covariates is ignored with one warning."""
    model = subject.fitted()
    with collect_warnings() as messages:
        forecast = model.predict(future=model.future_frame().assign(price=1.0))
    expect_one_warning(messages, "future")
    expect_same(forecast, model.predict(), "the forecast with an unused future frame must equal that without it")


@rule(requires("future"))
def missing_future_covariates_are_named(subject: Subject) -> None:
    """A missing future frame, column, row or value raises an error with column, series and timestamp."""
    model = subject.fitted_with("price")
    future = fixtures.covariate_panel("price")[1]
    last = str(future["ds"].iloc[-1].date())
    with expect_error(DataError, "future", "price", when="`future` is not passed"):
        model.predict()
    with expect_error(DataError, "price", when="`future` lacks the column price"):
        model.predict(future=future.drop(columns="price"))
    with expect_error(DataError, "s3", last, when="`future` lacks its last row"):
        model.predict(future=future.iloc[:-1])
    with expect_error(DataError, "s0", "price", when="the horizon is one step longer than `future`"):
        model.predict(HORIZON + 1, future=future)
    for value in (np.nan, np.inf):
        with expect_error(DataError, "price", when=f"`future` contains {value} in the column price"):
            model.predict(future=future.assign(price=np.where(np.arange(len(future)) == 4, value, future["price"])))
    with expect_error(DataError, "price", when="`future` contains text in the numeric column price"):
        model.predict(future=future.assign(price="high"))
    with expect_error(DataError, "s1", when="`future` contains duplicate rows of s1"):
        model.predict(future=fixtures.concat(future, future[future["unique_id"] == "s1"]))


@rule(requires("future"))
def future_rows_are_matched_by_key(subject: Subject) -> None:
    """Future rows are matched by id and time: their order, extra rows, other series or a target do not matter."""
    model = subject.fitted_with("price")
    future = fixtures.covariate_panel("price")[1]
    expected = model.predict(future=future)
    later = future.assign(ds=future["ds"] + pd.Timedelta(days=HORIZON), price=1e6)
    other_series = future[future["unique_id"] == "s0"].assign(unique_id="s9", price=-1e6)
    shuffled = future.sample(frac=1, random_state=0).set_index(pd.Index(np.zeros(len(future))))
    for label, future_rows in (
        ("with shuffled rows", shuffled),
        ("with rows beyond the horizon", fixtures.concat(later, future)),
        ("with rows of other series", fixtures.concat(future, other_series)),
        ("with a target column", future.assign(y=1e6)),
    ):
        original = future_rows.copy(deep=True)
        expect_same(model.predict(future=future_rows), expected, f"a future frame {label} must give the same forecast")
        expect(future_rows.equals(original), f"predict must not modify the future frame, but it changed a frame {label}")


@rule(requires("past"))
def past_covariates_limit_the_horizon(subject: Subject) -> None:
    """With past covariates, a horizon longer than declared raises an error with their names."""
    model = subject.fitted_with("visits")
    expect_finite(model.predict(), model.name, "the forecast with a past covariate")
    with expect_error(DeepForecastError, "visits", "horizon", when="a model with past covariates predicts beyond its horizon"):
        model.predict(HORIZON + 1)


@rule(requires("future", "categorical"))
def unseen_categories_are_reported(subject: Subject) -> None:
    """A category not seen in `fit` gives one warning, or an error, with column and category."""
    model = subject.fitted_with("promotion")
    future = fixtures.covariate_panel("promotion")[1]
    with_unseen_category = future.assign(promotion=pd.Categorical(["balloon"] + ["none"] * (len(future) - 1)))
    try:
        with collect_warnings() as messages:
            forecast = model.predict(future=with_unseen_category)
    except DataError as error:
        expect(
            "promotion" in str(error) and "balloon" in str(error),
            f"the error for the unseen category balloon must mention it and its column promotion, got: {error}",
        )
        return
    expect_one_warning(messages, "promotion", "balloon")
    expect_finite(forecast, model.name, "the forecast with an unseen category")
