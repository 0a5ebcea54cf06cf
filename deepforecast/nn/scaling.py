"""Scaling of windows to float32, computed in float64, and its exact inverse.

The functions of the scalers take y (batch, steps), 0 where missing, the mask of observed values, 1
or 0, and their number (batch, 1), at least 1; they return loc and scale, (batch, 1) each. A window
without observed values is treated as zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepforecast.nn.batch import Batch, as_float64

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

NORMAL_IQR = 1.349  # interquartile range of the standard normal distribution
MIN_RELATIVE_SCALE = 1e-14
"""Smallest scale relative to the largest |y|, a hundred times the rounding error of a constant window;
windows below it are constant and have scale 0.
"""

Scaler = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Function of y (0 where missing), the mask of observed values and their number (at least 1), to
loc and scale, each (batch, 1).
"""


@dataclass(frozen=True)
class Scale:
    """Scale of a window: y = loc + scale * z. A constant window has scale 0: its y is loc for every
    z.

    `naive` is the mean absolute (seasonal) difference of the window in units of z, the error of the
    (seasonal) naive forecast, if there is a target and the head needs it; otherwise 1.
    """

    loc: Float64[Tensor, "batch 1"]  # like `scale` on the CPU if the device has no float64
    scale: Float64[Tensor, "batch 1"]
    naive: Float[Tensor, "batch 1"]

    @property
    def level(self) -> Float[Tensor, "batch 1"]:
        """Location in units of the scale, loc / scale, in float32."""
        return (self.loc / torch.where(self.scale > 0, self.scale, 1.0)).float().to(self.naive.device)

    def unstandardize(self, z: Float[Tensor, "batch *shape"]) -> Float64[Tensor, "batch *shape"]:
        """Compute loc + scale * z in float64."""
        shape = (-1, *(1,) * (z.ndim - 1))
        return self.loc.view(shape) + self.scale.view(shape) * as_float64(z)

    def standardize(self, y: Float[Tensor, "batch *shape"]) -> Float64[Tensor, "batch *shape"]:
        """Compute (y - loc) / scale in float64."""
        shape = (-1, *(1,) * (y.ndim - 1))
        divisor = torch.where(self.scale > 0, self.scale, 1.0)
        return (y - self.loc.view(shape)) / divisor.view(shape)


def scale_window(
    batch: Batch,
    scaler: str,
    season: int,
    allow_shift: bool,
    level_ratio: Float[Tensor, "1"] | None = None,
) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time"], Scale]:
    """Scale the windows of a batch.

    Parameters
    ----------
    batch : Batch
    scaler : str
        Name in `SCALER_FUNCTIONS`; a name that ends in "/series" uses loc and scale of the whole
        series.
    season : int
        Season length of the seasonal naive forecast, whose error is `Scale.naive`. 0: `naive`
        is not needed, and 1.
    allow_shift : bool
        Whether loc may differ from 0; False for nonnegative distributions.
    level_ratio : Tensor, optional
        Factor of the scale of "level", see `level_ratio`.

    Returns
    -------
    z : Tensor
        Scaled values, 0 where missing.
    mask : Tensor
        1 where observed, else 0.
    scale : Scale
    """
    y = torch.nan_to_num(batch.y, 0.0)
    mask64 = (batch.y == batch.y).double()
    n_observed = mask64.sum(1, keepdim=True).clamp(min=1.0)
    if scaler.endswith("/series"):
        loc, scale = batch.loc, batch.scale
    else:
        loc, scale = SCALER_FUNCTIONS[scaler if allow_shift else "mean_abs"](y, mask64, n_observed)
        if scaler == "level" and level_ratio is not None:
            scale = scale * level_ratio.to(scale.device)
    # z of a constant window is 0.
    unless_constant = torch.where(scale > 0, scale, torch.full_like(scale, torch.inf))
    z = ((y - loc) / unless_constant * mask64).float().to(batch.past.device)
    mask = mask64.float().to(batch.past.device)
    if season and batch.target is not None:
        naive = _naive_error(z, mask, season)
    else:
        naive = z.new_ones((z.shape[0], 1))
    return z, mask, Scale(loc, scale, naive)


def series_scale(
    y: Float64[Tensor, "series time"], scaler: str
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """Return loc and scale of whole series with NaN for missing values."""
    mask = (y == y).double()
    return SCALER_FUNCTIONS[scaler](
        torch.nan_to_num(y, 0.0), mask, mask.sum(1, keepdim=True).clamp(min=1.0)
    )


def level_ratio(y: Float64[Tensor, "batch time"]) -> float:
    """Return the median over windows of mean |y - last value| / mean |y|.

    The scaler "level" multiplies its scale, mean |y|, by it, so that z has about unit size. `y` has
    NaN for missing values; constant windows are left out, and without any other the result is 1.
    """
    mask = (y == y).double()
    values = torch.nan_to_num(y, 0.0)
    n_observed = mask.sum(1, keepdim=True).clamp(min=1.0)
    _, mean_distance = _last(values, mask, n_observed)
    _, mean_abs = _level(values, mask, n_observed)
    ratios = mean_distance[mean_abs > 0] / mean_abs[mean_abs > 0]
    return float(ratios.median()) if len(ratios) else 1.0


def _naive_error(
    z: Float[Tensor, "batch time"], mask: Float[Tensor, "batch time"], season: int
) -> Float[Tensor, "batch 1"]:
    """Compute the mean |z_t - z_{t-season}| over pairs of observed values.

    The lag is 1 if the window is not longer than a season. A window of one step gives 1.
    """
    lag = season if season < z.shape[1] else 1
    if z.shape[1] < 2:
        return torch.ones_like(z[:, :1])
    both_observed = mask[:, lag:] * mask[:, :-lag]
    changes = ((z[:, lag:] - z[:, :-lag]).abs() * both_observed).sum(1, keepdim=True)
    return changes / both_observed.sum(1, keepdim=True).clamp(min=1.0)


def _standard(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """Mean; standard deviation (divisor n)."""
    loc = y.sum(1, keepdim=True) / n_observed
    deviations = (y - loc) * mask
    largest = deviations.abs().amax(1, keepdim=True)
    # The squares of deviations relative to the largest neither underflow nor overflow.
    relative_deviations = deviations / torch.where(largest > 0, largest, 1.0)
    scale = (relative_deviations.square().sum(1, keepdim=True) / n_observed).sqrt() * largest
    return loc, torch.where(scale > MIN_RELATIVE_SCALE * y.abs().amax(1, keepdim=True), scale, 0.0)


def _robust(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """Median; interquartile range / 1.349 (1 for a standard normal), or the standard deviation if it
    is 0. A quartile between two values is their midpoint.
    """
    empty = mask.sum(1, keepdim=True) == 0
    sorted_values = torch.where((mask > 0) | empty, y, torch.full_like(y, torch.inf)).sort(1).values
    positions = [probability * (n_observed - 1) for probability in (0.25, 0.5, 0.75)]
    lower_quartile, median, upper_quartile = (
        (
            sorted_values.gather(1, position.floor().long())
            + sorted_values.gather(1, position.ceil().long())
        )
        / 2
        for position in positions
    )
    _, fallback = _standard(y, mask, n_observed)
    scale = (upper_quartile - lower_quartile) / NORMAL_IQR
    return median, torch.where(scale > 0, scale, fallback)


def _min_max(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """Minimum; range."""
    minimum = torch.where(mask > 0, y, torch.full_like(y, torch.inf)).amin(1, keepdim=True)
    maximum = torch.where(mask > 0, y, torch.full_like(y, -torch.inf)).amax(1, keepdim=True)
    empty = minimum > maximum
    zeros = torch.zeros_like(minimum)
    return torch.where(empty, zeros, minimum), torch.where(empty, zeros, maximum - minimum)


def _mean_abs(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """0; mean absolute value."""
    scale = y.abs().sum(1, keepdim=True) / n_observed
    return torch.zeros_like(scale), scale


def _last(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """Last observed value; mean absolute distance from it."""
    loc = last_observed(y, mask)
    scale = ((y - loc).abs() * mask).sum(1, keepdim=True) / n_observed
    return loc, torch.where(scale > MIN_RELATIVE_SCALE * y.abs().amax(1, keepdim=True), scale, 0.0)


def _level(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """Last observed value; mean absolute value, so that errors are relative, or 0 if constant."""
    loc, distance = _last(y, mask, n_observed)
    return loc, torch.where(
        distance > 0, y.abs().sum(1, keepdim=True) / n_observed, torch.zeros_like(distance)
    )


def _difference(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """Last observed value; mean absolute difference of consecutive values, or distance from the last
    one if it is 0.
    """
    both_observed = mask[:, 1:] * mask[:, :-1]
    changes = ((y[:, 1:] - y[:, :-1]).abs() * both_observed).sum(1, keepdim=True)
    loc, fallback = _last(y, mask, n_observed)
    scale = changes / both_observed.sum(1, keepdim=True).clamp(min=1.0)
    return loc, torch.where(scale > 0, scale, fallback)


def _none(
    y: Float64[Tensor, "series time"],
    mask: Float64[Tensor, "series time"],
    n_observed: Float64[Tensor, "series 1"],
) -> tuple[Float64[Tensor, "series 1"], Float64[Tensor, "series 1"]]:
    """0; 1."""
    return torch.zeros_like(n_observed), torch.ones_like(n_observed)


def last_observed(
    y: Float[Tensor, "batch time"], mask: Float[Tensor, "batch time"]
) -> Float[Tensor, "batch 1"]:
    """Return the last observed value of each window; 0 if there is none."""
    order = torch.arange(1, y.shape[1] + 1, device=y.device, dtype=y.dtype)
    return y.gather(1, (mask * order).argmax(1, keepdim=True))


SCALER_FUNCTIONS: dict[str, Scaler] = {
    "standard": _standard,
    "robust": _robust,
    "min_max": _min_max,
    "mean_abs": _mean_abs,
    "last": _last,
    "level": _level,
    "revin": _standard,
    "difference": _difference,
    "none": _none,
}
