"""Covariate effects: changing one value of a covariate changes the forecast by the known effect of the data generator."""

from __future__ import annotations

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats, Frame
from deepforecast.datasets import COVARIATES
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, expect, expect_close
from deepforecast.testing.check import CheckFunction, requires, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

EFFECT_STEP = {"future": 1, "past": 0, "static": 0}  # forecast step that is compared: a past value acts on the next row
EFFECT_RATIO_RANGE = {  # allowed ratio of the mean effect over all series to the true effect
    "future": (0.4, 2.5),
    "past": (0.4, 2.5),
    "static": (0.2, 2.5),
}


def _make_check(covariate: str) -> CheckFunction:
    """Return the check for one covariate of the generator."""
    role, value_type = COVARIATES[covariate]

    def check(subject: Subject) -> None:
        low, high, true_effect = fixtures.covariate_effect(covariate)
        history, future, columns = fixtures.covariate_panel(covariate)
        model = subject.make_for_effects().fit(history, columns=columns)
        forecasts = [_forecast(model, covariate, value, history, future, first_series_only=False) for value in (low, high)]
        measured_effect = float((forecasts[1] - forecasts[0]).reshape(-1, HORIZON)[:, EFFECT_STEP[role]].mean())
        min_ratio, max_ratio = EFFECT_RATIO_RANGE[role]
        expect(
            min_ratio <= measured_effect / true_effect <= max_ratio,
            f"changing the {role} covariate {covariate} from {low} to {high}, which changes y by {true_effect:g}, must change the "
            f"forecast by {min_ratio:g} to {max_ratio:g} times that; it changes the forecast by {measured_effect:.4g} on average. "
            f"Use the covariate in `_fit` and `_forecast`, or set capabilities.{role} to False",
        )
        forecast_low, forecast_high = (
            _forecast(model, covariate, value, history, future, first_series_only=True) for value in (low, high)
        )
        tolerance = float(abs(forecast_low).max()) * (0.0 if subject.capabilities.by_series else 1e-6)
        expect_close(
            forecast_high.reshape(-1, HORIZON)[1:],
            forecast_low.reshape(-1, HORIZON)[1:],
            tolerance,
            f"changing {covariate} of one series must not change the forecasts of the others",
        )

    check.__name__ = f"effect_of_a_{role}_{value_type}" if covariate != "holiday" else "effect_of_a_holiday"
    check.__doc__ = (
        f"Changing one value of a {role} covariate ({value_type}) changes the forecast by its known effect, "
        "and that of no other series."
    )
    return check


for _name, (_role, _kind) in COVARIATES.items():
    rule(requires(_role, *(["categorical"] if _kind == "category" else [])), shared=True)(_make_check(_name))


def _forecast(
    model: Forecaster, covariate: str, value: object, history: Frame, future: Frame, first_series_only: bool
) -> Floats:
    """Return the forecast after setting one value of the covariate, in the first series only or in each."""
    role = COVARIATES[covariate][0]
    if role == "future":
        rows = slice(EFFECT_STEP[role], EFFECT_STEP[role] + 1)
        return column(model.predict(future=_set_value(future, covariate, value, rows, first_series_only)), model.name)
    rows = slice(-1, None) if role == "past" else slice(None)
    return column(model.predict(frame=_set_value(history, covariate, value, rows, first_series_only)), model.name)


def _set_value(frame: Frame, covariate: str, value: object, rows: slice, first_series_only: bool) -> Frame:
    """Return the frame with `value` in these rows of the first series only or of each."""
    values = frame[covariate].copy()
    rows_by_series = frame.groupby("unique_id", sort=False).indices.values()
    for series_rows in list(rows_by_series)[: 1 if first_series_only else None]:
        values.iloc[series_rows[rows]] = value
    return frame.assign(**{covariate: values})
