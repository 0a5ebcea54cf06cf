"""What the Theta models share: the season is taken out, one recursion is fitted to the rest, and the season is put back.

ThetaFamily     `_forms` says which recursions are tried, `_score` what the best is chosen by
└── Fiorucci    the models of Fiorucci et al. (2016), with what their parameters are found by
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from deepforecast.core.bounds import LONGEST_STEPPED_GAP, check_floats, check_gaps, check_integers
from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.foreign import Foreign
from deepforecast.core.idle import NO_SEASON
from deepforecast.core.manifest import Unfit
from deepforecast.core.monitor import Monitor
from deepforecast.core.noise import standard_normal
from deepforecast.core.params import param
from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from deepforecast.models import _seasonality as seasonality
from deepforecast.models.baselines._arrays import reduced
from deepforecast.models.baselines._base import resolved_season
from deepforecast.models.statistical._bands import (
    StudentForecast,
    correlated,
    freedom_of,
    in_proportion,
    mixed,
    persistence,
    variances,
)
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._holes import calmer, smoothing, spread_after_holes
from deepforecast.models.statistical._since import by_age, rows_since, spread_since, told

LONG = 10  # rows from which on the first errors may be left out


class Form(NamedTuple):
    """A recursion: dynamic or not, the bounds of w = 1 - 1/theta and of alpha, errors at the start that do not count."""

    dynamic: bool
    weight: tuple[float, float] = (0.0, 1.0)
    alpha: tuple[float, float] = (0.1, 0.99)
    skip: int = 0

    @property
    def parameters(self) -> int:
        """Numbers estimated: alpha, the first level, and w if it is free."""
        return 2 + (self.weight[0] < self.weight[1])


def weight_of(theta: float) -> float:
    """How much the line of theta = 0 counts beside that of `theta`."""
    return 1.0 - 1.0 / theta


class ThetaFamily(Statistical):
    """A Theta model: y = season * x or season + x, and the recursion is that of x.

    Learned of each series: `alpha`, `weight` (1 - 1/theta), `dynamic`; `start` and `state`, before the first row and after the
    last, of x - `centre`; `age`, how many rows at the end are missing; `index` of the season by the place on the calendar,
    `phase` (the place of the first step ahead); and what `_since` tells the spread by.
    """

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 4e-7
    seasons_needed = 2  # for a series to be tested for a season

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats",
    )
    decomposition: Literal["auto", "multiplicative", "additive", "none"] = param(
        default="auto",
        help="how a season that the 90 % test finds is taken out; auto: multiplicative where values and indices are positive",
    )

    def _forms(self) -> tuple[Form, ...]:
        """The recursions to choose from."""
        raise NotImplementedError

    def _score(self, form: Form, loss: Floats, count: Ints) -> Floats:
        """What the recursion of a series is chosen by, the lower the better: here the objective it minimises."""
        return loss

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.decomposition == "none":
            yield "season_length", "with decomposition='none'. Say decomposition='auto', or leave it out"
        if self.season_length == NO_SEASON and self.decomposition != "none":
            yield "decomposition", "without a season. Give a season_length above 1, or leave it out"

    def _needs(self, panel: Panel) -> int:
        return 4

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        if self.decomposition != "none":
            length = resolved_season(self.season_length, panel, self, "season_length")
            seasonality.say_short(panel, length, self.name, self.seasons_needed * length)
        return super()._fit(panel, monitor)

    def _estimate(self, panel: Panel) -> Learned:
        length = resolved_season(self.season_length, panel, self, "season_length")
        index, additive = self._seasons(panel, length)
        phase = _next_phase(panel, length)
        index = np.take_along_axis(index, (np.arange(length) - phase[:, None]) % length, axis=1)
        known: dict[str, Any] = {"index": index, "additive": additive, "phase": phase, "began": panel.start}
        x = _without_season(panel, known)
        known["centre"] = x[_first_rows(x, panel.indptr)]
        x, power = _near_one(x - np.repeat(known["centre"], panel.lengths), panel.indptr)
        known |= self._chosen(x, panel.indptr, np.where((index != index[:, :1]).any(axis=1), length - 1, 0))
        known |= told(panel, np.ldexp(known["deviation"], power))
        known["start"] = _rescaled(known["start"], power)
        known |= _freedom(known)
        learned = self._advance(Learned(known), panel, True)
        return replace(learned, by_series={**learned.by_series, **self._left_over(learned, panel)})

    def _left_over(self, learned: Learned, panel: Panel) -> dict[str, Floats]:
        """The deviation of x at the end of each series, where errors may have grown with the forecasts, and `persistence`."""
        known, fitted = learned.by_series, self._fitted(learned, panel)
        rows = np.where(np.repeat(known["additive"], panel.lengths), 1.0, _index_of_rows(panel, known))
        errors, sizes = (panel.y - fitted) / rows, fitted / rows
        rates = np.column_stack([known["alpha"], *np.zeros((2, len(panel))), np.ones(len(panel))])
        raw, errors = errors, errors / spread_after_holes(~np.isnan(errors), panel.indptr, smoothing(rates, 1))
        deviation = known["deviation"] * calmer(raw, errors, panel.indptr)
        deviation = deviation * in_proportion(errors, sizes, panel.indptr, known["index"].shape[1])
        return {"deviation": deviation, "persistence": persistence(errors, panel.indptr)}

    def _chosen(self, x: Floats, indptr: Ints, lost: Ints) -> dict[str, Any]:
        """Parameters and start of the best recursion of each series; `lost`: degrees of freedom that the season took."""
        tried, scores = [], []
        for form in self._forms():
            skips, count = _counted(x, indptr, form.skip)
            bounds = [np.full(len(count), bound) for bound in (*form.alpha, *form.weight, np.nan)]
            found = _kernel().estimate(x, indptr, bounds[:2], bounds[2:4], bounds[4], np.full(len(count), form.dynamic), skips)
            alpha, weight, loss, squares, start = found
            free = count - form.parameters - (not form.dynamic) - lost  # the slope of the whole series' line was estimated too
            deviation = np.where(free > 0, np.sqrt(squares / np.maximum(free, 1)), np.nan)
            tried.append({"alpha": alpha, "weight": weight, "start": start, "deviation": deviation})
            tried[-1] |= {"dynamic": np.full(len(count), form.dynamic), "free": free, "count": count}
            scores.append(self._score(form, loss, count))
        best, rows = np.argmin(scores, axis=0), np.arange(len(indptr) - 1)
        return {name: np.stack([one[name] for one in tried])[best, rows] for name in tried[0]}

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        known = {**learned.by_series, "phase": _next_phase(panel, learned["index"].shape[1])}
        x = _without_season(panel, known)
        elsewhere = np.flatnonzero((panel.start != known["began"]) & fresh)
        if len(elsewhere):
            known |= {name: known[name].copy() for name in ("centre", "start")}
            known["centre"][elsewhere] = x[_first_rows(x, panel.indptr)[elsewhere]]
        x = x - np.repeat(known["centre"], panel.lengths)
        if len(elsewhere):
            known["start"][elsewhere] = _restarted(x, panel.indptr, known, elsewhere)
            known["began"] = panel.start
        begin = known["start" if fresh else "state"]
        fitted, known["state"] = _kernel().filtered(x, panel.indptr, begin, known["alpha"], known["weight"], known["dynamic"])
        known["age"] = rows_since(panel, None if fresh else known["age"])
        known |= spread_since(known, panel, x - fitted, fresh)
        return Learned(known, history=panel if fresh else None)

    def _revive(self, learned: Learned, foreign: Foreign) -> Learned:
        places = learned["index"].shape
        if len(places) != 2 or not places[1]:
            raise Unfit("its seasonal index must have at least one place for each series")
        check_integers(learned, "phase", 0, places[1] - 1)
        check_floats(learned, ["start", "state"], (_kernel().WIDTH,))
        check_floats(learned, ["alpha", "weight", "centre", "deviation"], ())
        check_gaps(learned, LONGEST_STEPPED_GAP)
        return learned

    def _estimated(self, learned: Learned, state: State) -> dict[str, Any]:
        """theta, alpha, first level and slope of the line as it begins, how the season is taken out, sigma of the rest."""
        kernel, start = _kernel(), learned["start"]
        seasonal = (learned["index"] != learned["index"][:, :1]).any(axis=1)
        kinds = np.where(seasonal, np.where(learned["additive"], "additive", "multiplicative"), "none")
        with np.errstate(divide="ignore"):
            theta = 1.0 / (1.0 - learned["weight"])
        return {
            "dynamic": learned["dynamic"], "theta": theta, "alpha": learned["alpha"],
            "level": start[:, kernel.LEVEL] + learned["centre"],
            "slope": start[:, kernel.PRODUCTS] / np.where(start[:, kernel.SQUARES] > 0, start[:, kernel.SQUARES], 1.0),
            "season": kinds.astype(object), "sigma": learned["deviation"],
        }  # fmt: skip

    def _fitted(self, learned: Learned, panel: Panel) -> Floats:
        known = {**learned.by_series, "phase": _next_phase(panel, learned["index"].shape[1])}
        centre = np.repeat(known["centre"], panel.lengths)
        x = _without_season(panel, known) - centre
        found, _ = _kernel().filtered(x, panel.indptr, known["start"], known["alpha"], known["weight"], known["dynamic"])
        rows = _index_of_rows(panel, known)
        additive = np.repeat(known["additive"], panel.lengths)
        return np.asarray(np.where(additive, found + centre + rows, (found + centre) * rows))

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        parameters = learned["state"], learned["alpha"], learned["weight"], learned["dynamic"]
        spread = _kernel().deviations(*parameters, steps, learned["age"])
        spread *= by_age(learned, lambda group: _persistent(group, steps))
        slope = by_age(learned, lambda group: _of_slope(group, steps))
        spread = np.hypot(spread, slope) * learned["deviation"][:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            mean = _with_season(_paths(learned, np.zeros((len(spread), 1, steps))), learned)[:, 0]
            spread = np.where(learned["additive"][:, None], spread, spread * _ahead(learned, steps))
            return StudentForecast(mean, spread, learned["freedom"])

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        keys = np.column_stack([learned[name] for name in ("state", "alpha", "weight", "deviation", "index")])
        draws = standard_normal(seed, keys, (3 + steps, samples)).swapaxes(1, 2)
        scale = mixed(draws[:, :, 0], learned["freedom"]) * learned["deviation"][:, None]
        slope = by_age(learned, lambda group: _of_slope(group, steps))
        slope = (scale * draws[:, :, 1])[:, :, None] * slope[:, None, :]
        draws = correlated(draws[:, :, 2:], learned["persistence"]) * (scale * learned["wider"][:, None])[:, :, None]
        age = learned["age"][:, None]  # the errors of rows stepped over have moved the level, by alpha times each
        shocks = np.where(age[:, :, None] > 0, draws[:, :, 1:], draws[:, :, :-1])
        away = draws[:, :, 0] * learned["alpha"][:, None] * np.sqrt(age)
        with np.errstate(over="ignore", invalid="ignore"):
            return _with_season(_paths(learned, np.ascontiguousarray(shocks), away) + slope, learned)

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        plain = _paths(learned, np.zeros((len(learned["alpha"]), 1, steps)))
        whole, plain = _with_season(plain, learned)[:, 0], plain[:, 0]
        level = np.repeat((learned["state"][:, _kernel().LEVEL] + learned["centre"])[:, None], steps, axis=1)
        trend, season = plain - level, whole - plain
        return {"level": level, "trend": trend, "season": season + (whole - (level + trend + season))}

    def _seasons(self, panel: Panel, length: int) -> tuple[Floats, Any]:
        """Indices (series, places), place 0 that of the first step ahead, and which of them are to be added."""
        if self.decomposition == "none":
            return np.ones((len(panel), length)), np.zeros(len(panel), dtype=bool)
        index, additive = seasonality.seasons(panel.y, panel.indptr, length, self.decomposition, self.seasons_needed)
        if self.decomposition == "multiplicative" and additive.any():
            raise DataError(
                f"A multiplicative season needs values above 0 in column {panel.series.columns.target}; series "
                f"{panel.series.labels(np.flatnonzero(additive))} has others. Say decomposition='auto' or 'additive', or leave "
                "these series out."
            )
        return index, additive


class Fiorucci(ThetaFamily):
    """A model whose parameters lie in the bounds of R's forecTheta: alpha in 0.1 to 0.99, theta at least 1, maybe infinite."""

    coverage_process: ClassVar[str] = "local_level"

    objective: Literal["likelihood", "squares"] = param(
        default="likelihood",
        help="squares: the sum of squared errors from the fourth row on; likelihood: of all rows, the first level unknown",
    )

    def _form(self, *, dynamic: bool, theta: float | None = None) -> Form:
        weight = (0.0, 1.0) if theta is None else (weight_of(theta), weight_of(theta))
        return Form(dynamic, weight, skip=3 if self.objective == "squares" else 0)


def _freedom(known: Mapping[str, Any]) -> dict[str, Any]:
    """Degrees of freedom, and what deviations are multiplied by for what is estimated beside first level and slope, whose part
    `_of_slope` tells; all of it where the slope has no part in the forecast."""
    count, estimated = known["count"], known["count"] - known["free"]
    apart = np.where(known["weight"] > 0.0, np.where(known["dynamic"], 1, 2), 0)
    freedom, _ = freedom_of(count, estimated, known["ripple"])
    return {"freedom": freedom, "wider": freedom_of(count, estimated - apart, known["ripple"])[1]}


def _persistent(learned: Learned, steps: int) -> Floats:
    """What deviations are multiplied by: `wider`, and more where errors follow each other and so add up in the level."""
    rows = int(learned["age"].max(initial=0)) + steps
    responses = np.repeat(learned["alpha"][:, None], rows, axis=1)
    responses[:, 0] = 1.0
    ratio = variances(responses, learned["persistence"]) / variances(responses, np.zeros(len(responses)))
    ahead = np.take_along_axis(ratio, learned["age"][:, None] + np.arange(steps), axis=1)
    return np.asarray(np.sqrt(ahead) * learned["wider"][:, None])


def _of_slope(learned: Learned, steps: int) -> Floats:
    """How far the steps ahead are off by error of the first level and of the slope, in deviations of an error.

    Row t is forecast with (1 - alpha)^(t-1) of the first level and s_t = (1 - (1 - alpha)^t) / alpha of the slope; with both
    unknown their covariance is the inverse of the sums of squares and products of these over the n values. Step h has
    (1 - alpha)^n and s_{n+h} + alpha (s_{n+1} + ... + s_{n+h-1}) of them: for long series (1 + alpha (h - 1))^2 / n, that of a
    drift.
    """
    alpha, n, age = learned["alpha"], learned["count"].astype(np.float64), learned["age"]
    keep = 1.0 - alpha
    ones, twos = (1.0 - keep**n) / alpha, (1.0 - keep ** (2 * n)) / (1.0 - keep * keep)  # sums of keep^(t-1), keep^(2 t-2)
    cross = (ones - keep * twos) / alpha
    slopes = (n - 2 * keep * ones + keep * keep * twos) / alpha**2
    rows = np.arange(1, int(age.max(initial=0)) + steps + 1)
    reach = (1.0 - keep[:, None] ** (n[:, None] + rows)) / alpha[:, None]
    reach[:, 1:] += alpha[:, None] * np.cumsum(reach, axis=1)[:, :-1]
    reach = np.take_along_axis(reach, age[:, None] + np.arange(steps), axis=1)
    first = np.broadcast_to((keep**n)[:, None], reach.shape)
    inside = np.maximum(twos * slopes - cross**2, 1e-12 * twos * slopes)[:, None]
    variance = (slopes[:, None] * first**2 - 2 * cross[:, None] * first * reach + twos[:, None] * reach**2) / inside
    known = (learned["weight"] > 0.0) & np.isfinite(learned["freedom"])
    return np.sqrt(np.maximum(np.where(known[:, None], variance, 0.0), 0.0))


def _kernel() -> Any:
    """The compiled arithmetic, and numba with it: on first use."""
    from deepforecast.kernels import theta

    return theta


def _restarted(x: Floats, indptr: Ints, known: Mapping[str, Any], some: Ints) -> Floats:
    """States before the first row of some histories, for the parameters known."""
    begin, end = indptr[some], indptr[some + 1]
    bounds = np.concatenate([[0], np.cumsum(end - begin)])
    x, power = _near_one(x[np.arange(bounds[-1]) + np.repeat(begin - bounds[:-1], end - begin)], bounds)
    kernel, old = _kernel(), known["start"][some]
    slope = old[:, kernel.PRODUCTS] / np.where(old[:, kernel.SQUARES] > 0, old[:, kernel.SQUARES], 1.0)
    alpha, weight, dynamic = (known[name][some] for name in ("alpha", "weight", "dynamic"))
    skips = np.zeros(len(some), np.int64)
    *_, start = kernel.estimate(x, bounds, (alpha, alpha), (weight, weight), np.ldexp(slope, -power), dynamic, skips)
    return _rescaled(start, power)


def _near_one(x: Floats, indptr: Ints) -> tuple[Floats, Ints]:
    """Values over a power of 2 (given as its exponent), so that squares neither overflow nor vanish."""
    _, power = np.frexp(reduced(np.nan_to_num(np.abs(x)), indptr[:-1], indptr[1:], np.maximum))
    return np.ldexp(x, -np.repeat(power, np.diff(indptr))), power


def _rescaled(start: Floats, power: Ints) -> Floats:
    """States of values that were divided by a power of 2, for the values themselves."""
    kernel = _kernel()
    places = [kernel.LEVEL, kernel.MEAN, kernel.PRODUCTS]
    start[:, places] = np.ldexp(start[:, places], power[:, None])
    return start


def _counted(x: Floats, indptr: Ints, skip: int) -> tuple[Ints, Ints]:
    """How many errors at the start of each series do not count, and how many do."""
    first, end = _first_rows(x, indptr), indptr[1:]
    skips = np.where(end - first >= LONG, skip, 0)
    return skips, reduced(~np.isnan(x), first + skips, end)


def _first_rows(x: Floats, indptr: Ints) -> Ints:
    """The row of the first value of each series."""
    seen = np.flatnonzero(~np.isnan(x))
    return seen[np.searchsorted(seen, indptr[:-1])]


def _next_phase(panel: Panel, length: int) -> Ints:
    """The place in the season of the first step ahead, counted on the calendar: histories may end anywhere."""
    return np.asarray((panel.series.last // panel.calendar.step + 1) % length)


def _index_of_rows(panel: Panel, known: Mapping[str, Any]) -> Floats:
    """The index of the place of each row."""
    length = known["index"].shape[1]
    into = np.arange(len(panel.y)) - np.repeat(panel.indptr[1:] - known["phase"], panel.lengths)
    return np.asarray(known["index"][panel.row_series, into % length])


def _without_season(panel: Panel, known: Mapping[str, Any]) -> Floats:
    rows = _index_of_rows(panel, known)
    return np.where(np.repeat(known["additive"], panel.lengths), panel.y - rows, panel.y / rows)


def _ahead(learned: Learned, steps: int) -> Floats:
    """The index of each step ahead."""
    length = learned["index"].shape[1]
    return np.take_along_axis(learned["index"], (learned["phase"][:, None] + np.arange(steps)) % length, axis=1)


def _with_season(paths: Floats, learned: Learned) -> Floats:
    index = _ahead(learned, paths.shape[-1])[:, None, :]
    return np.where(learned["additive"][:, None, None], paths + index, paths * index)


def _paths(learned: Learned, shocks: Floats, away: Floats | None = None) -> Floats:
    """Paths without season."""
    found = _kernel().ahead(learned["state"], learned["alpha"], learned["weight"], learned["dynamic"], shocks, away)
    return np.asarray(found + learned["centre"][:, None, None])
