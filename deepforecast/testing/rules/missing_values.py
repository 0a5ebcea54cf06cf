"""Missing values and missing rows: handled, refused or imputed, as the model declares, with a warning or error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, format_list, format_value
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import (
    collect_warnings,
    column,
    expect,
    expect_close,
    expect_error,
    expect_finite,
    expect_one_warning,
    expect_same,
)
from deepforecast.testing.check import Condition, requires, requires_no, rule
from deepforecast.testing.subject import Subject

MISSING_ROWS = {"first": [0], "middle": [20], "last": [-1], "several": [0, 9, 10, 11, 30, -2]}


def _requires_no_filling(subject: Subject) -> str | None:
    method = getattr(subject.make(), "missing_method", subject.make().missing)
    return None if method == "auto" else f"missing={method!r}: missing values are imputed"


not_filled: Condition = _requires_no_filling


@rule(requires("missing"), not_filled)
def series_with_missing_values_are_forecast(subject: Subject) -> None:
    """Missing values give one warning, the same timestamps, and a forecast close to that of the complete series."""
    name = subject.fitted().name
    complete_forecast = subject.fitted().predict()
    expected_complete, expected = (
        complete_forecast[complete_forecast["unique_id"] == series_id].reset_index(drop=True) for series_id in ("s0", "s1")
    )
    spread = float(fixtures.daily_panel()["y"].std())
    for frame, positions in _panels_with_missing(subject):
        with collect_warnings() as messages:
            forecast = subject.forecast(frame, level=subject.levels)
        expect_one_warning(messages, "y", *positions)
        for series, position in positions.items():
            series_forecast = forecast[forecast["unique_id"] == series]
            label = f"the forecast of a series with missing values ({position})"
            expect_finite(series_forecast, name, label)
            timestamps = series_forecast["ds"].tolist()
            expected_timestamps = expected["ds"].tolist()
            expect(
                timestamps == expected_timestamps,
                f"{label} must have the timestamps {format_list(map(str, expected_timestamps))}, "
                f"got {format_list(map(str, timestamps))}",
            )
            requirement = f"{label} must be close to that of the complete series"
            expect_close(column(series_forecast, name), column(expected, name), 3 * spread, requirement)
        if subject.capabilities.local:
            series_forecast = forecast.loc[forecast["unique_id"] == "s0", expected_complete.columns].reset_index(drop=True)
            expect_same(
                series_forecast, expected_complete, "missing values in other series must not change the forecast of a series"
            )


@rule(requires_no("missing"), not_filled)
def missing_values_are_refused(subject: Subject) -> None:
    """Missing values raise an error with column, series and timestamp that suggests `missing=`."""
    for position in MISSING_ROWS:
        frame = daily_panel_with_missing("s1", position)
        timestamp = str(frame.loc[frame["y"].isna(), "ds"].iloc[0].date())
        with expect_error(DataError, "y", "s1", timestamp, "missing=", when=f"a series has missing values ({position})"):
            subject.make().fit(frame)


@rule(not_filled, shared=True)
def a_missing_row_is_a_missing_value(subject: Subject) -> None:
    """A missing row gives the same forecast or error as a missing value."""
    frame = _series_with_missing("middle")
    outcomes = []
    for variant in (frame, frame.dropna()):
        with collect_warnings() as messages:
            try:
                outcomes.append(subject.forecast(variant, level=subject.levels))
            except DataError as error:
                outcomes.append(error)
        expect(
            isinstance(outcomes[-1], DataError) or len(messages) == 1,
            f"a missing value must give an error or one warning, got {len(messages)} warnings: {format_list(messages)}",
        )
    value_outcome, row_outcome = outcomes
    expect(
        isinstance(value_outcome, DataError) == isinstance(row_outcome, DataError),
        "a missing row and a missing value must both raise an error or both give a forecast, got "
        f"{_describe(row_outcome)} for the row and {_describe(value_outcome)} for the value",
    )
    if isinstance(value_outcome, DataError):
        expect(
            str(value_outcome) == str(row_outcome),
            "a missing row must give the error of a missing value, got "
            f"{format_value(str(row_outcome), 300)} instead of {format_value(str(value_outcome), 300)}",
        )
    else:
        expect_same(row_outcome, value_outcome, "a missing row must give the forecast of a missing value")


@rule(shared=True)
def missing_values_are_filled_when_asked(subject: Subject) -> None:
    """`missing="interpolate"`, "ffill" and "zero" give the forecast of the filled frame without a warning."""
    frame = _series_with_missing("middle")
    gap = int(np.flatnonzero(frame["y"].isna())[0])
    previous, following = frame["y"][gap - 1], frame["y"][gap + 1]
    for method, value in (("interpolate", (previous + following) / 2), ("ffill", previous), ("zero", 0.0)):
        filled = fixtures.replace_target(frame, frame["y"].fillna(value))
        if not subject.accepts(filled["y"]):
            continue
        forecast = subject.forecast(frame, model=subject.make(missing=method), level=subject.levels)
        expect_same(
            forecast,
            subject.forecast(filled, level=subject.levels),
            f"missing={method!r} must give the forecast of the filled frame",
        )


def _panels_with_missing(subject: Subject) -> Iterator[tuple[Frame, dict[str, str]]]:
    """Yield frames of s0, which is complete, and copies of s1 with missing values, with the ids of the copies and the positions.

    If parameters are estimated per series, one frame has a copy for each position, otherwise there is one frame per position.
    """
    frames = {position: _series_with_missing(position).assign(unique_id=f"s1-{position}") for position in MISSING_ROWS}
    if subject.capabilities.by_series:
        yield (
            fixtures.concat(fixtures.one_series(), *frames.values()),
            {f"s1-{position}": position for position in MISSING_ROWS},
        )
        return
    for position, frame in frames.items():
        yield fixtures.concat(fixtures.one_series(), frame), {f"s1-{position}": position}


def _describe(outcome: Frame | DataError) -> str:
    return format_value(f"DataError: {outcome}", 300) if isinstance(outcome, DataError) else "a forecast"


def _series_with_missing(position: str) -> Frame:
    """Return a frame of s1 only, with missing values."""
    frame = daily_panel_with_missing("s1", position)
    return frame[frame["unique_id"] == "s1"].reset_index(drop=True)


def daily_panel_with_missing(series: str, position: str) -> Frame:
    """Return `daily_panel` with missing values in one series."""
    frame = fixtures.daily_panel()
    rows = np.flatnonzero(frame["unique_id"] == series)[MISSING_ROWS[position]]
    return fixtures.replace_target(frame, np.where(frame.index.isin(rows), np.nan, frame["y"]))
