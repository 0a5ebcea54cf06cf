"""What a metric is: a name, what it rewards, what it needs, and how errors become one number per group.

    Metric
    ├── PointMetric      one error per point, then a mean, the root of a mean, or a ratio of sums
    ├── Composite        one number out of other metrics' totals (OWA)
    └── FunctionMetric   any function of all points of a group at once (slower: called group by group)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import DataError, ParameterError, format_value
from deepforecast.evaluation.aggregation import Aggregate, Groups, aggregate
from deepforecast.evaluation.metric_inputs import CHECKS, check_actual, check_inputs

Array = NDArray[np.float64]
Better = Literal["low", "high", "zero", "level"]
Counts = Literal["points", "forecasts"]


@dataclass(frozen=True)
class Metric(ABC):
    """A metric. `needs` names its inputs beside the actuals (shapes: deepforecast.evaluation.metric_inputs).

    `better` is where a good value lies: "low", "high", at "zero" (bias) or at the "level" asked (coverage).
    `counts` is what counts once in an average: every point, or every forecast (one series from one cutoff).
    """

    name: str
    _: KW_ONLY
    rewards: str
    needs: tuple[str, ...] = ("forecast",)
    unit: str = "target"
    better: Better = "low"
    counts: Counts = "points"

    def __post_init__(self) -> None:
        unknown = [name for name in self.needs if name not in CHECKS]
        if unknown:
            raise ParameterError(f"A metric can need {', '.join(CHECKS)}; got {format_value(unknown)}.")

    def by_group(self, actual: ArrayLike, groups: Groups, **inputs: ArrayLike | None) -> Aggregate:
        """The metric for each group, and for each model if the forecasts have axes in front. Inputs not needed are ignored."""
        values, arrays = check_inputs(actual, inputs, self.needs)
        if values.shape != groups.codes.shape:
            raise ParameterError(f"Groups are given for {groups.codes.size} points, actuals for {values.size}.")
        # too large is reported below by name, and no other arithmetic here can go wrong unseen
        with np.errstate(over="ignore", invalid="ignore"):
            aggregated = self._by_group(values, groups, arrays)
        if np.isinf(aggregated.value).any():
            raise DataError(f"{self.name} is infinite: errors too large for float64; divide the data by a constant first.")
        return aggregated

    def __call__(self, actual: ArrayLike, **inputs: ArrayLike | None) -> Any:
        """The metric over the last axis of `actual`: a number, or an array over the axes in front (models, series)."""
        shape = check_actual(actual).shape
        count = int(np.prod(shape[:-1]))
        groups = Groups(np.repeat(np.arange(count), shape[-1]), count)
        value = self.by_group(actual, groups, **inputs).value
        value = value.reshape(value.shape[:-1] + shape[:-1])
        return value if value.ndim else float(value)

    def distance(self, value: ArrayLike, level: float | None = None) -> Array:
        """How far from good `value` is, less being better whatever the metric: what a ranking sorts by."""
        values = np.asarray(value, dtype=np.float64)
        if self.better == "level":
            if level is None:
                raise ParameterError(f"{self.name} is judged against the level of the interval: give level.")
            return np.abs(values - level / 100)
        return {"low": values, "high": -values, "zero": np.abs(values)}[self.better]

    @staticmethod
    def from_function(
        function: Callable[..., Any], *, name: str | None = None, pointwise: bool = False, **fields: Any
    ) -> Metric:
        """A metric out of `function(actual, forecast)`, or with `needs=(...)` of `function(actual, *needed inputs)`.

        The function gets the points of one group and returns a number, as those of scikit-learn do; with `pointwise=True`
        it gets all points of all models and returns an error for each, which is averaged (fast; NaN: left out, counted).
        Points without an actual are taken out before. `fields`: rewards, needs, unit, better, counts.

        >>> largest = Metric.from_function(lambda actual, forecast: abs(actual - forecast).max(), name="largest")
        >>> largest([1.0, 2.0, 3.0], forecast=[1.0, 4.0, 4.0])
        2.0
        """
        name = str(name or getattr(function, "__name__", type(function).__name__))
        if name == "<lambda>":
            raise ParameterError("A metric needs a name: Metric.from_function(function, name=...).")
        fields = {"rewards": "What the function given rewards.", **fields}
        metric = FunctionMetric(name, function=function, **fields)
        if not pointwise:
            return metric
        return PointMetric(name, errors=_pointwise_errors(function, metric.needs), **fields)

    @abstractmethod
    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        """The metric from checked inputs whose last axis runs over all points."""


@dataclass(frozen=True)
class PointMetric(Metric):
    """One error per point, NaN where the metric is not defined, and how the errors of a group are put together."""

    _: KW_ONLY
    errors: Callable[..., Array]
    weights: Callable[[Array], Array] | None = None
    root: bool = False

    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        errors = self.errors(actual, **inputs)
        weights = None if self.weights is None else self.weights(actual)
        options: dict[str, Any] = {"weights": weights, "root": self.root, "per_forecast": self.counts == "forecasts"}
        aggregated = aggregate(errors, groups, **options)
        if self.better != "zero":
            return aggregated
        magnitude = aggregate(np.abs(errors), groups, **options).value
        return replace(aggregated, value=zero_rounding_errors(aggregated.value, magnitude, aggregated.points))


@dataclass(frozen=True)
class CompositeMetric(Metric):
    """Made of the totals of `components` for the forecast and for a `reference` forecast, once per group, never averaged."""

    _: KW_ONLY
    components: tuple[Metric, ...]
    combine: Callable[..., Array]

    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        reference_inputs = {**inputs, "forecast": inputs["reference"]}
        totals = [metric.by_group(actual, groups, **inputs) for metric in self.components]
        reference_totals = [metric.by_group(actual, groups, **reference_inputs).value for metric in self.components]
        fewest = min(totals, key=lambda total: int(total.points.sum()))
        return replace(fewest, value=self.combine(*[total.value for total in totals], *reference_totals))


@dataclass(frozen=True)
class FunctionMetric(Metric):
    """A function of all points of a group (of each forecast, if `counts` says so) that returns one number."""

    _: KW_ONLY
    function: Callable[..., Any]

    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        models_shape = _models_shape(inputs)
        present = ~np.isnan(actual)
        sums, n_used, points, n_undefined = (np.zeros((*models_shape, groups.count)) for _ in range(4))
        for group, members in groups.members(self.counts == "forecasts"):
            rows = members[present[members]]
            for model in np.ndindex(*models_shape):
                value = self._evaluate(actual, inputs, rows, model) if rows.size else np.nan
                defined = not np.isnan(value)
                sums[(*model, group)] += value if defined else 0.0
                n_used[(*model, group)] += defined
                points[(*model, group)] += rows.size if defined else 0
                n_undefined[(*model, group)] += members.size > 0 and not defined
        mean = np.divide(sums, n_used, out=np.full(sums.shape, np.nan), where=n_used > 0)
        n_points = points.astype(np.int64)
        return Aggregate(mean, n_points, groups.sizes - n_points, n_undefined.astype(np.int64))

    def _evaluate(self, actual: Array, inputs: Mapping[str, Array], rows: NDArray[np.int64], model: tuple[int, ...]) -> float:
        arguments = [_select_points(name, inputs[name], rows, model) for name in self.needs]
        value = np.asarray(self.function(actual[rows], *arguments))
        if value.size != 1 or value.dtype.kind not in "iufb":
            raise ParameterError(
                f"The function of metric {self.name} has to return one number, got {format_value(value.tolist())}; "
                f"one that returns an error per point is given with pointwise=True."
            )
        return float(value.reshape(()))


def zero_rounding_errors(value: ArrayLike, size: ArrayLike, count: ArrayLike) -> Array:
    """Means of signed numbers, 0 where no more is left than rounding leaves of `count` numbers of mean `size` that cancel.

    >>> zero_rounding_errors((0.1 + 0.2 - 0.3) / 3, 0.2, 3)
    array(0.)
    """
    tolerance = np.asarray(count) * np.finfo(np.float64).eps * np.asarray(size)
    return np.where(np.abs(value) <= tolerance, 0.0, value)


STACKED_INPUTS = ("quantile_forecast", "samples")
MODEL_INPUTS = ("forecast", "reference", "lo", "hi", *STACKED_INPUTS)


def _models_shape(inputs: Mapping[str, Array]) -> tuple[int, ...]:
    """Shape of the axes over models."""
    return np.broadcast_shapes(*(array.shape[name in STACKED_INPUTS : -1] for name, array in inputs.items() if name in MODEL_INPUTS))


def _select_points(name: str, array: Array, rows: NDArray[np.int64], model: tuple[int, ...]) -> Any:
    """What the function sees of one input: the points of one group and one model; a level as a plain number."""
    if name == "level":
        return float(array)
    if name == "quantiles":
        return array
    if name in MODEL_INPUTS and array.ndim > 1 + (name in STACKED_INPUTS):
        index: tuple[Any, ...] = (slice(None), *model) if name in STACKED_INPUTS else model
        array = array[index]
    return array[..., rows]


def _pointwise_errors(function: Callable[..., Any], needs: tuple[str, ...]) -> Callable[..., Array]:
    """`function` with inputs by name, and its answer held to one finite error (or NaN) per point."""

    def errors(actual: Array, **inputs: Array) -> Array:
        point_errors = np.asarray(function(actual, *[inputs[name] for name in needs]), dtype=np.float64)
        expected = (*_models_shape(inputs), actual.size)
        if point_errors.shape != expected:
            raise ParameterError(f"A pointwise metric returns an error for each point: shape {expected}, got {point_errors.shape}.")
        return np.where(np.isnan(actual), np.nan, point_errors)

    return errors
