"""Horizons: shorter and longer than declared, and invalid ones."""

from __future__ import annotations

from typing import Any

from deepforecast.errors import ParameterError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, expect, expect_close, expect_equal, expect_error, expect_finite
from deepforecast.testing.check import Condition, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject


def _requires_no_sampling(subject: Subject) -> str | None:
    sampled = subject.capabilities.distribution == "samples"
    return "capabilities.distribution is samples: another horizon draws other sample paths" if sampled else None


not_sampled: Condition = _requires_no_sampling


@rule()
def any_horizon_works(subject: Subject) -> None:
    """A horizon other than the declared one gives that many finite rows per series."""
    model = subject.fitted()
    for steps in (1, HORIZON + 1, 60):
        forecast = model.predict(steps)
        expect(
            len(forecast) == steps * len(fixtures.series_ids()),
            f"predict({steps}) must return {steps} rows for each of {len(fixtures.series_ids())} series, "
            f"got {len(forecast)} rows in total",
        )
        expect_finite(forecast, model.name, f"the forecast of predict({steps})")
        ends = forecast.groupby("unique_id")["ds"].max() - fixtures.daily_panel().groupby("unique_id")["ds"].max()
        expect(
            (ends.dt.days == steps).all(),
            f"the last timestamp of predict({steps}) must be {steps} days after the last observation, "
            f"got {ends.dt.days.to_dict()} days",
        )


@rule(not_sampled)
def a_shorter_horizon_gives_the_first_steps(subject: Subject) -> None:
    """A shorter forecast equals the first steps of a longer one."""
    model = subject.fitted()
    spread = float(fixtures.daily_panel()["y"].std())
    for steps, longer_horizon, levels in (
        (1, HORIZON, subject.levels),
        (2, HORIZON, subject.levels),
        (HORIZON, 10, None),
        (7, 10, None),
    ):
        longer_forecast = model.predict(longer_horizon, level=levels)
        forecast, expected = (
            model.predict(steps, level=levels),
            longer_forecast[longer_forecast.groupby("unique_id").cumcount() < steps],
        )
        for name in forecast.columns[2:]:
            actual_values = column(forecast, name)
            expected_values = column(expected, name)
            requirement = f"{name} of predict({steps}) must equal the first steps of predict({longer_horizon})"
            if subject.capabilities.by_series:
                expect_equal(actual_values, expected_values, requirement)
            else:
                expect_close(actual_values, expected_values, subject.precision * spread, requirement)


@rule()
def bad_horizons_are_refused(subject: Subject) -> None:
    """A horizon that is missing, below 1, not an integer or a bool raises an error."""
    invalid: tuple[Any, ...] = (0, -1, 2.5, "5", True)
    for horizon in invalid:
        with expect_error(ParameterError, "horizon", when=f"the model is constructed with horizon={horizon!r}"):
            subject.make(horizon=horizon)
        with expect_error(ParameterError, "horizon", when=f"predict({horizon!r}) is called"):
            subject.fitted().predict(horizon)
    with expect_error(ParameterError, "horizon", when="neither constructor nor predict gets a horizon"):
        subject.make(**_without_horizons(subject)).fit(fixtures.one_series()).predict()


def _without_horizons(subject: Subject) -> dict[str, Any]:
    """Parameters that set the horizon of the model and of all wrapped models to None."""
    model = subject.make()
    nested = {name: None for name in model.get_params() if name.endswith("__horizon")}
    return {name: getattr(model.clone().set_params(**nested), name) for name in {key.partition("__")[0] for key in nested}} | {
        "horizon": None
    }
