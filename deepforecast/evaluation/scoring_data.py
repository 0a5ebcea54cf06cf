"""Actual values and the inputs of metrics for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.columns import ModelColumns, format_number, round_level
from deepforecast.data.frames import Floats
from deepforecast.errors import DataError, ParameterError, format_list
from deepforecast.evaluation.forecast_rows import ForecastRows
from deepforecast.evaluation.metric_classes import Metric
from deepforecast.evaluation.metric_inputs import MAX_MAGNITUDE
from deepforecast.evaluation.training_scale import TrainingData

INTERVAL_INPUTS = {"lo", "hi", "level"}
MISSING_INPUT_HINTS = {
    "forecast": "point forecasts, and these are sample paths. Use forecasts of predict(), or pass metrics='crps_from_samples'",
    "samples": "sample paths. Use forecasts of simulate(), with a column sample",
    "quantile_forecast": "quantiles. Use predict(quantiles=[0.1, 0.5, 0.9]) or predict(level=[80])",
    "quantiles": "quantiles. Use predict(quantiles=[0.1, 0.5, 0.9]) or predict(level=[80])",
    "lo": "intervals. Pass `level` when forecasting, e.g. predict(level=[80, 95])",
    "hi": "intervals. Pass `level` when forecasting, e.g. predict(level=[80, 95])",
    "level": "intervals. Pass `level` when forecasting, e.g. predict(level=[80, 95])",
    "scale": "the training data. Pass `train`",
    "squared_scale": "the training data. Pass `train`",
    "reference": "a reference forecast. Pass `reference`, the name of a model column such as 'Naive2'",
}


@dataclass(frozen=True, eq=False)
class ScoringData:
    """The sorted columns of the forecasts, validated on first use."""

    table: nw.DataFrame[Any]
    forecast_rows: ForecastRows
    models: Sequence[ModelColumns]
    actual: Floats
    training: TrainingData | None
    reference: ModelColumns | None
    _cache: dict[str, Floats] = field(default_factory=dict)

    @property
    def levels(self) -> list[float]:
        """The interval levels of all models."""
        return sorted({level for model in self.models for level in model.lo})

    @property
    def probabilities(self) -> list[float]:
        """The probabilities of quantile metrics, equal for all models.

        Those of the quantile columns of all models or, without any, the interval bounds and the
        median, for which the point forecast is used.
        """
        quantile_levels = {round_level(probability) for model in self.models for probability in model.q}
        if quantile_levels or not self.levels:
            return sorted(quantile_levels)
        return sorted({probability for model in self.models for probability in model.quantiles()})

    def check_available(self, metric: Metric, level: float | None) -> None:
        """Raise `ParameterError` with a hint if no model has what the metric needs."""
        if any(self.inputs(metric, model, level) is not None for model in self.models):
            return
        for need in metric.needs:
            if not any(self._has_input(need, model, level) for model in self.models):
                raise ParameterError(f"{metric.name} cannot be computed without {MISSING_INPUT_HINTS[need]}.")
        raise ParameterError(
            f"{metric.name} requires a model that has all of {format_list(metric.needs)}, and there is none.",
            hint="Use another metric.",
        )

    def inputs(self, metric: Metric, model: ModelColumns, level: float | None) -> dict[str, Any] | None:
        """The inputs of a metric by name for one model, None if the model lacks one of them.

        `level`: that of the interval for interval metrics, otherwise None.
        """
        if not all(self._has_input(need, model, level) for need in metric.needs):
            return None
        return {need: self._read_input(need, model, level) for need in metric.needs}

    def _has_input(self, need: str, model: ModelColumns, level: float | None) -> bool:
        """Whether the input `need` exists for the model; point forecasts do not exist in a frame of sample
        paths."""
        if need in INTERVAL_INPUTS:
            return level in model.lo
        if need in ("quantile_forecast", "quantiles"):
            probabilities = self.probabilities
            return not self.forecast_rows.n_samples and bool(probabilities) and set(probabilities) <= set(model.quantiles())
        if need in ("scale", "squared_scale"):
            return self.training is not None
        if need == "reference":
            return self.reference is not None and not self.forecast_rows.n_samples
        return (need == "samples") == bool(self.forecast_rows.n_samples)  # "forecast" or "samples"

    def _read_input(self, need: str, model: ModelColumns, level: float | None) -> Any:
        """The input `need` of a model that has it, with points (or samples and points) on the last axes."""
        if need == "level":
            return level
        if need in ("lo", "hi") and level is not None:
            return self._interval_bound(model, level, need)
        if need == "quantiles":
            return np.array(self.probabilities)
        if need == "quantile_forecast":
            columns = model.quantiles()
            return np.stack([self.column(columns[probability], model, True) for probability in self.probabilities])
        if need in ("scale", "squared_scale"):
            return self._scale(need)
        if need == "reference" and self.reference is not None:
            return self.column(self.reference.name, self.reference)
        return self.column(model.name, model)

    def column(self, name: str, model: ModelColumns, may_be_missing: bool = False) -> Floats:
        """A column in the order of the points; all values must be finite, or NaN with `may_be_missing`."""
        if name in self._cache:
            return self._cache[name]
        values: Floats = self.forecast_rows.in_point_order(frames.read_numbers(self.table[name], name))
        is_valid = np.abs(values) < MAX_MAGNITUDE  # false for NaN too
        is_valid |= may_be_missing & np.isnan(values)
        if not is_valid.all():
            index = tuple(np.argwhere(~is_valid)[0])
            raise DataError(
                f"Forecasts must be finite and below {MAX_MAGNITUDE:g} in magnitude; column {name} of model {model.name} is "
                f"{values[index]} for {self.forecast_rows.describe_point(int(index[-1]))} ({np.count_nonzero(~is_valid)} such "
                "values).",
                hint="Correct the forecasts, or pass `models` to score only the other models.",
            )
        self._cache[name] = values
        return values

    def _interval_bound(self, model: ModelColumns, level: float, need: str) -> Floats:
        """The bound "lo" or "hi" of the interval, after a check that no interval is crossed."""
        lo = self.column(model.lo[level], model, True)
        hi = self.column(model.hi[level], model, True)
        crossed = np.flatnonzero(lo > hi)
        if len(crossed):
            point = crossed[0]
            raise DataError(
                f"The lower bound of an interval cannot be above the upper one; {model.name}-lo-{format_number(level)} is "
                f"{lo[point]} and -hi- {hi[point]} for {self.forecast_rows.describe_point(int(point))} ({len(crossed)} such "
                "intervals). Were the two columns swapped?"
            )
        return lo if need == "lo" else hi

    def _scale(self, need: str) -> Floats:
        """The scale of each point ("scale" or "squared_scale"), from the training data."""
        if need not in self._cache and self.training is not None:
            scale = self.training.scale(squared=need == "squared_scale")
            self._cache[need] = np.repeat(scale, np.diff(self.forecast_rows.indptr))
        return self._cache[need]


def leave_out_missing(actual: Floats, inputs_by_model: Sequence[dict[str, Any] | None]) -> Floats:
    """The actual values, NaN where the interval or quantiles of a model are missing, which become 0 in the inputs.

    So all models are compared at the same points.
    """
    is_missing = np.zeros(len(actual), dtype=bool)
    for inputs in inputs_by_model:
        for name in ("lo", "hi", "quantile_forecast"):
            if inputs is not None and name in inputs and np.isnan(inputs[name]).any():
                is_missing |= np.isnan(inputs[name]).reshape(-1, len(actual)).any(axis=0)
                inputs[name] = np.nan_to_num(inputs[name])
    return np.where(is_missing, np.nan, actual) if is_missing.any() else actual
