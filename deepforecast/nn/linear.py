"""Bodies that are one linear map of the window.

Zeng, Chen, Zhang, Xu 2022, "Are Transformers Effective for Time Series Forecasting?"
Where nothing was seen the window is zero, which is the place of its scaling (its mean, say), or the last value in NLinear.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import DirectBody


class NLinearBody(DirectBody):
    """One linear map of the window, the last value seen subtracted before and added back after it.

    `location`: which numbers of a step are on the scale of the window, as the head says (`head.location`); only to them it is
    added back. Where the scaling has its place at the last value already, that is zero and nothing is done twice.
    """

    positions: Tensor
    location_mask: Tensor

    def __init__(self, sizes: InputSizes, location_slice: slice | None = None) -> None:
        super().__init__()
        self.shape = (sizes.horizon, sizes.out_features)
        self.window = nn.Linear(sizes.input_size, sizes.horizon * sizes.out_features)
        self.covariates = CovariateMap(sizes)
        self.register_buffer("positions", torch.arange(1.0, sizes.input_size + 1), persistent=False)
        location_mask = torch.zeros(sizes.out_features)
        if location_slice is not None:
            location_mask[location_slice] = 1.0
        self.register_buffer("location_mask", location_mask, persistent=False)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        last = inputs.y.gather(1, (inputs.observed * self.positions).argmax(1, keepdim=True))
        window: Tensor = self.window((inputs.y - last) * inputs.observed)
        raw = torch.addcmul(window.view(-1, *self.shape), last.unsqueeze(-1), self.location_mask)
        return self.covariates.add_effects(raw, inputs)


class DLinearBody(DirectBody):
    """The window parted into a trend (moving average over `kernel` rows, the ends repeated) and a remainder, a map for each.

    Both parts are linear in the window, so that the two maps W_t and W_r are one, W_r + (W_t - W_r) A with A the average:
    merging them costs the same for one window as for a thousand.
    """

    average: Tensor

    def __init__(self, sizes: InputSizes, kernel: int = 25) -> None:
        super().__init__()
        width_out = sizes.horizon * sizes.out_features
        self.shape = (sizes.horizon, sizes.out_features)
        self.trend = nn.Linear(sizes.input_size, width_out, bias=False)
        self.remainder = nn.Linear(sizes.input_size, width_out)
        self.covariates = CovariateMap(sizes)
        self.register_buffer("average", moving_average(sizes.input_size, kernel), persistent=False)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        trend, remainder, y = self.trend.weight, self.remainder.weight, inputs.y
        if y.shape[0] == 1:  # merging would cost more than the one window does
            smooth = y @ self.average.T
            window = functional.linear(smooth, trend) + functional.linear(y - smooth, remainder, self.remainder.bias)
        else:
            window = functional.linear(y, torch.addmm(remainder, trend - remainder, self.average), self.remainder.bias)
        return self.covariates.add_effects(window.view(-1, *self.shape), inputs)

    def components(self, inputs: Inputs) -> dict[str, Tensor]:
        """What trend, remainder and covariates bring, each (B, horizon, width); `features` is their sum."""
        smooth = inputs.y @ self.average.T
        trend: Tensor = self.trend(smooth).view(-1, *self.shape)
        remainder: Tensor = self.remainder(inputs.y - smooth).view(-1, *self.shape)
        components = {"trend": trend, "remainder": remainder}
        if self.covariates.has_covariates:
            components["covariates"] = self.covariates.add_effects(torch.zeros_like(trend), inputs)
        return components


class CovariateMap(nn.Module):
    """Linear terms of covariates: those of the window and of the series reach all steps, those known ahead reach their own.

    All begin at zero: an additive term has nothing to break out of, and noise at the start costs steps.
    """

    def __init__(self, sizes: InputSizes) -> None:
        super().__init__()
        n_past_inputs = sizes.input_size * sizes.past + sizes.static
        self.shape = (sizes.horizon, sizes.out_features)
        self.past_map = nn.Linear(n_past_inputs, sizes.horizon * sizes.out_features, bias=False) if n_past_inputs else None
        self.future_map = nn.Linear(sizes.future, sizes.out_features, bias=False) if sizes.future else None
        for weight in self.parameters():
            nn.init.zeros_(weight)

    @property
    def has_covariates(self) -> bool:
        """Whether there are covariates."""
        return self.past_map is not None or self.future_map is not None

    def add_effects(self, raw: Tensor, inputs: Inputs) -> Tensor:
        """`raw`, (B, horizon, width), and the terms."""
        if self.past_map is not None:
            past_effect: Tensor = self.past_map(torch.cat([inputs.past.flatten(1), inputs.static], dim=1))
            raw = raw + past_effect.view(-1, *self.shape)
        return raw if self.future_map is None else raw + self.future_map(inputs.future)


def moving_average(length: int, kernel: int) -> Tensor:
    """The matrix (length, length) that smooths a window over `kernel` rows (odd), its first and last value repeated outside."""
    neighbors = torch.arange(length).unsqueeze(1) + torch.arange(kernel) - kernel // 2
    matrix = torch.zeros(length, length, dtype=torch.float64)
    ones = torch.full(neighbors.shape, 1.0 / kernel, dtype=torch.float64)
    return matrix.scatter_add_(1, neighbors.clamp(0, length - 1), ones).float()
