"""Prediction intervals and quantiles: exactly at the requested level or refused, nested, monotone, around the median."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import (
    RuleBroken,
    column,
    column_names,
    expect,
    expect_equal,
    expect_error,
    expect_finite,
    expect_same,
)
from deepforecast.testing.check import requires, requires_no, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

LEVELS = (20, 50, 80, 90)


@rule(requires("distribution"))
def intervals_are_nested_around_the_median(subject: Subject) -> None:
    """Intervals of higher levels contain those of lower levels and the median, and differ on noise."""
    model = subject.fitted()
    forecast = model.predict(level=list(LEVELS), quantiles=[0.5])
    expect_finite(forecast, model.name, "the forecast with intervals")
    lower = [column(forecast, f"{model.name}-lo-{level}") for level in LEVELS]
    upper = [column(forecast, f"{model.name}-hi-{level}") for level in LEVELS]
    bounds = {f"lo-{level}": lower_bound for level, lower_bound in zip(reversed(LEVELS), reversed(lower), strict=True)}
    bounds |= {"q-0.5": column(forecast, f"{model.name}-q-0.5")}
    bounds |= {f"hi-{level}": upper_bound for level, upper_bound in zip(LEVELS, upper, strict=True)}
    _expect_nondecreasing(bounds)
    expect(
        (lower[0] > lower[-1]).all() and (upper[0] < upper[-1]).all(),
        f"the {LEVELS[-1]} % interval must be wider than the {LEVELS[0]} % interval at both ends in each row, got the lower "
        f"bounds {lower[-1][:3].tolist()} and {lower[0][:3].tolist()} and the upper bounds {upper[-1][:3].tolist()} and "
        f"{upper[0][:3].tolist()} in the first rows",
    )


@rule(requires("distribution"))
def a_level_is_honoured_exactly(subject: Subject) -> None:
    """The bounds of level L are the quantiles (100 - L) / 200 and (100 + L) / 200, or L raises an error."""
    model = subject.fitted()
    for level in (50, 80, 90, 66.6, 99.5, 99.99):
        low, high = (100 - level) / 200, (100 + level) / 200
        forecast = _predict_if_allowed(model, level=level)
        if forecast is None:
            continue
        expect(
            column_names(forecast)[3:] == [f"{model.name}-lo-{level:g}", f"{model.name}-hi-{level:g}"],
            f"predict(level={level}) must return the bounds {model.name}-lo-{level:g} and {model.name}-hi-{level:g}, "
            f"got {column_names(forecast)[3:]}",
        )
        tails = model.predict(quantiles=[low, high])
        for bound, tail in zip(column_names(forecast)[3:], column_names(tails)[3:], strict=True):
            expect_equal(column(forecast, bound), column(tails, tail), f"{bound} must equal the quantile {tail}")
    widths = {level: _interval_widths(model, level) for level in (79, 80, 81)}
    _expect_nondecreasing({f"width of level {level}": width for level, width in widths.items()})


@rule(requires("distribution"))
def levels_in_any_form(subject: Subject) -> None:
    """`level` is a number or a list in any order, with duplicates ignored; the point forecast does not depend on it."""
    model = subject.fitted()
    expected = model.predict(level=[50, 80])
    for level in ([80, 50], (50, 80, 80), np.array([80, 50])):
        expect_same(model.predict(level=level), expected, f"level={level!r} must give the forecast of level=[50, 80]")
    expect_same(
        model.predict(level=80),
        expected.drop(columns=[f"{model.name}-lo-50", f"{model.name}-hi-50"]),
        "level=80 must give the point forecast and 80 % interval of level=[50, 80]",
    )
    no_levels: tuple[Any, ...] = (None, [])
    for level in no_levels:
        expect_same(
            model.predict(level=level),
            expected[["unique_id", "ds", model.name]],
            f"level={level!r} must give the point forecast of level=[50, 80] only",
        )


@rule()
def bad_levels_are_refused(subject: Subject) -> None:
    """Levels outside (0, 100), quantiles outside (0, 1), text and NaN raise an error with the parameter."""
    invalid: tuple[Any, ...] = (0, 100, -1, 101, "80", float("nan"), True)
    for value in invalid:
        for level in (value, [50, value]):
            with expect_error(ParameterError, "level", when=f"predict(level={level!r}) is called"):
                subject.fitted().predict(level=level)
    for value in (0, 1, 1.5, "0.1", float("nan")):
        with expect_error(ParameterError, "quantiles", when=f"predict(quantiles={[value]!r}) is called"):
            subject.fitted().predict(quantiles=[value])


@rule(requires("distribution"))
def quantiles_are_in_order(subject: Subject) -> None:
    """Quantiles increase with their probability, which names them, and the 0.5 quantile is the median."""
    model = subject.fitted()
    probabilities = [0.9, 0.1, 0.25, 0.5, 0.75]
    forecast = model.predict(quantiles=probabilities)
    names = [f"{model.name}-q-{quantile:g}" for quantile in sorted(probabilities)]
    forecast_names = column_names(forecast)[3:]
    expect(forecast_names == names, f"predict(quantiles={probabilities}) must return the columns {names}, got {forecast_names}")
    _expect_nondecreasing({name: column(forecast, name) for name in names})
    median = subject.make(point="median").fit(fixtures.one_series()).predict(quantiles=[0.5])
    expect_equal(
        column(median, model.name),
        column(median, f"{model.name}-q-0.5"),
        "with point='median' the point forecast must be q-0.5",
    )


@rule(requires_no("distribution"))
def a_level_without_a_distribution_is_refused(subject: Subject) -> None:
    """A model without a distribution raises an error on levels that suggests conformal intervals."""
    for arguments in ({"level": 80}, {"quantiles": [0.1]}):
        with expect_error(CapabilityError, "conformal", when=f"predict is called with {arguments}"):
            subject.fitted().predict(**arguments)


@rule()
def conformal_intervals_are_available(subject: Subject) -> None:
    """`intervals="conformal"` adds intervals to the same point forecast, at levels that the number of errors allows."""
    model = subject.calibrated()
    forecast = model.predict(level=[50, 80])
    points = column(subject.fitted().predict(), model.name)
    expect_equal(column(forecast, model.name), points, "intervals='conformal' must not change the point forecast")
    bounds = {side: column(forecast, f"{model.name}-{side}") for side in ("lo-80", "lo-50", "hi-50", "hi-80")}
    ordered_names = ("lo-80", "lo-50", "point forecast", "hi-50", "hi-80")
    _expect_nondecreasing({name: points if name == "point forecast" else bounds[name] for name in ordered_names})
    n_empty = int((~(bounds["lo-80"] < bounds["hi-80"])).sum())
    expect(n_empty == 0, f"conformal intervals of 80 % must have a positive width, got {n_empty} rows without")
    with expect_error(
        CapabilityError, "99.99", "level of at most", when="level 99.99 is requested with a few dozen calibration errors"
    ):
        model.predict(level=99.99)
    with expect_error(CapabilityError, str(HORIZON), "horizon", when="the horizon exceeds that of the calibration"):
        model.predict(HORIZON + 1, level=50)


def _expect_nondecreasing(columns: Mapping[str, Floats]) -> None:
    """Expect each column to be at most the next one in all rows."""
    for (name, smaller), (next_name, larger) in itertools.pairwise(columns.items()):
        disordered = np.flatnonzero(~(smaller <= larger))
        if len(disordered):
            row = int(disordered[0])
            raise RuleBroken(
                f"{name} must not exceed {next_name}, but does in {len(disordered)} of {len(smaller)} rows, "
                f"first {float(smaller[row])!r} and {float(larger[row])!r} (row {row}). Check the quantiles of `_forecast`"
            )


def _predict_if_allowed(model: Forecaster, level: float) -> Frame | None:
    """Return the forecast at a level, or None if the model refuses the level with an error that mentions it."""
    try:
        return model.predict(level=level)
    except CapabilityError as error:
        expect(f"{level:g}" in str(error), f"the error for level {level:g} must mention it, got: {error}")
        return None


def _interval_widths(model: Forecaster, level: float) -> Floats:
    forecast = model.predict(level=level)
    return np.asarray(column(forecast, f"{model.name}-hi-{level:g}") - column(forecast, f"{model.name}-lo-{level:g}"))
