"""What a regressor learns in place of the target, series by series, and the way back: power, trend, differences, scale.

Each step is undone exactly: `forward` and `back` are inverses for values, whatever a forecast does in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.data import missing as gaps
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError

POWERS = np.linspace(-1.0, 2.0, 61)  # where the power of Box and Cox is looked for
SAMPLES = np.array([-1.6448536, -1.0364334, -0.6744898, -0.3853205, -0.1256613])
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

    def learn(self, panel: Panel, name: str) -> tuple[Floats, dict[str, Any]]:
        """The target as it is learned (NaN at the begin, where differences have none), and what each series keeps of it."""
        held = {"power": self._powers(panel, name), "unit": self._units(panel), "line": np.zeros((len(panel), 2))}
        y = self._bent(panel.y, held, panel.lengths)
        if self.detrend:
            held["line"] = lines(y, panel.indptr)
        y = y - _on_line(held["line"], panel.lengths)
        for lag in self.differences:
            y = differenced(y, panel.indptr, lag)
        held["scale"] = deviations(y, panel.indptr) if self.scale else np.ones(len(panel))
        held["centre"] = means(y, panel.indptr) if self.scale else np.zeros(len(panel))
        return (y - np.repeat(held["centre"], panel.lengths)) / np.repeat(held["scale"], panel.lengths), held

    def apply(self, y: Floats, indptr: Ints, held: Mapping[str, Any], passed: Ints) -> Floats:
        """The target of other rows, by what the series keep; `passed`: rows of the fit and since before the first of these."""
        lengths = np.diff(indptr)
        y = self._bent(y, held, lengths) - _on_line(held["line"], lengths, passed)
        for lag in self.differences:
            y = differenced(y, indptr, lag)
        return np.asarray((y - np.repeat(held["centre"], lengths)) / np.repeat(held["scale"], lengths))

    def learned_tail(self, past: Floats, held: Mapping[str, Any], passed: Ints) -> Floats:
        """The last values (series, rows) as they are learned; `passed`: rows up to the last of them."""
        count, rows = past.shape
        indptr = np.arange(count + 1) * rows
        return self.apply(past.reshape(-1), indptr, held, passed - rows).reshape(count, rows)[:, self.reach :]

    def tails(self, past: Floats, held: Mapping[str, Any], passed: Ints) -> list[Floats]:
        """The last values that each difference goes on from, of `past` (series, rows): the newest rows of the target."""
        if not self.differences:
            return []
        indptr = np.arange(len(past) + 1) * past.shape[1]
        past = gaps.filled(past.reshape(-1), indptr, "interpolate").reshape(past.shape)  # a difference goes on from a value
        y = powered(past / held["unit"][:, None], held["power"][:, None])
        rows = passed[:, None] - y.shape[1] + np.arange(y.shape[1])
        y = y - (held["line"][:, :1] + held["line"][:, 1:] * rows)
        kept = []
        for lag in self.differences:
            kept.append(y[:, -lag:])
            y = y[:, lag:] - y[:, :-lag]
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


def deviations(y: Floats, indptr: Ints) -> Floats:
    """The standard deviation of each series; 1 where it never varies."""
    lengths = np.diff(indptr)
    centre = means(y, indptr)
    seen = ~np.isnan(y)
    away = np.where(seen, y - np.repeat(centre, lengths), 0.0)
    power = np.frexp(np.maximum(_reduced(np.maximum, np.abs(away), indptr), np.finfo(float).tiny))[1]
    away = np.ldexp(away, -np.repeat(power, lengths))  # near 1, so that squares neither overflow nor vanish
    count = np.add.reduceat(seen, indptr[:-1], dtype=np.float64)
    spread = np.ldexp(np.sqrt(np.add.reduceat(away * away, indptr[:-1]) / np.maximum(count, 1)), power)
    return np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)


def _reduced(act: Any, y: Floats, indptr: Ints) -> Floats:
    return np.asarray(act.reduceat(y, indptr[:-1]))


def _on_line(line: Floats, lengths: Ints, passed: Ints | None = None) -> Floats | float:
    """The line at each row."""
    if not line.any():
        return 0.0
    begin = np.cumsum(lengths) - lengths
    row = np.arange(lengths.sum()) - np.repeat(begin - (0 if passed is None else passed), lengths)
    return np.asarray(np.repeat(line[:, 0], lengths) + np.repeat(line[:, 1], lengths) * row)
