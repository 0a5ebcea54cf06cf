"""Contributions of features to forecasts, on the scale of the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecast import unused_name
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import CapabilityError
from deepforecast.models.regression import _series_state
from deepforecast.models.regression._future_steps import FutureSteps
from deepforecast.models.regression._plan import Plan

if TYPE_CHECKING:
    from deepforecast.models.regression._base import RegressionForecaster

SUM_TOLERANCE = 1e-3  # of the sum of contributions, which some libraries compute in float32


def components(
    model: RegressionForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]
) -> dict[str, Floats]:
    """Contribution (series, steps) of each feature to the point forecast, and the remainder.

    The remainder is "base" (level, trend and start values of differences); an underscore is appended to this name if a
    feature has it.
    """
    future_steps = model._future_steps(learned, steps, future)
    position = 0  # of the regressor of the mean
    if model.quantiles and model.point_kind != "mean":
        position = 1 + sorted(set(model.quantiles)).index(0.5)
    _, column_contributions = _forecast_contributions(model, future_steps, position)
    values = invert_contributions(column_contributions, future_steps.plan, learned["scale"])
    names, feature_of_column = feature_columns(model, learned)
    contributions: dict[str, Floats] = {}
    for feature, value in zip(feature_of_column, np.moveaxis(values, 2, 0), strict=True):
        name = names[feature]
        contributions[name] = contributions[name] + value if name in contributions else value
    forecast = model._forecast(learned, steps, future).point(model.point_kind)
    contributions[unused_name("base", contributions)] = forecast - sum(contributions.values())
    return contributions


def feature_columns(model: RegressionForecaster, learned: LearnedState) -> tuple[list[str], Ints]:
    """Names of the features, and for each column of the feature matrix the index of its feature.

    There is one column per feature, except that a multi-output regressor has one column per step for each feature known in
    advance (all but lags of the target and of past covariates).
    """
    plan, roles = Plan.from_dict(learned["plan"]), _series_state.learned_series(learned).columns
    covariates = {
        name: Covariate(np.empty(0), None if categories is None else tuple(categories))
        for name, categories in learned["categories"].items()
    }
    future = {name: covariate for name, covariate in covariates.items() if name in roles.future}
    static = {name: covariate for name, covariate in covariates.items() if name in roles.static}
    names = plan.design.names(future, static)
    features = np.arange(len(names))
    if not plan.multioutput:
        return names, features
    n_past_features = len(plan.design.target_features) + plan.design.n_covariate_lags
    return names, np.concatenate([features, np.tile(features[n_past_features:], plan.block_size - 1)])


def invert_contributions(transformed_contributions: Floats, plan: Plan, scale: Floats) -> Floats:
    """Invert scaling and differencing of contributions (series, steps, columns); both are linear.

    Start values of the differences are left out; they belong to the remainder.
    """
    contributions = transformed_contributions * scale[:, None, None]
    plan.target.to_changes(contributions, contributions[:, :0], plan.block_size)
    for lag in reversed(plan.target.differences):
        for step in range(lag, contributions.shape[1]):
            contributions[:, step] += contributions[:, step - lag]
    return contributions


def _forecast_contributions(model: RegressionForecaster, future_steps: FutureSteps, position: int) -> tuple[Floats, Floats]:
    """Forecasts (series, steps) on the transformed scale, and contributions (series, steps, columns) to them.

    `position` selects the regressor of each step, see `RegressionForecaster._forecast_transformed`.
    """
    regressors = future_steps.learned["regressors"]
    groups = (
        [(future_steps.select_series(index), group_regressors) for index, group_regressors in enumerate(regressors)]
        if model.per_series
        else [(future_steps, regressors)]
    )
    recorders = [_ContributionRecorder(model) for _ in groups]
    forecasts = [
        group.predict(group_regressors.models, position, recorder)
        for (group, group_regressors), recorder in zip(groups, recorders, strict=True)
    ]
    return np.concatenate(forecasts), np.concatenate([recorder.contributions(future_steps.steps) for recorder in recorders])


class _ContributionRecorder:
    """Function with the signature of `_predict_rows` that also records the contribution of each column."""

    def __init__(self, model: RegressionForecaster) -> None:
        self._model = model
        self._blocks: list[Floats] = []

    def __call__(self, regressor: Any, rows: Floats) -> Floats:
        """Predictions of rows; `CapabilityError` if the contributions do not add up to them."""
        predictions = self._model._predict_rows(regressor, rows)
        contributions = self._model._contributions(regressor, rows)
        contributions = contributions.reshape(*contributions.shape[:2], -1)  # (rows, columns + 1, outputs)
        sums, expected = contributions.sum(axis=1), predictions.reshape(len(predictions), -1)
        if not np.allclose(sums, expected, rtol=SUM_TOLERANCE, atol=SUM_TOLERANCE):
            raise CapabilityError(
                f"{self._model.name} cannot explain its forecasts, because the contributions do not add up to them: the "
                "objective in `options` transforms the predictions.",
                hint="Remove the objective from `options`."
            )
        self._blocks.append(contributions[:, :-1].transpose(0, 2, 1))
        return predictions

    def contributions(self, steps: int) -> Floats:
        """Recorded contributions, (series, steps, columns)."""
        return np.concatenate(self._blocks, axis=1)[:, :steps]
