"""Point forecasts by greedy decoding and beam search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.core.forecast import Forecast, refuse_duplicate_columns, resolve_bounds
from deepforecast.core.plausibility import check_finite
from deepforecast.core.threads import limit_torch_threads, torch_threads
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import CapabilityError, validate_integer
from deepforecast.models.neural._forecast import BATCH_MULTIPLE, HeadForecast, pad_batch, to_array
from deepforecast.models.neural._horizon_forecaster import MAX_WINDOWS, HorizonForecaster, move_windows
from deepforecast.nn.batch import Batch, as_float64, place
from deepforecast.nn.decoding import beam_search
from deepforecast.nn.network import decode_greedy
from deepforecast.training.process import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.models.neural._forecast import DecodingOptions

MAX_BEAM_WIDTH = 10_000  # paths per series


@dataclass(frozen=True)
class PathForecast(Forecast):
    """A decoded path (series, steps) and, on demand, the marginal distribution of each step.

    `marginal_forecast` computes the distributions from the first step on; the path may start at a
    later step, `begin`.
    """

    path: Floats
    marginal_forecast: Callable[[], Forecast]
    begin: int = 0

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The path."""
        return self.path

    def point(self, kind: str) -> Floats:
        """The path, for both kinds."""
        return self.path

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles of the marginal distribution of each step."""
        return self.marginal.quantiles(probabilities)

    def skip_steps(self, steps: int) -> PathForecast:
        """The forecast without its first `steps`."""
        return PathForecast(self.path[:, steps:], self.marginal_forecast, self.begin + steps)

    @cached_property
    def marginal(self) -> Forecast:
        """The marginal distribution of each step."""
        forecast = self.marginal_forecast()
        return forecast.skip_steps(self.begin) if self.begin else forecast


def path_forecast(
    forecaster: HorizonForecaster,
    decoding: DecodingOptions,
    mean: bool,
    marginal_forecast: Callable[[], Forecast],
) -> PathForecast:
    """The forecast on the greedy path or the most probable one (beam search).

    `mean`: each greedy step receives the mean of the previous one instead of the median.
    """
    path = (
        greedy_paths(forecaster, mean)
        if decoding.method == "greedy"
        else np.ascontiguousarray(beam_paths(forecaster, decoding.width)[0][:, 0])
    )
    return PathForecast(path, marginal_forecast)


def greedy_paths(forecaster: HorizonForecaster, mean: bool) -> Floats:
    """Greedy paths (series, steps), computed in blocks of `horizon` steps.

    The window of a block ends with the values of the block before.
    """
    def run_batch(batch: Batch, _: slice) -> tuple[Any, Any]:
        inputs, scaling = forecaster.network.inputs(batch)
        return decode_greedy(forecaster.network, inputs, mean), scaling

    recent_values = place(forecaster.recent_values, forecaster.device)
    blocks: list[Floats] = []
    for begin in range(0, forecaster.steps, forecaster.horizon):
        block_forecast = HeadForecast(
            forecaster.network.head,
            *forecaster._run_batches(recent_values, begin, run_batch),
            forecaster.name,
            forecaster.bounds,
        )
        blocks.append(block_forecast.point("mean" if mean else "median"))
        recent_values = move_windows(recent_values, blocks[-1])
    return np.concatenate(blocks, axis=1)[:, : forecaster.steps]


def beam_paths(forecaster: HorizonForecaster, width: int) -> tuple[Floats, Floats]:
    """Most probable paths (series, paths, steps) and their log-probabilities (series, paths).

    The paths of a series are sorted by descending probability.
    """
    batches = []
    n_series = len(forecaster.recent_values)
    batch_size = max(MAX_WINDOWS // width // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
    n_threads = 1 if forecaster._is_small(n_series * width) else torch_threads()
    with torch_defaults(), torch.inference_mode(), limit_torch_threads(n_threads):
        for start in range(0, n_series, batch_size):
            series = np.arange(start, min(start + batch_size, n_series))
            paths, log_probability = _search_paths(forecaster, pad_batch(series), width)
            batches.append((paths[: len(series)], log_probability[: len(series)]))
        paths, log_probability = map(torch.cat, zip(*batches, strict=True))
        return to_array(paths), to_array(log_probability)


def _search_paths(forecaster: HorizonForecaster, series: Ints, width: int) -> tuple[Tensor, Tensor]:
    """Beam search in blocks of `horizon` steps for the series with these indices, see `beam_paths`.

    After the first block each path has a window of its own, which ends with the values of the path.
    """
    network = forecaster.network
    recent_values = place(forecaster.recent_values[series], forecaster.device)
    log_probability = recent_values.new_zeros(len(series), 1)
    paths = recent_values.new_zeros(len(series), 1, 0)
    n_paths = 1
    for begin in range(0, forecaster.steps, forecaster.horizon):
        inputs, scaling = network.inputs(forecaster._make_batch(recent_values, np.repeat(series, n_paths), begin))
        beams = beam_search(network, inputs, width, min(forecaster.horizon, forecaster.steps - begin), log_probability)
        origin = beams.origin.to(recent_values.device)  # the window that each path continues
        log_probability = beams.log_probability
        values = scaling.loc[origin] + scaling.scale[origin] * as_float64(beams.values)
        values = values.clamp(*forecaster.bounds)
        paths = torch.cat([paths.view(len(series) * n_paths, begin)[origin], values], dim=2)
        n_paths = values.shape[1]
        recent_values = move_windows(recent_values[origin.flatten()], values.flatten(0, 1))
    return paths, log_probability


def beam_frame(
    model: NeuralForecaster, width: int, horizon: int | None, frame: Frame | None, future: Frame | None, static: Frame | None
) -> Frame:
    """The most probable paths of each series as a frame, see `NeuralForecaster.beam_search`."""
    width = validate_integer(width, "width", maximum=MAX_BEAM_WIDTH)
    steps = model._resolve_horizon(horizon)
    if model.head != "bins":
        raise CapabilityError(
            f"`beam_search` requires head='bins'; {model.name} has head={model.head!r}, whose "
            "values are not discrete.",
            hint="Set head='bins' and fit again, or use `simulate` to draw paths.",
        )
    state = model._state_for_frame(frame, static)
    forecaster = HorizonForecaster(
        model.name,
        state.learned_with_series,
        steps,
        model._future_covariates(state, steps, future),
        resolve_bounds(model.bounds),
    )
    paths, log_probabilities = beam_paths(forecaster, width)
    n_paths = paths.shape[1]
    times = state.series.calendar.next_positions(state.series.last, steps)
    columns = state.series.key_columns(np.tile(times, (1, n_paths)))
    refuse_duplicate_columns(["path", "value", "log_probability"], columns)
    columns["path"] = np.tile(np.repeat(np.arange(n_paths), steps), len(state.series))
    columns["value"] = check_finite(paths.reshape(len(state.series), -1), state, "value", distribution_model=model).reshape(-1)
    columns["log_probability"] = np.repeat(log_probabilities.reshape(-1), steps)
    return frames.build(state.series.library, columns)
