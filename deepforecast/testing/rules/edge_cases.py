"""Edge cases: unusual values and lengths of series give finite forecasts or an error, never NaN."""

from __future__ import annotations

import re

import numpy as np

from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import DataError, DataWarning, format_list, format_value
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import (
    collect_warnings,
    column,
    expect,
    expect_close,
    expect_error,
    expect_finite,
    expect_same,
    model_columns,
)
from deepforecast.testing.check import requires, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

ROWS = 42
RECENT = 5


def _requires_bounded_domain(subject: Subject) -> str | None:
    return "capabilities.domain is real" if subject.capabilities.domain == "real" else None


@rule()
def constants_stay_constant(subject: Subject) -> None:
    """The forecast of a constant series is the constant, with intervals of zero width."""
    tolerance = 1e-6 if subject.capabilities.by_series else 1e-3
    histories = {f"{value:g}": np.full(ROWS, value) for value in (7.0, -7.0, 1e9, 1e-9, 0.0)}
    histories = {label: values for label, values in histories.items() if subject.accepts(values)}
    for label, forecast in _forecast_histories(subject, histories).items():
        value = histories[label][0]
        for name, values in model_columns(forecast, subject.fitted().name).items():
            requirement = f"{name} of a series with the constant value {label} must be that value"
            expect_close(values, np.full(HORIZON, value), abs(value) * tolerance, requirement)


@rule()
def odd_histories_give_finite_forecasts(subject: Subject) -> None:
    """Level shifts, sparse counts, alternating or negative values and outliers give finite, plausible forecasts.

    A model may fall back to a simpler one with a warning that names the series.
    """
    random = np.random.default_rng(0)
    y = np.zeros(ROWS)
    histories = {
        "a level shift at the last row": np.where(np.arange(ROWS) < ROWS - 1, 5.0, 50.0),
        "one value among zeros": np.where(np.arange(ROWS) == 20, 30.0, y),
        "counts that are mostly 0": np.where(random.random(ROWS) < 0.88, 0.0, random.integers(1, 5, ROWS)),
        "alternating values": np.where(np.arange(ROWS) % 2, 1.0, -1.0),
        "negative values": -100 - fixtures.one_series()["y"].to_numpy()[:ROWS],
        "an outlier": np.where(np.arange(ROWS) == 20, 1e9, fixtures.one_series()["y"].to_numpy()[:ROWS]),
        "a straight line": np.arange(ROWS, dtype=np.float64),
    }
    histories = {label: values for label, values in histories.items() if subject.accepts(values)}
    with collect_warnings(DataWarning) as messages:
        forecast = _forecast_histories(subject, histories)
    for message in messages:
        expect(
            any(label in message for label in histories), f"a warning must name its series, got: {format_value(message, 300)}"
        )
    for label, series_forecast in forecast.items():
        expect_finite(series_forecast, subject.fitted().name, f"the forecast of a series with {label}")
        values = histories[label]
        points = column(series_forecast, subject.fitted().name)
        width = np.ptp(values) * (HORIZON if label == "a level shift at the last row" else 1)  # may be taken for a trend
        is_within = (points >= values.min() - width) & (points <= values.max() + width)
        lowest, highest = values.min() - width, values.max() + width
        expect(
            is_within.all(),
            f"the forecast of a series with {label}, in the range {values.min():g} to {values.max():g}, must be between "
            f"{lowest:g} and {highest:g}, got {points.tolist()}",
        )


@rule()
def short_series_are_refused_or_forecast(subject: Subject) -> None:
    """A series of 1 to 3 values, alone or with others, is forecast or raises an error with its id and length."""
    for length in (1, 2, 3):
        short = fixtures.series_from_values([5.0, 7.0, 6.0][:length], "short", "2020-02-20")
        for frame in (short, fixtures.concat(fixtures.one_series(), short)):
            _expect_refusal_or_forecast(subject, frame, length)


@rule()
def huge_and_tiny_values_are_finite_or_refused(subject: Subject) -> None:
    """Values around 1e202 and 1e-298 give finite forecasts or an error with the column."""
    for factor in (1e200, 1e-300):
        frame = fixtures.replace_target(fixtures.one_series(), fixtures.one_series()["y"] * factor)
        try:
            forecast = subject.forecast(frame, level=subject.levels)
        except ValueError as error:
            expect(
                isinstance(error, DataError) and "column y" in str(error).lower(),
                f"the error for values times {factor:g} must be a DataError that mentions column y, got {type(error).__name__}: "
                f"{error}",
            )
            continue
        expect_finite(forecast, subject.fitted().name, f"the forecast of values times {factor:g}")
        if not subject.capabilities.scale_equivariant:
            continue
        for name, reference in model_columns(
            subject.fitted_on_series().predict(level=subject.levels), subject.fitted_on_series().name
        ).items():
            tolerance = max(1e-3, subject.precision) * float(np.abs(reference).max())
            requirement = f"{name} of values times {factor:g}, divided by {factor:g}, must equal that of the values"
            expect_close(column(forecast, name) / factor, reference, tolerance, requirement)


@rule()
def small_changes_on_a_high_level_are_forecast(subject: Subject) -> None:
    """A weekly pattern of size 4 at a level of 3e9 is forecast at that size, i.e. not computed in float32."""
    week = np.tile([4.0, 1.0, -2.0, 3.0, -4.0, 2.0, -3.0], 7)
    name = subject.fitted().name
    deviations, triple_deviations = (
        column(subject.forecast(fixtures.series_from_values(3e9 + factor * week)), name) - 3e9 for factor in (1, 3)
    )
    expect(
        (np.abs(deviations) < 20).all(),
        f"the forecast of values in 3e9 +- 4 must be in 3e9 +- 20, got 3e9 plus {deviations.tolist()}. Compute in float64",
    )
    expect(
        (deviations != triple_deviations).any(),
        f"the forecasts of 3e9 +- 4 and 3e9 +- 12 must differ, both are 3e9 plus {deviations.tolist()}. Compute in float64",
    )


@rule(requires("local"))
def an_outlier_stays_in_its_series(subject: Subject) -> None:
    """An outlier of 1e9 in one series does not change the forecasts of the other series.

    Warnings name the series of the outlier.
    """
    frame = fixtures.daily_panel()
    with_outlier = fixtures.replace_target(frame, np.where(frame.index == 20, 1e9, frame["y"]))
    with collect_warnings() as messages:
        forecast = subject.forecast(with_outlier, level=subject.levels)
    for message in messages:
        expect(
            re.search(rf"series {frame['unique_id'][20]}(?![\w,])", message) is not None,
            f"a warning must name only series {frame['unique_id'][20]}, which has the outlier, got: {format_value(message, 300)}",
        )
    expected = subject.fitted().predict(level=subject.levels)
    is_other = expected["unique_id"] != frame["unique_id"][20]
    expect_same(forecast[is_other], expected[is_other], "an outlier in one series must not change the forecasts of others")


@rule()
def infinite_and_empty_series_are_refused(subject: Subject) -> None:
    """Infinite values raise an error with column, series and timestamp; empty series one with column and series."""
    frame = fixtures.daily_panel()
    for value in (np.inf, -np.inf):
        timestamp = str(frame["ds"][60].date())
        with expect_error(DataError, "y", frame["unique_id"][60], timestamp, when=f"y is {value} in a row"):
            subject.make().fit(fixtures.replace_target(frame, np.where(frame.index == 60, value, frame["y"])))
    with expect_error(DataError, "y", "s1", when="all values of a series are missing"):
        subject.make().fit(fixtures.replace_target(frame, np.where(frame["unique_id"] == "s1", np.nan, frame["y"])))


@rule(_requires_bounded_domain)
def values_outside_the_domain_are_refused(subject: Subject) -> None:
    """Values outside the domain raise an error with column, series and timestamp in `fit` and `update`."""
    domain = subject.capabilities.domain
    invalid_value = {"nonnegative": -1.0, "positive": 0.0}[domain]
    frame = fixtures.daily_panel()
    model = subject.fitted_copy(RECENT)
    recent = fixtures.split(RECENT)[1]
    timestamp = str(frame["ds"][60].date())
    with expect_error(DataError, "y", frame["unique_id"][60], timestamp, domain, when=f"y is {invalid_value:g} in a row"):
        subject.make().fit(fixtures.replace_target(frame, np.where(frame.index == 60, invalid_value, frame["y"])))
    first = recent.iloc[0]
    with expect_error(
        DataError, "y", first["unique_id"], str(first["ds"].date()), domain, when=f"y is {invalid_value:g} in `update`"
    ):
        model.update(recent.assign(y=invalid_value))


@rule(shared=True)
def series_that_fail_fall_back(subject: Subject) -> None:
    """With on_failure="fallback" one value is enough for a forecast, and the other series are forecast as without it."""
    frame = fixtures.daily_panel()
    short = fixtures.series_from_values([5.0], "short", start=str(frame["ds"].max().date()))
    empty = fixtures.series_from_values([np.nan] * 3, "empty", start=str(frame["ds"].max().date()))
    with collect_warnings():
        model = subject.make(on_failure="fallback").fit(fixtures.concat(frame, short, empty))
        forecast = model.predict(HORIZON)
        if subject.capabilities.by_series:
            others = forecast[~forecast["unique_id"].isin(["short"])]
            expected = subject.make().fit(frame).predict(HORIZON)
            expect_same(others, expected, "the forecasts of the other series must not change")
    expect_finite(forecast, model.name, "the forecast of a panel with a series of one value")
    n_series = frame["unique_id"].nunique() + 1
    expect(len(forecast) == n_series * HORIZON, f"each series with a value must have a forecast, got {len(forecast)} rows")
    failed = list(model.failures_["unique_id"])
    expect("empty" in failed, f"failures_ must list the series without values, got {failed}")


@rule(shared=True)
def forecasts_are_within_bounds(subject: Subject) -> None:
    """Point forecasts, intervals and sample paths are clipped to `bounds`."""
    panel = fixtures.daily_panel()
    middle = float(panel["y"].median())
    model = subject.make(bounds=(None, middle)).fit(panel)
    frames = [model.predict(HORIZON, level=subject.levels)]
    if model.capabilities.simulates:
        frames.append(model.simulate(5, HORIZON))
    for frame in frames:
        for name, values in model_columns(frame, model.name).items():
            expect(bool((values <= middle).all()), f"{name} must be at most {middle:g}, got {values.max():g}")


def _forecast_histories(subject: Subject, histories: dict[str, Floats]) -> dict[str, Frame]:
    """Return the forecast of each history: from one panel if parameters are estimated per series, else from one fit each."""
    frames = {name: fixtures.series_from_values(values, name) for name, values in histories.items()}
    if not subject.capabilities.by_series:
        return {name: subject.forecast(frame, level=subject.levels) for name, frame in frames.items()}
    panel_forecast = subject.forecast(fixtures.concat(*frames.values()), level=subject.levels)
    return {name: panel_forecast[panel_forecast["unique_id"] == name] for name in frames}


def _expect_refusal_or_forecast(subject: Subject, frame: Frame, length: int) -> None:
    """Expect a `DataError` that mentions the short series and its `length`, or a finite forecast with at
    most one warning."""
    try:
        with collect_warnings() as messages:
            forecast = subject.forecast(frame, freq="D")
    except DataError as error:
        missing_words = [word for word in ("short", str(length)) if word not in str(error)]
        expect(
            not missing_words,
            f"the error for a series of {length} values must mention {', '.join(missing_words)}, got: {error}",
        )
        return
    expect(
        len(messages) <= 1,
        f"a series of {length} values must give at most one warning, got {len(messages)}: {format_list(messages)}",
    )
    n_rows = frame["unique_id"].nunique() * HORIZON
    expect(
        len(forecast) == n_rows,
        f"the forecast of a panel with a series of {length} values must have {n_rows} rows, got {len(forecast)}",
    )
    expect_finite(forecast, subject.fitted().name, f"the forecast of a panel with a series of {length} values")
