"""Every kind of covariate does something: changing one value moves the forecast as the generator's known effect says."""

from __future__ import annotations

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats, Frame
from deepforecast.datasets import COVARIATES
from deepforecast.testing import worlds
from deepforecast.testing.check import Body, able, rule
from deepforecast.testing.expect import column, expect, expect_close
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

STEP = {"future": 1, "past": 0, "static": 0}  # the step to look at: a past value acts on the next row
SHARE = {"future": (0.4, 2.5), "past": (0.4, 2.5), "static": (0.2, 2.5)}  # of the true effect, the series taken together


def _check_of(covariate: str) -> Body:
    """The check of one kind of covariate."""
    role, kind = COVARIATES[covariate]

    def check(subject: Subject) -> None:
        low, high, size = worlds.effect(covariate)
        history, future, columns = worlds.world(covariate)
        model = subject.learned().fit(history, columns=columns)
        everywhere = [_forecast(model, covariate, value, history, future, alone=False) for value in (low, high)]
        moved = float((everywhere[1] - everywhere[0]).reshape(-1, HORIZON)[:, STEP[role]].mean())
        least, most = SHARE[role]
        said = f"from {low} to {high} moves y by {size:g}; it moves the forecasts by {moved:.4g} on average"
        expect(least <= moved / size <= most, f"changing {covariate} of a step {said}")
        before, after = (_forecast(model, covariate, value, history, future, alone=True) for value in (low, high))
        scale = float(abs(before).max()) * (0.0 if subject.capabilities.by_series else 1e-6)
        expect_close(
            after.reshape(-1, HORIZON)[1:], before.reshape(-1, HORIZON)[1:], scale, f"{covariate} of one series: the others"
        )

    check.__name__ = f"effect_of_a_{role}_{kind}" if covariate != "holiday" else "effect_of_a_holiday"
    check.__doc__ = (
        f"Changing one value of a {role} covariate ({kind}) moves the forecast as its known effect says, and no other series."
    )
    return check


for _name, (_role, _kind) in COVARIATES.items():
    rule(able(_role, *(["categorical"] if _kind == "category" else [])), shared=True)(_check_of(_name))


def _forecast(model: Forecaster, covariate: str, value: object, history: Frame, future: Frame, alone: bool) -> Floats:
    """The forecast with one value of the covariate set: of the first series alone, or of each."""
    role = COVARIATES[covariate][0]
    if role == "future":
        rows = slice(STEP[role], STEP[role] + 1)
        return column(model.predict(future=_with(future, covariate, value, rows, alone)), model.name)
    rows = slice(-1, None) if role == "past" else slice(None)
    return column(model.predict(frame=_with(history, covariate, value, rows, alone)), model.name)


def _with(frame: Frame, covariate: str, value: object, rows: slice, alone: bool) -> Frame:
    """The frame with another value in some rows of its first series, or of each series."""
    changed = frame[covariate].copy()
    of_each = frame.groupby("unique_id", sort=False).indices.values()
    for of_one in list(of_each)[: 1 if alone else None]:
        changed.iloc[of_one[rows]] = value
    return frame.assign(**{covariate: changed})
