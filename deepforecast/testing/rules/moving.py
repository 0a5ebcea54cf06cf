"""A fitted model on other histories: `update`, `predict(frame=...)`, and series it does not know."""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import DataError
from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule, unable
from deepforecast.testing.expect import column, expect, expect_close, expect_same, heard, names_of, refused, said_once
from deepforecast.testing.subject import Subject

RECENT = 5  # rows a series
SHIFT = 100.0  # many times the spread of a series


@rule()
def its_own_histories_give_its_forecast(subject: Subject) -> None:
    """predict(frame=...) with the frame of fit is predict()."""
    model = subject.fitted()
    _expect_near(subject, model.predict(frame=worlds.daily(), level=subject.levels), model.predict(level=subject.levels))


@rule()
def longer_histories_move_the_state(subject: Subject) -> None:
    """predict(frame=...) forecasts from the end of the histories given, parameters as they are, the model untouched."""
    model = subject.fitted_copy(RECENT)
    first = model.predict()
    moved = model.predict(frame=worlds.daily())
    ends = worlds.daily().groupby("unique_id")["ds"].max()
    starts = moved.groupby("unique_id")["ds"].min()
    expect(((starts - ends).dt.days == 1).all(), "the forecast does not start at the end of the histories given")
    expect_same(model.predict(), first, "the forecast without a frame, after one with a frame")


@rule()
def update_is_a_longer_history(subject: Subject) -> None:
    """update(rows), at once or day by day, is forecasting from the longer history: parameters stay, the state moves on."""
    recent, fitted = worlds.split(RECENT)[1], subject.fitted_copy(RECENT)
    wanted = fitted.predict(frame=worlds.daily(), level=subject.levels)
    expect(fitted.update(recent) is fitted, "update does not give the model itself")
    _expect_near(subject, fitted.predict(level=subject.levels), wanted)
    slowly = subject.fitted_copy(RECENT)
    for _, rows in recent.groupby("ds"):
        slowly.update(rows)
    _expect_near(subject, slowly.predict(level=subject.levels), wanted)


@rule()
def new_values_move_the_forecast(subject: Subject) -> None:
    """Other values, in predict(frame=...) or by update, give every series another forecast: or none does, as is declared."""
    frame, declared = worlds.walks(), subject.capabilities.new_values
    before, recent = worlds.split(2 * worlds.SEASON, frame)
    model = subject.make().fit(before)
    found, wanted = model.predict(frame=worlds.with_y(frame, frame["y"] + SHIFT)), model.predict(frame=frame)
    updated, other = deepcopy(model).update(worlds.with_y(recent, recent["y"] + SHIFT)), deepcopy(model).update(recent)
    for ours, theirs, what in (
        (found, wanted, f"predict(frame=...) with all values plus {SHIFT:g}"),
        # time alone moves a forecast with a season: rows of the same stamps tell whether the values were heard
        (updated.predict(), other.predict(), f"update with values plus {SHIFT:g}, not as they are,"),
    ):
        if declared == "ignored":
            expect_same(ours, theirs, f"capabilities.new_values is 'ignored': the forecast after {what}")
        else:
            _expect_moved(ours, theirs, model.name, what)
    if declared == "followed":
        tolerance = subject.shift_precision * float(frame["y"].std())
        what = f"capabilities.new_values is 'followed': the forecast from the values plus {SHIFT:g}, less that,"
        expect_close(column(found, model.name) - SHIFT, column(wanted, model.name), tolerance, what)


@rule()
def update_refuses_what_is_not_new(subject: Subject) -> None:
    """Rows that are known already, or of unknown series, are refused by id, and the model is as before."""
    before, recent = worlds.split(RECENT)
    model = subject.fitted_copy(RECENT)
    wanted = model.predict()
    with refused(DataError, "s1", when="update gets rows that are known"):
        model.update(before[before["unique_id"] == "s1"].tail(2))
    overlapping = worlds.daily()[worlds.daily()["unique_id"] == "s2"].tail(RECENT + 1)
    with refused(DataError, "s2", when="update gets one known row before new ones"):
        model.update(overlapping)
    with refused(DataError, "stranger", when="update gets an unknown series"):
        model.update(recent[recent["unique_id"] == "s0"].assign(unique_id="stranger"))
    expect_same(model.predict(), wanted, "the forecast after updates that were refused")


@rule(able("by_series"))
def unknown_series_are_fitted_and_said(subject: Subject) -> None:
    """predict(frame=...) fits a series not seen in fit, says so once by its id, and leaves the others as they are."""
    level = subject.levels if subject.capabilities.local else None  # pooled bands rest on the series that were there in fit
    known = worlds.daily()[worlds.daily()["unique_id"] != "s1"]
    model = subject.make().fit(known)
    with heard() as messages:
        found = model.predict(frame=worlds.daily(), level=level)
    said_once(messages, "s1")
    _expect_near(subject, found, subject.fitted().predict(frame=worlds.daily(), level=level))
    expect(model.predict()["unique_id"].nunique() == 2, "the unknown series stays in the model")


@rule(unable("by_series"))
def unknown_series_are_forecast(subject: Subject) -> None:
    """A model learned across series forecasts one it has not seen; only one that learns things of each series says so."""
    known = worlds.daily()[worlds.daily()["unique_id"] != "s1"]
    model = subject.make().fit(known)
    with heard() as messages:
        found = model.predict(frame=worlds.daily())
    if subject.capabilities.partly_own:
        said_once(messages, "s1")
    else:
        expect(not messages, f"it says {messages[:1]}")
    expect(list(found["unique_id"].unique()) == worlds.ids(), "the unknown series has no forecast")


def _expect_moved(found: Frame, other: Frame, name: str, what: str) -> None:
    ours, theirs = (column(one, name).reshape(len(worlds.ids()), -1) for one in (found, other))
    scale = SHIFT / 1e4  # far below what a series follows, far above rounding
    deaf = [one for one, away in zip(worlds.ids(), np.abs(ours - theirs).max(axis=1), strict=True) if not away > scale]
    expect(not deaf, f"{what} does not move the forecast of {', '.join(deaf)}")


def _expect_near(subject: Subject, found: Frame, wanted: Frame) -> None:
    expect_same(found[["unique_id", "ds"]], wanted[["unique_id", "ds"]], "ids and times")
    tolerance = (1e-9 if subject.capabilities.by_series else subject.precision) * float(np.abs(worlds.daily()["y"]).max())
    for name in names_of(wanted)[2:]:
        expect_close(column(found, name), column(wanted, name), tolerance, f"column {name}")
