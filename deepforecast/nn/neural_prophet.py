"""NeuralProphet: an additive model of trend, seasonality, events, covariate effects and
autoregression.

Triebe, Hewamalage, Pilyugina, Laptev, Bergmeir, Rajagopal (2021), "NeuralProphet: Explainable
Forecasting at Scale", arXiv:2111.15397; AR-Net: Triebe, Laptev, Rajagopal (2019), arXiv:1911.12436.
The priors are those of Prophet (Taylor and Letham 2018): the loss is the mean loss minus log-prior
/ number of training values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.mlp import MLP
from deepforecast.nn.network import DirectBody

if TYPE_CHECKING:
    from jaxtyping import Float

TREND_PRIOR_SCALE = 5.0
"""Standard deviation of the normal prior on slope and offset."""


@dataclass(frozen=True)
class Component:
    """Time-dependent columns with coefficients: one component of the sum.

    Parameters
    ----------
    name : str
    columns : slice
        Columns of the future covariates.
    prior_scale : float
        Standard deviation of the normal prior on the coefficients.
    multiplicative : bool, default False
        Whether the component is multiplied by the trend.
    per_series : bool, default False
        Whether each series has its own deviations from the shared coefficients.
    shift : float, default 0.0
        Added to the columns, to undo their centring.
    gate : (int, float, float), optional
        Column, factor and offset of an indicator that switches the component on and off: the
        columns are multiplied by column * factor + offset.
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
    """Structure of a `NeuralProphetBody`.

    Parameters
    ----------
    future_columns : tuple of int
        Columns of the past covariates that are future covariates too, in the order of these.
    time_column : int
        The future covariate that is the time, scaled to 0..1 over the training history.
    changepoints : tuple of float or None
        Scaled times at which the slope may change; None: a constant trend.
    components : tuple of Component
    uses_lags : bool, default True
        Whether the target is autoregressive (AR-Net).
    lagged_covariates : tuple of (str, slice)
        Name and past columns of each lagged covariate.
    hidden_sizes : sequence of int
        Hidden layers of the lag networks; empty: linear.
    n_series : int, default 0
        Number of series with their own parameters.
    per_series_trend : bool, default False
        Whether each series has its own trend.
    n_values : int, default 1
        Number of training values, the divisor of the penalty.
    changepoint_prior_scale : float, default 0.05
        Scale of the Laplace prior on the changes of slope.
    lag_prior_scale : float, optional
        Scale of the Laplace prior on the lag weights; None: no prior.
    lags_name : str, default "ar"
        Name of the autoregressive component.
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

    @property
    def coefficient_slices(self) -> list[tuple[Component, slice]]:
        """The components, each with the slice of its coefficients in those of all components."""
        widths = [component.columns.stop - component.columns.start for component in self.components]
        slices = [slice(stop - width, stop) for width, stop in zip(widths, accumulate(widths), strict=True)]
        return list(zip(self.components, slices, strict=True))


class NeuralProphetBody(DirectBody):
    """Sum of trend, components and lag effects.

    y_t = trend_t + sum of additive components + multiplier_t * sum of multiplicative components +
    lag effects, with a piecewise linear trend_t = offset + slope t + sum_j delta_j max(t - s_j, 0).
    The autoregression acts on the deviations of the window from all other components.

    Parameters
    ----------
    sizes : InputSizes
    spec : AdditiveSpec
    """

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
        self.spec = spec
        self.horizon = sizes.horizon
        self.width = sizes.out_features
        self.location_index = location_slice.start  # the output feature that is the sum of components
        self.uses_history = bool(spec.uses_lags or spec.lagged_covariates)
        self.uses_lags = spec.uses_lags
        self.first_columns: dict[str, int] = {}  # index of the first column, by buffer, if contiguous
        self._register_components(spec.components)
        self._register_columns("future_columns", spec.future_columns)
        self.register_buffer("changepoints", torch.tensor(spec.changepoints or (), dtype=torch.float32), persistent=False)
        self.offset = nn.Parameter(torch.zeros(1))
        self.slope = None
        self.slope_changes = nn.Parameter(torch.zeros(len(self.changepoints)))
        if spec.changepoints is not None:
            self.slope = nn.Parameter(torch.zeros(1))
        self.weight = nn.Parameter(torch.zeros(len(self.component_columns), sizes.out_features))
        self.raw_bias = nn.Parameter(torch.zeros(sizes.horizon, sizes.out_features))
        n_trend_parameters = (1 + (self.slope is not None) + len(self.changepoints)) * spec.per_series_trend
        n_series_parameters = n_trend_parameters + sum(
            component.columns.stop - component.columns.start for component in spec.components if component.per_series
        )
        self.series_parameters = None
        if n_series_parameters and spec.n_series:
            self.series_parameters = nn.Parameter(torch.zeros(spec.n_series, n_series_parameters))
        width_out = sizes.horizon * sizes.out_features
        self.lag_layers = _lag_network(sizes.input_size, spec.hidden_sizes, width_out) if spec.uses_lags else None
        self.covariate_layers = nn.ModuleList(
            _lag_network(sizes.input_size * (columns.stop - columns.start), spec.hidden_sizes, width_out)
            for _, columns in spec.lagged_covariates
        )

    def _register_components(self, components: Sequence[Component]) -> None:
        """Register buffers with an entry for each column of the components: its covariate column,
        shift, gate (column, factor, offset) and prior precision.
        """
        ranges = [range(component.columns.start, component.columns.stop) for component in components]
        components_by_column = [component for component, columns in zip(components, ranges, strict=True) for _ in columns]
        gates = [component.gate or (0, 0.0, 1.0) for component in components_by_column]
        self.has_gates = any(component.gate is not None for component in components)
        self.has_shifts = any(component.shift for component in components)
        self._register_columns("component_columns", [column for columns in ranges for column in columns])
        self._register_columns("gate_columns", [gate[0] for gate in gates])
        per_series = [index for index, component in enumerate(components_by_column) if component.per_series]
        self._register_columns("per_series_columns", per_series)
        scaled = {
            "shift": [component.shift for component in components_by_column],
            "multiplicative": [float(component.multiplicative) for component in components_by_column],
            "precision": [component.prior_scale**-2.0 for component in components_by_column],
            "gate_factor": [gate[1] for gate in gates],
            "gate_offset": [gate[2] for gate in gates],
        }  # fmt: skip
        for name, numbers in scaled.items():
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.float32), persistent=False)

    def _register_columns(self, name: str, columns: Sequence[int]) -> None:
        """Register column indices, and their first one if they are contiguous."""
        self.register_buffer(name, torch.tensor(columns, dtype=torch.int64), persistent=False)
        if len(columns) and list(columns) == list(range(columns[0], columns[0] + len(columns))):
            self.first_columns[name] = columns[0]

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the sum of the components as location, and the other features."""
        trend, columns, coefficients = self._trend_and_columns(inputs)
        base = trend + _batched_dot(columns, coefficients * (1.0 - self.multiplicative))
        if any(component.multiplicative for component in self.spec.components):
            base = base + _trend_multiplier(trend, inputs) * _batched_dot(columns, coefficients * self.multiplicative)
        location = base[:, -self.horizon :]
        raw = columns[:, -self.horizon :] @ self.weight + self.raw_bias
        for component in self._lag_effects(inputs, base).values():
            raw = raw + component
            location = location + component[..., self.location_index]
        return torch.cat([raw[..., : self.location_index], location.unsqueeze(-1), raw[..., self.location_index + 1 :]], dim=-1)

    def components(self, inputs: Inputs) -> dict[str, Float[Tensor, "batch horizon out_features"]]:
        """Return the contribution of each component to the location; the other features are 0.

        The sum of trend and components covers the window, too, if lags are used: the autoregression
        acts on the deviations from it, see `_lag_effects`.
        """
        trend, columns, coefficients = self._trend_and_columns(inputs)
        multiplier = _trend_multiplier(trend, inputs)
        components = {"trend": trend}
        for component, coefficient_slice in self.spec.coefficient_slices:
            contribution = _batched_dot(columns[..., coefficient_slice], coefficients[..., coefficient_slice])
            components[component.name] = multiplier * contribution if component.multiplicative else contribution
        lag_effects = self._lag_effects(inputs, torch.stack(list(components.values())).sum(0))
        effects = {name: component[:, -self.horizon :] for name, component in components.items()}
        effects |= {name: component[..., self.location_index] for name, component in lag_effects.items()}
        padding = (self.location_index, self.width - self.location_index - 1)  # zeros before and after the location
        return {name: nn.functional.pad(component.unsqueeze(-1), padding) for name, component in effects.items()}

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return the negative log-prior divided by the number of training values.

        A normal prior with scale s adds x^2 / (2 s^2), a Laplace prior |x| / s.
        """
        spec = self.spec
        half_precision = 0.5 / TREND_PRIOR_SCALE**2
        penalty = half_precision * self.offset.square().sum() + self.slope_changes.abs().sum() / spec.changepoint_prior_scale
        penalty = penalty + 0.5 * (self.weight[:, self.location_index].square() * self.precision).sum()
        if self.slope is not None:
            penalty = penalty + half_precision * self.slope.square().sum()
        if self.series_parameters is not None:
            trend, slope_changes, coefficients = self._split_series_parameters(self.series_parameters)
            penalty = penalty + half_precision * trend.square().sum() + slope_changes.abs().sum() / spec.changepoint_prior_scale
            penalty = penalty + 0.5 * (coefficients.square() * self.precision[self.per_series_columns]).sum()
        if spec.lag_prior_scale is not None:
            networks = [layers for layers in (self.lag_layers, *self.covariate_layers) if layers is not None]
            norms = [next(layers.parameters()).abs().sum() for layers in networks]
            penalty = penalty + torch.stack(norms).sum() / (spec.lag_prior_scale * self.horizon)
        return penalty / spec.n_values

    def initialize(
        self, trend: Sequence[float], slope_changes: Sequence[float], coefficients: dict[str, Sequence[float]],
        raw_bias: dict[int, float],
    ) -> None:  # fmt: skip
        """Set initial values of the shared parameters.

        `trend` is (offset, slope), `coefficients` has those of some components by name, and
        `raw_bias` the biases of output features by their index.
        """
        with torch.no_grad():
            for feature, value in raw_bias.items():
                self.raw_bias[:, feature] = value
            self.offset[0] = trend[0]
            if self.slope is not None:
                self.slope[0] = trend[1]
            self.slope_changes.copy_(torch.as_tensor(slope_changes))
            for component, coefficient_slice in self.spec.coefficient_slices:
                if component.name in coefficients:
                    self.weight[coefficient_slice, self.location_index] = torch.as_tensor(
                        coefficients[component.name], dtype=torch.float32
                    )

    def _trend_and_columns(self, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
        """Return the trend (batch, steps), the columns of the components (batch, steps, columns), and
        their coefficients in the location, (columns,), or (batch, columns) if series have their own.
        """
        covariates = self._time_covariates(inputs)
        trend, series_parameters = self._trend(covariates, inputs), self._select_series_parameters(inputs)
        series_coefficients = 0.0 if series_parameters is None else self._series_coefficients(series_parameters)
        coefficients = self.weight[:, self.location_index] + series_coefficients
        return trend, self._evaluate_columns(covariates), coefficients

    def _time_covariates(self, inputs: Inputs) -> Float[Tensor, "batch steps columns"]:
        """Return the future covariates of the horizon, and of the window if lags are used."""
        if not self.uses_lags:
            return inputs.future
        return torch.cat([self._select_columns(inputs.past, "future_columns"), inputs.future], dim=1)

    def _evaluate_columns(
        self, covariates: Float[Tensor, "batch steps future"]
    ) -> Float[Tensor, "batch steps columns"]:
        """Return the shifted and gated columns of all components."""
        columns = self._select_columns(covariates, "component_columns")
        if self.has_shifts:
            columns = columns + self.shift
        if not self.has_gates:
            return columns
        return columns * (self._select_columns(covariates, "gate_columns") * self.gate_factor + self.gate_offset)

    def _trend(
        self, covariates: Float[Tensor, "batch steps future"], inputs: Inputs
    ) -> Float[Tensor, "batch steps"]:
        """Compute the trend, with the parameters of each window's series if there are any."""
        time = covariates[..., self.spec.time_column]
        series_parameters = self._select_series_parameters(inputs) if self.spec.per_series_trend else None
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

    def _select_series_parameters(self, inputs: Inputs) -> Float[Tensor, "batch parameters"] | None:
        """Return the parameters of each window's series, or None without them.

        A series not seen in fit gets the mean of all series.
        """
        if self.series_parameters is None or inputs.static_codes is None:
            return None
        codes = inputs.static_codes[:, :1]
        parameters = nn.functional.embedding((codes[:, 0] - 1).clamp(min=0), self.series_parameters)
        return torch.where(codes > 0, parameters, self.series_parameters.mean(0))

    def _split_series_parameters(self, series_parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split parameters (batch, parameters) into offset and slope, changes of slope, and coefficients
        of components.
        """
        n_trend = (1 + (self.slope is not None)) * self.spec.per_series_trend
        n_changepoints = len(self.changepoints) * self.spec.per_series_trend
        trend = series_parameters[:, :n_trend]
        slope_changes = series_parameters[:, n_trend : n_trend + n_changepoints]
        return trend, slope_changes, series_parameters[:, n_trend + n_changepoints :]

    def _select_columns(self, covariates: Tensor, name: str) -> Tensor:
        """Select columns of (batch, steps, columns), as a view if they are contiguous."""
        columns: Tensor = getattr(self, name)
        if name not in self.first_columns:
            return covariates.index_select(2, columns)
        return covariates[..., self.first_columns[name] : self.first_columns[name] + len(columns)]

    def _series_coefficients(
        self, series_parameters: Float[Tensor, "batch parameters"]
    ) -> Float[Tensor, "batch columns"]:
        """Return the coefficients of each window's series for all columns, 0 if shared."""
        zeros = series_parameters.new_zeros(len(series_parameters), len(self.component_columns))
        return zeros.index_add(1, self.per_series_columns, self._split_series_parameters(series_parameters)[2])

    def _lag_effects(
        self, inputs: Inputs, base: Float[Tensor, "batch steps"]
    ) -> dict[str, Float[Tensor, "batch horizon out_features"]]:
        """Return the effects of the lags by component.

        `base` is the sum of the other components, from which the deviations of the window are
        computed.
        """
        effects: dict[str, Tensor] = {}
        if self.lag_layers is not None:
            deviations = (inputs.y - base[:, : -self.horizon]) * inputs.observed
            effects[self.spec.lags_name] = self.lag_layers(deviations)
        for (name, columns), layers in zip(self.spec.lagged_covariates, self.covariate_layers, strict=True):
            effects[name] = layers(inputs.past[..., columns].flatten(1))
        return {name: effect.view(-1, self.horizon, self.width) for name, effect in effects.items()}


def _lag_network(width_in: int, hidden_sizes: Sequence[int], width_out: int) -> nn.Module:
    """Return an MLP, or a linear map that starts at 0 if there are no hidden layers."""
    if hidden_sizes:
        return MLP(width_in, hidden_sizes, width_out)
    linear = nn.Linear(width_in, width_out, bias=False)
    nn.init.zeros_(linear.weight)
    return linear


def _batched_dot(columns: Tensor, coefficients: Tensor) -> Tensor:
    """Multiply (batch, steps, columns) by shared (columns,) or per-window (batch, columns)
    coefficients: (batch, steps).
    """
    if coefficients.ndim == 1:
        return columns @ coefficients
    return (columns @ coefficients.unsqueeze(-1)).squeeze(-1)


def _trend_multiplier(trend: Tensor, inputs: Inputs) -> Tensor:
    """Return the factor of multiplicative components, (trend + level) / max(|level|, 1)."""
    if inputs.level is None:
        return trend
    return (trend + inputs.level) / inputs.level.abs().clamp(min=1.0)
