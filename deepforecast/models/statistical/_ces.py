"""What the models of complex exponential smoothing share.

ComplexSmoothing    `_forms` says which kinds of season a series may have, `_score` what the best is chosen by
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.core.bounds import LONGEST_STEPPED_GAP, check_floats, check_gaps, check_integers
from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.foreign import Foreign
from deepforecast.core.noise import standard_normal
from deepforecast.core.params import param
from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
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
from deepforecast.models.statistical._holes import States, calmer, spread_after_holes
from deepforecast.models.statistical._since import by_age, rows_since, spread_since, told

FORMS = ("none", "simple", "partial", "full")
PARAMETERS = np.array([2, 2, 3, 4])
STATES = np.array([[2, 0], [0, 2], [2, 1], [2, 2]])  # numbers that a form starts from: once, and for each place of the season
SHORTEST = 5
EXACT = 1e-28  # a mean square, of values up to 1, that is rounding


class ComplexSmoothing(Statistical):
    """Complex exponential smoothing with the forms of season that `_forms` names.

    Learned of each series: `form` (its place in FORMS), `parameters` (real and imaginary part of the level's, then of the
    season's); `level` and `season` (the next row's place first) after the last row, and before the first: `first_level` and
    `first_season`, where `began` says; `age`, how many rows at the end are missing.
    """

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 6e-7

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats",
    )

    def _forms(self, counts: Ints, season: int) -> Any:
        """Which of FORMS each series, of so many values, may have (series, 4)."""
        raise NotImplementedError

    def _score(self, fit: Floats, number: Floats, count: Floats) -> Floats:
        """What a form is chosen by, the lower the better: from n log(mean square), parameters with sigma, and n."""
        raise NotImplementedError

    def _needs(self, panel: Panel) -> int:
        return SHORTEST

    def _season(self, panel: Panel) -> int:
        """The season looked for."""
        return resolved_season(self.season_length, panel, self, "season_length")

    def _estimate(self, panel: Panel) -> Learned:
        from deepforecast.kernels import ces_search

        season = self._season(panel)
        _, power = np.frexp(reduced(np.nan_to_num(np.abs(panel.y)), panel.indptr[:-1], panel.indptr[1:], np.maximum))
        y = np.ldexp(panel.y, -np.repeat(power, panel.lengths))  # near 1, so that squares neither overflow nor vanish
        wanted = self._forms(panel.observed, season)
        index = _first_indices(y, panel.indptr, season, wanted)
        parameters, squares = ces_search.estimate(y, panel.indptr, index, _with_simpler(wanted))
        count = panel.observed[:, None].astype(np.float64)
        fit = count * np.log(np.maximum(squares / count, EXACT))
        score = np.where(wanted, self._score(fit, PARAMETERS + 1.0, count), np.inf)
        form, rows = np.argmin(score, axis=1), np.arange(len(panel))
        free = count[:, 0] - fitted_numbers(season)[form]
        deviation = np.where(free > 0, np.sqrt(squares[rows, form] / np.maximum(free, 1.0)), np.nan)
        known = {"form": form, "parameters": parameters[rows, form], **told(panel, np.ldexp(deviation, power))}
        known["freedom"], known["wider"] = freedom_of(count[:, 0], fitted_numbers(season)[form], known["ripple"])
        none = np.full(len(panel), np.iinfo(np.int64).min)
        learned = self._advance(Learned({**known, "began": none, **_nowhere(len(panel), season)}), panel, True)
        fitted = self._fitted(learned, panel)
        raw = panel.y - fitted
        errors = raw / spread_after_holes(~np.isnan(raw), panel.indptr, _states(learned, season))
        known = {**learned.by_series, "persistence": persistence(errors, panel.indptr)}
        known["deviation"] = known["deviation"] * calmer(raw, errors, panel.indptr)
        known["deviation"] = known["deviation"] * in_proportion(errors, fitted, panel.indptr, season)
        return replace(learned, by_series=known)

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        from deepforecast.kernels import ces

        known = dict(learned.by_series)
        if fresh:
            elsewhere = np.flatnonzero(panel.start != known["began"])
            if len(elsewhere):
                for name, found in zip(("first_level", "first_season"), _starts(panel, known, elsewhere), strict=True):
                    known[name] = known[name].copy()
                    known[name][elsewhere] = found
                known["began"] = panel.start
            known["level"], known["season"] = known["first_level"], known["first_season"]
        fitted, known["level"], known["season"] = ces.filtered(
            panel.y, panel.indptr, known["form"], known["parameters"], known["level"], known["season"]
        )
        known["age"] = rows_since(panel, None if fresh else known["age"])
        known |= spread_since(known, panel, panel.y - fitted, fresh)
        return Learned(known, history=panel if fresh else None)

    def _revive(self, learned: Learned, foreign: Foreign) -> Learned:
        check_integers(learned, "form", 0, len(FORMS) - 1)
        check_floats(learned, ["parameters"], (4,))
        check_floats(learned, ["level", "first_level"], (2,))
        check_floats(learned, ["season", "first_season"], (max(learned["season"].shape[1:2], default=1), 2))
        check_gaps(learned, LONGEST_STEPPED_GAP)
        return learned

    def _estimated(self, learned: Learned, state: State) -> dict[str, Any]:
        """The form of the season, and real and imaginary parts of the smoothing of level and season (NaN: not of this form)."""
        which = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]], bool)[learned["form"]]
        held = np.where(which, learned["parameters"], np.nan)
        names = ("level_real", "level_imaginary", "season_real", "season_imaginary")
        columns: dict[str, Any] = {"form": np.array(FORMS, dtype=object)[learned["form"]]}
        return columns | {name: held[:, place] for place, name in enumerate(names)} | {"sigma": learned["deviation"]}

    def _fitted(self, learned: Learned, panel: Panel) -> Floats:
        from deepforecast.kernels import ces

        names = ("form", "parameters", "first_level", "first_season")
        return ces.filtered(panel.y, panel.indptr, *(learned[name] for name in names))[0]

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        level, season = _ahead(learned, steps)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            variance = by_age(learned, lambda group: _variance(group, steps))
            deviation = np.sqrt(variance) * (learned["deviation"] * learned["wider"])[:, None]
            return StudentForecast(level + season, deviation, learned["freedom"])

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        return by_age(learned, lambda group: self._sample_paths(group, steps, samples, seed))

    def _sample_paths(self, learned: Learned, steps: int, samples: int, seed: int) -> Floats:
        level, season = _ahead(learned, steps)
        response = _response(learned, steps)
        keys = [learned[name].reshape(len(level), -1) for name in ("parameters", "level", "season", "deviation")]
        lags, oldest = _lags(learned, steps), response.shape[1] - steps
        draws = standard_normal(seed, np.concatenate(keys, axis=1), (1 + oldest + steps, samples)).swapaxes(1, 2)
        mixing = mixed(draws[:, :, 0], learned["freedom"]) * (learned["deviation"] * learned["wider"])[:, None]
        shocks = correlated(draws[:, :, 1:], learned["persistence"]) * mixing[:, :, None]
        paths = np.repeat((level + season)[:, None, :], samples, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            for row in range(oldest + steps):  # first those that were stepped over
                first = max(row - oldest, 0)
                lag = lags[:, first:] - row
                added = np.where(lag >= 0, np.take_along_axis(response, np.maximum(lag, 0), axis=1), 0.0)
                paths[:, :, first:] += shocks[:, :, row, None] * added[:, None, :]
        return paths

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        level, season = _ahead(learned, steps)
        whole = level + season
        carried = learned["season"][:, :, 0].mean(axis=1)  # a simple season carries the level
        level = np.where((learned["form"] == FORMS.index("simple"))[:, None], carried[:, None], level)
        season = whole - level
        return {"level": level, "season": season + (whole - (level + season))}


def fitted_numbers(season: int) -> Ints:
    """Of each form: parameters, and the state that a series starts from, which backcasting fits as well."""
    return np.asarray(PARAMETERS + STATES @ np.array([1, season]))


def _states(learned: Learned, season: int) -> States:
    """The level's pair, and that of a place of the season, as `kernels.ces` moves them."""
    move, gain = np.zeros((len(learned["form"]), 4, 4)), np.zeros((len(learned["form"]), 4))
    own = np.array([[1, 0], [0, 1], [1, 0], [1, 1]], bool)[learned["form"]]
    for pair in range(2):
        p0, p1 = learned["parameters"][:, 2 * pair], learned["parameters"][:, 2 * pair + 1]
        first, there = 2 * pair, own[:, pair]
        move[:, first, first] = 1.0
        move[:, first, first + 1], move[:, first + 1, first] = np.where(there, p1 - 1.0, 0.0), there
        move[:, first + 1, first + 1] = np.where(there, 1.0 - p0, 0.0)
        gain[:, first], gain[:, first + 1] = np.where(there, p0 - p1, 0.0), np.where(there, p0 + p1, 0.0)
    partial = learned["form"] == FORMS.index("partial")
    gain[partial, 2] = learned["parameters"][partial, 2]
    return States(move, gain, np.tile([1.0, 0.0, 1.0, 0.0], (len(gain), 1)), season)


def _nowhere(series: int, season: int) -> dict[str, Floats]:
    """States, to be filled."""
    shapes = {"level": (series, 2), "season": (series, season, 2)}
    return {prefix + name: np.zeros(shape) for name, shape in shapes.items() for prefix in ("", "first_")}


def _with_simpler(wanted: Any) -> Any:
    """The forms, and the partial one where the full one is found from it."""
    more = wanted.copy()
    more[:, 2] |= more[:, 3]
    return more


def _first_indices(y: Floats, indptr: Ints, season: int, wanted: Any) -> Floats:
    """Additive seasonal indices, the first row's first, of the series that may have a season of their own; else 0."""
    found, lengths = np.zeros((len(indptr) - 1, season)), np.diff(indptr)
    some = wanted[:, 2:].any(axis=1)
    rows = np.repeat(some, lengths)
    if rows.any():
        whole = seasonality.filled(y, indptr)
        index, _ = seasonality.decomposed(whole[rows], lengths[some], season, additive=True, seen=~np.isnan(y[rows]))
        turned = (np.arange(season) - lengths[some][:, None]) % season  # from the first step ahead to the first row
        found[some] = np.take_along_axis(np.nan_to_num(index), turned, axis=1)
    return found


def _starts(panel: Panel, known: Mapping[str, Any], some: Ints) -> tuple[Floats, Floats]:
    """Level and season before the first row of some histories, for the parameters known."""
    from deepforecast.kernels import ces

    part = panel.take(some) if len(some) < len(panel) else panel
    season, forms = known["season"].shape[1], known["form"][some]
    wanted = np.arange(4) == forms[:, None]
    wanted &= (part.lengths >= 2 * season)[:, None]  # a shorter one tells no season: then it is found on the way
    index = _first_indices(part.y, part.indptr, season, wanted)
    return ces.starts(part.y, part.indptr, forms, np.ascontiguousarray(known["parameters"][some]), index)


def _ahead(learned: Learned, steps: int) -> tuple[Floats, Floats]:
    """Level and season at the steps ahead."""
    from deepforecast.kernels import ces

    parameters = learned["form"], learned["parameters"]
    with np.errstate(over="ignore", invalid="ignore"):
        return ces.ahead(*parameters, learned["level"], learned["season"], steps)


def _response(learned: Learned, steps: int) -> Floats:
    """What a shock adds to its row and to those that follow, back to the oldest missing row."""
    from deepforecast.kernels import ces

    season, rows = learned["season"].shape[1], int(learned["age"].max()) + steps
    with np.errstate(over="ignore", invalid="ignore"):
        return ces.impulse_response(learned["form"], learned["parameters"], season, rows)


def _variance(learned: Learned, steps: int) -> Floats:
    """Variances of the steps ahead where shocks have variance 1."""
    variance = variances(_response(learned, steps), learned["persistence"])
    return np.take_along_axis(variance, _lags(learned, steps), axis=1)


def _lags(learned: Learned, steps: int) -> Ints:
    """How many rows each step ahead lies behind the first row without a value (series, steps)."""
    return np.asarray(learned["age"][:, None] + np.arange(steps))
