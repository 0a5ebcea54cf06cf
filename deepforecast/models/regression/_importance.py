"""Feature importance: by the regressor, or by permutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.state import State
from deepforecast.core.state_updates import prepare_history
from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import CapabilityError
from deepforecast.models.regression import _contributions, _series_state
from deepforecast.models.regression._plan import Plan
from deepforecast.models.regression._samples import Sample, SampleBuilder

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

MAX_ROWS = 5_000  # rows used for permutation


def importances(model: RegressionForecaster, state: State, frame: Frame | None, static: Frame | None) -> dict[str, Any]:
    """Features and their share of the importance, largest first; mean over all regressors."""
    learned = state.learned_with_series
    names, owner = _contributions.feature_columns(model, learned)
    regressors = list(learned["regressors"]) if model.per_series else [learned["regressors"]]
    if frame is None:
        scores = [_fitted_importance(model, step[0]) for series_regressors in regressors for step in series_regressors.models]
    else:
        scores = _permutation_importance(model, state, frame, static, owner)
    total = np.zeros(len(names))
    for score in scores:
        total += np.bincount(owner, score / max(float(score.sum()), 1e-300), minlength=len(names)) / len(scores)
    order = np.argsort(-total, kind="stable")
    return {"feature": np.array(names, dtype=object)[order], "importance": total[order]}


def _fitted_importance(model: RegressionForecaster, regressor: Any) -> Floats:
    importance = model._feature_importance(regressor)
    if importance is None:
        raise CapabilityError(
            f"{model.name} cannot compute feature importances from its regressor alone. Pass data for permutation importance: "
            "importance(frame=...)."
        )
    return importance


def _permutation_importance(
    model: RegressionForecaster, state: State, frame: Frame, static: Frame | None, owner: Any
) -> list[Floats]:
    """Increase of the squared error if a feature is permuted among rows."""
    panel, rows = prepare_history(model, state, frame, static)
    learned = state.learned_with_series if not model.per_series else state.learned_with_series.take(rows)
    plan, series_state = Plan.from_dict(learned["plan"]), model._advance(learned, panel, True).by_series
    elapsed = (panel.start - series_state["began"]) // panel.calendar.step
    groups = [np.array([one]) for one in range(len(panel))] if model.per_series else [np.arange(len(panel))]
    increases = []
    for group in groups:
        group_panel = model._feature_panel(panel.take(group), learned["units"])
        scales = {name: one[group] for name, one in _series_state.select_scales(series_state).items()}
        sampling = SampleBuilder(plan, group_panel, scales, model.feature_dtype, model.accepts_missing, elapsed[group])
        if plan.design.series_id:  # series index in the fit
            sampling.exogenous[:, -1] = series_state["owner"][group][group_panel.row_series]
        regressors = series_state["regressors"][group[0]] if model.per_series else learned["regressors"]
        increases += [_loss_increases(model, one[0], sampling.build(step), owner) for step, one in enumerate(regressors.models)]
    return increases


def _loss_increases(model: RegressionForecaster, regressor: Any, sample: Sample, owner: Any) -> Floats:
    random = np.random.default_rng(0)
    sample = sample.take(np.sort(random.permutation(len(sample))[:MAX_ROWS]))
    order, increases = random.permutation(len(sample)), np.zeros(len(owner))

    def loss(rows: Any) -> float:
        return float(np.mean((sample.target - model._predict_rows(regressor, rows)) ** 2))

    base_loss = loss(sample.rows)
    for column in range(len(owner)):
        rows = sample.rows.copy()
        rows[:, column] = rows[order, column]
        increases[column] = max(loss(rows) - base_loss, 0.0)
    return increases
