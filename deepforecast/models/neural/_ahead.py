"""Forecasts of a trained network: the last windows of all series in large batches, rolled on where the horizon is longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.core.forecast import Forecast, SampledForecast
from deepforecast.core.noise import standard_normal
from deepforecast.core.state import Learned
from deepforecast.core.threads import limited
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.windows import Channels, static_of
from deepforecast.errors import DeepForecastError
from deepforecast.models.neural._forecast import HeadForecast, Joined
from deepforecast.nn.batch import Batch
from deepforecast.nn.decoding import sampled

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

ROWS = 512  # windows of a pass; of 8 at least, as the last bits of a product hang on how many rows it has
PATHS = 200  # by which steps beyond the horizon, and those of stepwise networks, are told


def forecast(model: NeuralForecaster, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
    """The forecast of the next `steps` rows."""
    ahead = Ahead(model.name, learned, steps, future)
    if ahead.stepwise and ahead.network.head.distribution:
        return SampledForecast(walked(ahead, PATHS, 0, evenly=True))
    first = ahead.block(ahead.tail, 0)
    if steps <= ahead.horizon:
        return first.after(0) if steps == ahead.horizon else _first(first, steps)
    if ahead.network.head.distribution:
        paths = walked(ahead, PATHS, 0, evenly=True)[:, :, ahead.horizon :]
        return Joined((first, SampledForecast(paths)))
    parts, tail = [first], ahead.tail
    for begin in range(ahead.horizon, steps, ahead.horizon):
        tail = np.concatenate([tail, parts[-1].mean], axis=1)[:, -tail.shape[1] :]
        parts.append(_first(ahead.block(tail, begin), min(ahead.horizon, steps - begin)))
    return Joined(tuple(parts))


def paths(
    model: NeuralForecaster, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """Sample paths, (series, samples, steps)."""
    return walked(Ahead(model.name, learned, steps, future), samples, seed)


def walked(ahead: Ahead, samples: int, seed: int, evenly: bool = False) -> Floats:
    """Paths of all steps: block by block, each path going on from its own values. `evenly`: at each step the draws cover the
    distribution evenly, so that fewer paths tell its quantiles."""
    from scipy.special import ndtr, ndtri

    series, length, horizon = len(ahead.tail), ahead.tail.shape[1], ahead.horizon
    blocks = -(-ahead.steps // horizon)
    noise = standard_normal(seed, np.nan_to_num(ahead.tail), (blocks * horizon, samples)).transpose(0, 2, 1)
    if evenly:
        noise = ndtri((noise.argsort(axis=1).argsort(axis=1) + 0.5) / samples)
    tails, found = np.repeat(ahead.tail, samples, axis=0), []
    for block in range(blocks):
        part = noise[:, :, block * horizon : (block + 1) * horizon]
        if ahead.stepwise:
            drawn = ahead.stepped(tails if block else ahead.tail, block * horizon, ndtr(part))
        else:
            if ahead.ties is not None:
                part = part @ ahead.ties.T
            said = ahead.block(tails if block else ahead.tail, block * horizon)
            drawn = said.drawn(ndtr(part) if not block else ndtr(part).reshape(-1, 1, horizon)).reshape(series, samples, horizon)
        found.append(drawn)
        tails = np.concatenate([tails, drawn.reshape(-1, horizon)], axis=1)[:, -length:]
    return np.concatenate(found, axis=2)[:, :, : ahead.steps]


def _first(one: HeadForecast, steps: int) -> HeadForecast:
    from dataclasses import replace

    return replace(one, raw=one.raw[:, :steps])


@dataclass
class Ahead:
    """The steps after each series' end: what is known of them, and the network's passes."""

    name: str
    learned: Learned
    steps: int
    future: Mapping[str, Covariate]

    @cached_property
    def channels(self) -> Channels:
        """The columns of the fit."""
        return Channels.read(self.learned["channels"])

    @property
    def network(self) -> Any:
        """The network, in eval mode."""
        return self.learned["network"]

    @property
    def horizon(self) -> int:
        """Steps of one pass."""
        return self.channels.horizon

    @property
    def stepwise(self) -> bool:
        """Whether steps come one by one."""
        from deepforecast.nn.body import Stepwise

        return isinstance(self.network.body, Stepwise)

    @property
    def tail(self) -> Floats:
        """The last rows of the target, (series, input_size)."""
        return np.asarray(self.learned["tail"])

    @property
    def ties(self) -> Floats | None:
        """How errors of the steps hang together: a factor of their correlation."""
        return self.learned.shared.get("ties")

    def block(self, tail: Floats, begin: int) -> HeadForecast:
        """What the network says of the steps from `begin` on, after these values; several tails a series: its paths."""
        raw, place, spread = self._passes(tail, begin, lambda batch, _: self.network(batch))
        return HeadForecast(self.network.head, raw, place, spread, self.name)

    def stepped(self, tail: Floats, begin: int, uniform: Floats) -> Floats:
        """Values of paths drawn step by step, (series, samples, horizon), after the values of each series or of each path."""
        several = uniform.shape[1] if len(tail) == len(self.tail) else 1
        draws = uniform.reshape(len(tail), several, self.horizon)

        def act(batch: Batch, rows: slice) -> Any:
            inputs, scale = self.network.inputs(batch)
            asked = torch.from_numpy(_filled(draws[rows], len(batch)))
            low, high = self.network.head.reach
            return sampled(self.network, inputs, scale, asked.clamp(low, high)), scale

        z, place, spread = self._passes(tail, begin, act)
        return np.asarray(place[..., None] + spread[..., None] * z).reshape(uniform.shape)

    def _passes(self, tail: Floats, begin: int, act: Any) -> tuple[Floats, Floats, Floats]:
        found: list[tuple[Any, Any, Any]] = []
        each = len(tail) // len(self.tail)
        with torch.inference_mode(), limited(1 if len(tail) * self.network.work < 2e8 else _threads()):
            for start in range(0, len(tail), ROWS):
                rows = slice(start, min(start + ROWS, len(tail)))
                count = rows.stop - rows.start
                raw, scale = act(self._batch(tail[rows], np.arange(rows.start, rows.stop) // each, begin), rows)
                found.append(tuple(one[:count].numpy() for one in (raw, scale.place, scale.spread)))
        raw, place, spread = (np.concatenate(parts) if len(found) > 1 else parts[0] for parts in zip(*found, strict=True))
        return raw, place, spread

    def _batch(self, tail: Floats, series: Any, begin: int) -> Batch:
        wanted = -(-len(tail) // 8) * 8
        rows = _filled(series, wanted)
        past, future = slice(begin, begin + tail.shape[1]), slice(begin + tail.shape[1], begin + tail.shape[1] + self.horizon)
        numbers, codes, clock = self._numbers, self._codes, self._clock
        whose = rows if clock.shape[0] > 1 else np.zeros(len(rows), dtype=np.int64)
        known, known_codes = self.channels.ahead, self.channels.ahead_codes
        static, static_codes = self._static
        held = self.learned.by_series
        place, spread = held["place"][rows, None], held["spread"][rows, None]
        parts = (
            _filled(tail, wanted),
            np.concatenate([numbers[rows, past], clock[whose, past]], axis=2),
            np.concatenate([numbers[rows, future, :known], clock[whose, future]], axis=2),
            static[rows], codes[rows, past], codes[rows, future, :known_codes], static_codes[rows], place, spread,
        )  # fmt: skip
        return Batch(*(torch.from_numpy(np.ascontiguousarray(one)) for one in parts))

    @cached_property
    def _reach(self) -> int:
        """Rows of the tail, and steps up to the end of the last block."""
        return self.tail.shape[1] + -(-self.steps // self.horizon) * self.horizon

    @cached_property
    def _numbers(self) -> Floats:
        found = np.zeros((len(self.tail), self._reach, len(self.channels.numbers)), dtype=np.float32)
        for place, name in enumerate(self.channels.numbers):
            found[..., place] = self._whole(name, lambda values, name=name: self.channels.standardised(name, values))
        return found

    @cached_property
    def _codes(self) -> Any:
        found = np.zeros((len(self.tail), self._reach, len(self.channels.codes)), dtype=np.int64)
        for place, name in enumerate(self.channels.codes):
            found[..., place] = self._whole(name, lambda values: values.astype(np.int64) + 1)
        return found

    def _whole(self, name: str, coded: Any) -> Any:
        """A column over the rows of the tail and the steps ahead; after those given, the last one again."""
        before = coded(self.learned[f"tail:{name}"])
        given = coded(self.future[name].values) if name in self.future else before[:, -1:]
        rest = self._reach - before.shape[1] - given.shape[1]
        return np.concatenate([before, given, np.repeat(given[:, -1:], max(rest, 0), axis=1)], axis=1)

    @cached_property
    def _clock(self) -> Floats:
        """The calendar's columns, (series, rows, columns); of one series where all stand at the same place."""
        series = self.learned.series
        if series is None:
            raise DeepForecastError("A network forecasts for series with stamps; the model around it hands none on.")
        if not self.channels.clock_width:
            return np.empty((1, self._reach, 0), dtype=np.float32)
        last = series.last[:1] if (series.last == series.last[0]).all() else series.last
        length = self.tail.shape[1]
        positions = last[:, None] + series.calendar.step * (np.arange(self._reach) - length + 1)
        return self.channels.clock_of(series.calendar, positions.reshape(-1)).reshape(len(last), self._reach, -1)

    @cached_property
    def _static(self) -> tuple[Any, Any]:
        held = {name: Covariate(self.learned[f"static:{name}"]) for name in (*self.channels.static, *self.channels.static_codes)}
        return static_of(self.channels, held, len(self.tail))


def _filled(values: Any, rows: int) -> Any:
    """Values with the first again behind them, up to so many rows."""
    return values if len(values) == rows else np.concatenate([values, np.repeat(values[:1], rows - len(values), axis=0)])


def _threads() -> int:
    from deepforecast.core.threads import allowed_threads

    return allowed_threads()
