"""Missing values and rows that are not there: taken, refused or filled, as the model says, never in silence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import DataError
from deepforecast.testing import worlds
from deepforecast.testing.check import Condition, able, rule, unable
from deepforecast.testing.expect import column, expect, expect_close, expect_finite, expect_same, heard, refused, said_once
from deepforecast.testing.subject import Subject

PLACES = {"first": [0], "middle": [20], "last": [-1], "several": [0, 9, 10, 11, 30, -2]}


def _filled(subject: Subject) -> str | None:
    filling = getattr(subject.make(), "missing_method", subject.make().missing)
    return None if filling == "auto" else f"missing={filling!r}: what is missing is filled"


not_filled: Condition = _filled


@rule(able("missing"), not_filled)
def missing_values_are_forecast_through(subject: Subject) -> None:
    """Missing values are said once, move no stamp, and the forecast stays within the noise of that of the whole series."""
    name, whole = subject.fitted().name, subject.fitted().predict()
    beside, alone = (whole[whole["unique_id"] == one].reset_index(drop=True) for one in ("s0", "s1"))
    spread = float(worlds.daily()["y"].std())
    for frame, places in _with_holes(subject):
        with heard() as messages:
            found = subject.forecast(frame, level=subject.levels)
        said_once(messages, "y", *places)
        for series, place in places.items():
            what, ours = f"the forecast with the {place} value missing", found[found["unique_id"] == series]
            expect_finite(ours, name, what)
            expect(ours["ds"].tolist() == alone["ds"].tolist(), f"the stamps move when the {place} value is missing")
            expect_close(column(ours, name), column(alone, name), 3 * spread, what)
        if subject.capabilities.local:
            ours = found.loc[found["unique_id"] == "s0", beside.columns].reset_index(drop=True)
            expect_same(ours, beside, "the forecast of the series without missing values")


@rule(unable("missing"), not_filled)
def missing_values_are_refused(subject: Subject) -> None:
    """A missing value is refused: column, series, stamp, and `missing=` as the way out."""
    for place in PLACES:
        frame = without("s1", place)
        stamp = str(frame.loc[frame["y"].isna(), "ds"].iloc[0].date())
        with refused(DataError, "y", "s1", stamp, "missing=", when=f"the {place} value of a series is missing"):
            subject.make().fit(frame)


@rule(not_filled)
def a_missing_row_is_a_missing_value(subject: Subject) -> None:
    """A row that is not there is a missing value at a known stamp: the same forecast, or the same refusal."""
    frame = _alone("middle")
    outcomes = []
    for given in (frame, frame.dropna()):
        with heard() as messages:
            try:
                outcomes.append(subject.forecast(given, level=subject.levels))
            except DataError as error:
                outcomes.append(error)
        expect(isinstance(outcomes[-1], DataError) or len(messages) == 1, "nothing is said of the value that is missing")
    ours, theirs = outcomes
    expect(
        isinstance(ours, DataError) == isinstance(theirs, DataError), "a missing row and a missing value are not treated alike"
    )
    if isinstance(ours, DataError):
        expect(str(ours) == str(theirs), f"the refusals differ: {ours} / {theirs}")
    else:
        expect_same(theirs, ours, "the forecast with a row missing")


@rule()
def missing_values_are_filled_when_asked(subject: Subject) -> None:
    """`missing="interpolate"`, "ffill" and "zero" fill within the series, quietly: the forecast is that of the filled frame."""
    frame = _alone("middle")
    gap = int(np.flatnonzero(frame["y"].isna())[0])
    before, after = frame["y"][gap - 1], frame["y"][gap + 1]
    for method, value in (("interpolate", (before + after) / 2), ("ffill", before), ("zero", 0.0)):
        filled = worlds.with_y(frame, frame["y"].fillna(value))
        if not subject.takes(filled["y"]):
            continue
        found = subject.forecast(frame, model=subject.make(missing=method), level=subject.levels)
        expect_same(found, subject.forecast(filled, level=subject.levels), f"the forecast with missing={method!r}")


def _with_holes(subject: Subject) -> Iterator[tuple[Frame, dict[str, str]]]:
    """Frames of s0, which is whole, and s1 with values missing: in every place at once, as several series, where each series is
    learned by itself, else one after the other. With them the ids of s1 and what it lacks."""
    holed = {place: _alone(place).assign(unique_id=f"s1-{place}") for place in PLACES}
    if subject.capabilities.by_series:
        yield worlds.together(worlds.one(), *holed.values()), {f"s1-{place}": place for place in PLACES}
        return
    for place, frame in holed.items():
        yield worlds.together(worlds.one(), frame), {f"s1-{place}": place}


def _alone(place: str) -> Frame:
    """The series s1 with some values missing, without the others."""
    frame = without("s1", place)
    return frame[frame["unique_id"] == "s1"].reset_index(drop=True)


def without(series: str, place: str) -> Frame:
    """`worlds.daily()` with some values of a series missing."""
    frame = worlds.daily()
    rows = np.flatnonzero(frame["unique_id"] == series)[PLACES[place]]
    return worlds.with_y(frame, np.where(frame.index.isin(rows), np.nan, frame["y"]))
