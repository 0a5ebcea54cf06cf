"""Intervals and quantiles: at the level asked or refused, nested, monotone, around the median."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule, unable
from deepforecast.testing.expect import column, expect, expect_equal, expect_finite, expect_same, names_of, refused
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

LEVELS = (20, 50, 80, 90)


@rule(able("distribution"))
def intervals_are_nested_around_the_median(subject: Subject) -> None:
    """A higher level holds a lower one, each holds the median, and on noise they differ."""
    model = subject.fitted()
    found = model.predict(level=list(LEVELS), quantiles=[0.5])
    expect_finite(found, model.name, "the intervals")
    lower = [column(found, f"{model.name}-lo-{level}") for level in LEVELS]
    upper = [column(found, f"{model.name}-hi-{level}") for level in LEVELS]
    inside = [*reversed(lower), column(found, f"{model.name}-q-0.5"), *upper]
    for one, other in itertools.pairwise(inside):
        expect(
            (one <= other).all(),
            "a bound of a higher level lies inside that of a lower one, or on the wrong side of the median",
        )
    expect(
        (lower[0] > lower[-1]).all() and (upper[0] < upper[-1]).all(), f"the levels {LEVELS[0]} and {LEVELS[-1]} are as wide"
    )


@rule(able("distribution"))
def a_level_is_honoured_exactly(subject: Subject) -> None:
    """The bounds of level L are the quantiles (100 - L) / 200 and (100 + L) / 200; or it is refused by its number."""
    model = subject.fitted()
    for level in (50, 80, 90, 66.6, 99.5, 99.99):
        low, high = (100 - level) / 200, (100 + level) / 200
        found = _allowed(model, level=level)
        if found is None:
            continue
        expect(
            names_of(found)[3:] == [f"{model.name}-lo-{level:g}", f"{model.name}-hi-{level:g}"],
            f"level {level}: {names_of(found)}",
        )
        tails = model.predict(quantiles=[low, high])
        for bound, tail in zip(names_of(found)[3:], names_of(tails)[3:], strict=True):
            expect_equal(column(found, bound), column(tails, tail), f"{bound}, compared with {tail},")
    wider = {level: _widths(model, level) for level in (79, 80, 81)}
    expect((wider[79] <= wider[80]).all() and (wider[80] <= wider[81]).all(), "levels 79, 80 and 81 are not in order")


@rule(able("distribution"))
def levels_in_any_form(subject: Subject) -> None:
    """A level is a number or several in any order, doubles once; none of them moves the point forecast."""
    model = subject.fitted()
    wanted = model.predict(level=[50, 80])
    for level in ([80, 50], (50, 80, 80), np.array([80, 50])):
        expect_same(model.predict(level=level), wanted, f"the forecast at level={level!r}")
    expect_same(model.predict(level=80), wanted.drop(columns=[f"{model.name}-lo-50", f"{model.name}-hi-50"]), "level=80 alone")
    nothing: tuple[Any, ...] = (None, [])
    for level in nothing:
        expect_same(model.predict(level=level), wanted[["unique_id", "ds", model.name]], f"the forecast at level={level!r}")


@rule()
def bad_levels_are_refused(subject: Subject) -> None:
    """Levels outside 0 to 100 and quantiles outside 0 to 1, text or NaN are refused by name, before anything else."""
    bad: tuple[Any, ...] = (0, 100, -1, 101, "80", float("nan"), True)
    for value in bad:
        for given in (value, [50, value]):
            with refused(ParameterError, "level", when=f"level={given!r}"):
                subject.fitted().predict(level=given)
    for value in (0, 1, 1.5, "0.1", float("nan")):
        with refused(ParameterError, "quantiles", when=f"quantiles={[value]!r}"):
            subject.fitted().predict(quantiles=[value])


@rule(able("distribution"))
def quantiles_are_in_order(subject: Subject) -> None:
    """Quantiles rise with their probability, are named by it, and the middle one is the median."""
    model = subject.fitted()
    asked = [0.9, 0.1, 0.25, 0.5, 0.75]
    found = model.predict(quantiles=asked)
    names = [f"{model.name}-q-{one:g}" for one in sorted(asked)]
    expect(names_of(found)[3:] == names, f"the columns are {names_of(found)}")
    values = [column(found, name) for name in names]
    expect(all((one <= other).all() for one, other in itertools.pairwise(values)), "quantiles are not in order")
    median = subject.make(point="median").fit(worlds.one()).predict(quantiles=[0.5])
    expect_equal(column(median, model.name), column(median, f"{model.name}-q-0.5"), "the forecast with point='median'")


@rule(unable("distribution"))
def a_level_without_a_distribution_is_refused(subject: Subject) -> None:
    """A model without a distribution refuses levels and says how to get them."""
    for asked in ({"level": 80}, {"quantiles": [0.1]}):
        with refused(CapabilityError, "conformal", when=f"{asked} is asked for"):
            subject.fitted().predict(**asked)


@rule()
def conformal_intervals_can_be_had(subject: Subject) -> None:
    """`intervals="conformal"` gives bands around the same points, at levels that the number of errors can carry."""
    model = subject.calibrated()
    found, points = model.predict(level=[50, 80]), column(subject.fitted().predict(), model.name)
    expect_equal(column(found, model.name), points, "the point forecast with intervals='conformal'")
    bounds = [column(found, f"{model.name}-{side}") for side in ("lo-80", "lo-50", "hi-50", "hi-80")]
    order = [*bounds[:2], points, *bounds[2:]]
    expect(all((one <= other).all() for one, other in itertools.pairwise(order)), "the bands are not nested")
    expect((bounds[0] < bounds[3]).all(), "the bands have no width")
    with refused(CapabilityError, "99.99", "level of at most", when="level 99.99 is asked of a few dozen errors"):
        model.predict(level=99.99)
    with refused(CapabilityError, str(HORIZON), "horizon", when="more steps are asked for than were calibrated"):
        model.predict(HORIZON + 1, level=50)


def _allowed(model: Forecaster, level: float) -> Frame | None:
    """The forecast at a level, or None if the model refuses it as it has to."""
    try:
        return model.predict(level=level)
    except CapabilityError as error:
        expect(f"{level:g}" in str(error), f"the refusal of level {level:g} does not name it: {error}")
        return None


def _widths(model: Forecaster, level: float) -> Floats:
    found = model.predict(level=level)
    return np.asarray(column(found, f"{model.name}-hi-{level:g}") - column(found, f"{model.name}-lo-{level:g}"))
