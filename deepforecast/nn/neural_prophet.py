"""A sum of a trend, seasons, events and effects, which hang on time and on what is known ahead alone, and of what lags add.

Triebe, Hewamalage, Pilyugina, Laptev, Bergmeir, Rajagopal 2021, "NeuralProphet: Explainable Forecasting at Scale"; AR-Net:
Triebe, Laptev, Rajagopal 2019. Priors are those of Prophet: what is made least is the mean loss and, over the number of values
learned from, minus the logarithm of the priors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import DirectBody
from deepforecast.nn.mlp import MLP

TREND_PRIOR_SCALE = 5.0
"""The deviation of the normal prior of slope and offset."""


@dataclass(frozen=True)
class Component:
    """Columns of what is known of a row that have coefficients: one component of the sum.

    `shift` is added to them, so that 0 is where it was; `gate`: the column that says where they count, by what it is
    multiplied, and what is then added, for 1 and 0. `per_series`: each series has coefficients of its own beside those of all.
    """

    name: str
    columns: slice
    prior_scale: float
    multiplicative: bool = False
    per_series: bool = False
    shift: float = 0.0
    gate: tuple[int, float, float] | None = None


@dataclass(frozen=True)
class AdditiveSpec:
    """What an additive network consists of.

    `future_columns`: the columns of a window's past that are known ahead too, in the order of those of its future; `time_column`: which of them
    is time, from 0 to 1 over the history of the fit; `changepoints`: when the slope may change on it, None: a flat trend; `lagged_covariates`:
    columns of the past by name; `n_series`: how many have components of their own, `per_series_trend`: whether the trend is one.
    """

    future_columns: tuple[int, ...]
    time_column: int
    changepoints: tuple[float, ...] | None
    components: tuple[Component, ...] = ()
    uses_lags: bool = True
    lagged_covariates: tuple[tuple[str, slice], ...] = ()
    hidden_sizes: Sequence[int] = ()
    n_series: int = 0
    per_series_trend: bool = False
    n_values: int = 1
    changepoint_prior_scale: float = 0.05
    lag_prior_scale: float | None = None
    lags_name: str = field(default="ar")


class NeuralProphetBody(DirectBody):
    """Trend, terms and lags added up; what lags add follows from how far the past was from all else."""

    uses_series_id = True
    needs_history = False
    component_columns: Tensor
    future_columns: Tensor
    gate_columns: Tensor
    per_series_columns: Tensor
    shift: Tensor
    multiplicative: Tensor
    precision: Tensor
    changepoints: Tensor
    gate_factor: Tensor
    gate_offset: Tensor

    def __init__(self, sizes: InputSizes, spec: AdditiveSpec) -> None:
        super().__init__()
        location_slice = sizes.location_slice or slice(0, 1)
        self.spec, self.horizon, self.width, self.location_index = spec, sizes.horizon, sizes.out_features, location_slice.start
        self.uses_history = bool(spec.uses_lags or spec.lagged_covariates)
        self.uses_lags = spec.uses_lags
        self.first_columns: dict[str, int] = {}  # of columns that lie side by side, the first
        self._register_components(spec.components)
        self._register_columns("future_columns", spec.future_columns)
        self.register_buffer("changepoints", torch.tensor(spec.changepoints or (), dtype=torch.float32), persistent=False)
        self.offset, self.slope = nn.Parameter(torch.zeros(1)), None
        self.slope_changes = nn.Parameter(torch.zeros(len(self.changepoints)))
        if spec.changepoints is not None:
            self.slope = nn.Parameter(torch.zeros(1))
        self.weight = nn.Parameter(torch.zeros(len(self.component_columns), sizes.out_features))
        self.raw_bias = nn.Parameter(torch.zeros(sizes.horizon, sizes.out_features))
        trend = (1 + (self.slope is not None) + len(self.changepoints)) * spec.per_series_trend
        n_series_parameters = trend + sum(block.columns.stop - block.columns.start for block in spec.components if block.per_series)
        self.series_parameters = nn.Parameter(torch.zeros(spec.n_series, n_series_parameters)) if n_series_parameters and spec.n_series else None
        shape = sizes.horizon * sizes.out_features
        self.lag_layers = _lag_network(sizes.input_size, spec.hidden_sizes, shape) if spec.uses_lags else None
        self.covariate_layers = nn.ModuleList(
            _lag_network(sizes.input_size * (block.stop - block.start), spec.hidden_sizes, shape) for _, block in spec.lagged_covariates
        )

    def _register_components(self, terms: Sequence[Component]) -> None:
        """Each column of each term: where it is found, and what becomes of it."""
        components_by_column = [component for component in terms for _ in range(component.columns.start, component.columns.stop)]
        gates = [component.gate or (0, 0.0, 1.0) for component in components_by_column]
        self.has_gates, self.has_shifts = any(component.gate is not None for component in terms), any(component.shift for component in terms)
        self._register_columns("component_columns", [column for component in terms for column in range(component.columns.start, component.columns.stop)])
        self._register_columns("gate_columns", [component[0] for component in gates])
        self._register_columns("per_series_columns", [column for column, component in enumerate(components_by_column) if component.per_series])
        scaled = {
            "shift": [component.shift for component in components_by_column], "multiplicative": [float(component.multiplicative) for component in components_by_column],
            "precision": [component.prior_scale**-2.0 for component in components_by_column], "gate_factor": [component[1] for component in gates],
            "gate_offset": [component[2] for component in gates],
        }  # fmt: skip
        for name, numbers in scaled.items():
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.float32), persistent=False)

    def _register_columns(self, name: str, columns: Sequence[int]) -> None:
        """Columns by number, and whether they lie side by side."""
        self.register_buffer(name, torch.tensor(columns, dtype=torch.int64), persistent=False)
        if len(columns) and list(columns) == list(range(columns[0], columns[0] + len(columns))):
            self.first_columns[name] = columns[0]

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width): the sum of the parts, and what says how sure it is."""
        covariates = self._time_covariates(inputs)
        trend, series_parameters = self._trend(covariates, inputs), self._select_series_parameters(inputs)
        coefficients = self.weight[:, self.location_index] + (0.0 if series_parameters is None else self._series_coefficients(series_parameters))
        columns = self._evaluate_columns(covariates)
        base = trend + _batched_dot(columns, coefficients * (1.0 - self.multiplicative))
        if any(component.multiplicative for component in self.spec.components):
            base = base + _trend_multiplier(trend, inputs) * _batched_dot(columns, coefficients * self.multiplicative)
        location = base[:, -self.horizon :]
        raw = columns[:, -self.horizon :] @ self.weight + self.raw_bias
        for component in self._lag_effects(inputs, base).values():
            raw = raw + component
            location = location + component[..., self.location_index]
        return torch.cat([raw[..., : self.location_index], location.unsqueeze(-1), raw[..., self.location_index + 1 :]], dim=-1)

    def components(self, inputs: Inputs) -> dict[str, Tensor]:
        """What each component brings: of the numbers that are places, (B, horizon, width), the others 0."""
        covariates = self._time_covariates(inputs)
        trend, series_parameters = self._trend(covariates, inputs), self._select_series_parameters(inputs)
        coefficients = self.weight[:, self.location_index] + (0.0 if series_parameters is None else self._series_coefficients(series_parameters))
        columns, multiplier, components = self._evaluate_columns(covariates), _trend_multiplier(trend, inputs), {"trend": trend}
        first = 0
        for component in self.spec.components:
            stop = first + component.columns.stop - component.columns.start
            contribution = _batched_dot(columns[..., first:stop], coefficients[..., first:stop])
            components[component.name], first = multiplier * contribution if component.multiplicative else contribution, stop
        lag_effects = self._lag_effects(inputs, torch.stack(list(components.values())).sum(0))
        effects = {name: component[:, -self.horizon :] for name, component in components.items()}
        effects |= {name: component[..., self.location_index] for name, component in lag_effects.items()}
        shape = (self.location_index, self.width - self.location_index - 1)
        return {name: nn.functional.pad(component.unsqueeze(-1), shape) for name, component in effects.items()}

    def penalty(self) -> Tensor | None:
        """Minus the logarithm of the priors, over the number of values there are."""
        spec, free_precision = self.spec, 0.5 / TREND_PRIOR_SCALE**2
        penalty = free_precision * self.offset.square().sum() + self.slope_changes.abs().sum() / spec.changepoint_prior_scale
        penalty = penalty + 0.5 * (self.weight[:, self.location_index].square() * self.precision).sum()
        if self.slope is not None:
            penalty = penalty + free_precision * self.slope.square().sum()
        if self.series_parameters is not None:
            trend, slope_changes, coefficients = self._split_series_parameters(self.series_parameters)
            penalty = penalty + free_precision * trend.square().sum() + slope_changes.abs().sum() / spec.changepoint_prior_scale
            penalty = penalty + 0.5 * (coefficients.square() * self.precision[self.per_series_columns]).sum()
        if spec.lag_prior_scale is not None:
            norms = [next(layers.parameters()).abs().sum() for layers in (self.lag_layers, *self.covariate_layers) if layers is not None]
            penalty = penalty + torch.stack(norms).sum() / (spec.lag_prior_scale * self.horizon)
        return penalty / spec.n_values

    def initialize(
        self, trend: Sequence[float], slope_changes: Sequence[float], coefficients: dict[str, Sequence[float]],
        raw_bias: dict[int, float],
    ) -> None:  # fmt: skip
        """Start from what is known: offset and slope (if there is one), changes of slope, coefficients by term, and numbers
        that are no places."""
        with torch.no_grad():
            for number, value in raw_bias.items():
                self.raw_bias[:, number] = value
            self.offset[0] = trend[0]
            if self.slope is not None:
                self.slope[0] = trend[1]
            self.slope_changes.copy_(torch.as_tensor(slope_changes))
            start = 0
            for component in self.spec.components:
                stop = start + component.columns.stop - component.columns.start
                if component.name in coefficients:
                    self.weight[start:stop, self.location_index] = torch.as_tensor(coefficients[component.name], dtype=torch.float32)
                start = stop

    def _time_covariates(self, inputs: Inputs) -> Tensor:
        """What is known of the rows ahead, and of those of the past where they count: (B, rows, columns)."""
        if not self.uses_lags:
            return inputs.future
        return torch.cat([self._select_columns(inputs.past, "future_columns"), inputs.future], dim=1)

    def _evaluate_columns(self, covariates: Tensor) -> Tensor:
        """The columns of all terms, (B, rows, columns)."""
        columns = self._select_columns(covariates, "component_columns")
        if self.has_shifts:
            columns = columns + self.shift
        return columns * (self._select_columns(covariates, "gate_columns") * self.gate_factor + self.gate_offset) if self.has_gates else columns

    def _trend(self, covariates: Tensor, inputs: Inputs) -> Tensor:
        """(B, rows)."""
        time, series_parameters = covariates[..., self.spec.time_column], self._select_series_parameters(inputs) if self.spec.per_series_trend else None
        offset: Tensor = self.offset
        slope: Tensor | None = self.slope
        slope_changes: Tensor = self.slope_changes
        if series_parameters is not None:
            trend, series_slope_changes, _ = self._split_series_parameters(series_parameters)
            offset, slope_changes = offset + trend[:, :1], slope_changes + series_slope_changes
            slope = None if slope is None else slope + trend[:, 1:]
        values = offset.expand(time.shape) if slope is None else offset + slope * time
        if len(self.changepoints):
            values = values + _batched_dot((time.unsqueeze(-1) - self.changepoints).relu(), slope_changes)
        return values

    def _select_series_parameters(self, inputs: Inputs) -> Tensor | None:
        """The parameters of each window's own series; one that is not known has the mean of all. (B, parameters)"""
        if self.series_parameters is None or inputs.static_codes is None:
            return None
        codes = inputs.static_codes[:, :1]
        parameters = nn.functional.embedding((codes[:, 0] - 1).clamp(min=0), self.series_parameters)
        return torch.where(codes > 0, parameters, self.series_parameters.mean(0))

    def _split_series_parameters(self, series_parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Those of offset and slope, of changes, and of terms."""
        n_trend = (1 + (self.slope is not None)) * self.spec.per_series_trend
        n_changepoints = len(self.changepoints) * self.spec.per_series_trend
        return series_parameters[:, :n_trend], series_parameters[:, n_trend : n_trend + n_changepoints], series_parameters[:, n_trend + n_changepoints :]

    def _select_columns(self, covariates: Tensor, name: str) -> Tensor:
        """Some columns of (B, rows, columns): a view, where they lie side by side."""
        columns: Tensor = getattr(self, name)
        if name not in self.first_columns:
            return covariates.index_select(2, columns)
        return covariates[..., self.first_columns[name] : self.first_columns[name] + len(columns)]

    def _series_coefficients(self, series_parameters: Tensor) -> Tensor:
        """A series' own coefficients among those of all, (B, columns)."""
        return series_parameters.new_zeros(len(series_parameters), len(self.component_columns)).index_add(1, self.per_series_columns, self._split_series_parameters(series_parameters)[2])

    def _lag_effects(self, inputs: Inputs, base: Tensor) -> dict[str, Tensor]:
        """What lags add, each (B, horizon, width)."""
        effects: dict[str, Tensor] = {}
        if self.lag_layers is not None:
            deviations = (inputs.y - base[:, : -self.horizon]) * inputs.observed
            effects[self.spec.lags_name] = self.lag_layers(deviations)
        for (name, columns), layers in zip(self.spec.lagged_covariates, self.covariate_layers, strict=True):
            effects[name] = layers(inputs.past[..., columns].flatten(1))
        return {name: effect.view(-1, self.horizon, self.width) for name, effect in effects.items()}


def _lag_network(width_in: int, hidden_sizes: Sequence[int], width_out: int) -> nn.Module:
    """Hidden layers, or a linear map, which begins at zero: it has nothing to break out of."""
    if hidden_sizes:
        return MLP(width_in, hidden_sizes, width_out)
    linear = nn.Linear(width_in, width_out, bias=False)
    nn.init.zeros_(linear.weight)
    return linear


def _batched_dot(columns: Tensor, coefficients: Tensor) -> Tensor:
    """(B, rows, columns) by coefficients of all, (columns,), or of each window, (B, columns): (B, rows)."""
    if coefficients.ndim == 1:
        return columns @ coefficients
    return (columns @ coefficients.unsqueeze(-1)).squeeze(-1)


def _trend_multiplier(trend: Tensor, inputs: Inputs) -> Tensor:
    """What terms that multiply do so: the trend as the series has it, where 0 is 0, over its level, or 1 where that is less."""
    if inputs.level is None:
        return trend
    return (trend + inputs.level) / inputs.level.abs().clamp(min=1.0)
