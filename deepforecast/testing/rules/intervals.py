"""Intervals and quantiles: at the level asked or refused, nested, monotone, around the median."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, column_names, expect, expect_equal, expect_error, expect_finite, expect_same
from deepforecast.testing.check import requires, requires_no, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

LEVELS = (20, 50, 80, 90)


@rule(requires("distribution"))
def intervals_are_nested_around_the_median(subject: Subject) -> None:
    """Intervals of higher levels contain those of lower levels and the median, and differ on noise."""
    model = subject.fitted()
    forecast = model.predict(level=list(LEVELS), quantiles=[0.5])
    expect_finite(forecast, model.name, "the intervals")
    lower = [column(forecast, f"{model.name}-lo-{level}") for level in LEVELS]
    upper = [column(forecast, f"{model.name}-hi-{level}") for level in LEVELS]
    ordered = [*reversed(lower), column(forecast, f"{model.name}-q-0.5"), *upper]
    for smaller, larger in itertools.pairwise(ordered):
        expect(
            (smaller <= larger).all(),
            "a bound of a higher level lies inside that of a lower one, or on the wrong side of the median",
        )
    expect(
        (lower[0] > lower[-1]).all() and (upper[0] < upper[-1]).all(), f"the levels {LEVELS[0]} and {LEVELS[-1]} are as wide"
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
            f"level {level}: {column_names(forecast)}",
        )
        tails = model.predict(quantiles=[low, high])
        for bound, tail in zip(column_names(forecast)[3:], column_names(tails)[3:], strict=True):
            expect_equal(column(forecast, bound), column(tails, tail), f"{bound}, compared with {tail},")
    widths = {level: _interval_widths(model, level) for level in (79, 80, 81)}
    expect((widths[79] <= widths[80]).all() and (widths[80] <= widths[81]).all(), "levels 79, 80 and 81 are not in order")


@rule(requires("distribution"))
def levels_in_any_form(subject: Subject) -> None:
    """`level` is a number or a list in any order, with duplicates ignored; the point forecast does not depend on it."""
    model = subject.fitted()
    expected = model.predict(level=[50, 80])
    for level in ([80, 50], (50, 80, 80), np.array([80, 50])):
        expect_same(model.predict(level=level), expected, f"the forecast at level={level!r}")
    expect_same(
        model.predict(level=80), expected.drop(columns=[f"{model.name}-lo-50", f"{model.name}-hi-50"]), "level=80 alone"
    )
    nothing: tuple[Any, ...] = (None, [])
    for level in nothing:
        expect_same(model.predict(level=level), expected[["unique_id", "ds", model.name]], f"the forecast at level={level!r}")


@rule()
def bad_levels_are_refused(subject: Subject) -> None:
    """Levels outside (0, 100), quantiles outside (0, 1), text and NaN raise an error with the parameter."""
    bad: tuple[Any, ...] = (0, 100, -1, 101, "80", float("nan"), True)
    for value in bad:
        for level in (value, [50, value]):
            with expect_error(ParameterError, "level", when=f"level={level!r}"):
                subject.fitted().predict(level=level)
    for value in (0, 1, 1.5, "0.1", float("nan")):
        with expect_error(ParameterError, "quantiles", when=f"quantiles={[value]!r}"):
            subject.fitted().predict(quantiles=[value])


@rule(requires("distribution"))
def quantiles_are_in_order(subject: Subject) -> None:
    """Quantiles increase with their probability, which names them, and the 0.5 quantile is the median."""
    model = subject.fitted()
    probabilities = [0.9, 0.1, 0.25, 0.5, 0.75]
    forecast = model.predict(quantiles=probabilities)
    names = [f"{model.name}-q-{quantile:g}" for quantile in sorted(probabilities)]
    expect(column_names(forecast)[3:] == names, f"the columns are {column_names(forecast)}")
    values = [column(forecast, name) for name in names]
    expect(
        all((quantile <= next_quantile).all() for quantile, next_quantile in itertools.pairwise(values)),
        "quantiles are not in order",
    )
    median = subject.make(point="median").fit(fixtures.one_series()).predict(quantiles=[0.5])
    expect_equal(column(median, model.name), column(median, f"{model.name}-q-0.5"), "the forecast with point='median'")


@rule(requires_no("distribution"))
def a_level_without_a_distribution_is_refused(subject: Subject) -> None:
    """A model without a distribution raises an error on levels that suggests conformal intervals."""
    for arguments in ({"level": 80}, {"quantiles": [0.1]}):
        with expect_error(CapabilityError, "conformal", when=f"{arguments} is asked for"):
            subject.fitted().predict(**arguments)


@rule()
def conformal_intervals_are_available(subject: Subject) -> None:
    """`intervals="conformal"` adds intervals to the same point forecast, at levels that the number of errors allows."""
    model = subject.calibrated()
    forecast, points = model.predict(level=[50, 80]), column(subject.fitted().predict(), model.name)
    expect_equal(column(forecast, model.name), points, "the point forecast with intervals='conformal'")
    bounds = [column(forecast, f"{model.name}-{side}") for side in ("lo-80", "lo-50", "hi-50", "hi-80")]
    order = [*bounds[:2], points, *bounds[2:]]
    expect(all((smaller <= larger).all() for smaller, larger in itertools.pairwise(order)), "the bands are not nested")
    expect((bounds[0] < bounds[3]).all(), "the bands have no width")
    with expect_error(CapabilityError, "99.99", "level of at most", when="level 99.99 is asked of a few dozen errors"):
        model.predict(level=99.99)
    with expect_error(CapabilityError, str(HORIZON), "horizon", when="more steps are asked for than were calibrated"):
        model.predict(HORIZON + 1, level=50)


def _predict_if_allowed(model: Forecaster, level: float) -> Frame | None:
    """The forecast at a level, or None if the model refuses it as it has to."""
    try:
        return model.predict(level=level)
    except CapabilityError as error:
        expect(f"{level:g}" in str(error), f"the refusal of level {level:g} does not name it: {error}")
        return None


def _interval_widths(model: Forecaster, level: float) -> Floats:
    forecast = model.predict(level=level)
    return np.asarray(column(forecast, f"{model.name}-hi-{level:g}") - column(forecast, f"{model.name}-lo-{level:g}"))
