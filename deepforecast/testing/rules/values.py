"""Values and lengths that are unusual, and never an answer that is not a number."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import DataError, format_value
from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule
from deepforecast.testing.expect import column, expect, expect_close, expect_finite, expect_same, forecasts, heard, refused
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

ROWS, RECENT = 42, 5


def _bounded(subject: Subject) -> str | None:
    return "capabilities.domain is real" if subject.capabilities.domain == "real" else None


@rule()
def constants_stay_constant(subject: Subject) -> None:
    """A constant history forecasts the constant, with bands of no width; zeros give zeros."""
    closeness = 1e-6 if subject.capabilities.by_series else 1e-3
    histories = {f"{value:g}": np.full(ROWS, value) for value in (7.0, -7.0, 1e9, 1e-9, 0.0)}
    histories = {what: values for what, values in histories.items() if subject.takes(values)}
    for what, found in _forecasts(subject, histories).items():
        value = histories[what][0]
        for name, values in forecasts(found, subject.fitted().name).items():
            expect_close(values, np.full(HORIZON, value), abs(value) * closeness, f"{name} of a history of {what}")


@rule()
def odd_histories_give_finite_forecasts(subject: Subject) -> None:
    """A step at the end, one value among zeros, seldom counts, alternating or negative values, an outlier: finite, in reach.

    A model may fall back on a simpler one, and says so by the name of the series.
    """
    random, y = np.random.default_rng(0), np.zeros(ROWS)
    histories = {
        "a step at the last row": np.where(np.arange(ROWS) < ROWS - 1, 5.0, 50.0),
        "one value among zeros": np.where(np.arange(ROWS) == 20, 30.0, y),
        "counts, most of them 0": np.where(random.random(ROWS) < 0.88, 0.0, random.integers(1, 5, ROWS)),
        "alternating values": np.where(np.arange(ROWS) % 2, 1.0, -1.0),
        "negative values": -100 - worlds.one()["y"].to_numpy()[:ROWS],
        "an outlier": np.where(np.arange(ROWS) == 20, 1e9, worlds.one()["y"].to_numpy()[:ROWS]),
        "a straight line": np.arange(ROWS, dtype=np.float64),
    }
    histories = {what: values for what, values in histories.items() if subject.takes(values)}
    with heard() as messages:
        forecast = _forecasts(subject, histories)
    for message in messages:
        expect(any(what in message for what in histories), f"a warning names no series: {format_value(message, 300)}")
    for what, found in forecast.items():
        expect_finite(found, subject.fitted().name, f"the forecast of {what}")
        values, points = histories[what], column(found, subject.fitted().name)
        width = np.ptp(values) * (HORIZON if what == "a step at the last row" else 1)  # a trend may go on by it, step by step
        within = (points >= values.min() - width) & (points <= values.max() + width)
        expect(within.all(), f"the forecast of {what} is {points.tolist()}, far outside {values.min():g} to {values.max():g}")


@rule()
def short_series_are_refused_or_forecast(subject: Subject) -> None:
    """A series of 1, 2 or 3 values, alone or beside others, is forecast or refused by its id and length; none disappears."""
    for length in (1, 2, 3):
        short = worlds.of_values([5.0, 7.0, 6.0][:length], "short", "2020-02-20")
        for frame in (short, worlds.together(worlds.one(), short)):
            _refused_or_forecast(subject, frame, length)


@rule()
def huge_and_tiny_values_are_finite_or_refused(subject: Subject) -> None:
    """Values around 1e202 and 1e-298 give finite forecasts or are refused, naming the column."""
    for factor in (1e200, 1e-300):
        frame = worlds.with_y(worlds.one(), worlds.one()["y"] * factor)
        try:
            found = subject.forecast(frame, level=subject.levels)
        except ValueError as error:
            expect(isinstance(error, DataError) and "column y" in str(error).lower(), f"values around {factor:g}: {error}")
            continue
        expect_finite(found, subject.fitted().name, f"the forecast of values around {factor:g}")
        if not subject.capabilities.scale_equivariant:
            continue
        for name, plain in forecasts(subject.alone().predict(level=subject.levels), subject.alone().name).items():
            what, tolerance = f"{name} of values times {factor:g}, over {factor:g},", max(1e-3, subject.precision)
            expect_close(column(found, name) / factor, plain, tolerance * float(np.abs(plain).max()), what)


@rule()
def small_moves_on_a_high_level_are_seen(subject: Subject) -> None:
    """A week of plus and minus 4 on a level of 3e9 is forecast within that order: nothing is computed in float32."""
    week, name = np.tile([4.0, 1.0, -2.0, 3.0, -4.0, 2.0, -3.0], 7), subject.fitted().name
    away, wider = (column(subject.forecast(worlds.of_values(3e9 + factor * week)), name) - 3e9 for factor in (1, 3))
    expect((np.abs(away) < 20).all(), f"the forecast of 3e9 plus or minus 4 is {away.tolist()} plus 3e9")
    expect((away != wider).any(), "the forecasts of 3e9 plus or minus 4 and of 3e9 plus or minus 12 are the same")


@rule(able("local"))
def an_outlier_stays_in_its_series(subject: Subject) -> None:
    """A value of 1e9 in one series changes nothing in the others, where each series is learned by itself.

    What is said of it names it.
    """
    frame = worlds.daily()
    wild = worlds.with_y(frame, np.where(frame.index == 20, 1e9, frame["y"]))
    with heard() as messages:
        found = subject.forecast(wild, level=subject.levels)
    for message in messages:
        expect(f"series {frame['unique_id'][20]}:" in message, f"a warning is not of the series: {format_value(message, 300)}")
    wanted = subject.fitted().predict(level=subject.levels)
    others = wanted["unique_id"] != frame["unique_id"][20]
    expect_same(found[others], wanted[others], "the forecast of other series")


@rule()
def infinite_and_empty_series_are_refused(subject: Subject) -> None:
    """An infinite value is refused by column, series and stamp; a series without any value by column and series."""
    frame = worlds.daily()
    for value in (np.inf, -np.inf):
        stamp = str(frame["ds"][60].date())
        with refused(DataError, "y", frame["unique_id"][60], stamp, when=f"y is {value} in a row"):
            subject.make().fit(worlds.with_y(frame, np.where(frame.index == 60, value, frame["y"])))
    with refused(DataError, "y", "s1", when="a series has no value"):
        subject.make().fit(worlds.with_y(frame, np.where(frame["unique_id"] == "s1", np.nan, frame["y"])))


@rule(_bounded)
def values_outside_the_domain_are_refused(subject: Subject) -> None:
    """A value that the model does not take is refused by column, series and stamp, in fit as in update."""
    bad, domain = {"nonnegative": -1.0, "positive": 0.0}[subject.capabilities.domain], subject.capabilities.domain
    frame, model = worlds.daily(), subject.fitted_copy(RECENT)
    recent = worlds.split(RECENT)[1]
    stamp = str(frame["ds"][60].date())
    with refused(DataError, "y", frame["unique_id"][60], stamp, domain, when=f"y is {bad:g} in a row"):
        subject.make().fit(worlds.with_y(frame, np.where(frame.index == 60, bad, frame["y"])))
    first = recent.iloc[0]
    with refused(DataError, "y", first["unique_id"], str(first["ds"].date()), domain, when=f"update has a value of {bad:g}"):
        model.update(recent.assign(y=bad))


def _forecasts(subject: Subject, histories: dict[str, Floats]) -> dict[str, Frame]:
    """The forecast of each history: of a panel where series are learned apart, one after the other where they are not."""
    frames = {name: worlds.of_values(values, name) for name, values in histories.items()}
    if not subject.capabilities.by_series:
        return {name: subject.forecast(frame, level=subject.levels) for name, frame in frames.items()}
    found = subject.forecast(worlds.together(*frames.values()), level=subject.levels)
    return {name: found[found["unique_id"] == name] for name in frames}


def _refused_or_forecast(subject: Subject, frame: Frame, length: int) -> None:
    try:
        with heard() as messages:
            found = subject.forecast(frame, freq="D")
    except DataError as error:
        lacking = [word for word in ("short", str(length)) if word not in str(error)]
        expect(not lacking, f"the error for a series of {length} values does not say {', '.join(lacking)}: {error}")
        return
    expect(len(messages) <= 1, f"a series of {length} values brings {len(messages)} warnings")
    expect(
        len(found) == frame["unique_id"].nunique() * HORIZON, f"a series of {length} values: the forecast has {len(found)} rows"
    )
    expect_finite(found, subject.fitted().name, f"the forecast beside a series of {length} values")
