"""Forecast objects made from the output of a network's head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecast import Forecast, seeded_normal
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.nn.names import Head, head_facts
from deepforecast.training.process import torch_defaults

if TYPE_CHECKING:
    from torch import Tensor

# Batches are padded to a multiple of this number of windows: on many processors, matrix products
# with fewer rows are summed in another order, which changes the last bits.
BATCH_MULTIPLE = 4
# Number of paths of autoregressive networks for quantiles, and of values per path and step that are pooled for them.
AUTOREGRESSIVE_SAMPLING = (100, 5)


@dataclass(frozen=True)
class DecodingOptions:
    """Decoding `method` of the point forecast, `sampling` as (temperature, top_p), and beam `width`."""

    method: str = "sample"
    sampling: tuple[float, float] = (1.0, 1.0)
    width: int = 10


DEFAULT_DECODING = DecodingOptions()


def pad_batch(values: Any) -> Any:
    """Append copies of the first entry of a tensor or index array, up to a multiple of BATCH_MULTIPLE."""
    n_missing = -values.shape[0] % BATCH_MULTIPLE
    if not n_missing:
        return values
    if isinstance(values, np.ndarray):
        return np.concatenate([values, np.repeat(values[:1], n_missing, axis=0)])
    if values.shape[0] == 1:  # the fastest for single series
        return values.expand(BATCH_MULTIPLE, *values.shape[1:]).contiguous()
    import torch

    return torch.cat([values, values[:1].expand(n_missing, *values.shape[1:])])


def to_array(values: Tensor) -> Any:
    """The values of a tensor on any device as a NumPy array."""
    return values.cpu().numpy()


def stratified_noise(n_steps: int, n_paths: int) -> Floats:
    """Normal noise (1, paths, steps) for quantiles.

    The noise of a step is a random permutation of the normal quantiles at (k + 0.5) / n_paths.
    """
    from scipy.special import ndtri

    noise = seeded_normal(seed=0, keys=np.zeros((1, 1)), shape=(n_steps, n_paths)).transpose(0, 2, 1)
    ranks = noise.argsort(axis=1).argsort(axis=1)
    return np.asarray(ndtri((ranks + 0.5) / n_paths))


@dataclass(frozen=True)
class HeadForecast(Forecast):
    """Forecast from the head's raw output (series, steps, out_features).

    The head gives the distribution of z; y = loc + scale z, with loc and scale of shape (series,
    1), clipped to `bounds`. `name` is that of the model in messages. The tensors are on the device
    of the network, without float64 there all but `raw` on the CPU.
    """

    head: Any
    raw: Tensor
    loc: Tensor
    scale: Tensor
    name: str = "The network"
    bounds: tuple[float, float] = (-inf, inf)

    @cached_property
    def mean(self) -> Floats:  # type: ignore[override]
        """Mean of the distribution, or the point forecast."""
        import torch

        with torch_defaults(), torch.inference_mode():
            standardized = self.head.mean(*self._padded())[: len(self.raw)]
        return self._unstandardize(standardized)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles of the head's distribution, (series, steps, probabilities).

        A head without a distribution raises for probabilities other than 0.5.
        """
        import torch

        from deepforecast.nn.heads.quantiles import QuantileHead

        if not self.head.has_distribution:
            from deepforecast.core.forecast import PointForecast

            return PointForecast(self.mean, self.name).quantiles(probabilities)
        # The median is an output of the network: no interpolation is needed.
        if list(probabilities) == [0.5] and isinstance(self.head, QuantileHead):
            return self._unstandardize(self.raw[..., self.head.median_index])[..., None]
        with torch_defaults(), torch.inference_mode():
            levels = torch.from_numpy(np.array(probabilities, dtype=np.float64))
            raw, padded_scale = self._padded()
            standardized = self.head.quantiles(raw, levels, padded_scale)[: len(self.raw)]
        return self._unstandardize(standardized)

    def sample(self, uniform: Tensor) -> Tensor:
        """Quantiles at the given probabilities, both (series, samples, steps) and on the device, so that
        paths can be continued there.
        """
        raw, padded_scale = self._padded()
        lowest, highest = self.head.probability_range
        probabilities = pad_batch(uniform.movedim(1, -1)).clamp(lowest, highest)
        standardized = self.head.quantiles(raw, probabilities, padded_scale)[: len(self.raw)]
        values: Tensor = self.loc[..., None] + self.scale[..., None] * standardized
        return (values if self.bounds == (-inf, inf) else values.clamp(*self.bounds)).movedim(-1, 1)

    def _unstandardize(self, z: Tensor) -> Floats:
        """loc + scale z as an array, clipped, for z (series, steps, ...)."""
        loc, scale = self.loc.cpu().numpy(), self.scale.cpu().numpy()
        if z.ndim == 3:
            loc, scale = loc[..., None], scale[..., None]
        values: Floats = loc + scale * z.cpu().numpy()
        return values if self.bounds == (-inf, inf) else np.clip(values, *self.bounds)

    def _padded(self) -> tuple[Tensor, Tensor]:
        """Raw output (series, steps, out_features) and scale (series, steps), padded to a multiple of
        BATCH_MULTIPLE series.
        """
        raw = pad_batch(self.raw)
        return raw, pad_batch(self.scale).expand(raw.shape[:2]).contiguous()

    def skip_steps(self, steps: int) -> HeadForecast:
        """The forecast without its first `steps`."""
        return replace(self, raw=self.raw[:, steps:])


@dataclass(frozen=True)
class ConcatenatedForecast(Forecast):
    """Forecasts of consecutive blocks of steps."""

    forecasts: tuple[Forecast, ...]

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """Means of all blocks."""
        return np.concatenate([forecast.mean for forecast in self.forecasts], axis=1)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles of all blocks."""
        return np.concatenate([forecast.quantiles(probabilities) for forecast in self.forecasts], axis=1)

    def skip_steps(self, steps: int) -> ConcatenatedForecast:
        """The forecast without its first `steps`."""
        forecasts: list[Forecast] = []
        n_to_skip = steps
        for forecast in self.forecasts:
            n_steps = forecast.mean.shape[1]
            if n_to_skip < n_steps:
                forecasts.append(forecast.skip_steps(n_to_skip) if n_to_skip else forecast)
            n_to_skip = max(n_to_skip - n_steps, 0)
        return ConcatenatedForecast(tuple(forecasts))


@dataclass(frozen=True)
class QuantileFactors:
    """Factors of the distances from the median at increasing `probabilities`, without 0.5.

    `factors` are (levels,) for all series, or (series, levels).
    """

    probabilities: Floats
    factors: Floats

    def at(self, probabilities: Sequence[float]) -> Floats:
        """Factors at any probabilities, (probabilities,) or (series, probabilities), interpolated linearly and constant
        in the tails; those next to the median are constant up to it.
        """
        requested = np.asarray(probabilities, dtype=np.float64)
        is_below = self.probabilities < 0.5

        def interpolate(factors: Floats) -> Floats:
            lower = np.interp(requested, self.probabilities[is_below], factors[is_below])
            upper = np.interp(requested, self.probabilities[~is_below], factors[~is_below])
            return np.where(requested < 0.5, lower, upper)

        if self.factors.ndim == 1:
            return interpolate(self.factors)
        return np.apply_along_axis(interpolate, -1, self.factors)


def quantile_factors(learned: LearnedState) -> QuantileFactors | None:
    """The factors of a state, if it has any."""
    calibration = learned.shared.get("calibration")
    return None if calibration is None else QuantileFactors(calibration["probabilities"], calibration["factors"])


@dataclass(frozen=True)
class CalibratedForecast(Forecast):
    """A forecast whose quantiles are moved away from or towards the median; its points do not change.

    `compute_factors` is called when quantiles are requested.
    """

    forecast: Forecast
    compute_factors: Callable[[], QuantileFactors]
    head: str | Head
    bounds: tuple[float, float] = (-inf, inf)

    @cached_property
    def calibration(self) -> QuantileFactors:
        """The factors."""
        return self.compute_factors()

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The mean of the network's distribution."""
        return self.forecast.mean

    def point(self, point_kind: str) -> Floats:
        """The point forecast of the network."""
        return self.forecast.point(point_kind)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Calibrated quantiles (series, steps, probabilities)."""
        if list(probabilities) == [0.5]:
            return self.forecast.quantiles(probabilities)
        forecast = self.forecast
        if isinstance(forecast, HeadForecast) and forecast.bounds != (-inf, inf):
            forecast = replace(forecast, bounds=(-inf, inf))  # the bounds apply to the calibrated quantiles alone
        values = forecast.quantiles([*probabilities, 0.5])
        factors = self.calibration.at(probabilities)[..., None, :]  # (series or none, 1, probabilities)
        moved = move(values[..., -1:], values[..., :-1], factors, self.head)
        return moved if self.bounds == (-inf, inf) else np.clip(moved, *self.bounds)

    def move_paths(self, paths: Floats) -> Floats:
        """Sample paths (series, samples, steps), each value moved by the factor at its own probability.

        The probability is that of the value between the quantiles with factors, so equal values stay equal, and the
        order of the paths at a step is the same.
        """
        levels = self.calibration.probabilities
        factors = np.moveaxis(self.calibration.factors, -1, 0)[..., None, None]  # (levels, series or none, 1, 1)
        values = np.moveaxis(self.forecast.quantiles([*levels, 0.5]), -1, 0)[:, :, None]  # (levels, series, 1, steps)
        median, below = values[-1], int(np.searchsorted(levels, 0.5))
        # On each side the distances of the quantiles from the median increase; levels below 0.5 are reversed for it.
        lower = _factors_at(median - paths, median - values[:below][::-1], factors[:below][::-1])
        upper = _factors_at(paths - median, values[below:-1] - median, factors[below:])
        return np.clip(move(median, paths, np.where(paths < median, lower, upper), self.head), *self.bounds)

    def skip_steps(self, steps: int) -> CalibratedForecast:
        """The forecast without its first `steps`."""
        return replace(self, forecast=self.forecast.skip_steps(steps))


def move(median: Floats, values: Floats, factors: Floats, head: str | Head) -> Floats:
    """median + factors (values - median), within the support of the head; integers for counts."""
    facts = head_facts(head)
    if facts.support == "positive":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(median > 0, median * (values / median) ** factors, values))
    moved = median + factors * (values - median)
    if facts.support == "nonnegative":
        moved = np.maximum(moved, 0.0)
    return np.asarray(np.rint(moved) if facts.is_count else moved)


def _factors_at(distance: Floats, distances: Floats, factors: Floats) -> Floats:
    """Factors of values at a distance from the median, between those of quantiles (levels, ...) at increasing distances."""
    interpolated = np.full(distance.shape, factors[0])
    for inner, outer, change in zip(distances[:-1], distances[1:], np.diff(factors, axis=0), strict=True):
        gap = outer - inner
        share = np.where(gap > 0, (distance - inner) / np.where(gap > 0, gap, 1.0), distance >= outer)
        interpolated += change * np.clip(share, 0.0, 1.0)
    return interpolated
