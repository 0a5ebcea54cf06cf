"""Point forecasts by greedy decoding and beam search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.finite_check import check_finite
from deepforecast.core.forecast import Forecast, refuse_duplicate_columns
from deepforecast.core.threads import limit_torch_threads, torch_threads
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.integers import validate_integer
from deepforecast.errors import CapabilityError
from deepforecast.models.neural._forecast import BATCH_MULTIPLE, HeadForecast, clip_bounds, pad_batch
from deepforecast.models.neural._predict import MAX_WINDOWS, HorizonForecaster
from deepforecast.nn.batch import Batch
from deepforecast.nn.beam_search import beam_search
from deepforecast.nn.decoding import decode_greedy
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.models.neural._forecast import DecodingOptions

MAX_BEAM_WIDTH = 10_000  # paths per series


@dataclass(frozen=True)
class PathForecast(Forecast):
    """A decoded path (series, steps) and, on demand, the marginal distribution of each step."""

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
        _greedy_paths(forecaster, mean)
        if decoding.method == "greedy"
        else np.ascontiguousarray(beam_paths(forecaster, decoding.width)[0][:, 0])
    )
    return PathForecast(path, marginal_forecast)


def _greedy_paths(forecaster: HorizonForecaster, mean: bool) -> Floats:
    """Greedy paths (series, steps), computed in blocks of `horizon` steps."""
    def run_batch(batch: Batch, _: slice) -> tuple[Any, Any]:
        inputs, scaling = forecaster.network.inputs(batch)
        return decode_greedy(forecaster.network, inputs, mean), scaling

    recent_values, blocks = forecaster.recent_values, []
    for begin in range(0, forecaster.steps, forecaster.horizon):
        block_forecast = HeadForecast(
            forecaster.network.head,
            *forecaster._run_batches(recent_values, begin, run_batch),
            forecaster.name,
            forecaster.bounds,
        )
        blocks.append(block_forecast.point("mean" if mean else "median"))
        recent_values = np.concatenate([recent_values, blocks[-1]], axis=1)[:, -recent_values.shape[1] :]
    return np.concatenate(blocks, axis=1)[:, : forecaster.steps]


def beam_paths(forecaster: HorizonForecaster, width: int) -> tuple[Floats, Floats]:
    """Most probable paths (series, paths, steps) and their log-probabilities (series, paths)."""
    batches = []
    size = max(MAX_WINDOWS // width // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
    threads = 1 if forecaster._is_small(len(forecaster.recent_values) * width) else torch_threads()
    with torch_defaults(), torch.inference_mode(), limit_torch_threads(threads):
        for start in range(0, len(forecaster.recent_values), size):
            rows = np.arange(start, min(start + size, len(forecaster.recent_values)))
            paths, log_probability = _search_paths(
                forecaster, pad_batch(rows, -(-len(rows) // BATCH_MULTIPLE) * BATCH_MULTIPLE), width
            )
            batches.append((paths[: len(rows)], log_probability[: len(rows)]))
    paths, log_probabilities = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    return paths, log_probabilities


def _search_paths(forecaster: HorizonForecaster, series: Ints, width: int) -> tuple[Floats, Floats]:
    """Beam search in blocks of `horizon` steps; the window of a path ends with its values."""
    network, recent_values, length = forecaster.network, forecaster.recent_values[series], forecaster.recent_values.shape[1]
    log_probability, paths, n_paths = torch.zeros(len(series), 1, dtype=torch.float64), np.empty((len(series), 1, 0)), 1
    for begin in range(0, forecaster.steps, forecaster.horizon):
        inputs, scaling = network.inputs(forecaster._make_batch(recent_values, np.repeat(series, n_paths), begin))
        beams = beam_search(network, inputs, width, min(forecaster.horizon, forecaster.steps - begin), log_probability)
        origin, log_probability = beams.origin, beams.log_probability
        z, loc, scale = beams.values.numpy(), scaling.loc[origin].numpy(), scaling.scale[origin].numpy()
        values = np.clip(loc + scale * z, *forecaster.bounds)
        paths = np.concatenate([paths.reshape(len(series) * n_paths, begin)[origin.numpy()], values], axis=2)
        n_paths = values.shape[1]
        recent_values = np.concatenate(
            [recent_values[origin.flatten().numpy()], values.reshape(-1, values.shape[2])], axis=1
        )[:, -length:]
    return paths, log_probability.numpy()


def beam_frame(
    model: NeuralForecaster, width: int, horizon: int | None, frame: Frame | None, future: Frame | None, static: Frame | None
) -> Frame:
    """The most probable paths of each series, see `NeuralForecaster.beam_search`."""
    width, steps = validate_integer(width, "width", maximum=MAX_BEAM_WIDTH), model._resolve_horizon(horizon)
    if model.head != "bins":
        raise CapabilityError(
            f"Beam search must have head='bins'; {model.name} has head={model.head!r}, whose "
            "values are not discrete. Fit with head='bins', or draw paths with `simulate`."
        )
    state = model._state_for_frame(frame, static)
    forecaster = HorizonForecaster(
        model.name,
        state.learned_with_series,
        steps,
        model._future_covariates(state, steps, future),
        clip_bounds(model),
    )
    paths, log_probabilities = beam_paths(forecaster, width)
    count = paths.shape[1]
    columns = state.series.key_columns(np.tile(state.series.calendar.next_positions(state.series.last, steps), (1, count)))
    refuse_duplicate_columns(["path", "value", "log_probability"], columns)
    columns["path"] = np.tile(np.repeat(np.arange(count), steps), len(state.series))
    columns["value"] = check_finite(paths.reshape(len(state.series), -1), state, "value", distribution_model=model).reshape(-1)
    columns["log_probability"] = np.repeat(log_probabilities.reshape(-1), steps)
    return frames.build(state.series.library, columns)
