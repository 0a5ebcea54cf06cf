"""Bodies that are linear in the window: NLinear and DLinear.

Zeng, Chen, Zhang, Xu (2023), "Are Transformers Effective for Time Series Forecasting?",
arXiv:2205.13504. Missing values are 0 on the scale of z, i.e. the loc of the scaler, or the last
value in NLinear.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.body import DirectBody


class NLinearBody(DirectBody):
    """NLinear: a linear map of the window minus its last observed value, which is added back to the
    output.

    Parameters
    ----------
    sizes : InputSizes
    location_slice : slice, optional
        Output features that are locations (`Head.location_slice`); the last value is added to these
        only. With scalers whose loc is the last value, the last value is 0.
    """

    positions: Tensor
    location_mask: Tensor

    def __init__(self, sizes: InputSizes, location_slice: slice | None = None) -> None:
        super().__init__()
        self.shape = (sizes.horizon, sizes.out_features)
        self.window = nn.Linear(sizes.input_size, sizes.horizon * sizes.out_features)
        self.covariates = CovariateMap(sizes)
        self.register_buffer("positions", torch.arange(1.0, sizes.input_size + 1), persistent=False)
        location_mask = torch.zeros(sizes.out_features)  # 1 for features that are locations
        if location_slice is not None:
            location_mask[location_slice] = 1.0
        self.register_buffer("location_mask", location_mask, persistent=False)

    def features(self, inputs: Inputs) -> Tensor:
        """Return (batch, horizon, out_features)."""
        last = inputs.y.gather(1, (inputs.observed * self.positions).argmax(1, keepdim=True))
        window: Tensor = self.window((inputs.y - last) * inputs.observed)
        raw = torch.addcmul(window.view(-1, *self.shape), last.unsqueeze(-1), self.location_mask)
        return self.covariates.add_effects(raw, inputs)


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
        width_out = sizes.horizon * sizes.out_features
        self.shape = (sizes.horizon, sizes.out_features)
        self.trend = nn.Linear(sizes.input_size, width_out, bias=False)
        self.remainder = nn.Linear(sizes.input_size, width_out)
        self.covariates = CovariateMap(sizes)
        self.register_buffer("average", moving_average(sizes.input_size, kernel), persistent=False)

    def features(self, inputs: Inputs) -> Tensor:
        """Return (batch, horizon, out_features)."""
        trend = self.trend.weight
        remainder = self.remainder.weight
        y = inputs.y
        if y.shape[0] == 1:  # merging the maps costs more than it saves for a single window
            smooth = y @ self.average.T
            window = functional.linear(smooth, trend) + functional.linear(
                y - smooth, remainder, self.remainder.bias
            )
        else:
            window = functional.linear(
                y, torch.addmm(remainder, trend - remainder, self.average), self.remainder.bias
            )
        return self.covariates.add_effects(window.view(-1, *self.shape), inputs)

    def components(self, inputs: Inputs) -> dict[str, Tensor]:
        """Return the contributions of trend, remainder and covariates, each (batch, horizon,
        out_features); their sum is `features`.
        """
        smooth = inputs.y @ self.average.T
        trend: Tensor = self.trend(smooth).view(-1, *self.shape)
        remainder: Tensor = self.remainder(inputs.y - smooth).view(-1, *self.shape)
        components = {"trend": trend, "remainder": remainder}
        if self.covariates.has_covariates:
            components["covariates"] = self.covariates.add_effects(torch.zeros_like(trend), inputs)
        return components


class CovariateMap(nn.Module):
    """Linear effects of covariates: past and static ones on all steps, future ones on their own step.

    The weights start at 0: a linear term has no symmetry to break, and random weights would only
    add noise.
    """

    def __init__(self, sizes: InputSizes) -> None:
        super().__init__()
        n_past_inputs = sizes.input_size * sizes.past + sizes.static
        self.shape = (sizes.horizon, sizes.out_features)
        self.past_map = (
            nn.Linear(n_past_inputs, sizes.horizon * sizes.out_features, bias=False)
            if n_past_inputs
            else None
        )
        self.future_map = (
            nn.Linear(sizes.future, sizes.out_features, bias=False) if sizes.future else None
        )
        for weight in self.parameters():
            nn.init.zeros_(weight)

    @property
    def has_covariates(self) -> bool:
        """Whether there are covariates."""
        return self.past_map is not None or self.future_map is not None

    def add_effects(self, raw: Tensor, inputs: Inputs) -> Tensor:
        """Add the effects to `raw` (batch, horizon, out_features)."""
        if self.past_map is not None:
            past_effect: Tensor = self.past_map(
                torch.cat([inputs.past.flatten(1), inputs.static], dim=1)
            )
            raw = raw + past_effect.view(-1, *self.shape)
        return raw if self.future_map is None else raw + self.future_map(inputs.future)


def moving_average(length: int, kernel: int) -> Tensor:
    """Return the matrix (length, length) of a centred moving average over `kernel` (odd) steps, with
    the first and last values repeated beyond the ends.
    """
    neighbors = torch.arange(length).unsqueeze(1) + torch.arange(kernel) - kernel // 2
    matrix = torch.zeros(length, length, dtype=torch.float64)
    ones = torch.full(neighbors.shape, 1.0 / kernel, dtype=torch.float64)
    return matrix.scatter_add_(1, neighbors.clamp(0, length - 1), ones).float()
