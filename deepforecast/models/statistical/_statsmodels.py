"""statsmodels' unobserved components of one series at a time: fitted, filtered again, summed up."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from statsmodels.tsa.statespace.structural import UnobservedComponents

from deepforecast.data.frames import Floats, Ints
from deepforecast.models.statistical._basis import basis
from deepforecast.models.statistical._still import FITTED, last_seen, swollen

FAILED = "failed"
OUT_OF_ITERATIONS = "out_of_iterations"
"""Whether the optimiser stopped there: known in a fit alone."""
FLAT = 1e-3
"""Slope of the mean log-likelihood of a row, in the optimiser's own terms, that counts as none."""
ORDINARY = (1e-3, 1e6)
"""Standard deviations of a series as statsmodels' optimiser knows them; others are brought near 1 by a power of two."""
FAR = 1e8
"""Standard deviations from zero beyond which a series is centred: the exact diffuse filter starts from
the level itself, and its rounding errors grow with it."""
START_PERIODS = 5
GRID_PERIODS = 24
GRID_DAMPING = 0.9


@dataclass(frozen=True)
class Task:
    """Series, their regressors, and what statsmodels is told; travels to the processes that fit.

    cycle_periods: the shortest and longest period of the cycle in time steps, shape (series, 2); None without a cycle.
    """

    y: Floats
    indptr: Ints
    regressors: Floats
    specification: Mapping[str, Any]
    iterations: int
    cycle_periods: Floats | None

    def fitted(self, part: slice) -> list[dict[str, Floats]]:
        """What each of some series has learned."""
        return [self.one(number) for number in range(part.start, part.stop)]

    def one(self, number: int, held: Mapping[str, Floats] | None = None) -> dict[str, Floats]:
        """Fit a series, or only filter it with the parameters of an earlier fit; what went wrong under the key `FAILED`."""
        y, x, base = self._rows(number, held)
        scale = scale_of(y) if held is None else float(held["scale"])
        if scale == 0.0:
            return {**self._walk(number, y, x), **base}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # what statsmodels warns of follows from the model asked for, or is in `converged`
            try:
                if held is None or bool(held["exact"]):
                    centre = self._centre(y) if held is None else float(held["centre"])
                    model = self._model(number, (y - centre) / scale, x, exact=True)
                    result = self._found(model, held)
                    if result.nobs_diffuse < len(y):
                        return {**_arrays(model, result, scale, centre), **base, **spread_of(y, scale, result, held)}
                return {**self._about_its_mean(number, y, x, held), **base}
            except (np.linalg.LinAlgError, ValueError, IndexError) as error:
                return {FAILED: np.array(f"{type(error).__name__}: {error}")}

    def fitted_values(self, number: int, held: Mapping[str, Floats]) -> Floats:
        """One-step-ahead forecasts; NaN while the first states are not known."""
        y, x, _ = self._rows(number, held)
        scale, centre = float(held["scale"]), float(held["centre"])
        if scale == 0.0:
            return np.append(np.nan, last_seen(y)[:-1])
        model = self._model(number, (y - centre) / scale, x, bool(held["exact"]))
        result = model.filter(held["params"])
        found = np.asarray(result.fittedvalues, np.float64) * scale + centre
        found[: max(int(result.nobs_diffuse), int(model.loglikelihood_burn))] = np.nan
        return found

    def names(self) -> list[str]:
        """Of the parameters without effects of regressors, as statsmodels has them."""
        return list(self._model(0, np.arange(float(self.indptr[1])), np.empty((0, 0)), exact=True).param_names)

    def result(self, number: int, held: Mapping[str, Floats]) -> Any:
        """statsmodels' own results object, with its summary and tests."""
        y, x, _ = self._rows(number, held)
        return self._model(number, (y - held["centre"]) / held["scale"], x, bool(held["exact"])).smooth(held["params"])

    def _about_its_mean(
        self, number: int, y: Floats, x: Floats, held: Mapping[str, Floats] | None
    ) -> dict[str, Floats]:
        """With an approximately diffuse start of variance 1e6, around the mean and near 1: where the exact one, lost in
        rounding, leaves states unknown to the end (two components that are nearly the same)."""
        centre = float(np.nanmean(y))
        scale = near(float(np.nanstd(y))) if held is None else float(held["scale"])
        model = self._model(number, (y - centre) / scale, x, exact=False)
        result = self._found(model, held)
        return {**_arrays(model, result, scale, centre), **spread_of(y, scale, result, held)}

    def _model(self, number: int, y: Floats, x: Floats, exact: bool) -> Any:
        bounds = None if self.cycle_periods is None else tuple(self.cycle_periods[number])
        given = {**self.specification, "cycle_period_bounds": bounds}
        return UnobservedComponents(horizon=y, exog=x if x.shape[1] else None, use_exact_diffuse=exact, **given)

    def _found(self, model: Any, held: Mapping[str, Floats] | None) -> Any:
        if held is not None:
            return model.filter(held["params"])
        starts = cycle_starts(model) if model.cycle else [model.start_params]
        results = [self._maximum(model, start) for start in starts]
        best = max(results, key=lambda result: result.llf if np.isfinite(result.llf) else -np.inf)
        model.update(best.params)  # its matrices are those of the last fit
        return best

    def _maximum(self, model: Any, start: Floats) -> Any:
        return model.fit(start, disp=False, maxiter=self.iterations, warn_convergence=False, cov_type="none")

    def _centre(self, y: Floats) -> float:
        """What is subtracted from a series far from zero; 0 where the model has no level to add it to."""
        mean, deviation = float(np.nanmean(y)), float(np.nanstd(y))
        has_level = self.specification["level"] != "irregular"
        return mean if has_level and abs(mean) > FAR * deviation else 0.0

    def _rows(self, number: int, held: Mapping[str, Floats] | None) -> tuple[Floats, Floats, dict[str, Floats]]:
        """Values; regressors as they are worked with, and by what; a row without a regressor counts as one without a value."""
        rows = slice(self.indptr[number], self.indptr[number + 1])
        y, x = np.array(self.y[rows]), np.array(self.regressors[rows])
        lacking = np.isnan(x).any(axis=1)
        centres, matrix = basis(x[~lacking]) if held is None else (held["centres"], held["basis"])
        x = (x - centres) @ matrix
        y[lacking], x[lacking] = np.nan, 0.0
        return y, x, {"centres": centres, "basis": matrix}

    def _walk(self, number: int, y: Floats, x: Floats) -> dict[str, Floats]:
        """A series that does not vary, or did not in the fit: a random walk, of as much as it has moved. No effects."""
        shape = self._model(number, np.arange(float(len(y))), x, exact=True)
        states = int(shape.k_states)
        values, one = y[~np.isnan(y)], np.zeros(states)
        one[0] = 1.0
        return {
            "params": np.zeros(len(shape.param_names)),
            "converged": np.array(True),
            OUT_OF_ITERATIONS: np.array(False),
            "exact": np.array(True),
            "scale": np.array(0.0),
            "centre": np.array(values[0]),
            "design": one,
            "transition": np.eye(states),
            "shocks": one,
            "irregular": np.array(0.0),
            "state": one * (values[-1] - values[0]),
            "covariance": np.diag(one),
            "effects": np.zeros(x.shape[1]),
            "ripple": np.array(0.0),
            **swollen(np.diff(values), np.ones(len(values) - 1), 0.0, (0, 0.0)),
        }


def cycle_starts(model: Any) -> list[Floats]:
    """Return starting parameters at several periods of the cycle.

    The likelihood has a local maximum near each peak of the periodogram, and statsmodels' optimiser
    returns the nearest. The periods are a geometric sequence between the bounds (of 1.5 to 12 years:
    2.1, 3, 4.2, 6 and 8.5), and the most likely one of a fine grid for a persistent cycle.
    """
    longest, shortest = 2 * np.pi / np.asarray(model.cycle_frequency_bound)

    def start(share: float, damping: float | None = None) -> Floats:
        params = np.array(model.start_params, np.float64)
        period = shortest * (longest / shortest) ** share
        params[model.param_names.index("frequency.cycle")] = 2 * np.pi / period
        if damping is not None and model.damped_cycle:
            params[model.param_names.index("damping.cycle")] = damping
        return params

    grid = [start((place + 0.5) / GRID_PERIODS, GRID_DAMPING) for place in range(GRID_PERIODS)]
    likeliest = grid[int(np.argmax([np.nan_to_num(model.loglike(params), nan=-np.inf) for params in grid]))]
    return [*(start(place / (START_PERIODS + 1)) for place in range(1, START_PERIODS + 1)), likeliest]


def scale_of(y: Floats) -> float:
    """What a series is divided by: 1 if its spread is ordinary, else a power of two near it; 0 if it does not vary."""
    seen = y[~np.isnan(y)]
    if seen.min() == seen.max():
        return 0.0
    power = int(np.frexp(np.max(np.abs(seen)))[1])
    spread = float(np.std(np.ldexp(seen, -power)))
    with np.errstate(over="ignore", under="ignore"):
        size = float(np.ldexp(spread, power))
    return 1.0 if ORDINARY[0] <= size <= ORDINARY[1] else float(np.ldexp(near(spread), power))


def near(size: float) -> float:
    """The power of two at or above a positive number; 1 for 0."""
    return float(np.ldexp(1.0, int(np.frexp(size)[1]))) if size > 0 else 1.0


def _arrays(model: Any, result: Any, scale: float, centre: float) -> dict[str, Floats]:
    """Everything a forecast needs, in units of the scale and around the centre."""
    space, filtered = model.ssm, result.filter_results
    optimiser = getattr(result, "mle_retvals", None)  # None: filtered with known parameters
    selection = np.asarray(space["selection"], np.float64)
    shocks = selection @ np.asarray(space["state_cov"], np.float64) @ selection.T
    effects = result.params[len(result.params) - model.k_exog :] if model.k_exog else np.zeros(0)
    return {
        "params": np.array(result.params, np.float64),
        "converged": np.array(_converged(optimiser)),
        OUT_OF_ITERATIONS: np.array(optimiser is not None and optimiser["warnflag"] == 1),
        "exact": np.array(bool(model.use_exact_diffuse)),
        "scale": np.array(scale),
        "centre": np.array(centre),
        "design": np.array(np.asarray(space["design"])[0].reshape(model.k_states, -1)[:, 0], np.float64),
        "transition": np.array(space["transition"], np.float64).reshape(model.k_states, model.k_states),
        "shocks": np.array(np.diag(shocks)),
        "irregular": np.array(float(np.asarray(space["obs_cov"]).reshape(-1)[0])),
        "state": np.array(filtered.predicted_state[:, -1]),
        "covariance": np.array(filtered.predicted_state_cov[:, :, -1]),
        "effects": np.asarray(effects, np.float64),  # of the regressors as they were worked with
    }


def _converged(told: Mapping[str, Any] | None) -> bool:
    """Whether the optimiser stands at a maximum. Its line search may break off there, among the last digits of numerical
    slopes (flag 2, on one processor and not on another): a maximum all the same if nothing rises. None: nothing was sought."""
    if told is None or told["converged"]:
        return True
    return bool(told["warnflag"] == 2 and np.max(np.abs(told["gopt"])) <= FLAT)


def spread_of(y: Floats, scale: float, result: Any, held: Mapping[str, Floats] | None) -> dict[str, Floats]:
    """`ripple`, `since` and `swell`, as `_still` has them."""
    filtered = result.filter_results
    errors, spreads = np.asarray(filtered.forecasts_error[0]), np.asarray(filtered.forecasts_error_cov[0, 0])
    known = max(int(result.nobs_diffuse), int(result.model.loglikelihood_burn))
    errors, spreads = np.where(np.isnan(y), np.nan, errors)[known:], spreads[known:]
    if held is None:
        seen = y[~np.isnan(y)]
        limit = FITTED * float(np.max(seen / scale) - np.min(seen / scale))
        exact = len(errors) > 0 and bool(np.all(~(np.abs(errors) > limit)))
        ripple = limit if exact else np.nan
    else:
        ripple = float(held["ripple"])
    return {"ripple": np.array(ripple), **swollen(errors, spreads, ripple, (0, 1.0))}
