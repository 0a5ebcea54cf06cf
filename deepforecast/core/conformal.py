"""Conformal arithmetic: bands from the errors a model made on windows it was not fitted on.

Split: the band of a step is the finite-sample quantile of the absolute errors at that step (Vovk et al. 2005; Lei et al. 2018).
Adaptive: the miss rate aimed at follows the misses seen, window after window (Gibbs & Candès 2021), so that bands widen when the
errors grow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import CapabilityError

METHODS = ("split", "adaptive")


@dataclass(frozen=True)
class Calibration:
    """Errors `actual - forecast` of shape (series, windows, steps), the oldest window first; NaN where there was no actual."""

    errors: Floats
    method: str = "split"
    rate: float = 0.05  # how fast the adaptive miss rate moves

    def take(self, numbers: Ints) -> Calibration:
        """Some of the series."""
        return replace(self, errors=self.errors[numbers])

    def join(self, other: Calibration) -> Calibration:
        """Another's series after ours; the one with fewer windows begins with missing errors."""
        windows = max(self.errors.shape[1], other.errors.shape[1])
        return replace(self, errors=np.concatenate([_widened(self.errors, windows), _widened(other.errors, windows)]))

    def around(self, points: Floats) -> ConformalForecast:
        """Bands around point forecasts."""
        return ConformalForecast(points, self)

    def radius(self, level: float, steps: int) -> Floats:
        """Half widths of the central band, shape (series, steps); refused where there are too few errors for the level."""
        windows, horizon = self.errors.shape[1:]
        if steps > horizon:
            raise CapabilityError(
                f"The bands were calibrated for {horizon} steps; {steps} were asked for. Fit with horizon={steps} to calibrate them all."
            )
        scores = np.sort(np.abs(self.errors[:, :, :steps]), axis=1)  # NaN last
        count = np.sum(~np.isnan(scores), axis=1)
        fewest = int(count.min()) if count.size else 0
        needed = windows_needed(level)
        if fewest < needed:
            raise CapabilityError(
                f"A conformal level of {level:g} needs at least {needed} calibration errors a step; there are {fewest}. Ask for a "
                f"level of at most {100 * fewest / (fewest + 1):.4g}, or give longer series or more windows "
                "(Conformal(model, n_windows=...))."
            )
        if self.method == "adaptive":
            miss = adapted_miss(np.abs(self.errors[:, :, :steps]), 1 - level / 100, self.rate)
        else:
            miss = np.full(count.shape, 1 - level / 100)
        rank = np.ceil((count + 1) * (1 - miss) - 1e-9).astype(np.int64)
        return np.take_along_axis(scores, (np.clip(rank, 1, count) - 1)[:, None, :], axis=1)[:, 0, :]


@dataclass(frozen=True)
class ConformalForecast(Forecast):
    """Points with calibrated bands around them; symmetric, so the point is the median."""

    mean: Floats
    calibration: Calibration
    skipped: int = 0

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability whose central level the calibration can carry; monotone."""
        steps = self.mean.shape[1] + self.skipped
        radii = {p: self._signed(p, steps) for p in sorted(set(probabilities))}
        stacked = np.stack([self.mean + radii[p][:, self.skipped :] for p in sorted(radii)], axis=-1)
        stacked = np.maximum.accumulate(stacked, axis=-1) if len(radii) > 1 else stacked
        place = {p: number for number, p in enumerate(sorted(radii))}
        return stacked[..., [place[p] for p in probabilities]]

    def point(self, kind: str) -> Floats:
        """The model's own points."""
        return self.mean

    def after(self, steps: int) -> ConformalForecast:
        """The same without its first steps."""
        return replace(self, mean=self.mean[:, steps:], skipped=self.skipped + steps)

    def _signed(self, probability: float, steps: int) -> Floats:
        level = round(100 * abs(2 * probability - 1), 9)
        if level == 0:
            return np.zeros((self.mean.shape[0], steps))
        return math.copysign(1.0, probability - 0.5) * self.calibration.radius(level, steps)


def windows_needed(level: float) -> int:
    """The fewest errors whose finite-sample quantile reaches a level.

    >>> windows_needed(80), windows_needed(95), windows_needed(99)
    (4, 19, 99)
    """
    return math.ceil(level / (100 - level) - 1e-9)


def adapted_miss(scores: Floats, aim: float, rate: float) -> Floats:
    """The miss rate to use next for each series and step, after following the misses over the windows in their order."""
    miss = np.full((scores.shape[0], scores.shape[2]), aim)
    for window in range(1, scores.shape[1]):
        past, now = scores[:, :window], scores[:, window]
        count = np.sum(~np.isnan(past), axis=1)
        rank = np.ceil((count + 1) * (1 - miss) - 1e-9)  # the band then was the rank-th smallest error: none is needed to compare
        missed = np.sum(past < now[:, None], axis=1) >= rank
        miss = miss + rate * np.where(np.isnan(now), 0.0, aim - missed)
    return np.clip(miss, 1e-6, 1 - 1e-6)


def _widened(errors: Floats, windows: int) -> Floats:
    return np.pad(errors, ((0, 0), (windows - errors.shape[1], 0), (0, 0)), constant_values=np.nan)
