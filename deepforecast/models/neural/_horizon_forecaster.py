"""A network's own forecasts from the last window of each series, before calibration.

A network predicts blocks of `horizon` steps. For longer forecasts the window moves on by a block at
a time and ends with previous forecasts or sampled values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.core.forecast import Forecast, SampledForecast, resolve_bounds, seeded_normal
from deepforecast.core.state import LearnedState
from deepforecast.core.threads import limit_torch_threads, torch_threads
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.windows import static_arrays
from deepforecast.errors import DeepForecastError
from deepforecast.models.neural._forecast import (
    AUTOREGRESSIVE_SAMPLING,
    BATCH_MULTIPLE,
    ConcatenatedForecast,
    HeadForecast,
    pad_batch,
    stratified_noise,
    to_array,
)
from deepforecast.models.neural._series_state import refuse_unobserved, window_columns
from deepforecast.nn.batch import Batch, as_float64, place
from deepforecast.nn.decoding import DEFAULT_SAMPLING, Sampling, apply_temperature, decode_samples
from deepforecast.nn.network import AutoregressiveBody
from deepforecast.training.process import torch_defaults
from deepforecast.training.sampler import to_device

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

MAX_WINDOWS = 512  # windows per batch, a multiple of BATCH_MULTIPLE for reproducible last bits
MAX_PATHS = 2400  # paths per batch, which fit in the cache
MIN_PARALLEL_WORK = 2e8  # multiplications per batch from which several threads are faster
MAX_VALUES = 4_000_000  # raw outputs in memory at once
# Number of paths for steps beyond the trained horizon, and of values per path and step that are
# pooled for quantiles.
EXTENDED_SAMPLING = (200, 9)


def make_forecaster(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]
) -> HorizonForecaster:
    """The forecaster of a state, with bounds and sampling of the model."""
    sampling = model._decoding_options().sampling
    return HorizonForecaster(model.name, learned, steps, future, resolve_bounds(model.bounds), sampling)


def network_forecast(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate]
) -> Forecast:
    """The network's own forecast of the next `steps`, before calibration.

    Within the trained horizon the forecast of a direct network is the distribution of its head.
    Beyond it, and for autoregressive networks, it is that of sample paths; a network without a
    distribution continues from its own point forecasts.
    """
    forecaster = make_forecaster(model, learned, steps, future)
    if forecaster.autoregressive and forecaster.network.head.has_distribution:
        n_paths, n_pooled = AUTOREGRESSIVE_SAMPLING
        noise = _stratified_noise(forecaster, n_paths)
        return SampledForecast(sample_paths(forecaster, noise, n_pooled))
    first_block = forecaster.forecast_block(forecaster.windows, 0)
    if steps == forecaster.horizon:
        return first_block
    if steps < forecaster.horizon:
        return replace(first_block, raw=first_block.raw[:, :steps])
    if forecaster.network.head.has_distribution and forecaster.network.body.uses_history:
        n_paths, n_pooled = EXTENDED_SAMPLING

        def extend(group: HorizonForecaster) -> Floats:
            return sample_paths(group, _stratified_noise(group, n_paths), n_pooled)

        extended = _map_groups(forecaster, n_paths, extend)
        return ConcatenatedForecast((first_block, SampledForecast(extended)))
    forecasts = [first_block]
    recent_values = forecaster.windows
    for begin in range(forecaster.horizon, steps, forecaster.horizon):
        recent_values = move_windows(recent_values, forecasts[-1].mean)
        block_forecast = forecaster.forecast_block(recent_values, begin)
        forecasts.append(replace(block_forecast, raw=block_forecast.raw[:, : steps - begin]))
    return ConcatenatedForecast(tuple(forecasts))


def network_paths(
    model: NeuralForecaster, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """The network's own sample paths (series, samples, steps), determined by `seed` and the window of each series.

    They do not depend on the other series in the panel.
    """
    forecaster = make_forecaster(model, learned, steps, future)

    def draw(group: HorizonForecaster) -> Floats:
        # Drawn on the CPU, so that the paths are the same on all devices.
        noise = seeded_normal(seed, np.nan_to_num(group.recent_values), (group.blocks * group.horizon, samples))
        return sample_paths(group, noise.transpose(0, 2, 1))

    return _map_groups(forecaster, samples, draw)


def _map_groups(forecaster: HorizonForecaster, samples: int, function: Callable[[HorizonForecaster], Floats]) -> Floats:
    """Apply `function` to groups of series and join the results, to limit the memory of raw outputs.

    Autoregressive networks need no groups, as they output one step at a time.
    """
    n_series = len(forecaster.recent_values)
    values_per_series = samples * forecaster.horizon * forecaster.network.sizes.out_features
    group_size = max(MAX_VALUES // values_per_series // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
    if forecaster.autoregressive or n_series <= group_size:
        return function(forecaster)
    groups = [np.arange(begin, min(begin + group_size, n_series)) for begin in range(0, n_series, group_size)]
    # The results are views of larger arrays; copies free these.
    return np.concatenate([np.array(function(forecaster.select_series(group))) for group in groups])


def move_windows(windows: Tensor, values: Tensor | Floats) -> Tensor:
    """Append the next values to windows (n, input_size), and drop as many at the start."""
    if not isinstance(values, Tensor):
        values = torch.from_numpy(np.require(values, requirements="W"))
    return torch.cat([windows, values.to(windows)], dim=1)[:, -windows.shape[1] :]


def sample_paths(forecaster: HorizonForecaster, noise: Floats, n_pooled: int = 0) -> Floats:
    """Sample paths (series, samples, steps) from standard normal noise of the same shape.

    Paths are extended in blocks of `horizon` steps; the window of each path ends with its own
    values.

    With `n_pooled` > 0 the result has, instead of the paths, `n_pooled` values of each path's
    predictive distribution at each step, for quantiles. Direct networks then omit the first block.
    """
    from scipy.special import ndtr

    n_series = len(forecaster.recent_values)
    n_samples = noise.shape[1]
    horizon = forecaster.horizon
    autoregressive = forecaster.autoregressive
    # A direct network always computes whole blocks.
    stop = forecaster.steps if autoregressive else forecaster.blocks * horizon
    path_blocks: list[Tensor] = []
    with torch_defaults(), torch.inference_mode():
        recent_values = place(forecaster.recent_values, forecaster.device)
        for block in range(forecaster.blocks):
            begin = block * horizon
            block_noise = noise[:, :, begin : min(begin + horizon, stop)]
            # In the first block the paths of a series share its window, later each has its own.
            shape = (n_series * n_samples, 1, -1) if block else (n_series, n_samples, -1)
            uniform = place(ndtr(block_noise).reshape(shape), forecaster.device)
            correlated = uniform
            if forecaster.correlation_factor is not None:  # Gaussian copula; the last block may be cut
                factor = forecaster.correlation_factor[: block_noise.shape[2], : block_noise.shape[2]]
                correlated = place(ndtr(block_noise @ factor.T).reshape(shape), forecaster.device)
            if autoregressive:
                values = forecaster.sample_block(recent_values, begin, correlated, n_pooled)
                values, pooled_values = values[:, : uniform.shape[1]], values[:, uniform.shape[1] :]
            else:
                block_forecast = forecaster.forecast_block(recent_values, begin)
                values = block_forecast.sample(correlated)
                pooled_values = block_forecast.sample(_stratify(uniform, n_pooled)) if block and n_pooled else values
            if not n_pooled or block or autoregressive:
                path_blocks.append((pooled_values if n_pooled else values).reshape(n_series, -1, values.shape[2]))
            previous_values = recent_values if block else recent_values.repeat_interleave(n_samples, 0)
            recent_values = move_windows(previous_values, values.reshape(-1, values.shape[2]))
        n_omitted = horizon if n_pooled and not autoregressive else 0
        paths: Floats = to_array(torch.cat(path_blocks, dim=2)[:, :, : forecaster.steps - n_omitted])
    return paths


def _stratify(uniform: Tensor, n_values: int) -> Tensor:
    """Stratified probabilities (u + k) / n for k = 0..n-1: (B, samples, steps) to (B, samples * n, steps)."""
    strata = torch.arange(n_values, device=uniform.device).unsqueeze(1)
    return ((uniform.unsqueeze(2) + strata) / n_values).flatten(1, 2)


def _stratified_noise(forecaster: HorizonForecaster, n_paths: int) -> Floats:
    """Normal noise (series, paths, steps) for quantiles, equal for all series."""
    noise = stratified_noise(forecaster.blocks * forecaster.horizon, n_paths)
    return np.repeat(noise, len(forecaster.recent_values), axis=0)


class HorizonForecaster:
    """Forward passes of a network for the steps after the last observations.

    Everything that depends on the network is computed on its device, see `nn.batch`.

    - `horizon`: steps per forward pass (a block); `blocks`: number of blocks up to the last step.
    - `recent_values`: the last values of the target, (series, input_size); `windows`: as a tensor on the
      CPU, which moves with the other inputs of a batch.
    - `correlation_factor`: Cholesky factor of the residual correlation between steps, or None.
    """

    def __init__(
        self,
        name: str,
        learned: LearnedState,
        steps: int,
        future: Mapping[str, Covariate],
        bounds: tuple[float, float] = (-inf, inf),
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> None:
        self.name = name
        self.learned = learned
        self.steps = steps
        self.future = future
        self.bounds = bounds
        self.sampling = sampling
        self.network: Any = learned.shared["network"]
        self.device: torch.device = next(self.network.parameters()).device
        self.window_columns = window_columns(learned)
        self.horizon = self.window_columns.horizon
        self.autoregressive = isinstance(self.network.body, AutoregressiveBody)
        self.blocks = -(-steps // self.horizon)
        self.recent_values: Floats = np.asarray(learned.by_series["recent_values"])
        flags = self.recent_values.flags
        shareable = flags.c_contiguous and flags.writeable  # as torch requires
        self.windows = torch.from_numpy(self.recent_values if shareable else self.recent_values.copy("C"))
        if np.isnan(self.recent_values[:, -1]).any() and self.network.body.needs_history:
            refuse_unobserved(name, learned)
        self.correlation_factor: Floats | None = learned.shared.get("correlation_factor")
        self._length = self.recent_values.shape[1] + self.blocks * self.horizon  # window and all blocks

    def select_series(self, series: Ints) -> HorizonForecaster:
        """The forecaster of a subset of the series."""
        future = {name: covariate.take(series) for name, covariate in self.future.items()}
        return HorizonForecaster(self.name, self.learned.take(series), self.steps, future, self.bounds, self.sampling)

    def forecast_block(self, recent_values: Tensor, begin: int) -> HeadForecast:
        """Forecast the `horizon` steps after step `begin`.

        `recent_values` (windows, input_size) has one window per series, or the same number of paths
        for each series.
        """
        raw, loc, scale = self._run_batches(recent_values, begin)
        if self.sampling != DEFAULT_SAMPLING:
            with torch_defaults(), torch.inference_mode():
                raw = apply_temperature(raw, *self.sampling)
        return HeadForecast(self.network.head, raw, loc, scale, self.name, self.bounds)

    def sample_block(self, recent_values: Tensor, begin: int, uniform: Tensor, n_values: int = 0) -> Tensor:
        """Autoregressive sample paths (windows, samples, steps), see `nn.decoding.decode_samples`.

        With `n_values` > 0 the paths are followed, along the second axis, by this number of values
        of the predictive distribution of each path.
        """
        def run_batch(batch: Batch, rows: slice) -> Any:
            inputs, scaling = self.network.inputs(batch)
            return decode_samples(self.network, inputs, scaling, pad_batch(uniform[rows]), self.sampling, n_values), scaling

        max_windows = max(MAX_PATHS // uniform.shape[1] // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
        z, loc, scale = self._run_batches(recent_values, begin, run_batch, min(max_windows, MAX_WINDOWS))
        return (loc[..., None] + scale[..., None] * as_float64(z)).clamp(*self.bounds)

    def _run_batches(
        self,
        recent_values: Tensor,
        begin: int,
        run_batch: Any = None,
        max_windows: int = MAX_WINDOWS,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Apply `run_batch`, by default the network, to the windows in batches.

        Returns its output (windows, ...), and location and scale (windows, 1) of the windows.
        `run_batch(batch, windows)` receives a padded batch and the slice of the windows in it.
        """
        outputs: list[tuple[Any, Any, Any]] = []
        paths_per_series = len(recent_values) // len(self.recent_values)
        # Several threads from MIN_PARALLEL_WORK on, but never for a single batch of the smallest size.
        is_small = len(recent_values) <= BATCH_MULTIPLE or self._is_small(len(recent_values))
        n_threads = 1 if is_small else torch_threads()
        with torch_defaults(), torch.inference_mode(), limit_torch_threads(n_threads):
            for start in range(0, len(recent_values), max_windows):
                windows = slice(start, min(start + max_windows, len(recent_values)))
                n_windows = windows.stop - windows.start
                series = np.arange(windows.start, windows.stop) // paths_per_series
                is_whole = n_windows == len(recent_values)
                batch = self._make_batch(recent_values if is_whole else recent_values[windows], series, begin)
                raw, scaling = self.network(batch) if run_batch is None else run_batch(batch, windows)
                loc, scale = scaling.loc[:n_windows], scaling.scale[:n_windows]  # without the padding
                outputs.append((raw[:n_windows], loc, scale))
            if len(outputs) == 1:
                return outputs[0]
            raw, loc, scale = map(torch.cat, zip(*outputs, strict=True))
            return raw, loc, scale

    def _is_small(self, n_windows: int) -> bool:
        """Whether one thread computes this number of windows faster than several."""
        return bool(n_windows * self.network.n_multiplications < MIN_PARALLEL_WORK)

    def _make_batch(self, recent_values: Tensor, series: Any, begin: int) -> Batch:
        """The batch of the windows that end at step `begin`, padded to a multiple of BATCH_MULTIPLE.

        `recent_values` (windows, input_size) are their values and `series` (windows,) the index of
        the series of each.
        """
        series = pad_batch(series)
        columns = self.window_columns
        by_series = self.learned.by_series
        # Positions on the time axis of `_calendar_features`, `_numeric` and `_category_codes`.
        cutoff = begin + recent_values.shape[1]
        past_steps = slice(begin, cutoff)
        future_steps = slice(cutoff, cutoff + self.horizon)
        calendar = self._calendar_features
        first_series = np.zeros_like(series)
        calendar_series = series if len(calendar) > 1 else first_series
        past_values = calendar[calendar_series, past_steps]
        future_values = calendar[calendar_series, future_steps]
        if columns.numeric:
            numeric = self._numeric
            past_values = np.concatenate([numeric[series, past_steps], past_values], axis=2)
            future_values = np.concatenate([numeric[series, future_steps, : columns.n_future], future_values], axis=2)
        category_codes = self._category_codes
        code_series = series if len(category_codes) > 1 else first_series
        static, static_codes = self._static
        arrays = {
            "past": past_values,
            "future": future_values,
            "static": static[series],
            "past_codes": category_codes[code_series, past_steps],
            "future_codes": category_codes[code_series, future_steps, : columns.n_future_codes],
            "static_codes": static_codes[series],
            "loc": by_series["loc"][series, None],
            "scale": by_series["scale"][series, None],
        }
        covariates = {name: torch.from_numpy(array) for name, array in arrays.items()}
        batch = Batch(y=pad_batch(recent_values).contiguous(), **covariates)
        return batch if self.device.type == "cpu" else to_device(batch, self.device)

    @cached_property
    def _numeric(self) -> Any:
        """Standardized numeric covariates over window and forecast steps, (series, steps, columns)."""
        numeric = np.zeros((len(self.recent_values), self._length, len(self.window_columns.numeric)), dtype=np.float32)
        for column, name in enumerate(self.window_columns.numeric):
            numeric[..., column] = self._full_column(
                name, lambda values, name=name: self.window_columns.standardize(name, values)
            )
        return numeric

    @cached_property
    def _category_codes(self) -> Any:
        """Codes of categories (series, steps, columns), 0 if unknown; one series if there are no columns."""
        n_series = len(self.recent_values) if self.window_columns.categorical else 1
        codes = np.zeros((n_series, self._length, len(self.window_columns.categorical)), dtype=np.int64)
        for column, name in enumerate(self.window_columns.categorical):
            codes[..., column] = self._full_column(name, lambda values: values.astype(np.int64) + 1)
        return codes

    def _full_column(self, name: str, encode: Any) -> Any:
        """A covariate, transformed by `encode`, over window and forecast steps, (series, steps).

        Steps without a known value repeat the last one.
        """
        past_values = encode(self.learned.by_series[f"recent_values:{name}"])
        future_values = encode(self.future[name].values) if name in self.future else past_values[:, -1:]
        n_missing = self._length - past_values.shape[1] - future_values.shape[1]
        repeated = np.repeat(future_values[:, -1:], max(n_missing, 0), axis=1)
        return np.concatenate([past_values, future_values, repeated], axis=1)

    @cached_property
    def _calendar_features(self) -> Any:
        """Calendar features (series, steps, columns) over window and forecast steps.

        There is one series if all series end at the same time.
        """
        series = self.learned.series
        if series is None:
            raise DeepForecastError(
                "The state of a network must have the series with their timestamps.",
                hint="Use "
                "`learned_with_series` in a model that contains a network."
            )
        if not self.window_columns.uses_time:
            return np.empty((1, self._length, 0), dtype=np.float32)
        last = series.last
        if len(last) > 1 and (last == last[0]).all():
            last = last[:1]
        window_length = self.recent_values.shape[1]
        positions = last[:, None] + series.calendar.step * (np.arange(self._length) - window_length + 1)
        calendar_features = self.window_columns.calendar_values(series.calendar, positions.reshape(-1))
        return calendar_features.reshape(len(last), self._length, -1)

    @cached_property
    def _static(self) -> tuple[Any, Any]:
        """Static covariates (series, columns): standardized numbers, and codes of categories."""
        if not (self.window_columns.static or self.window_columns.static_codes):
            shape = (len(self.recent_values), 0)
            return np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.int64)
        names = (*self.window_columns.static, *self.window_columns.static_codes)
        covariates = {name: Covariate(self.learned.by_series[f"static:{name}"]) for name in names}
        return static_arrays(self.window_columns, covariates, len(self.recent_values))
