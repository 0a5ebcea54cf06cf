"""Feature importance: by the regressor, or by permutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.state import State
from deepforecast.core.state_updates import prepare_history
from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import CapabilityError
from deepforecast.models.regression import _contributions, _rescaling, _series_state
from deepforecast.models.regression._plan import Plan
from deepforecast.models.regression._samples import Sample, SampleBuilder

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

MAX_ROWS = 5_000  # maximum number of rows that are permuted


def importances(model: RegressionForecaster, state: State, frame: Frame | None, static: Frame | None) -> dict[str, Any]:
    """Columns "feature" and "importance" of the result of `RegressionForecaster.importance`.

    Importances are fractions of the sum of each regressor, averaged over all regressors, largest first. Without `frame`
    those of the fitted regressors, else by permutation.
    """
    learned = state.learned_with_series
    names, feature_of_column = _contributions.feature_columns(model, learned)
    regressors = list(learned["regressors"]) if model.per_series else [learned["regressors"]]
    if frame is None:
        scores = [_fitted_importance(model, step[0]) for series_regressors in regressors for step in series_regressors.models]
    else:
        scores = _permutation_importance(model, state, frame, static, len(feature_of_column))
    importance = np.zeros(len(names))
    for score in scores:
        fractions = score / max(float(score.sum()), 1e-300)  # 0 if all scores are 0
        importance += np.bincount(feature_of_column, fractions, minlength=len(names)) / len(scores)
    order = np.argsort(-importance, kind="stable")
    return {"feature": np.array(names, dtype=object)[order], "importance": importance[order]}


def _fitted_importance(model: RegressionForecaster, regressor: Any) -> Floats:
    """Importance of each column from the fitted regressor; `CapabilityError` if it does not define one."""
    importance = model._feature_importance(regressor)
    if importance is None:
        raise CapabilityError(
            f"{model.name} cannot compute feature importances from its regressor alone.",
            hint="Pass data for permutation importance: importance(frame=...).",
        )
    return importance


def _permutation_importance(
    model: RegressionForecaster, state: State, frame: Frame, static: Frame | None, n_columns: int
) -> list[Floats]:
    """Increases of the mean squared error if a column is permuted among rows, one array per regressor and step."""
    panel, fit_index = prepare_history(model, state, frame, static)
    learned = state.learned_with_series if not model.per_series else state.learned_with_series.take(fit_index)
    plan = Plan.from_dict(learned["plan"])
    series_state = model._advance(learned, panel, True).by_series
    elapsed = (panel.start - series_state["began"]) // panel.calendar.step
    groups = [np.array([index]) for index in range(len(panel))] if model.per_series else [np.arange(len(panel))]
    increases = []
    for group in groups:
        group_panel = _rescaling.rescale_panel(panel.take(group), learned["units"])
        scales = {name: values[group] for name, values in _series_state.select_scales(series_state).items()}
        sampling = SampleBuilder(plan, group_panel, scales, model.feature_dtype, model.accepts_missing, elapsed[group])
        if plan.design.series_id:  # the last column must have the indices of the series in fit, not in `panel`
            sampling.exogenous[:, -1] = series_state["owner"][group][group_panel.row_series]
        regressors = series_state["regressors"][group[0]] if model.per_series else learned["regressors"]
        increases += [
            _loss_increases(model, step_regressors[0], sampling.build(step), n_columns)
            for step, step_regressors in enumerate(regressors.models)
        ]
    return increases


def _loss_increases(model: RegressionForecaster, regressor: Any, sample: Sample, n_columns: int) -> Floats:
    """Increase (columns,) of the mean squared error if a column is permuted, at least 0; for a sample of the rows."""
    random = np.random.default_rng(0)
    sample = sample.take(np.sort(random.permutation(len(sample))[:MAX_ROWS]))
    order = random.permutation(len(sample))
    increases = np.zeros(n_columns)

    def loss(rows: Any) -> float:
        return float(np.mean((sample.target - model._predict_rows(regressor, rows)) ** 2))

    base_loss = loss(sample.rows)
    for column in range(n_columns):
        rows = sample.rows.copy()
        rows[:, column] = rows[order, column]
        increases[column] = max(loss(rows) - base_loss, 0.0)
    return increases
