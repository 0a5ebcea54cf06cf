"""The path a forecast goes by, other than the middle of what is drawn: the greedy one, or the most probable ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.finite import finite
from deepforecast.core.forecast import Forecast, refuse_taken
from deepforecast.core.threads import torch_limited, torch_threads
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.whole import whole_number
from deepforecast.errors import CapabilityError
from deepforecast.models.neural._ahead import ROWS, Ahead
from deepforecast.models.neural._forecast import LEAST, HeadForecast, filled, limits
from deepforecast.nn.batch import Batch
from deepforecast.nn.beam import search
from deepforecast.nn.decoding import greedy
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.models.neural._forecast import Decoding

WIDEST = 10_000  # paths that are held of a series


@dataclass(frozen=True)
class Decoded(Forecast):
    """A path, (series, steps), and around it the bands of each step by itself, drawn when they are asked for."""

    path: Floats
    plain: Callable[[], Forecast]
    begin: int = 0

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The path."""
        return self.path

    def point(self, kind: str) -> Floats:
        """The path, whatever the kind."""
        return self.path

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Of each step by itself."""
        return self.around.quantiles(probabilities)

    def after(self, steps: int) -> Decoded:
        """The same without its first steps."""
        return Decoded(self.path[:, steps:], self.plain, self.begin + steps)

    @cached_property
    def around(self) -> Forecast:
        """What the network says of each step by itself."""
        found = self.plain()
        return found.after(self.begin) if self.begin else found


def decoded(ahead: Ahead, decoder: Decoding, mean: bool, plain: Callable[[], Forecast]) -> Decoded:
    """The forecast that goes by the greedy path (`mean`: each step is told the mean of the one before), or the likeliest.
    `plain` gives what is said of each step by itself."""
    path = _greedy(ahead, mean) if decoder.kind == "greedy" else np.ascontiguousarray(beams(ahead, decoder.width)[0][:, 0])
    return Decoded(path, plain)


def _greedy(ahead: Ahead, mean: bool) -> Floats:
    """(series, steps), block by block."""
    def act(batch: Batch, _: slice) -> tuple[Any, Any]:
        inputs, scale = ahead.network.inputs(batch)
        return greedy(ahead.network, inputs, mean), scale

    tail, found = ahead.tail, []
    for begin in range(0, ahead.steps, ahead.horizon):
        said = HeadForecast(ahead.network.head, *ahead._passes(tail, begin, act), ahead.name, ahead.limits)
        found.append(said.point("mean" if mean else "median"))
        tail = np.concatenate([tail, found[-1]], axis=1)[:, -tail.shape[1] :]
    return np.concatenate(found, axis=1)[:, : ahead.steps]


def beams(ahead: Ahead, width: int) -> tuple[Floats, Floats]:
    """The most probable paths, (series, paths, steps), and their logarithms of probability, (series, paths)."""
    found = []
    size = max(ROWS // width // LEAST, 1) * LEAST
    threads = 1 if ahead._small(len(ahead.tail) * width) else torch_threads()
    with torch_defaults(), torch.inference_mode(), torch_limited(threads):
        for start in range(0, len(ahead.tail), size):
            rows = np.arange(start, min(start + size, len(ahead.tail)))
            paths, chance = _beams(ahead, filled(rows, -(-len(rows) // LEAST) * LEAST), width)
            found.append((paths[: len(rows)], chance[: len(rows)]))
    paths, chances = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return paths, chances


def _beams(ahead: Ahead, series: Ints, width: int) -> tuple[Floats, Floats]:
    """Of some series, block by block: in each the network looks at the end of every path it goes on from."""
    network, tail, length = ahead.network, ahead.tail[series], ahead.tail.shape[1]
    chance, paths, held = torch.zeros(len(series), 1, dtype=torch.float64), np.empty((len(series), 1, 0)), 1
    for begin in range(0, ahead.steps, ahead.horizon):
        inputs, scale = network.inputs(ahead._batch(tail, np.repeat(series, held), begin))
        best = search(network, inputs, width, min(ahead.horizon, ahead.steps - begin), chance)
        origin, chance = best.origin, best.log_probability
        z, place, spread = best.values.numpy(), scale.place[origin].numpy(), scale.spread[origin].numpy()
        values = np.clip(place + spread * z, *ahead.limits)
        paths = np.concatenate([paths.reshape(len(series) * held, begin)[origin.numpy()], values], axis=2)
        held = values.shape[1]
        tail = np.concatenate([tail[origin.flatten().numpy()], values.reshape(-1, values.shape[2])], axis=1)[:, -length:]
    return paths, chance.numpy()


def beam_frame(
    model: NeuralForecaster, width: int, horizon: int | None, frame: Frame | None, future: Frame | None, static: Frame | None
) -> Frame:
    """The most probable paths of each series as a frame."""
    width, steps = whole_number(width, "width", most=WIDEST), model._steps(horizon)
    if model.head != "bins":
        raise CapabilityError(
            f"Beam search counts paths, so it takes head='bins'; {model.name} has head={model.head!r}, whose values are not "
            "countable. Fit it with head='bins', or draw paths by simulate."
        )
    state = model._at_end_of(frame, static)
    ahead = Ahead(model.name, state.standing, steps, model._ahead(state, steps, future), limits(model))
    paths, chances = beams(ahead, width)
    count = paths.shape[1]
    columns = state.series.rows(np.tile(state.series.calendar.following(state.series.last, steps), (1, count)))
    refuse_taken(["path", "value", "log_probability"], columns)
    columns["path"] = np.tile(np.repeat(np.arange(count), steps), len(state.series))
    columns["value"] = finite(paths.reshape(len(state.series), -1), state, "value", spread_of=model).reshape(-1)
    columns["log_probability"] = np.repeat(chances.reshape(-1), steps)
    return frames.build(state.series.library, columns)
