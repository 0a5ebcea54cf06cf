"""Every kind of covariate does something: changing one value moves the forecast as the generator's known effect says."""

from __future__ import annotations

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats, Frame
from deepforecast.datasets import COVARIATES
from deepforecast.testing import worlds
from deepforecast.testing.check import Body, able, rule
from deepforecast.testing.expect import column, expect, expect_close
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

STEP = {"future": 1, "past": 0, "static": 0}  # the step to look at: a past value acts on the next row
SHARE = {"future": (0.4, 2.5), "past": (0.4, 2.5), "static": (0.2, 2.5)}  # of the true effect; noise hides some of a static one


def _check_of(covariate: str) -> Body:
    """The check of one kind of covariate."""
    role, kind = COVARIATES[covariate]

    def check(subject: Subject) -> None:
        low, high, size = worlds.effect(covariate)
        history, future, columns = worlds.world(covariate)
        model = subject.learned().fit(history, columns=columns)
        before, after = (_forecast(model, covariate, value, history, future) for value in (low, high))
        moved = (after - before).reshape(-1, HORIZON)
        share = float(moved[0, STEP[role]]) / size
        least, most = SHARE[role]
        said = f"from {low} to {high} moves y by {size:g}; it moves the forecast by {moved[0, STEP[role]]:.4g}"
        expect(least <= share <= most, f"changing {covariate} of a step {said}")
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
    rule(able(_role, *(["categorical"] if _kind == "category" else [])))(_check_of(_name))


def _forecast(model: Forecaster, covariate: str, value: object, history: Frame, future: Frame) -> Floats:
    """The forecast with one value of the covariate (of a series, if it is static) set."""
    role = COVARIATES[covariate][0]
    if role == "future":
        return column(model.predict(future=_with(future, covariate, value, slice(STEP[role], STEP[role] + 1))), model.name)
    rows = slice(-1, None) if role == "past" else slice(None)
    return column(model.predict(frame=_with(history, covariate, value, rows)), model.name)


def _with(frame: Frame, covariate: str, value: object, rows: slice) -> Frame:
    """The frame with another value in some rows of its first series."""
    first = np.flatnonzero(frame["unique_id"] == frame["unique_id"].iloc[0])
    changed = frame[covariate].copy()
    changed.iloc[first[rows]] = value
    return frame.assign(**{covariate: changed})
