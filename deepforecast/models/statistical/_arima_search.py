"""Which order: differences by tests, the rest by an information criterion, stepwise (Hyndman & Khandakar 2008) or in full."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.models.statistical._arima_series import Fit, Order, Series, differenced

NEAR_UNIT = 1.01
"""Orders with a root nearer to the unit circle than this are passed over. As in forecast::auto.arima, but that here the roots
of seasonal polynomials are those in B^s: in B a seasonal coefficient of 0.89 would have one, and strong seasons no model."""

MOST_MODELS = 94

NEIGHBOURS = (
    (0, 0, -1, 0), (0, 0, 0, -1), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, -1, -1), (0, 0, -1, 1), (0, 0, 1, -1), (0, 0, 1, 1),
    (-1, 0, 0, 0), (0, -1, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (-1, -1, 0, 0), (-1, 1, 0, 0), (1, -1, 0, 0), (1, 1, 0, 0),
)  # fmt: skip
"""Steps of p, q, P, Q from the best order so far, in the order in which they are tried."""

Key = tuple[int, int, int, int, bool]  # p, q, P, Q, constant


@dataclass(frozen=True)
class Rules:
    """What orders are looked through, and how. `most`: of p, q, P, Q; `most_together`: their sum, in a full search; `follows`:
    a series that is constant may be differenced, which foresees the same and follows it where it moves later."""

    most: tuple[int, int, int, int] = (5, 5, 2, 2)
    most_together: int = 5
    stepwise: bool = True
    criterion: str = "aicc"
    constant: bool = True
    conditional: bool = False
    follows: bool = True


class Search:
    """Orders of a series with its differences given, each fitted once."""

    def __init__(self, series: Series, rules: Rules, d: int, big_d: int, season: int) -> None:
        rows = len(series.y) // 3
        p, q, many_p, many_q = rules.most
        most = (min(p, rows), min(q, rows), min(many_p, rows // season), min(many_q, rows // season))
        self.most = most if season > 1 else (*most[:2], 0, 0)
        self.series, self.rules = series, rules
        self.plain = Order((), d, (), (0, big_d, 0), season, False)
        self.constants = (True, False) if rules.constant and d + big_d < 2 else (False,)
        self.visited: dict[Key, Fit | None] = {}
        self.best: Fit | None = None
        self.found: Key = (0, 0, 0, 0, False)
        self.score = np.inf

    def best_fit(self) -> Fit:
        """The order with the least criterion, fitted from several starts."""
        if self._nothing_left():
            constant = self.plain.lost == 0 and self.rules.follows
            return self.series.fit(replace(self.plain, d=1) if constant else replace(self.plain, constant=self.constants[0]))
        if self.rules.stepwise:
            self._step()
        else:
            self._look_at(self._all())
        if self.best is None:  # every order was passed over
            return self.series.fit(replace(self.plain, constant=self.constants[0]))
        fits = self.series.fits(self.best.order, near=self.best, groups=1)
        return next((one for one in fits if not near_unit_root(one)), self.best)

    def _nothing_left(self) -> bool:
        order = replace(self.plain, constant=self.constants[0])
        _, _, variance = self.series.shocks(order)
        return bool(variance <= self.series.problem(order).floor)

    def _step(self) -> None:
        p, q, many_p, many_q = self.most
        first = [(2, 2, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0), (0, 1, 0, 1)]
        begin: list[Key] = [(min(a, p), min(b, q), min(c, many_p), min(d, many_q), self.constants[0]) for a, b, c, d in first]
        self._look_at([*begin, (0, 0, 0, 0, False)])
        while len(self.visited) < MOST_MODELS and self._improved():
            pass

    def _improved(self) -> bool:
        """Go to the first neighbour that is better."""
        p, q, many_p, many_q, constant = self.found
        steps: Iterator[Key] = ((p + a, q + b, many_p + c, many_q + d, constant) for a, b, c, d in NEIGHBOURS)
        if len(self.constants) > 1:
            steps = itertools.chain(steps, [(p, q, many_p, many_q, not constant)])
        return any(self._look_at([one]) for one in steps)

    def _all(self) -> Iterator[Key]:
        p, q, many_p, many_q = (range(most + 1) for most in self.most)
        every = itertools.product(p, q, many_p, many_q, self.constants)
        return (key for key in every if sum(key[:4]) <= self.rules.most_together)

    def _look_at(self, keys: Iterable[Key]) -> bool:
        """Fit orders; whether one of them is better than all so far."""
        better = False
        for key in keys:
            if key in self.visited or any(not 0 <= one <= most for one, most in zip(key, self.most, strict=False)):
                continue
            fit = self.fitted(key)
            self.visited[key] = fit
            score = np.inf if fit is None else fit.criterion(self.rules.criterion)
            if fit is not None and score < self.score:
                self.best, self.found, self.score, better = fit, key, score, True
        return better

    def fitted(self, key: Key) -> Fit | None:
        """An order fitted; None where it is passed over."""
        p, q, many_p, many_q, constant = key
        lags = tuple(range(1, p + 1)), tuple(range(1, q + 1))
        seasonal = (many_p, self.plain.seasonal[1], many_q)
        order = replace(self.plain, ar=lags[0], ma=lags[1], seasonal=seasonal, constant=constant)
        columns = self.series.columns.shape[1]
        if len(self.series.y) - order.lost <= order.coefficients + columns + 2:
            return None
        fit = self.series.fit(order, near=self.best, conditional=self.rules.conditional, rough=True)
        return None if near_unit_root(fit) or not np.isfinite(fit.log_likelihood) else fit


def near_unit_root(fit: Fit) -> bool:
    """Whether a root of one of the four polynomials, seasonal ones in B^s, lies within `NEAR_UNIT` of the unit circle."""
    order, begin = fit.order, 0
    for count, sign in ((len(order.ar), 1.0), (len(order.ma), -1.0), (order.seasonal[0], 1.0), (order.seasonal[2], -1.0)):
        part = fit.factors[begin : begin + count].tolist()
        begin += count
        if not stable([sign * one * NEAR_UNIT ** (lag + 1) for lag, one in enumerate(part)]):
            return True
    return False


def stable(coefficients: list[float]) -> bool:
    """Whether all roots of 1 - sum(coefficients B^lag) are outside the unit circle, by stepping down.

    >>> stable([0.9]), stable([1.1]), stable([0.5, 0.6])
    (True, False, False)
    """
    now = coefficients
    while now:
        last = now[-1]
        if not abs(last) < 1.0:
            return False
        size = len(now) - 1
        now = [(now[j] + last * now[size - 1 - j]) / (1.0 - last * last) for j in range(size)]
    return True


def differences_of(series: Series, big_d: int, season: int, test: str, most: int) -> int:
    """How often to difference a series, less its regression, beside its seasonal difference."""
    from deepforecast.kernels.unit_roots import differences

    values = series.filled
    if series.columns.shape[1]:
        table = np.column_stack([np.ones(len(values)), series.columns])
        values = values - table @ np.linalg.lstsq(table, values, rcond=None)[0]
    return differences(differenced(values, Order((), 0, (), (0, big_d, 0), season, False)), test, most)


def waves_chosen(y: Floats, known: Floats, waves: list[Floats], order: Order, criterion: str) -> list[int]:
    """How many waves of each season, by the criterion, the errors an ARIMA of this order; a season at a time, twice around.

    waves: for each season its columns, two a wave, the slowest first.
    """
    counts = [min(2, part.shape[1] // 2) for part in waves]
    scores: dict[tuple[int, ...], float] = {}

    def score(tried: list[int]) -> float:
        key = tuple(tried)
        if key not in scores:
            columns = np.hstack([known, *(part[:, : 2 * count] for part, count in zip(waves, tried, strict=True))])
            enough = len(y) - order.lost > columns.shape[1] + order.coefficients + 2
            scores[key] = Series.of(y, columns).fit(order, rough=True).criterion(criterion) if enough else np.inf
        return scores[key]

    for _ in range(2):
        before = list(counts)
        for place, part in enumerate(waves):
            most = part.shape[1] // 2
            for tried in sorted({0, 1, 2, 3, 4, 6, 8, 10, most} | {counts[place] - 1, counts[place] + 1}):
                if 0 <= tried <= most:
                    other = [*counts[:place], tried, *counts[place + 1 :]]
                    counts = other if score(other) < score(counts) else counts
            for tried in (counts[place] - 1, counts[place] + 1):
                if 0 <= tried <= most:
                    other = [*counts[:place], tried, *counts[place + 1 :]]
                    counts = other if score(other) < score(counts) else counts
        if counts == before:
            break
    return counts
