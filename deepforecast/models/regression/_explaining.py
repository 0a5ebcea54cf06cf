"""A forecast taken apart by features: what each adds to each step, as values of the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import CapabilityError
from deepforecast.models.regression import _held
from deepforecast.models.regression._ahead import Ahead
from deepforecast.models.regression._plan import Plan

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

NEAR = 1e-3  # how far shares may be from what they are shares of: some learners add in float32


def components(model: RegressionForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
    """What each feature adds (series, steps), and the rest: "base" (level, trend and what differences go on from) and, where
    there are bounds, what they cut off."""
    ahead = model._ahead_of(learned, steps, future)
    place = 0 if model.point_kind == "mean" or not model.quantiles else 1 + sorted(set(model.quantiles)).index(0.5)
    found, shares = _walked(model, ahead, place)
    values = undone(shares, ahead.plan, learned["scale"])
    names, owner = columns(model, learned)
    parts: dict[str, Floats] = {}
    for name, value in zip((names[one] for one in owner), np.moveaxis(values, 2, 0), strict=True):
        parts[name] = parts[name] + value if name in parts else value
    total = model._forecast(learned, steps, future).point(model.point_kind)
    whole = total if model.bounds is None else ahead.back(found)
    parts[_free("base", parts)] = whole - sum(parts.values())
    return parts if model.bounds is None else {**parts, _free("bounds", parts): total - whole}


def columns(model: RegressionForecaster, learned: LearnedState) -> tuple[list[str], Ints]:
    """The names of features, and which of them each column of a regressor is: one of all steps of a block sees columns known
    ahead once for each."""
    plan, roles = Plan.read(learned["plan"]), _held.standing(learned).columns
    held = {name: Covariate(np.empty(0), None if one is None else tuple(one)) for name, one in learned["categories"].items()}
    future = {name: one for name, one in held.items() if name in roles.future and name != model.weight_column}
    static = {name: one for name, one in held.items() if name in roles.static}
    names = plan.design.names(future, static)
    every = np.arange(len(names))
    first = len(plan.design.past) + sum(map(len, plan.design.columns.values()))
    return names, np.concatenate([every, np.tile(every[first:], plan.block - 1)]) if plan.together else every


def undone(shares: Floats, plan: Plan, scale: Floats) -> Floats:
    """Shares (series, steps, columns) of what is learned as shares of the target: scale and differences are linear."""
    found = shares * scale[:, None, None]
    plan.target.to_changes(found, found[:, :0], plan.block)
    for lag in reversed(plan.target.differences):
        for step in range(lag, found.shape[1]):
            found[:, step] += found[:, step - lag]
    return found


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """A name for what is no feature."""
    return name if name not in taken else _free(f"{name}_", taken)


def _walked(model: RegressionForecaster, ahead: Ahead, place: int) -> tuple[Floats, Floats]:
    """The forecast on the scale that is learned, and the shares of it."""
    made = ahead.learned["regressors"]
    parts = [(ahead.only(one), each) for one, each in enumerate(made)] if model.per_series else [(ahead, made)]
    heard = [_Heard(model) for _ in parts]
    found = [part.run(each.models, place, ear) for (part, each), ear in zip(parts, heard, strict=True)]
    return np.concatenate(found), np.concatenate([ear.shares(ahead.steps) for ear in heard])


class _Heard:
    """Stands in for what a regressor says of rows, and keeps what each column adds to it."""

    def __init__(self, model: RegressionForecaster) -> None:
        self._model = model
        self._parts: list[Floats] = []

    def __call__(self, regressor: Any, rows: Floats) -> Floats:
        """What it says."""
        found, shares = self._model._values(regressor, rows), self._model._shares(regressor, rows)
        shares = shares.reshape(*shares.shape[:2], -1)
        if not np.allclose(shares.sum(axis=1), found.reshape(len(found), -1), rtol=NEAR, atol=NEAR):
            raise CapabilityError(
                f"{self._model.name} has no shares to show: by options= it learns on another scale than that of its forecasts. "
                "Leave out the objective."
            )
        self._parts.append(shares[:, :-1].transpose(0, 2, 1))
        return found

    def shares(self, steps: int) -> Floats:
        """All of it, (series, steps, columns)."""
        return np.concatenate(self._parts, axis=1)[:, :steps]
