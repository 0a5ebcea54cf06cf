"""Forecasts of a trained network: the last windows of all series in large batches, rolled on where the horizon is longer."""

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
from deepforecast.core.state import Learned
from deepforecast.core.threads import torch_limited, torch_threads
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.windows import static_of
from deepforecast.errors import DeepForecastError
from deepforecast.models.neural._forecast import LEAST, HeadForecast, Joined, filled, limits
from deepforecast.models.neural._standing import channels_of, refuse_unseen
from deepforecast.nn.batch import Batch
from deepforecast.nn.body import Stepwise
from deepforecast.nn.decoding import PLAIN, Sharpness, sampled, sharpened
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

ROWS = 512  # windows of a pass, and a multiple of LEAST: the last bits of a product hang on how many rows are left over
AT_ONCE = 2400  # paths of a pass: more of them leave the processor's memory, fewer cost more calls
WORTH = 2e8  # multiplications of a pass from which a second thread helps more than it costs
HELD = 4_000_000  # numbers that a network says of paths at once
BEYOND = (200, 9)  # paths by which steps beyond the horizon are told, and values of the distribution of each that are pooled
IN_TURN = (100, 5)  # the same of networks that take their steps in turn


def forecast(
    model: NeuralForecaster, learned: Learned, steps: int, future: Mapping[str, Covariate], plain: bool = False
) -> Forecast:
    """The forecast of the next `steps` rows. `plain`: of each by itself, not by a path that is asked for."""
    decoder = model._decoder()
    ahead = Ahead(model.name, learned, steps, future, limits(model), decoder.sharpness)
    if decoder.kind != "sample" and not plain:
        from deepforecast.models.neural._decoding import decoded

        return decoded(ahead, decoder, model.point_kind == "mean", partial(forecast, model, learned, steps, future, plain=True))
    if ahead.in_turn and ahead.network.head.distribution:
        return SampledForecast(walked(ahead, _evenly(ahead, IN_TURN[0]), IN_TURN[1]))
    first = ahead.block(ahead.tail, 0)
    if steps <= ahead.horizon:
        return first if steps == ahead.horizon else replace(first, raw=first.raw[:, :steps])
    if ahead.network.head.distribution and ahead.network.body.looks_back:
        beyond = _by_groups(ahead, BEYOND[0], lambda some: walked(some, _evenly(some, BEYOND[0]), BEYOND[1]))
        return Joined((first, SampledForecast(beyond)))
    parts, tail = [first], ahead.tail
    for begin in range(ahead.horizon, steps, ahead.horizon):
        tail = np.concatenate([tail, parts[-1].mean], axis=1)[:, -tail.shape[1] :]
        said = ahead.block(tail, begin)
        parts.append(replace(said, raw=said.raw[:, : steps - begin]))
    return Joined(tuple(parts))


def paths(
    model: NeuralForecaster, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """Sample paths, (series, samples, steps); the noise belongs to the series, whatever stands beside it."""
    ahead = Ahead(model.name, learned, steps, future, limits(model), model._decoder().sharpness)

    def drawn(some: Ahead) -> Floats:
        noise = standard_normal(seed, np.nan_to_num(some.tail), (some.blocks * some.horizon, samples))
        return walked(some, noise.transpose(0, 2, 1))

    return _by_groups(ahead, samples, drawn)


def _by_groups(ahead: Ahead, samples: int, act: Callable[[Ahead], Floats]) -> Floats:
    """Of some series after the other: what a network says of the paths of all at once would fill the memory. One that takes
    its steps in turn says one step at a time."""
    count, numbers = len(ahead.tail), samples * ahead.horizon * ahead.network.sizes.width
    size = max(HELD // numbers // LEAST, 1) * LEAST
    if ahead.in_turn or count <= size:
        return act(ahead)
    parts = (act(ahead.of(np.arange(begin, min(begin + size, count)))) for begin in range(0, count, size))
    return np.concatenate([np.array(part) for part in parts])  # copied: a part may be a view of far more


def walked(ahead: Ahead, noise: Floats, pooled: int = 0) -> Floats:
    """Paths of all steps, (series, samples, steps), by standard normal noise: block by block, each from its own values.

    `pooled`: not the paths, but so many values of each path's distribution at each step, for quantiles; of steps that come at
    once only those beyond the first block.
    """
    from scipy.special import ndtr

    series, horizon, samples, in_turn = len(ahead.tail), ahead.horizon, noise.shape[1], ahead.in_turn
    tails, found = ahead.tail, []
    for block in range(ahead.blocks):
        part = noise[:, :, block * horizon : min((block + 1) * horizon, ahead.steps if in_turn else ahead.blocks * horizon)]
        each = (series, samples) if not block else (series * samples, 1)
        uniform = ndtr(part).reshape(*each, -1)
        if in_turn:
            drawn = ahead.stepped(tails, block * horizon, uniform, pooled)
            drawn, several = drawn[:, : each[1]], drawn[:, each[1] :]
        else:
            said = ahead.block(tails, block * horizon)
            tied = uniform if ahead.ties is None else ndtr(part @ ahead.ties.T).reshape(uniform.shape)
            drawn = said.drawn(tied)
            several = said.drawn(_apart(uniform, pooled)) if block and pooled else drawn
        if not pooled or block or in_turn:
            found.append((several if pooled else drawn).reshape(series, -1, drawn.shape[2]))
        before = tails if block else np.repeat(tails, samples, axis=0)
        tails = np.concatenate([before, drawn.reshape(-1, drawn.shape[2])], axis=1)[:, -before.shape[1] :]
    return np.concatenate(found, axis=2)[:, :, : ahead.steps - (horizon if pooled and not in_turn else 0)]


def _apart(uniform: Floats, values: int) -> Floats:
    """For each draw so many, evenly spread: (B, samples, steps) to (B, samples * values, steps)."""
    found = (uniform[:, :, None] + np.arange(values)[:, None]) / values
    return found.reshape(len(uniform), -1, uniform.shape[2])


def _evenly(ahead: Ahead, count: int) -> Floats:
    """Noise for quantiles: the same for every series, its draws at each step evenly spread over the distribution."""
    from scipy.special import ndtri

    noise = standard_normal(0, np.zeros((1, 1)), (ahead.blocks * ahead.horizon, count)).transpose(0, 2, 1)
    even = ndtri((noise.argsort(axis=1).argsort(axis=1) + 0.5) / count)
    return np.repeat(even, len(ahead.tail), axis=0)


class Ahead:
    """The steps after each series' end: what is known of them, and the network's passes.

    - `horizon`: steps of one pass; `blocks`: passes up to the last step; `in_turn`: whether steps come one by one.
    - `tail`: the last rows of the target, (series, input_size).
    - `ties`: how errors of the steps hang together, a factor of their correlation.
    """

    def __init__(
        self,
        name: str,
        learned: Learned,
        steps: int,
        future: Mapping[str, Covariate],
        limits: tuple[float, float] = (-inf, inf),
        sharpness: Sharpness = PLAIN,
    ) -> None:
        self.name, self.learned, self.steps, self.future, self.limits = name, learned, steps, future, limits
        self.sharpness = sharpness
        self.network: Any = learned.shared["network"]
        self.channels = channels_of(learned)
        self.horizon, self.in_turn = self.channels.horizon, isinstance(self.network.body, Stepwise)
        self.blocks = -(-steps // self.horizon)
        self.tail: Floats = np.asarray(learned.by_series["tail"])
        if np.isnan(self.tail[:, -1]).any() and self.network.body.rests_on_window:
            refuse_unseen(name, learned)
        self.ties: Floats | None = learned.shared.get("ties")
        self._reach = self.tail.shape[1] + self.blocks * self.horizon

    def of(self, series: Ints) -> Ahead:
        """The same of some of the series."""
        future = {name: one.take(series) for name, one in self.future.items()}
        return Ahead(self.name, self.learned.take(series), self.steps, future, self.limits, self.sharpness)

    def block(self, tail: Floats, begin: int) -> HeadForecast:
        """What the network says of the steps from `begin` on, after these values; several tails a series: its paths."""
        raw, place, spread = self._passes(tail, begin)
        if self.sharpness != PLAIN:
            with torch_defaults():
                raw = sharpened(torch.from_numpy(raw), *self.sharpness).numpy()
        return HeadForecast(self.network.head, raw, place, spread, self.name, self.limits)

    def stepped(self, tail: Floats, begin: int, uniform: Floats, values: int = 0) -> Floats:
        """Values of paths drawn step by step, (series, samples, steps), after the values of each series or of each path; with
        `values` so many of each path's distribution behind them: see `nn.decoding.sampled`."""
        def act(batch: Batch, rows: slice) -> Any:
            inputs, scale = self.network.inputs(batch)
            asked = torch.from_numpy(filled(uniform[rows], len(batch)))
            return sampled(self.network, inputs, scale, asked, self.sharpness, values), scale

        few = max(AT_ONCE // uniform.shape[1] // LEAST, 1) * LEAST
        z, place, spread = self._passes(tail, begin, act, min(few, ROWS))
        return np.clip(place[..., None] + spread[..., None] * z, *self.limits)

    def _passes(self, tail: Floats, begin: int, act: Any = None, most: int = ROWS) -> tuple[Floats, Floats, Floats]:
        """What `act` (the network itself, if not said) makes of the batches, its place and its spread."""
        found: list[tuple[Any, Any, Any]] = []
        each = len(tail) // len(self.tail)
        small = len(tail) <= LEAST or self._small(len(tail))
        threads = 1 if small else torch_threads()
        with torch_defaults(), torch.inference_mode(), torch_limited(threads):
            for start in range(0, len(tail), most):
                rows = slice(start, min(start + most, len(tail)))
                count = rows.stop - rows.start
                batch = self._batch(tail[rows], np.arange(rows.start, rows.stop) // each, begin)
                raw, scale = self.network(batch) if act is None else act(batch, rows)
                found.append((raw[:count].numpy(), scale.place[:count].numpy(), scale.spread[:count].numpy()))
        if len(found) == 1:
            return found[0]
        raw, place, spread = map(np.concatenate, zip(*found, strict=True))
        return raw, place, spread

    def _small(self, rows: int) -> bool:
        """Whether a second thread would cost more than it helps."""
        return bool(rows * self.network.work < WORTH)

    def _batch(self, tail: Floats, series: Any, begin: int) -> Batch:
        wanted = -(-len(tail) // LEAST) * LEAST
        tail, rows = np.require(filled(tail, wanted), requirements=["C", "W"]), filled(series, wanted)
        past, future = slice(begin, begin + tail.shape[1]), slice(begin + tail.shape[1], begin + tail.shape[1] + self.horizon)
        channels, held, clock = self.channels, self.learned.by_series, self._clock
        of_one = np.zeros_like(rows)
        whose = rows if len(clock) > 1 else of_one
        behind, ahead = clock[whose, past], clock[whose, future]
        if channels.numbers:
            numbers = self._numbers
            behind = np.concatenate([numbers[rows, past], behind], axis=2)
            ahead = np.concatenate([numbers[rows, future, : channels.ahead], ahead], axis=2)
        codes, (static, static_codes) = self._codes, self._static
        whose = rows if len(codes) > 1 else of_one
        parts = (
            tail, behind, ahead, static[rows], codes[whose, past], codes[whose, future, : channels.ahead_codes],
            static_codes[rows], held["place"][rows, None], held["spread"][rows, None],
        )  # fmt: skip
        return Batch(*map(torch.from_numpy, parts))

    @cached_property
    def _numbers(self) -> Any:
        found = np.zeros((len(self.tail), self._reach, len(self.channels.numbers)), dtype=np.float32)
        for place, name in enumerate(self.channels.numbers):
            found[..., place] = self._whole(name, lambda values, name=name: self.channels.standardised(name, values))
        return found

    @cached_property
    def _codes(self) -> Any:
        """Codes of categories, (series, rows, columns); of one series where there are no columns."""
        count = len(self.tail) if self.channels.codes else 1
        found = np.zeros((count, self._reach, len(self.channels.codes)), dtype=np.int64)
        for place, name in enumerate(self.channels.codes):
            found[..., place] = self._whole(name, lambda values: values.astype(np.int64) + 1)
        return found

    def _whole(self, name: str, coded: Any) -> Any:
        """A column over the rows of the tail and the steps ahead; after those given, the last one again."""
        before = coded(self.learned.by_series[f"tail:{name}"])
        given = coded(self.future[name].values) if name in self.future else before[:, -1:]
        rest = self._reach - before.shape[1] - given.shape[1]
        return np.concatenate([before, given, np.repeat(given[:, -1:], max(rest, 0), axis=1)], axis=1)

    @cached_property
    def _clock(self) -> Any:
        """The calendar's columns, (series, rows, columns); of one series where all stand at the same place."""
        series = self.learned.series
        if series is None:
            raise DeepForecastError("A network forecasts for series with stamps; the model around it hands none on.")
        if not self.channels.timed:
            return np.empty((1, self._reach, 0), dtype=np.float32)
        last = series.last
        if len(last) > 1 and (last == last[0]).all():
            last = last[:1]
        length = self.tail.shape[1]
        positions = last[:, None] + series.calendar.step * (np.arange(self._reach) - length + 1)
        found = self.channels.clock_of(series.calendar, positions.reshape(-1))
        return found.reshape(len(last), self._reach, -1)

    @cached_property
    def _static(self) -> tuple[Any, Any]:
        if not (self.channels.static or self.channels.static_codes):
            return np.empty((len(self.tail), 0), dtype=np.float32), np.empty((len(self.tail), 0), dtype=np.int64)
        names = (*self.channels.static, *self.channels.static_codes)
        held = {name: Covariate(self.learned.by_series[f"static:{name}"]) for name in names}
        return static_of(self.channels, held, len(self.tail))
