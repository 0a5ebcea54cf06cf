"""Forecasts of a trained network from the last windows of all series.

A network predicts blocks of `horizon` steps. For longer forecasts the window moves on and ends with
previous forecasts or sampled values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.forecast import Forecast, SampledForecast
from deepforecast.core.noise import standard_normal
from deepforecast.core.state import LearnedState
from deepforecast.core.threads import limit_torch_threads, torch_threads
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.windows import static_arrays
from deepforecast.errors import DeepForecastError
from deepforecast.models.neural._forecast import BATCH_MULTIPLE, ConcatenatedForecast, HeadForecast, clip_bounds, pad_batch
from deepforecast.models.neural._series_state import refuse_unobserved, window_columns
from deepforecast.nn.batch import Batch
from deepforecast.nn.body import AutoregressiveBody
from deepforecast.nn.decoding import DEFAULT_SAMPLING, Sampling, apply_temperature, decode_samples
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

MAX_WINDOWS = 512  # windows per batch, a multiple of BATCH_MULTIPLE for reproducible last bits
MAX_PATHS = 2400  # paths per batch, which fit in the cache
MIN_PARALLEL_WORK = 2e8  # multiplications per batch from which several threads are faster
MAX_VALUES = 4_000_000  # raw outputs in memory at once
# Paths for steps beyond the trained horizon, and pooled values per path and step.
EXTENDED_SAMPLING = (200, 9)
AUTOREGRESSIVE_SAMPLING = (100, 5)  # the same for autoregressive networks


def forecast_horizon(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate], marginal: bool = False
) -> Forecast:
    """Forecast the next `steps`; `marginal` ignores the decoding of the point forecast."""
    decoding = model._decoding_options()
    forecaster = HorizonForecaster(model.name, learned, steps, future, clip_bounds(model), decoding.sampling)
    if decoding.method != "sample" and not marginal:
        from deepforecast.models.neural._decoding import path_forecast

        marginal_forecast = partial(forecast_horizon, model, learned, steps, future, marginal=True)
        return path_forecast(forecaster, decoding, model.point_kind == "mean", marginal_forecast)
    if forecaster.autoregressive and forecaster.network.head.has_distribution:
        n_paths, n_pooled = AUTOREGRESSIVE_SAMPLING
        noise = _stratified_noise(forecaster, n_paths)
        return SampledForecast(sample_paths(forecaster, noise, n_pooled))
    first_block = forecaster.forecast_block(forecaster.recent_values, 0)
    if steps <= forecaster.horizon:
        return first_block if steps == forecaster.horizon else replace(first_block, raw=first_block.raw[:, :steps])
    if forecaster.network.head.has_distribution and forecaster.network.body.uses_history:
        n_paths, n_pooled = EXTENDED_SAMPLING

        def extend(group: HorizonForecaster) -> Floats:
            return sample_paths(group, _stratified_noise(group, n_paths), n_pooled)

        extended = _map_groups(forecaster, n_paths, extend)
        return ConcatenatedForecast((first_block, SampledForecast(extended)))
    forecasts, recent_values = [first_block], forecaster.recent_values
    for begin in range(forecaster.horizon, steps, forecaster.horizon):
        recent_values = np.concatenate([recent_values, forecasts[-1].mean], axis=1)[:, -recent_values.shape[1] :]
        block_forecast = forecaster.forecast_block(recent_values, begin)
        forecasts.append(replace(block_forecast, raw=block_forecast.raw[:, : steps - begin]))
    return ConcatenatedForecast(tuple(forecasts))


def simulate_paths(
    model: NeuralForecaster, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """Sample paths (series, samples, steps).

    The noise of a series does not depend on the other series in the panel.
    """
    forecaster = HorizonForecaster(model.name, learned, steps, future, clip_bounds(model), model._decoding_options().sampling)

    def draw(group: HorizonForecaster) -> Floats:
        noise = standard_normal(seed, np.nan_to_num(group.recent_values), (group.blocks * group.horizon, samples))
        return sample_paths(group, noise.transpose(0, 2, 1))

    return _map_groups(forecaster, samples, draw)


def _map_groups(forecaster: HorizonForecaster, samples: int, function: Callable[[HorizonForecaster], Floats]) -> Floats:
    """Apply `function` to groups of series, which limits the memory of the raw outputs of all
    paths.

    Autoregressive networks need no groups, as they output one step at a time.
    """
    count, numbers = len(forecaster.recent_values), samples * forecaster.horizon * forecaster.network.sizes.out_features
    size = max(MAX_VALUES // numbers // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
    if forecaster.autoregressive or count <= size:
        return function(forecaster)
    chunks = (function(forecaster.select_series(np.arange(begin, min(begin + size, count)))) for begin in range(0, count, size))
    return np.concatenate([np.array(chunk) for chunk in chunks])  # copy views of larger arrays


def sample_paths(forecaster: HorizonForecaster, noise: Floats, n_pooled: int = 0) -> Floats:
    """Sample paths (series, samples, steps) from standard normal noise of the same shape.

    Paths are extended in blocks of `horizon` steps; the window of each path ends with its own
    values.

    With `n_pooled` > 0 the result has, instead of the paths, `n_pooled` values of each path's
    predictive distribution at each step, for quantiles. Direct networks then omit the first block.
    """
    from scipy.special import ndtr

    series, horizon, samples, autoregressive = len(forecaster.recent_values), forecaster.horizon, noise.shape[1], forecaster.autoregressive
    recent_values, path_blocks = forecaster.recent_values, []
    for block in range(forecaster.blocks):
        block_noise = noise[:, :, block * horizon : min((block + 1) * horizon, forecaster.steps if autoregressive else forecaster.blocks * horizon)]
        shape = (series, samples) if not block else (series * samples, 1)
        uniform = ndtr(block_noise).reshape(*shape, -1)
        if autoregressive:
            values = forecaster.sample_block(recent_values, block * horizon, uniform, n_pooled)
            values, pooled_values = values[:, : shape[1]], values[:, shape[1] :]
        else:
            block_forecast = forecaster.forecast_block(recent_values, block * horizon)
            correlated = uniform if forecaster.correlation_factor is None else ndtr(block_noise @ forecaster.correlation_factor.T).reshape(uniform.shape)
            values = block_forecast.sample(correlated)
            pooled_values = block_forecast.sample(_stratify(uniform, n_pooled)) if block and n_pooled else values
        if not n_pooled or block or autoregressive:
            path_blocks.append((pooled_values if n_pooled else values).reshape(series, -1, values.shape[2]))
        previous_values = recent_values if block else np.repeat(recent_values, samples, axis=0)
        recent_values = np.concatenate([previous_values, values.reshape(-1, values.shape[2])], axis=1)[:, -previous_values.shape[1] :]
    return np.concatenate(path_blocks, axis=2)[:, :, : forecaster.steps - (horizon if n_pooled and not autoregressive else 0)]


def _stratify(uniform: Floats, n_values: int) -> Floats:
    """Values (u + k) / n for k < n: (B, samples, steps) to (B, samples * n, steps)."""
    stratified = (uniform[:, :, None] + np.arange(n_values)[:, None]) / n_values
    return stratified.reshape(len(uniform), -1, uniform.shape[2])


def _stratified_noise(forecaster: HorizonForecaster, count: int) -> Floats:
    """Normal noise for quantiles: equal for all series, stratified over the samples of a step."""
    from scipy.special import ndtri

    noise = standard_normal(0, np.zeros((1, 1)), (forecaster.blocks * forecaster.horizon, count)).transpose(0, 2, 1)
    stratified = ndtri((noise.argsort(axis=1).argsort(axis=1) + 0.5) / count)
    return np.repeat(stratified, len(forecaster.recent_values), axis=0)


class HorizonForecaster:
    """Forward passes of a network for the steps after the last observations.

    - `horizon`: steps per forward pass; `blocks`: number of passes up to the last step.
    - `recent_values`: the last values of the target, (series, input_size).
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
        self.name, self.learned, self.steps, self.future, self.bounds = name, learned, steps, future, bounds
        self.sampling = sampling
        self.network: Any = learned.shared["network"]
        self.window_columns = window_columns(learned)
        self.horizon, self.autoregressive = self.window_columns.horizon, isinstance(self.network.body, AutoregressiveBody)
        self.blocks = -(-steps // self.horizon)
        self.recent_values: Floats = np.asarray(learned.by_series["tail"])
        if np.isnan(self.recent_values[:, -1]).any() and self.network.body.needs_history:
            refuse_unobserved(name, learned)
        self.correlation_factor: Floats | None = learned.shared.get("ties")
        self._length = self.recent_values.shape[1] + self.blocks * self.horizon

    def select_series(self, series: Ints) -> HorizonForecaster:
        """The forecaster of a subset of the series."""
        future = {name: covariate.take(series) for name, covariate in self.future.items()}
        return HorizonForecaster(self.name, self.learned.take(series), self.steps, future, self.bounds, self.sampling)

    def forecast_block(self, recent_values: Floats, begin: int) -> HeadForecast:
        """Forecast `horizon` steps from `begin`; `recent_values` has one row per series or path."""
        raw, loc, scale = self._run_batches(recent_values, begin)
        if self.sampling != DEFAULT_SAMPLING:
            with torch_defaults():
                raw = apply_temperature(torch.from_numpy(raw), *self.sampling).numpy()
        return HeadForecast(self.network.head, raw, loc, scale, self.name, self.bounds)

    def sample_block(self, recent_values: Floats, begin: int, uniform: Floats, n_values: int = 0) -> Floats:
        """Autoregressive sample paths (series, samples, steps), see `nn.decoding.decode_samples`.

        With `n_values`, so many values of each path's predictive distribution follow along the
        second axis.
        """
        def run_batch(batch: Batch, rows: slice) -> Any:
            inputs, scaling = self.network.inputs(batch)
            probabilities = torch.from_numpy(pad_batch(uniform[rows], len(batch)))
            return decode_samples(self.network, inputs, scaling, probabilities, self.sampling, n_values), scaling

        max_windows = max(MAX_PATHS // uniform.shape[1] // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
        z, loc, scale = self._run_batches(recent_values, begin, run_batch, min(max_windows, MAX_WINDOWS))
        return np.clip(loc[..., None] + scale[..., None] * z, *self.bounds)

    def _run_batches(self, recent_values: Floats, begin: int, run_batch: Any = None, max_windows: int = MAX_WINDOWS) -> tuple[Floats, Floats, Floats]:
        """Apply `run_batch`, by default the network, to batches: its output, location and scale."""
        passes: list[tuple[Any, Any, Any]] = []
        paths_per_series = len(recent_values) // len(self.recent_values)
        is_small = len(recent_values) <= BATCH_MULTIPLE or self._is_small(len(recent_values))
        threads = 1 if is_small else torch_threads()
        with torch_defaults(), torch.inference_mode(), limit_torch_threads(threads):
            for start in range(0, len(recent_values), max_windows):
                rows = slice(start, min(start + max_windows, len(recent_values)))
                count = rows.stop - rows.start
                batch = self._make_batch(recent_values[rows], np.arange(rows.start, rows.stop) // paths_per_series, begin)
                raw, scaling = self.network(batch) if run_batch is None else run_batch(batch, rows)
                passes.append((raw[:count].numpy(), scaling.loc[:count].numpy(), scaling.scale[:count].numpy()))
        if len(passes) == 1:
            return passes[0]
        raw, loc, scale = map(np.concatenate, zip(*passes, strict=True))
        return raw, loc, scale

    def _is_small(self, rows: int) -> bool:
        return bool(rows * self.network.n_multiplications < MIN_PARALLEL_WORK)

    def _make_batch(self, recent_values: Floats, series: Any, begin: int) -> Batch:
        padded_size = -(-len(recent_values) // BATCH_MULTIPLE) * BATCH_MULTIPLE
        recent_values, rows = np.require(pad_batch(recent_values, padded_size), requirements=["C", "W"]), pad_batch(series, padded_size)
        cutoff = begin + recent_values.shape[1]
        past_rows, future_rows = slice(begin, cutoff), slice(cutoff, cutoff + self.horizon)
        columns, by_series, calendar = self.window_columns, self.learned.by_series, self._calendar
        first_row = np.zeros_like(rows)
        series_rows = rows if len(calendar) > 1 else first_row
        past_values, future_values = calendar[series_rows, past_rows], calendar[series_rows, future_rows]
        if columns.numeric:
            numeric = self._numeric
            past_values = np.concatenate([numeric[rows, past_rows], past_values], axis=2)
            future_values = np.concatenate([numeric[rows, future_rows, : columns.n_future], future_values], axis=2)
        category_codes, (static, static_codes) = self._category_codes, self._static
        series_rows = rows if len(category_codes) > 1 else first_row
        fields = (
            recent_values, past_values, future_values, static[rows],
            category_codes[series_rows, past_rows],
            category_codes[series_rows, future_rows, : columns.n_future_codes],
            static_codes[rows], by_series["place"][rows, None], by_series["spread"][rows, None],
        )  # fmt: skip
        return Batch(*map(torch.from_numpy, fields))

    @cached_property
    def _numeric(self) -> Any:
        numeric = np.zeros((len(self.recent_values), self._length, len(self.window_columns.numeric)), dtype=np.float32)
        for column, name in enumerate(self.window_columns.numeric):
            numeric[..., column] = self._full_column(name, lambda values, name=name: self.window_columns.standardize(name, values))
        return numeric

    @cached_property
    def _category_codes(self) -> Any:
        """Codes of categories (series, steps, columns), with one series if there are no columns."""
        count = len(self.recent_values) if self.window_columns.categorical else 1
        codes = np.zeros((count, self._length, len(self.window_columns.categorical)), dtype=np.int64)
        for column, name in enumerate(self.window_columns.categorical):
            codes[..., column] = self._full_column(name, lambda values: values.astype(np.int64) + 1)
        return codes

    def _full_column(self, name: str, encode: Any) -> Any:
        """A covariate over window and forecast steps, padded with its last value."""
        past_values = encode(self.learned.by_series[f"tail:{name}"])
        future_values = encode(self.future[name].values) if name in self.future else past_values[:, -1:]
        n_missing = self._length - past_values.shape[1] - future_values.shape[1]
        return np.concatenate([past_values, future_values, np.repeat(future_values[:, -1:], max(n_missing, 0), axis=1)], axis=1)

    @cached_property
    def _calendar(self) -> Any:
        """Calendar features (series, steps, columns); one series if all end at the same time."""
        series = self.learned.series
        if series is None:
            raise DeepForecastError(
                "A wrapper of a network must pass on the series with their timestamps; there "
                "are none."
            )
        if not self.window_columns.uses_time:
            return np.empty((1, self._length, 0), dtype=np.float32)
        last = series.last
        if len(last) > 1 and (last == last[0]).all():
            last = last[:1]
        length = self.recent_values.shape[1]
        positions = last[:, None] + series.calendar.step * (np.arange(self._length) - length + 1)
        calendar_features = self.window_columns.calendar_values(series.calendar, positions.reshape(-1))
        return calendar_features.reshape(len(last), self._length, -1)

    @cached_property
    def _static(self) -> tuple[Any, Any]:
        if not (self.window_columns.static or self.window_columns.static_codes):
            return np.empty((len(self.recent_values), 0), dtype=np.float32), np.empty((len(self.recent_values), 0), dtype=np.int64)
        names = (*self.window_columns.static, *self.window_columns.static_codes)
        covariates = {name: Covariate(self.learned.by_series[f"static:{name}"]) for name in names}
        return static_arrays(self.window_columns, covariates, len(self.recent_values))
