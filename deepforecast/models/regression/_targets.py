"""What a regressor learns in place of the target, series by series, and the way back: power, trend, differences, scale.

Each step is undone exactly: `forward` and `back` are inverses for values, whatever a forecast does in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from deepforecast.models.regression import _tails

POWERS = np.linspace(-1.0, 2.0, 61)  # where the power of Box and Cox is looked for
SAMPLES = np.array([-1.6448536, -1.0364334, -0.6744898, -0.3853205, -0.1256613])
NOISE = 1e-13  # of the largest value: what differences leave of a series that repeats itself
NODES = np.concatenate([SAMPLES, -SAMPLES])  # normal quantiles, to take a mean over a distribution


@dataclass(frozen=True)
class Target:
    """Which steps are taken, in this order. `differences`: lags, each taken of what the one before left."""

    power: str | None = None
    detrend: bool = False
    differences: tuple[int, ...] = ()
    scale: bool = True

    @property
    def reach(self) -> int:
        """Values at the begin of a series that differences cost."""
        return sum(self.differences)

    def lags_at(self, step: int) -> tuple[int, ...]:
        """The differences that the regressor of step `step` (0, 1, ...) of a block learns: the least multiples of `differences`
        that reach back behind the first step, so that forecasts start from observed values and errors do not add up."""
        return tuple(lag * (step // lag + 1) for lag in self.differences)

    def reach_of(self, block: int) -> int:
        """Values before the first step of a block that its forecasts go on from."""
        return sum(self.lags_at(block - 1))

    @property
    def longest(self) -> int:
        """The longest difference: a season, if there is one."""
        return max(self.differences, default=1)

    def learn(self, panel: Panel, name: str) -> tuple[Floats, dict[str, Any]]:
        """The target as it is learned (NaN at the begin, where differences have none), and what each series keeps of it."""
        held = {"power": self._powers(panel, name), "unit": self._units(panel), "line": np.zeros((len(panel), 2))}
        y = self._bent(panel.y, held, panel.lengths)
        if self.detrend:
            held["line"] = lines(y, panel.indptr)
        y = y - _on_line(held["line"], panel.lengths)
        held.update(self.measured(y, panel.indptr))
        return self.scaled(y, panel.indptr, held), held

    def measured(self, y: Floats, indptr: Ints) -> dict[str, Floats]:
        """Of such values before their differences: the usual change over the longest of these, and centre and scale after them,
        a scale of 0 for a series that never varies."""
        count = len(indptr) - 1
        largest = _reduced(np.maximum, np.where(np.isnan(y), 0.0, np.abs(y)), indptr)
        drift = means(differenced(y, indptr, self.longest), indptr) if self.differences else np.zeros(count)
        for lag in self.differences:
            y = differenced(y, indptr, lag)
        if not self.scale:
            return {"drift": drift, "centre": np.zeros(count), "scale": np.ones(count)}
        return {"drift": drift, "centre": means(y, indptr), "scale": deviations(y, indptr, 0.0, NOISE * largest)}

    def apply(self, y: Floats, indptr: Ints, held: Mapping[str, Any], passed: Ints) -> Floats:
        """The target of other rows, by what the series keep; `passed`: rows of the fit and since before the first of these."""
        return self.scaled(self.straight(y, indptr, held, passed), indptr, held)

    def straight(self, y: Floats, indptr: Ints, held: Mapping[str, Any], passed: Ints) -> Floats:
        """The target of such rows before differences are taken."""
        lengths = np.diff(indptr)
        return np.asarray(self._bent(y, held, lengths) - _on_line(held["line"], lengths, passed))

    def ends(self, y: Floats, indptr: Ints, drift: Floats, block: int = 1) -> Floats:
        """What differences go on from: of each series the last of such values, as many as the steps of a block reach back. In
        the place of a missing one stands the one of the longest difference before, moved on by the usual change since; before a
        series began, its first value."""
        from deepforecast.kernels import features as kernel

        if not self.differences:
            return np.empty((len(drift), 0))
        if np.isnan(y).any():
            y = y.copy()
            kernel.fill_missing(y, indptr, self.longest, drift)
        found = _tails.tail(y, indptr, self.reach_of(block))
        first = np.argmax(~np.isnan(found), axis=1)[:, None]
        return np.where(np.isnan(found), np.take_along_axis(found, first, axis=1), found)

    def learned_tail(self, past: Floats, held: Mapping[str, Any], passed: Ints) -> Floats:
        """The last values (series, rows) as they are learned; `passed`: rows up to the last of them."""
        count, rows = past.shape
        indptr = np.arange(count + 1) * rows
        return self.apply(past.reshape(-1), indptr, held, passed - rows).reshape(count, rows)[:, self.reach :]

    def tails(self, ends: Floats) -> list[Floats]:
        """The last values that each difference goes on from."""
        kept = []
        for lag in self.differences:
            kept.append(ends[:, -lag:])
            ends = ends[:, lag:] - ends[:, :-lag]
        return kept

    def back(
        self, found: Floats, held: Mapping[str, Any], tails: list[Floats], passed: Ints, spread: Floats | None = None
    ) -> Floats:
        """Forecasts (series, steps) as values of the target again. `spread`: the deviation of one step's errors as they are
        learned, of a forecast that is to be the mean where a power bends them; undone differences add them up."""
        y = found * held["scale"][:, None] + held["centre"][:, None]
        errors = np.ones(y.shape)
        for lag, tail in zip(reversed(self.differences), reversed(tails), strict=True):
            y = np.concatenate([tail, y], axis=1)
            for step in range(lag, y.shape[1]):
                y[:, step] += y[:, step - lag]
            y = y[:, lag:]
            errors = errors * (1 + np.arange(y.shape[1]) // lag)
        rows = passed[:, None] + np.arange(y.shape[1])
        y = y + held["line"][:, :1] + held["line"][:, 1:] * rows
        power, unit = held["power"][:, None], held["unit"][:, None]
        if spread is None or self.power is None:
            return np.asarray(unpowered(y, power) * unit)
        away = (spread * held["scale"])[:, None] * np.sqrt(errors)
        return np.asarray(np.mean([unpowered(y + node * away, power) for node in NODES], axis=0) * unit)

    def scaled(self, y: Floats, indptr: Ints, held: Mapping[str, Any], step: int = 0) -> Floats:
        """The differences that the regressor of a step learns, centred and scaled; 0 where a series never varied."""
        terms = 1  # of one-step changes: a difference over two seasons is the sum of two seasonal ones
        for lag, multiple in zip(self.differences, self.lags_at(step), strict=True):
            y = differenced(y, indptr, multiple)
            terms *= multiple // lag
        lengths, scale = np.diff(indptr), np.where(held["scale"] > 0, held["scale"], np.inf)
        return np.asarray((y - np.repeat(terms * held["centre"], lengths)) / np.repeat(scale, lengths))

    def terms(self, step: int) -> Floats:
        """With z the changes over `differences`, the target w of a step is the sum over j of terms[j] z_{t-j}."""
        found = np.ones(1)
        for lag in self.differences:
            each = np.zeros(step // lag * lag + 1)
            each[::lag] = 1.0
            found = np.convolve(found, each)
        return found

    def to_changes(self, found: Floats, before: Floats, block: int, start: int = 0) -> None:
        """Turn forecasts w (series, steps, ...), from step `start` on, into changes z, in place: z_t = w_t - sum over j > 0 of
        terms[j] z_{t-j}. `before`: the last changes observed; without them, only what the steps themselves contribute."""
        if block == 1 or not self.differences:
            return
        for step in range(start, found.shape[1]):
            terms = self.terms(step % block)
            for back in np.flatnonzero(terms[1:]) + 1:
                if back <= step:
                    found[:, step] -= terms[back] * found[:, step - back]
                elif back - step <= before.shape[1]:
                    found[:, step] -= terms[back] * before[:, step - back]

    def _bent(self, y: Floats, held: Mapping[str, Any], lengths: Ints) -> Floats:
        """The values under the power of their series."""
        if self.power is None:
            return y
        return powered(y / np.repeat(held["unit"], lengths), np.repeat(held["power"], lengths))

    def _units(self, panel: Panel) -> Floats:
        """What values are counted in before a power is taken: near 1 the power of Box and Cox loses no digits."""
        return np.exp(means(np.log(panel.y), panel.indptr)) if self.power == "box_cox" else np.ones(len(panel))

    def _powers(self, panel: Panel, name: str) -> Floats:
        if self.power is None:
            return np.ones(len(panel))
        low = _reduced(np.minimum, np.where(np.isnan(panel.y), np.inf, panel.y), panel.indptr)
        bad = np.flatnonzero(low <= 0)
        if len(bad):
            raise DataError(
                f"{name} takes a power of the target (power={self.power!r}), so values are above 0; series "
                f"{panel.series.labels(bad)} has {low[bad[0]]:g}, the first of them. Say power=None, or leave these series out."
            )
        return np.zeros(len(panel)) if self.power == "log" else box_cox(panel.y, panel.indptr)


def powered(y: Floats, power: Floats) -> Floats:
    """Box and Cox: (y^power - 1) / power, the logarithm at 0, the value itself at 1."""
    if (power == 1).all():
        return y
    with np.errstate(invalid="ignore", divide="ignore"):
        log = np.log(y)
        away = np.where(power == 0, log, np.expm1(power * log) / np.where(power == 0, 1, power))
    return np.where(power == 1, y, away)


def unpowered(y: Floats, power: Floats) -> Floats:
    """The value whose power is `y`."""
    if (power == 1).all():
        return y
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        inner = np.maximum(power * y, -1 + 1e-12)
        away = np.where(power == 0, np.exp(y), np.exp(np.log1p(inner) / np.where(power == 0, 1, power)))
    return np.where(power == 1, y, away)


def box_cox(y: Floats, indptr: Ints) -> Floats:
    """The power of each series under which its changes look most normal: the profile likelihood on a grid."""
    lengths = np.diff(indptr)
    seen = ~np.isnan(y)
    count = np.maximum(np.add.reduceat(seen, indptr[:-1], dtype=np.float64), 1)
    log = np.where(seen, np.log(np.where(seen, y, 1.0)), 0.0)
    logs = np.add.reduceat(log, indptr[:-1])
    best, power = np.full(len(lengths), -np.inf), np.ones(len(lengths))
    middle = np.repeat(logs / count, lengths)
    for one in POWERS:
        moved = np.where(seen, powered(np.exp(log - middle), np.full(len(y), one)), np.nan)
        spread = deviations(moved, indptr)
        found = -count * np.log(spread)
        better = found > best
        best, power = np.where(better, found, best), np.where(better, one, power)
    return power


def differenced(y: Floats, indptr: Ints, lag: int) -> Floats:
    """Changes over `lag` rows within each series; NaN at its first rows."""
    out = np.full(len(y), np.nan)
    out[lag:] = y[lag:] - y[:-lag]
    first = np.arange(lag)
    heads = indptr[:-1, None] + first
    out[heads[heads < indptr[1:, None]]] = np.nan
    return out


def lines(y: Floats, indptr: Ints) -> Floats:
    """Least-squares line of each series over its rows: value at row 0 and slope."""
    lengths = np.diff(indptr)
    row = np.arange(len(y)) - np.repeat(indptr[:-1], lengths)
    seen = ~np.isnan(y)
    middle_row, middle = means(np.where(seen, row, np.nan), indptr), means(y, indptr)
    away_row = np.where(seen, row - np.repeat(middle_row, lengths), 0.0)
    away = np.where(seen, y - np.repeat(middle, lengths), 0.0)
    squares = np.add.reduceat(away_row * away_row, indptr[:-1])
    slope = np.add.reduceat(away_row * away, indptr[:-1]) / np.where(squares > 0, squares, 1.0)
    return np.stack([middle - slope * middle_row, slope], axis=1)


def means(y: Floats, indptr: Ints) -> Floats:
    """The mean of each series, missing values apart; 0 where it has none."""
    seen = ~np.isnan(y)
    first = y[indptr[:-1]]
    base = np.where(np.isnan(first), 0.0, first)
    total = np.add.reduceat(np.where(seen, y - np.repeat(base, np.diff(indptr)), 0.0), indptr[:-1])
    count = np.add.reduceat(seen, indptr[:-1], dtype=np.float64)
    return np.where(count > 0, base + total / np.maximum(count, 1), 0.0)


def deviations(y: Floats, indptr: Ints, flat: float = 1.0, noise: Floats | float = 0.0) -> Floats:
    """The standard deviation of each series; `flat` where it never varies by more than last digits, or than `noise`."""
    lengths = np.diff(indptr)
    centre = means(y, indptr)
    seen = ~np.isnan(y)
    away = np.where(seen, y - np.repeat(centre, lengths), 0.0)
    power = np.frexp(np.maximum(_reduced(np.maximum, np.abs(away), indptr), np.finfo(float).tiny))[1]
    away = np.ldexp(away, -np.repeat(power, lengths))  # near 1, so that squares neither overflow nor vanish
    count = np.add.reduceat(seen, indptr[:-1], dtype=np.float64)
    spread = np.ldexp(np.sqrt(np.add.reduceat(away * away, indptr[:-1]) / np.maximum(count, 1)), power)
    return np.where(spread > np.maximum(1e-12 * np.abs(centre), noise), spread, flat)


def _reduced(act: Any, y: Floats, indptr: Ints) -> Floats:
    return np.asarray(act.reduceat(y, indptr[:-1]))


def _on_line(line: Floats, lengths: Ints, passed: Ints | None = None) -> Floats | float:
    """The line at each row."""
    if not line.any():
        return 0.0
    begin = np.cumsum(lengths) - lengths
    row = np.arange(lengths.sum()) - np.repeat(begin - (0 if passed is None else passed), lengths)
    return np.asarray(np.repeat(line[:, 0], lengths) + np.repeat(line[:, 1], lengths) * row)
