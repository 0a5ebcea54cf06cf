"""The rule that fitted values are forecasts: broken by those that know their own row, or nothing of the rows before it."""

from __future__ import annotations

import pytest

from deepforecast import Naive, testing
from deepforecast.data.frames import Frame
from deepforecast.models.statistical.ses import SES

RULE = "fitted_values_use_earlier_rows_alone"


def outcome(model: object) -> tuple[str, str]:
    (row,) = testing.run(model, only=RULE).rows
    return row.outcome, row.reason


class Fitted(SES):
    """Fitted values that are changed by a subclass."""

    def fitted_values(self, frame: Frame | None = None, *, static: Frame | None = None) -> Frame:
        found = super().fitted_values(frame, static=static)
        return found.assign(**{self.name: self._changed(found)})

    def _changed(self, found: Frame) -> Frame:
        return found[self.name]


class Observed(Fitted):
    """Returns y itself."""

    def _changed(self, found: Frame) -> Frame:
        return found["y"]


class Smoothed(Fitted):
    """Returns a mean of a forecast and of a hundredth of y."""

    def _changed(self, found: Frame) -> Frame:
        return 0.99 * found[self.name] + 0.01 * found["y"]


class Ahead(Fitted):
    """Returns the fitted value of the row after."""

    def _changed(self, found: Frame) -> Frame:
        return found.groupby("unique_id")[self.name].shift(-2).ffill()


class Constant(Fitted):
    """Returns a number."""

    def _changed(self, found: Frame) -> Frame:
        return 0 * found[self.name] + 100


class OfTheFit(Fitted):
    """Returns y itself for the rows of the fit."""

    def fitted_values(self, frame: Frame | None = None, *, static: Frame | None = None) -> Frame:
        found = super().fitted_values(frame, static=static)
        return found if frame is not None else found.assign(**{self.name: found["y"]})


def test_one_step_forecasts_pass() -> None:
    assert outcome(Fitted) == ("passed", "")


def test_models_without_fitted_values_are_skipped() -> None:
    assert outcome(Naive) == ("skipped", "the model has no method fitted_values")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Observed, "changing y in a row from 30 on must not change the fitted values up to that row: 3 of"),
        (Smoothed, "changing y in a row from 30 on must not change the fitted values up to that row: 3 of"),
        (Ahead, "changing y in a row from 30 on must not change the fitted values up to that row: "),
        (Constant, "changing y in a row from 30 on must change later fitted values, but changed none of s0, s1, s2"),
        (OfTheFit, "fitted_values() must equal fitted_values(frame) with the training frame"),
    ],
)
def test_what_is_no_forecast_fails(model: type, said: str) -> None:
    found, reason = outcome(model)
    assert (found, said in reason) == ("failed", True), reason
