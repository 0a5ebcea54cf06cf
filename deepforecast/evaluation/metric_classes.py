"""Classes of metrics.

Metric
├── PointMetric       one error per point, then a mean, the root of a mean, or a ratio of sums
├── CompositeMetric   a function of the totals of other metrics (OWA)
└── FunctionMetric    any function of all points of a group (slower: called once per group)
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
    """Base class of metrics.

    Parameters
    ----------
    name : str
        Column name in tables of scores.
    rewards : str
        The forecasts that the metric favours, for reports.
    needs : tuple of str, default ("forecast",)
        Inputs in addition to the actual values; their shapes are described in
        `deepforecast.evaluation.metric_inputs`.
    unit : str, default "target"
        Unit of the values.
    better : {"low", "high", "zero", "level"}, default "low"
        Where the best value lies: as low or as high as possible, at zero (bias) or at the level
        of the interval (coverage).
    counts : {"points", "forecasts"}, default "points"
        What has equal weight in an average: each point, or each forecast (one series from one
        cutoff).
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
            raise ParameterError(
                f"`needs` must contain only {', '.join(CHECKS)}; unknown: {', '.join(map(format_value, unknown))}.",
                parameter="needs",
            )

    def by_group(self, actual: ArrayLike, groups: Groups, **inputs: ArrayLike | None) -> Aggregate:
        """Compute the metric for each group.

        Parameters
        ----------
        actual : array-like
            Actual values; NaN where missing.
        groups : Groups
            The group of each point.
        **inputs : array-like
            Inputs by name. Forecasts may have leading axes for models; inputs that the metric
            does not need are ignored.

        Returns
        -------
        Aggregate
            Arrays of shape (models, groups), or (groups,) for one forecast.
        """
        values, arrays = check_inputs(actual, inputs, self.needs)
        if values.shape != groups.codes.shape:
            raise ParameterError(
                f"`groups` and `actual` must have the same number of points, got {groups.codes.size} and {values.size}.",
                parameter="groups",
                value=groups.codes.size,
            )
        # overflow is reported below with the name of the metric
        with np.errstate(over="ignore", invalid="ignore"):
            aggregated = self._by_group(values, groups, arrays)
        if np.isinf(aggregated.value).any():
            raise DataError(
                f"{self.name} must be finite, but the errors are too large for float64. Divide the data by a constant first."
            )
        return aggregated

    def __call__(self, actual: ArrayLike, **inputs: ArrayLike | None) -> Any:
        """Compute the metric over the last axis of `actual`: a float, or an array over the leading
        axes (models, series)."""
        shape = check_actual(actual).shape
        n_groups = int(np.prod(shape[:-1]))
        groups = Groups(np.repeat(np.arange(n_groups), shape[-1]), n_groups)
        value = self.by_group(actual, groups, **inputs).value
        value = value.reshape(value.shape[:-1] + shape[:-1])
        return value if value.ndim else float(value)

    def distance(self, value: ArrayLike, level: float | None = None) -> Array:
        """Distance of `value` from the best value, lower being better for every metric; rankings
        sort by it.

        The value itself for metrics that are best if low, minus the value if high, and the absolute
        difference from 0 or from `level` / 100 otherwise.
        """
        values = np.asarray(value, dtype=np.float64)
        if self.better == "level":
            if level is None:
                raise ParameterError(
                    f"{self.name} requires the level of the interval, which is its best value.", hint="Pass `level`."
                )
            return np.abs(values - level / 100)
        return {"low": values, "high": -values, "zero": np.abs(values)}[self.better]

    @staticmethod
    def from_function(
        function: Callable[..., Any], *, name: str | None = None, pointwise: bool = False, **fields: Any
    ) -> Metric:
        """Create a metric from a function.

        Parameters
        ----------
        function : callable
            `function(actual, forecast) -> number`, as in scikit-learn, called with the points of
            one group that have an actual value. With `needs` it is called as
            `function(actual, *inputs)`.
        name : str, optional
            Name of the metric. None: the name of the function.
        pointwise : bool, default False
            Whether the function returns an error per point for all points of all models, which
            is then averaged without NaN (faster).
        **fields
            `rewards`, `needs`, `unit`, `better` and `counts` of the metric.

        Returns
        -------
        Metric

        Examples
        --------
        >>> largest = Metric.from_function(lambda actual, forecast: abs(actual - forecast).max(), name="largest")
        >>> largest([1.0, 2.0, 3.0], forecast=[1.0, 4.0, 4.0])
        2.0
        """
        name = str(name or getattr(function, "__name__", type(function).__name__))
        if name == "<lambda>":
            raise ParameterError(
                "A metric created from a lambda must have a name.", hint="Pass `name` to Metric.from_function."
            )
        fields = {"rewards": "User-defined function.", **fields}
        metric = FunctionMetric(name, function=function, **fields)
        if not pointwise:
            return metric
        return PointMetric(name, errors=_pointwise_errors(function, metric.needs), **fields)

    @abstractmethod
    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        """The metric from validated inputs whose last axis runs over all points."""


@dataclass(frozen=True)
class PointMetric(Metric):
    """Metric that aggregates one error per point, NaN where undefined: a mean, root mean or ratio
    of sums."""

    _: KW_ONLY
    errors: Callable[..., Array]
    weights: Callable[[Array], Array] | None = None
    root: bool = False

    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        """The aggregated errors; of signed errors, means within rounding error of 0 become 0."""
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
    """Metric computed once per group from the totals of `components` for the forecast and a
    reference forecast."""

    _: KW_ONLY
    components: tuple[Metric, ...]
    combine: Callable[..., Array]

    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        """The combined totals; the counts are those of the component that is defined at the fewest
        points."""
        reference_inputs = {**inputs, "forecast": inputs["reference"]}
        totals = [metric.by_group(actual, groups, **inputs) for metric in self.components]
        reference_totals = [metric.by_group(actual, groups, **reference_inputs).value for metric in self.components]
        fewest_points = min(totals, key=lambda aggregated: int(aggregated.points.sum()))
        return replace(fewest_points, value=self.combine(*[aggregated.value for aggregated in totals], *reference_totals))


@dataclass(frozen=True)
class FunctionMetric(Metric):
    """Metric that calls a function with all points of a group, or of each forecast if `counts` is
    "forecasts"."""

    _: KW_ONLY
    function: Callable[..., Any]

    def _by_group(self, actual: Array, groups: Groups, inputs: dict[str, Array]) -> Aggregate:
        """The value of each group, or the mean of the values of its forecasts."""
        models_shape = _models_shape(inputs)
        is_present = ~np.isnan(actual)
        sums = np.zeros((*models_shape, groups.count))
        n_used, n_points_used, n_undefined = (np.zeros(sums.shape) for _ in range(3))
        for group, members in groups.members(self.counts == "forecasts"):
            points = members[is_present[members]]
            for model in np.ndindex(*models_shape):
                value = self._evaluate(actual, inputs, points, model) if points.size else np.nan
                is_defined = not np.isnan(value)
                sums[(*model, group)] += value if is_defined else 0.0
                n_used[(*model, group)] += is_defined
                n_points_used[(*model, group)] += points.size if is_defined else 0
                n_undefined[(*model, group)] += members.size > 0 and not is_defined
        mean = np.divide(sums, n_used, out=np.full(sums.shape, np.nan), where=n_used > 0)
        n_points = n_points_used.astype(np.int64)
        return Aggregate(mean, n_points, groups.sizes - n_points, n_undefined.astype(np.int64))

    def _evaluate(self, actual: Array, inputs: Mapping[str, Array], points: NDArray[np.int64], model: tuple[int, ...]) -> float:
        """The function at some points for the model with this index on the leading axes."""
        arguments = [_select_points(name, inputs[name], points, model) for name in self.needs]
        output = np.asarray(self.function(actual[points], *arguments))
        if output.size != 1 or output.dtype.kind not in "iufb":
            raise ParameterError(
                f"The function of metric {self.name} must return one number, got {format_value(output.tolist())}.",
                hint="Pass pointwise=True if it returns an error per point.",
            )
        return float(output.reshape(()))


def zero_rounding_errors(value: ArrayLike, mean_magnitude: ArrayLike, n_values: ArrayLike) -> Array:
    """Set means of signed numbers to 0 where they are within the rounding error of a sum of `n_values`
    numbers of opposite sign with mean absolute value `mean_magnitude`.

    >>> zero_rounding_errors((0.1 + 0.2 - 0.3) / 3, 0.2, 3)
    array(0.)
    """
    tolerance = np.asarray(n_values) * np.finfo(np.float64).eps * np.asarray(mean_magnitude)
    return np.where(np.abs(value) <= tolerance, 0.0, value)


STACKED_INPUTS = ("quantile_forecast", "samples")
MODEL_INPUTS = ("forecast", "reference", "lo", "hi", *STACKED_INPUTS)


def _models_shape(inputs: Mapping[str, Array]) -> tuple[int, ...]:
    """Shape of the leading axes over models."""
    return np.broadcast_shapes(
        *(array.shape[name in STACKED_INPUTS : -1] for name, array in inputs.items() if name in MODEL_INPUTS)
    )


def _select_points(name: str, array: Array, points: NDArray[np.int64], model: tuple[int, ...]) -> Any:
    """One input restricted to the points of one group and one model; a level as a float."""
    if name == "level":
        return float(array)
    if name == "quantiles":
        return array
    if name in MODEL_INPUTS and array.ndim > 1 + (name in STACKED_INPUTS):
        index: tuple[Any, ...] = (slice(None), *model) if name in STACKED_INPUTS else model
        array = array[index]
    return array[..., points]


def _pointwise_errors(function: Callable[..., Any], needs: tuple[str, ...]) -> Callable[..., Array]:
    """`function` with inputs by name and the shape of its result checked."""

    def errors(actual: Array, **inputs: Array) -> Array:
        """Errors of shape (models, points), NaN without an actual value."""
        point_errors = np.asarray(function(actual, *[inputs[name] for name in needs]), dtype=np.float64)
        expected = (*_models_shape(inputs), actual.size)
        if point_errors.shape != expected:
            raise ParameterError(
                f"The function of a pointwise metric must return an error per point, shape {expected}, got shape "
                f"{point_errors.shape}.",
                hint="Pass pointwise=False if it returns one number.",
            )
        return np.where(np.isnan(actual), np.nan, point_errors)

    return errors
