"""What ARIMA and AutoARIMA share once an order is fitted: the filter over a history, forecasts, paths and components.

A forecast is a regression (a level, a slope, columns known ahead, Fourier terms) plus the forecast of an ARIMA from the state
of its filter. Everything is held by series in arrays whose widths follow from the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.bounds import check_floats, check_integer, check_integers
from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.foreign import Foreign
from deepforecast.core.manifest import LARGEST, Unfit
from deepforecast.core.noise import standard_normal
from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._arima_doubt import directions, doubtful, regression_of
from deepforecast.models.statistical._arima_parts import parts_of, sampled
from deepforecast.models.statistical._arima_series import Fit, Order, Series, power
from deepforecast.models.statistical._bands import StudentForecast, freedom_of, mixed
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._regressors import design
from deepforecast.models.statistical._since import spread_since, told

LONGEST_SEASON = 10_000  # of a file whose orders have no seasonal part, so that nothing else in it bounds the season


class ArimaFamily(Statistical):
    """A regression with ARIMA errors. `learned["order"]`: p, d, q, P, D, Q, and whether there is a constant."""

    coverage_process: ClassVar[str] = "arima"

    capabilities = Capabilities(
        future=True, categorical=True, missing=True, distribution="analytic", simulates=True, explains=True,
        scale_equivariant=True, shift_equivariant=True, precision=1e-3,
    )  # fmt: skip
    seconds_per_value = 2e-5

    def parameters(self) -> Frame:
        """A row a series: its order, log-likelihood and AICc, coefficients, constant and sigma; what one unit of each column
        known ahead adds (`effect_<column>`), and the waves of long seasons (`cos1_24`: once in 24 steps)."""
        return super().parameters()

    def _estimated(self, learned: Learned, state: State) -> dict[str, Any]:
        from deepforecast.models.statistical._arima_tables import parameters

        return parameters(self, learned, state)

    def summary(self, unique_id: Any = None) -> str:
        """statsmodels' summary of a series of the fit at the parameters found: a text."""
        from deepforecast.models.statistical._arima_tables import summary

        state = self.fitted()
        return summary(self, self._history(state.learned), state, unique_id)

    # -- what an order is, and how it is found ---------------------------------------------------------------------------------

    def _widths(self, panel: Panel) -> tuple[int, int]:
        """The most coefficients, and states, of any order that may be found."""
        raise NotImplementedError

    def _order(self, row: Ints, season: int) -> Order:
        """The order of a row of `learned["order"]`."""
        p, d, q, many_p, big_d, many_q, constant = (int(one) for one in row)
        lags = tuple(range(1, p + 1)), tuple(range(1, q + 1))
        return Order(lags[0], d, lags[1], (many_p, big_d, many_q), season, bool(constant))

    def _one(self, y: Floats, columns: Floats, known: int, hint: float, season: int, waves: Any) -> tuple[Series, Fit, Ints]:
        """The fit of a series, and which of `columns` (`known` ones known ahead, then Fourier terms) are its regressors."""
        raise NotImplementedError

    def _hints(self, panel: Panel) -> Floats:
        """Something told of each series, found for many at once."""
        return np.zeros(len(panel))

    def _shared(self, panel: Panel) -> dict[str, Any]:
        """What is kept beside the season and the number of states."""
        return {}

    def _waves(self, panel: Panel) -> Sequence[tuple[int, int]]:
        """Fourier terms beside the columns known ahead: season and number of waves in it, by columns cos, sin."""
        return ()

    def _short_season(self, panel: Panel) -> int:
        """The season of the polynomials, 1 if none."""
        raise NotImplementedError

    # -- fitting and filtering -------------------------------------------------------------------------------------------------

    def _estimate(self, panel: Panel) -> Learned:
        season, (width, size) = self._short_season(panel), self._widths(panel)
        x = self._columns(panel)
        held: dict[str, Any] = {
            "order": np.zeros((len(panel), 7), np.int64),
            "factors": np.zeros((len(panel), width)),
            "beta": np.zeros((len(panel), 1 + x.shape[1])),
            "level": np.zeros(len(panel)),
            "doubt": np.zeros((len(panel), 1 + x.shape[1], 2 + x.shape[1])),
            "sigma": np.zeros(len(panel)),
            "likelihood": np.zeros((len(panel), 3)),
            "start": panel.start // panel.calendar.step,
            "rows": np.zeros(len(panel), np.int64),
        }
        waves, hints = self._waves(panel), self._hints(panel)
        known = x.shape[1] - sum(2 * count for _, count in waves)
        for one in range(len(panel)):
            rows = slice(panel.indptr[one], panel.indptr[one + 1])
            series, fit, used = self._one(panel.y[rows], x[rows], known, float(hints[one]), season, waves)
            _keep(held, one, series, fit, used)
            if fit.sigma > 0.0:
                held["doubt"][one] = directions(fit.order, fit.factors, held["beta"][one], panel.y[rows], x[rows])
        still = told(panel, np.where(held["sigma"] > 0.0, np.inf, 0.0))
        held |= {name: still[name] for name in ("ripple", "since")}
        learned = Learned(held, {"season": season, "size": size, **self._shared(panel)})
        return Learned({**held, **self._filtered(learned, panel, x, True)[0]}, dict(learned.shared), panel)

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        moved, ahead = self._filtered(learned, panel, self._columns(panel, learned), fresh)
        known = {"deviation": learned["sigma"], "ripple": learned["ripple"], "since": learned["since"]}
        if since := spread_since(known, panel, panel.y - ahead, fresh):
            moved |= {"sigma": since["deviation"], "since": since["since"]}
        return Learned({**learned.by_series, **moved}, learned.shared, panel if fresh else None)

    def _fitted(self, learned: Learned, panel: Panel) -> Floats:
        return self._filtered(learned, panel, self._columns(panel, learned), True)[1]

    def _columns(self, panel: Panel, learned: Learned | None = None) -> Floats:
        """Columns known ahead and Fourier terms of every row, (rows, columns); waves begin where the series of the fit did."""
        x = design(panel.covariates)
        x = x if x.size or len(x) else np.empty((len(panel.y), 0))
        waves = self._waves(panel)
        if not waves:
            return x
        begin = panel.start // panel.calendar.step
        begin = begin - (begin if learned is None else learned["start"])
        times = np.arange(len(panel.y)) + np.repeat(begin - panel.indptr[:-1], panel.lengths)
        return np.hstack([x, fourier(times, waves)])

    def _filtered(self, learned: Learned, panel: Panel, x: Floats, fresh: bool) -> tuple[dict[str, Any], Floats]:
        """The states at the end of a panel, and its rows as they were foreseen."""
        size, count = learned["size"], len(panel)
        states, excess = np.zeros((3, count, size)), np.zeros((count, size * (size + 1) // 2))
        doubted = np.zeros((count, learned["doubt"].shape[1], size))
        ahead, begin = np.empty(len(panel.y)), panel.start // panel.calendar.step - learned["start"]
        for one in range(count):
            rows = slice(panel.indptr[one], panel.indptr[one + 1])
            time = begin[one] + np.arange(panel.lengths[one])
            regression = learned["level"][one] + learned["beta"][one, 0] * time + x[rows] @ learned["beta"][one, 1:]
            values = panel.y[rows] - regression
            state, found = self._over(learned, one, values, None if fresh else learned["mean"][one])
            ahead[rows] = found + regression
            for number in np.flatnonzero(learned["doubt"][one].any(axis=1)):
                moved = -regression_of(learned["doubt"][one, number], time, x[rows])
                mean = None if fresh else learned["doubted"][one, number]
                last = self._over(learned, one, np.where(np.isnan(values), np.nan, moved), mean)[0].mean
                doubted[one, number, : len(last)] = last
            for place, part in enumerate((state.ar, state.ma, state.mean)):
                states[place, one, : len(part)] = part
            small = len(state.mean)
            excess[one, : small * (small + 1) // 2] = state.excess[np.tril_indices(small)]
        rows_seen = begin + panel.lengths
        names = ("ar", "ma", "mean", "excess", "rows", "doubted")
        return dict(zip(names, (*states, excess, rows_seen, doubted), strict=True)), ahead

    def _over(self, learned: Learned, one: int, values: Floats, mean: Floats | None) -> tuple[Any, Floats]:
        """A series' filter over values, from the state of this mean or from the first of them: its state then; forecasts."""
        from deepforecast.kernels.arima.state import State, follow, follow_on

        if mean is not None:
            excess = _square(learned["excess"][one], learned["size"])
            return follow_on(State(learned["ar"][one], learned["ma"][one], mean, excess), values)[:2]
        order = self._order(learned["order"][one], learned["season"])
        values, early = _from_first(values)
        state, found, _ = follow(order.form, learned["factors"][one, : order.coefficients], order.delta, values)
        return state, np.concatenate([np.full(early, np.nan), found])

    def _revive(self, learned: Learned, foreign: Foreign) -> Learned:
        size = check_integer(learned["size"], "size", 1, learned["mean"].shape[-1])
        season = check_integer(learned["season"], "season", 1, max(size, LONGEST_SEASON))
        check_floats(learned, ["ar", "ma", "mean"], (size,), finite=True)
        check_floats(learned, ["excess"], (size * (size + 1) // 2,), finite=True)
        width = learned["factors"].shape[-1]
        for row in np.unique(check_integers(learned, "order", 0, [width, size, width, width, size, width, 1]), axis=0):
            order = self._order(row, season)
            if order.coefficients > width or order.size > size:
                raise Unfit(f"an order must have at most {width} coefficients and {size} states, got {row.tolist()}")
        for name in ("start", "rows"):
            check_integers(learned, name, -LARGEST, LARGEST)
        self._check_waves(learned)
        return learned

    def _check_waves(self, learned: Learned) -> None:
        """The Fourier terms of a file are columns of its regression."""
        waves = learned.shared.get("waves", [])
        columns = learned["beta"].shape[-1] - 1
        if not isinstance(waves, list) or not all(isinstance(wave, list) and len(wave) == 2 for wave in waves):
            raise Unfit("waves must be pairs of a season and a number of Fourier terms")
        for season, count in waves:
            check_integer(season, "the season of Fourier terms", 2, LARGEST)
            columns -= 2 * check_integer(count, "the number of Fourier terms", 0, columns // 2)

    # -- forecasts -------------------------------------------------------------------------------------------------------------

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        noise, deviation, _ = self._foreseen(learned, steps)
        mean = noise + sum(self._regression(learned, steps, future).values())
        freedom, wider = _freedom(learned)
        spread = np.hypot(deviation * wider[:, None], self._doubtful(learned, steps, future))
        return StudentForecast(mean, spread * learned["sigma"][:, None], freedom)

    def _doubtful(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Floats:
        """Deviations for what is not known of the regression, in units of sigma."""
        from deepforecast.kernels.arima.state import foreseen

        def ahead(states: Floats) -> Floats:
            return foreseen(learned["ar"], learned["ma"], np.ascontiguousarray(states), learned["excess"], steps)[0]

        return doubtful(learned, *self._columns_ahead(learned, steps, future), ahead)

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        mean = self._forecast(learned, steps, future).mean
        keys = np.column_stack([learned[name].reshape(len(mean), -1) for name in ("mean", "level", "sigma", "factors", "beta")])
        draws = standard_normal(seed, keys, (2 + learned["size"] + steps, samples))
        freedom, wider = _freedom(learned)
        away = sampled(learned, draws[:, 2:], steps) * wider[:, None, None]
        away += draws[:, 1, :, None] * self._doubtful(learned, steps, future)[:, None, :]
        return np.asarray(mean[:, None, :] + (mixed(draws[:, 0], freedom) * learned["sigma"][:, None])[:, :, None] * away)

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        regression = self._regression(learned, steps, future)
        season = learned["season"]
        noise, _, _ = self._foreseen(learned, steps + 2 * season)
        level, slope, pattern = parts_of(noise, learned["order"], season, steps)
        mean = noise[:, :steps] + sum(regression.values())
        found = {
            "level": regression["level"] + level,
            "trend": regression["trend"] + slope,
            "season": regression["season"] + pattern,
        }
        if learned["beta"].shape[1] > 1 + self._wave_columns(learned):
            found["regressors"] = regression["regressors"]
        return {**found, "remainder": mean - sum(found.values())}

    def _foreseen(self, learned: Learned, steps: int) -> tuple[Floats, Floats, Floats]:
        from deepforecast.kernels.arima.state import foreseen

        return foreseen(learned["ar"], learned["ma"], learned["mean"], learned["excess"], steps)

    def _regression(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """What does not come from the errors, (series, steps) each."""
        beta, count = learned["beta"], len(learned["level"])
        known = beta.shape[1] - 1 - self._wave_columns(learned)
        time, x = self._columns_ahead(learned, steps, future)
        found = {
            "level": np.repeat(learned["level"][:, None], steps, axis=1),
            "trend": beta[:, :1] * time,
            "season": np.zeros((count, steps)),
            "regressors": np.zeros((count, steps)),
        }
        found["regressors"] += (x[:, :, :known] * beta[:, None, 1 : 1 + known]).sum(axis=-1)
        found["season"] += (x[:, :, known:] * beta[:, None, 1 + known :]).sum(axis=-1)
        return found

    def _columns_ahead(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> tuple[Floats, Floats]:
        """Time and the columns of the steps ahead, (series, steps) and (series, steps, columns)."""
        time, waves = learned["rows"][:, None] + np.arange(steps), self._wave_columns(learned)
        x = np.empty((*time.shape, 0))
        if learned["beta"].shape[1] - 1 - waves:
            x = design(future).reshape(*time.shape, -1)
        return time, np.concatenate([x, fourier(time, learned["waves"])], axis=-1) if waves else x

    def _wave_columns(self, learned: Learned) -> int:
        return sum(2 * count for _, count in learned.shared.get("waves", ()))


def _freedom(learned: Learned) -> tuple[Floats, Floats]:
    """Degrees of freedom, and what deviations are multiplied by for the estimated polynomials."""
    _, parameters, count = learned["likelihood"].T
    freedom, _ = freedom_of(count, parameters, learned["ripple"])
    lags = learned["order"][:, [0, 2, 3, 5]].sum(axis=1).astype(np.float64)
    return freedom, freedom_of(count, lags, learned["ripple"])[1]


def fourier(times: Ints, waves: Sequence[tuple[int, int]]) -> Floats:
    """cos and sin of the waves 1 ... count in each season, along a new last axis."""
    columns = []
    for season, count in waves:
        for wave in range(1, count + 1):
            angle = 2 * np.pi * ((times * wave) % season) / season
            columns += [np.cos(angle), np.sin(angle)]
    return np.stack(columns, axis=-1)


def _keep(held: dict[str, Any], one: int, series: Series, fit: Fit, used: Ints) -> None:
    """Put a fit down in the units of its series."""
    order, beta = fit.order, held["beta"][one]
    constant = int(order.constant)
    lags = len(order.ar), order.d, len(order.ma), *order.seasonal, constant
    held["order"][one] = lags
    held["factors"][one, : len(fit.factors)] = fit.factors
    beta[1 + used] = fit.beta[constant:] * series.scale / series.units
    about = constant or order.lost
    level = series.centre - float(series.middle @ beta[1 + used]) if about else 0.0
    if constant and order.lost:
        beta[0] = fit.beta[0] * series.scale / power(len(series.y))
        level -= beta[0] * series.first
    elif constant:
        level += fit.beta[0] * series.scale
    held["level"][one] = level
    held["sigma"][one] = fit.sigma * series.scale
    held["likelihood"][one] = fit.log_likelihood, fit.parameters, fit.seen


def _from_first(values: Floats) -> tuple[Floats, int]:
    """From the first known value on, and how many were before it."""
    first = int(np.argmax(~np.isnan(values)))
    return values[first:], first


def _square(lower: Floats, size: int) -> Floats:
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = lower
    return matrix + np.tril(matrix, -1).T
