"""Invariance to other series, the batch and ids; equivariance to scale, shift and sign of the data."""

from __future__ import annotations

import numpy as np

from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, column_names, expect_close, expect_equal, expect_same
from deepforecast.testing.check import requires, rule
from deepforecast.testing.subject import Subject


def _requires_real_domain(subject: Subject) -> str | None:
    domain = subject.capabilities.domain
    return None if domain == "real" else f"capabilities.domain is {domain}"


@rule(requires("local"))
def series_are_forecast_independently(subject: Subject) -> None:
    """A series has exactly the same forecast whether it is fitted alone or with others."""
    panel_forecast = subject.fitted().predict(level=subject.levels)
    for name in fixtures.series_ids():
        expect_same(
            subject.fitted_on_series(name).predict(level=subject.levels),
            panel_forecast[panel_forecast["unique_id"] == name].reset_index(drop=True),
            f"the forecast of {name} fitted alone must equal that fitted with other series, as capabilities.local is True",
        )


@rule()
def the_batch_does_not_matter(subject: Subject) -> None:
    """The forecast of a series does not depend on the other series in the batch."""
    model = subject.fitted()
    panel_forecast = model.predict(frame=fixtures.daily_panel(), level=subject.levels)
    for names in (["s1"], ["s0", "s2"]):
        rows = fixtures.daily_panel()[fixtures.daily_panel()["unique_id"].isin(names)]
        forecast, expected = (
            model.predict(frame=rows, level=subject.levels),
            panel_forecast[panel_forecast["unique_id"].isin(names)],
        )
        for name in column_names(forecast)[2:]:
            actual_values = column(forecast, name)
            expected_values = column(expected, name)
            requirement = f"{name} of {', '.join(names)} must be the same if the frame of predict has no other series"
            if subject.capabilities.by_series:
                expect_equal(actual_values, expected_values, requirement)
            else:
                expect_close(actual_values, expected_values, 1e-6 * float(np.abs(expected_values).max()), requirement)


@rule(requires("local"))
def names_and_order_of_series_do_not_matter(subject: Subject) -> None:
    """Other ids, another order or an additional series do not change the forecasts."""
    expected = subject.fitted().predict(level=subject.levels)
    names = dict(zip(fixtures.series_ids(), ("z", "m", "a"), strict=True))
    start = fixtures.daily_panel()["ds"].max() - np.timedelta64(41, "D")
    extra_series = fixtures.series_from_values(np.where(np.arange(42) % 2, 5e6, 9e6), "k", start)
    renamed = fixtures.daily_panel().assign(unique_id=fixtures.daily_panel()["unique_id"].map(names))
    forecast = subject.forecast(fixtures.concat(extra_series, renamed), level=subject.levels)
    for name, new_name in names.items():
        series_forecast = forecast[forecast["unique_id"] == new_name]
        series_expected = expected[expected["unique_id"] == name]
        for column_name in column_names(expected)[2:]:
            expect_equal(
                column(series_forecast, column_name),
                column(series_expected, column_name),
                f"{column_name} of series {name} must not change under the id {new_name} and with another series",
            )


@rule(requires("scale_equivariant"))
def the_forecast_follows_the_scale(subject: Subject) -> None:
    """Scaling the data by 1e-12 to 1e12 scales the forecast, with the declared precision."""
    expected = subject.fitted().predict(level=subject.levels)
    for factor in (1e-12, 1e-6, 1e12):
        forecast = subject.forecast(
            fixtures.replace_target(fixtures.daily_panel(), fixtures.daily_panel()["y"] * factor), level=subject.levels
        )
        for name in column_names(expected)[2:]:
            expected_values = column(expected, name)
            tolerance = subject.precision * float(np.abs(expected_values).max())
            expect_close(
                column(forecast, name) / factor,
                expected_values,
                tolerance,
                f"{name} of the data times {factor:g}, divided by {factor:g}, must equal that of the data",
            )


@rule(requires("shift_equivariant"))
def the_forecast_follows_a_shift(subject: Subject) -> None:
    """Adding a constant to the data adds it to the forecast, with the declared precision."""
    expected = subject.fitted().predict(level=subject.levels)
    spread = float(fixtures.daily_panel()["y"].std())
    for shift in (1000.0, -1e6):
        if not subject.accepts(fixtures.daily_panel()["y"] + shift):
            continue
        forecast = subject.forecast(
            fixtures.replace_target(fixtures.daily_panel(), fixtures.daily_panel()["y"] + shift), level=subject.levels
        )
        for name in column_names(expected)[2:]:
            requirement = f"{name} of the data plus {shift:g}, minus {shift:g}, must equal that of the data"
            expect_close(column(forecast, name) - shift, column(expected, name), subject.shift_precision * spread, requirement)


@rule(requires("scale_equivariant", "shift_equivariant", "sign_equivariant"), _requires_real_domain)
def the_forecast_follows_the_sign(subject: Subject) -> None:
    """Negating the data negates the forecast and swaps the bounds, with the declared precision."""
    expected = subject.fitted().predict(level=subject.levels)
    spread = float(fixtures.daily_panel()["y"].std())
    forecast = subject.forecast(
        fixtures.replace_target(fixtures.daily_panel(), -fixtures.daily_panel()["y"]), level=subject.levels
    )
    for name in column_names(expected)[2:]:
        mirrored_name = name.replace("-lo-", "-HI-").replace("-hi-", "-lo-").replace("-HI-", "-hi-")
        requirement = f"{name} of the negated data, negated, must equal {mirrored_name} of the data"
        expect_close(-column(forecast, name), column(expected, mirrored_name), subject.shift_precision * spread, requirement)
