"""Bodies that are linear in the window: NLinear and DLinear.

Zeng, Chen, Zhang, Xu (2023), "Are Transformers Effective for Time Series Forecasting?",
arXiv:2205.13504. Missing values are 0 on the scale of z, i.e. the loc of the scaler, or the last
value in NLinear.

The matrices of the paper map to the locations of the distribution (`Head.location_slice`), e.g. the
median. Its other features, e.g. the distances of 14 quantiles from the median, depend on `RANK`
linear combinations of the same inputs, see `OutputMap`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.network import DirectBody

if TYPE_CHECKING:
    from jaxtyping import Float

RANK = 8
"""Number of linear combinations of the inputs that the features other than locations depend on."""


class NLinearBody(DirectBody):
    """NLinear: a linear map of the window minus its last observed value, which is added back to the
    locations.

    With scalers whose loc is the last value, the last value is 0. For heads without locations it is
    not added.

    Parameters
    ----------
    sizes : InputSizes
    """

    positions: Tensor
    location_mask: Tensor

    def __init__(self, sizes: InputSizes) -> None:
        super().__init__()
        self.window = nn.Linear(sizes.input_size, hidden_width(sizes))
        self.outputs = OutputMap(sizes)
        # From 1, so that among observed time steps, position * observed is largest at the last one.
        self.register_buffer("positions", torch.arange(1.0, sizes.input_size + 1), persistent=False)
        location_mask = torch.zeros(sizes.out_features)  # 1 for features that are locations
        if sizes.location_slice is not None:
            location_mask[sizes.location_slice] = 1.0
        self.register_buffer("location_mask", location_mask, persistent=False)

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        last = inputs.y.gather(1, (inputs.observed * self.positions).argmax(1, keepdim=True))
        raw = self.outputs(self.window((inputs.y - last) * inputs.observed), inputs)
        return torch.addcmul(raw, last.unsqueeze(-1), self.location_mask)


class DLinearBody(DirectBody):
    """DLinear: linear maps of a trend (moving average over `kernel` steps) and of the remainder.

    With the moving average A, the trend A y and the remainder y - A y, the sum W_t A y + W_r (y - A
    y) is computed as (W_r + (W_t - W_r) A) y, at a cost that does not depend on the batch size.

    Parameters
    ----------
    sizes : InputSizes
    kernel : int, default 25
        Length of the moving average, odd; the ends of the window are repeated.
    """

    average: Tensor

    def __init__(self, sizes: InputSizes, kernel: int = 25) -> None:
        super().__init__()
        self.trend = nn.Linear(sizes.input_size, hidden_width(sizes), bias=False)
        self.remainder = nn.Linear(sizes.input_size, hidden_width(sizes))
        self.outputs = OutputMap(sizes)
        self.register_buffer("average", moving_average(sizes.input_size, kernel), persistent=False)

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        trend = self.trend.weight
        remainder = self.remainder.weight
        y = inputs.y
        if y.shape[0] == 1:  # merging the maps costs more than it saves for a single window
            smooth = y @ self.average.T
            hidden = functional.linear(smooth, trend) + functional.linear(
                y - smooth, remainder, self.remainder.bias
            )
        else:
            hidden = functional.linear(
                y, torch.addmm(remainder, trend - remainder, self.average), self.remainder.bias
            )
        raw: Tensor = self.outputs(hidden, inputs)
        return raw

    def components(self, inputs: Inputs) -> dict[str, Float[Tensor, "batch horizon out_features"]]:
        """Return the contributions of trend, remainder and covariates; their sum is `features`. The
        intercepts belong to the remainder.
        """
        smooth = inputs.y @ self.average.T
        components = {
            "trend": self.outputs.output_projection(self.trend(smooth), with_bias=False),
            "remainder": self.outputs.output_projection(self.remainder(inputs.y - smooth)),
        }
        if self.outputs.has_covariates:
            components["covariates"] = self.outputs.covariate_effects(inputs)
        return components


class OutputMap(nn.Module):
    """Map linear combinations of the window, `hidden`, to features, and add the effects of covariates.

    The first entries of `hidden` are the locations of all steps. The other features of all steps are
    a linear map of the last `RANK` entries: the spread has less to learn than the location, and full
    matrices for 15 quantiles have 15 times the weights of one for the median. If the head has no
    locations, all features count as such.

    Past and static covariates are added to `hidden`, future ones to the features of their own step.
    Their weights start at 0: a linear term has no symmetry to break, and random weights would only
    add noise.
    """

    def __init__(self, sizes: InputSizes) -> None:
        super().__init__()
        locations = location_features(sizes)
        n_past_inputs = sizes.input_size * sizes.past + sizes.static
        self.n_before = locations.start  # number of other features before the locations
        self.location_shape = (sizes.horizon, locations.stop - locations.start)
        self.other_shape = (sizes.horizon, sizes.out_features - self.location_shape[1])
        self.others = (
            nn.Linear(RANK, self.other_shape[0] * self.other_shape[1]) if self.other_shape[1] else None
        )
        self.past_map = (
            nn.Linear(n_past_inputs, hidden_width(sizes), bias=False) if n_past_inputs else None
        )
        self.future_map = (
            nn.Linear(sizes.future, sizes.out_features, bias=False) if sizes.future else None
        )
        for covariate_map in (self.past_map, self.future_map):
            if covariate_map is not None:
                nn.init.zeros_(covariate_map.weight)

    @property
    def has_covariates(self) -> bool:
        """Whether there are covariates."""
        return self.past_map is not None or self.future_map is not None

    def forward(
        self, hidden: Float[Tensor, "batch width"], inputs: Inputs
    ) -> Float[Tensor, "batch horizon out_features"]:
        """Map `hidden` to features and add the effects of covariates."""
        if self.past_map is not None:
            hidden = hidden + self._past_effects(inputs)
        raw = self.output_projection(hidden)
        return raw if self.future_map is None else raw + self.future_map(inputs.future)

    def output_projection(
        self, hidden: Float[Tensor, "batch width"], with_bias: bool = True
    ) -> Float[Tensor, "batch horizon out_features"]:
        """Map `hidden` to features, without covariates."""
        if self.others is None:
            return hidden.view(-1, *self.location_shape)
        locations = hidden[:, :-RANK].view(-1, *self.location_shape)
        bias = self.others.bias if with_bias else None
        others = functional.linear(hidden[:, -RANK:], self.others.weight, bias)
        others = others.view(-1, *self.other_shape)
        return torch.cat([others[..., : self.n_before], locations, others[..., self.n_before :]], dim=-1)

    def covariate_effects(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the effects of all covariates; requires `has_covariates`."""
        effects = []
        if self.past_map is not None:
            effects.append(self.output_projection(self._past_effects(inputs), with_bias=False))
        if self.future_map is not None:
            effects.append(self.future_map(inputs.future))
        return torch.stack(effects).sum(0)

    def _past_effects(self, inputs: Inputs) -> Float[Tensor, "batch width"]:
        """Return the effects of past and static covariates on `hidden`."""
        if self.past_map is None:
            raise RuntimeError("The network has no past or static covariates.")
        effects: Tensor = self.past_map(torch.cat([inputs.past.flatten(1), inputs.static], dim=1))
        return effects


def location_features(sizes: InputSizes) -> slice:
    """Return the features that are locations; all features if the head has none."""
    return sizes.location_slice or slice(0, sizes.out_features)


def hidden_width(sizes: InputSizes) -> int:
    """Return the width of `hidden`: the locations of all steps, and `RANK` if there are other features."""
    locations = location_features(sizes)
    n_locations: int = locations.stop - locations.start
    return sizes.horizon * n_locations + (RANK if n_locations < sizes.out_features else 0)


def moving_average(length: int, kernel: int) -> Float[Tensor, "time time"]:
    """Return the matrix (length, length) of a centred moving average over `kernel` (odd) steps, with
    the first and last values repeated beyond the ends.
    """
    neighbors = torch.arange(length).unsqueeze(1) + torch.arange(kernel) - kernel // 2
    matrix = torch.zeros(length, length, dtype=torch.float64)
    ones = torch.full(neighbors.shape, 1.0 / kernel, dtype=torch.float64)
    return matrix.scatter_add_(1, neighbors.clamp(0, length - 1), ones).float()
