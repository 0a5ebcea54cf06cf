"""Bodies that are one linear map of the window.

Zeng, Chen, Zhang, Xu 2022, "Are Transformers Effective for Time Series Forecasting?"
Where nothing was seen the window is zero, which is the place of its scaling (its mean, say), or the last value in NLinear.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.batch import Inputs, Sizes
from deepforecast.nn.body import Direct


class NLinearBody(Direct):
    """One linear map of the window, the last value seen subtracted before and added back after it.

    `location`: which numbers of a step are on the scale of the window, as the head says (`head.location`); only to them it is
    added back. Where the scaling has its place at the last value already, that is zero and nothing is done twice.
    """

    order: Tensor
    located: Tensor

    def __init__(self, sizes: Sizes, location: slice | None = None) -> None:
        super().__init__()
        self.shape = (sizes.horizon, sizes.width)
        self.window = nn.Linear(sizes.input_size, sizes.horizon * sizes.width)
        self.covariates = CovariateTerms(sizes)
        self.register_buffer("order", torch.arange(1.0, sizes.input_size + 1), persistent=False)
        added = torch.zeros(sizes.width)
        if location is not None:
            added[location] = 1.0
        self.register_buffer("located", added, persistent=False)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        last = inputs.y.gather(1, (inputs.seen * self.order).argmax(1, keepdim=True))
        window: Tensor = self.window((inputs.y - last) * inputs.seen)
        found = torch.addcmul(window.view(-1, *self.shape), last.unsqueeze(-1), self.located)
        return self.covariates.added(found, inputs)


class DLinearBody(Direct):
    """The window parted into a trend (moving average over `kernel` rows, the ends repeated) and a remainder, a map for each.

    Both parts are linear in the window, so that the two maps W_t and W_r are one, W_r + (W_t - W_r) A with A the average:
    merging them costs the same for one window as for a thousand.
    """

    average: Tensor

    def __init__(self, sizes: Sizes, kernel: int = 25) -> None:
        super().__init__()
        width_out = sizes.horizon * sizes.width
        self.shape = (sizes.horizon, sizes.width)
        self.trend = nn.Linear(sizes.input_size, width_out, bias=False)
        self.remainder = nn.Linear(sizes.input_size, width_out)
        self.covariates = CovariateTerms(sizes)
        self.register_buffer("average", moving_average(sizes.input_size, kernel), persistent=False)

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width)."""
        trend, remainder, y = self.trend.weight, self.remainder.weight, inputs.y
        if y.shape[0] == 1:  # merging would cost more than the one window does
            smooth = y @ self.average.T
            window = functional.linear(smooth, trend) + functional.linear(y - smooth, remainder, self.remainder.bias)
        else:
            window = functional.linear(y, torch.addmm(remainder, trend - remainder, self.average), self.remainder.bias)
        return self.covariates.added(window.view(-1, *self.shape), inputs)

    def parts(self, inputs: Inputs) -> dict[str, Tensor]:
        """What trend, remainder and covariates bring, each (B, horizon, width); `features` is their sum."""
        smooth = inputs.y @ self.average.T
        trend: Tensor = self.trend(smooth).view(-1, *self.shape)
        remainder: Tensor = self.remainder(inputs.y - smooth).view(-1, *self.shape)
        found = {"trend": trend, "remainder": remainder}
        if self.covariates.any:
            found["covariates"] = self.covariates.added(torch.zeros_like(trend), inputs)
        return found


class CovariateTerms(nn.Module):
    """Linear terms of covariates: those of the window and of the series reach all steps, those known ahead reach their own.

    All begin at zero: an additive term has nothing to break out of, and noise at the start costs steps.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        told = sizes.input_size * sizes.past + sizes.static
        self.shape = (sizes.horizon, sizes.width)
        self.told = nn.Linear(told, sizes.horizon * sizes.width, bias=False) if told else None
        self.ahead = nn.Linear(sizes.future, sizes.width, bias=False) if sizes.future else None
        for weight in self.parameters():
            nn.init.zeros_(weight)

    @property
    def any(self) -> bool:
        """Whether there are covariates."""
        return self.told is not None or self.ahead is not None

    def added(self, found: Tensor, inputs: Inputs) -> Tensor:
        """`found`, (B, horizon, width), and the terms."""
        if self.told is not None:
            told: Tensor = self.told(torch.cat([inputs.past.flatten(1), inputs.static], dim=1))
            found = found + told.view(-1, *self.shape)
        return found if self.ahead is None else found + self.ahead(inputs.future)


def moving_average(length: int, kernel: int) -> Tensor:
    """The matrix (length, length) that smooths a window over `kernel` rows (odd), its first and last value repeated outside."""
    reached = torch.arange(length).unsqueeze(1) + torch.arange(kernel) - kernel // 2
    found = torch.zeros(length, length, dtype=torch.float64)
    ones = torch.full(reached.shape, 1.0 / kernel, dtype=torch.float64)
    return found.scatter_add_(1, reached.clamp(0, length - 1), ones).float()
