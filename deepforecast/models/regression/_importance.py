"""How much each feature counts: by what regressors say of it, or by what forecasts lose where it is shuffled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.state import State
from deepforecast.core.state_updates import prepare_history
from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import CapabilityError
from deepforecast.models.regression import _explaining, _held
from deepforecast.models.regression._plan import Plan
from deepforecast.models.regression._samples import Sample, Sampling

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

MOST = 5_000  # rows that are shuffled


def importances(model: RegressionForecaster, state: State, frame: Frame | None, static: Frame | None) -> dict[str, Any]:
    """Features and their shares of all importance, the largest first; the mean over the regressors there are."""
    learned = state.learned_with_series
    names, owner = _explaining.columns(model, learned)
    made = list(learned["regressors"]) if model.per_series else [learned["regressors"]]
    if frame is None:
        counts = [_said(model, step[0]) for one in made for step in one.models]
    else:
        counts = _shuffled(model, state, frame, static, owner)
    whole = np.zeros(len(names))
    for count in counts:
        whole += np.bincount(owner, count / max(float(count.sum()), 1e-300), minlength=len(names)) / len(counts)
    order = np.argsort(-whole, kind="stable")
    return {"feature": np.array(names, dtype=object)[order], "importance": whole[order]}


def _said(model: RegressionForecaster, regressor: Any) -> Floats:
    found = model._gains(regressor)
    if found is None:
        raise CapabilityError(
            f"The regressor of {model.name} says nothing of its features; shuffling them in data does: importance(frame=...)."
        )
    return found


def _shuffled(model: RegressionForecaster, state: State, frame: Frame, static: Frame | None, owner: Any) -> list[Floats]:
    """What the squared errors grow by where one feature after the other is shuffled among the rows of a frame."""
    panel, rows = prepare_history(model, state, frame, static)
    learned = state.learned_with_series if not model.per_series else state.learned_with_series.take(rows)
    plan, held = Plan.read(learned["plan"]), model._advance(learned, panel, True).by_series
    since = (panel.start - held["began"]) // panel.calendar.step
    parts = [np.array([one]) for one in range(len(panel))] if model.per_series else [np.arange(len(panel))]
    found = []
    for part in parts:
        some = model._seen(panel.take(part), learned["units"])
        scales = {name: one[part] for name, one in _held.scales_of(held).items()}
        sampling = Sampling(plan, some, scales, model.number, model.takes_missing, since[part])
        if plan.design.identity:  # as the fit numbered them
            sampling.beside[:, -1] = held["owner"][part][some.row_series]
        made = held["regressors"][part[0]] if model.per_series else learned["regressors"]
        found += [_losses(model, one[0], sampling.of(step), owner) for step, one in enumerate(made.models)]
    return found


def _losses(model: RegressionForecaster, regressor: Any, sample: Sample, owner: Any) -> Floats:
    random = np.random.default_rng(0)
    sample = sample.take(np.sort(random.permutation(len(sample))[:MOST]))
    order, found = random.permutation(len(sample)), np.zeros(len(owner))

    def loss(rows: Any) -> float:
        return float(np.mean((sample.target - model._values(regressor, rows)) ** 2))

    whole = loss(sample.rows)
    for column in range(len(owner)):
        rows = sample.rows.copy()
        rows[:, column] = rows[order, column]
        found[column] = max(loss(rows) - whole, 0.0)
    return found
