"""Unobserved components models of statsmodels, one series at a time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from statsmodels.tsa.statespace.structural import UnobservedComponents

from deepforecast.data.frames import Floats, Ints
from deepforecast.models.statistical._noise_floor import PERFECT_FIT, interval_factor, last_observed
from deepforecast.models.statistical._orthogonalization import orthogonal_basis
from deepforecast.models.statistical._time_series_components import FAILED, OUT_OF_ITERATIONS

GRADIENT_TOLERANCE = 1e-3
"""Largest gradient of the mean log-likelihood at a maximum, in the optimizer's coordinates."""
ORDINARY_SCALE = (1e-3, 1e6)
"""Standard deviations suitable for the optimizer; other series are scaled by a power of two."""
MAX_RELATIVE_MEAN = 1e8
"""Distance from zero, in standard deviations, beyond which a series is centred: rounding errors
of the exact diffuse filter grow with the level."""
N_START_PERIODS = 5  # of searches with a cycle
N_GRID_PERIODS = 24  # of which the most likely one is another start
GRID_DAMPING = 0.9  # of the cycle on the grid


@dataclass(frozen=True)
class FitTask:
    """Series, regressors and model specification, as sent to worker processes.

    `y`: values of all series, one after the other; `indptr`: where each begins; `regressors`: (rows,
    columns); `specification`: arguments of statsmodels' `UnobservedComponents`; `max_iter`: of the
    optimizer; `cycle_periods`: shortest and longest period of the cycle in time steps, (series, 2),
    or None without a cycle.
    """

    y: Floats
    indptr: Ints
    regressors: Floats
    specification: Mapping[str, Any]
    max_iter: int
    cycle_periods: Floats | None

    def fit_slice(self, chunk: slice) -> list[dict[str, Floats]]:
        """Learned arrays of each series in a slice, see `fit_series`."""
        return [self.fit_series(series_index) for series_index in range(chunk.start, chunk.stop)]

    def fit_series(self, series_index: int, learned: Mapping[str, Floats] | None = None) -> dict[str, Floats]:
        """Fit a series, or filter it with the parameters in `learned`; return the learned arrays.

        Constant series become random walks. If the exact diffuse initialization fails, an approximate one is used. If
        statsmodels raises an error, the result is only its message under the key `FAILED`.
        """
        y, x, transformation = self._series_arrays(series_index, learned)
        scale = series_scale(y) if learned is None else float(learned["scale"])
        if scale == 0.0:
            return {**self._random_walk(series_index, y, x), **transformation}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # convergence is in `converged`
            try:
                if learned is None or bool(learned["exact"]):
                    centre = self._centre(y) if learned is None else float(learned["centre"])
                    model = self._model(series_index, (y - centre) / scale, x, exact=True)
                    fit = self._fit_or_filter(model, learned)
                    if fit.nobs_diffuse < len(y):
                        arrays = {**_state_arrays(model, fit, scale, centre), **transformation}
                        return {**arrays, **residual_scale(y, scale, fit, learned)}
                return {**self._fit_around_mean(series_index, y, x, learned), **transformation}
            except (np.linalg.LinAlgError, ValueError, IndexError) as error:
                return {FAILED: np.array(f"{type(error).__name__}: {error}")}

    def fitted_values(self, series_index: int, learned: Mapping[str, Floats]) -> Floats:
        """One-step-ahead forecasts in units of the data; NaN while the initial states are diffuse."""
        y, x, _ = self._series_arrays(series_index, learned)
        scale, centre = float(learned["scale"]), float(learned["centre"])
        if scale == 0.0:
            return np.append(np.nan, last_observed(y)[:-1])
        model = self._model(series_index, (y - centre) / scale, x, bool(learned["exact"]))
        filtered = model.filter(learned["params"])
        fitted = np.asarray(filtered.fittedvalues, np.float64) * scale + centre
        fitted[: max(int(filtered.nobs_diffuse), int(model.loglikelihood_burn))] = np.nan
        return fitted

    def names(self) -> list[str]:
        """statsmodels' names of the parameters, without those of the regressors."""
        return list(self._model(0, np.arange(float(self.indptr[1])), np.empty((0, 0)), exact=True).param_names)

    def smoothed_results(self, series_index: int, learned: Mapping[str, Floats]) -> Any:
        """statsmodels' results object of the smoothed series, which has a summary and residual tests."""
        y, x, _ = self._series_arrays(series_index, learned)
        return self._model(series_index, (y - learned["centre"]) / learned["scale"], x, bool(learned["exact"])).smooth(
            learned["params"]
        )

    def _fit_around_mean(
        self, series_index: int, y: Floats, x: Floats, learned: Mapping[str, Floats] | None
    ) -> dict[str, Floats]:
        """Fit (or filter) the standardized series with an approximately diffuse initialization of variance 1e6.

        Needed if the exact diffuse filter, because of rounding errors, leaves states diffuse to the end, as with two
        nearly equal components.
        """
        centre = float(np.nanmean(y))
        scale = power_of_two(float(np.nanstd(y))) if learned is None else float(learned["scale"])
        model = self._model(series_index, (y - centre) / scale, x, exact=False)
        fit = self._fit_or_filter(model, learned)
        return {**_state_arrays(model, fit, scale, centre), **residual_scale(y, scale, fit, learned)}

    def _model(self, series_index: int, y: Floats, x: Floats, exact: bool) -> Any:
        bounds = None if self.cycle_periods is None else tuple(self.cycle_periods[series_index])
        specification = {**self.specification, "cycle_period_bounds": bounds}
        return UnobservedComponents(y, exog=x if x.shape[1] else None, use_exact_diffuse=exact, **specification)

    def _fit_or_filter(self, model: Any, learned: Mapping[str, Floats] | None) -> Any:
        """statsmodels' results: filtered with learned parameters, or the fit with the highest likelihood of all starts."""
        if learned is not None:
            return model.filter(learned["params"])
        starts = cycle_starts(model) if model.cycle else [model.start_params]
        fits = [self._fit_from(model, start) for start in starts]
        best_fit = max(fits, key=lambda fit: fit.llf if np.isfinite(fit.llf) else -np.inf)
        model.update(best_fit.params)  # otherwise the matrices of the model are those of the last fit
        return best_fit

    def _fit_from(self, model: Any, start: Floats) -> Any:
        return model.fit(start, disp=False, maxiter=self.max_iter, warn_convergence=False, cov_type="none")

    def _centre(self, y: Floats) -> float:
        """Mean of a series far from zero (see `MAX_RELATIVE_MEAN`); 0 for others, or if the model has no level to absorb it."""
        mean, deviation = float(np.nanmean(y)), float(np.nanstd(y))
        has_level = self.specification["level"] != "irregular"
        return mean if has_level and abs(mean) > MAX_RELATIVE_MEAN * deviation else 0.0

    def _series_arrays(
        self, series_index: int, learned: Mapping[str, Floats] | None
    ) -> tuple[Floats, Floats, dict[str, Floats]]:
        """Values, regressors transformed by `orthogonal_basis`, and the arrays `centres` and `basis` of the transformation.

        Rows with a missing regressor get a missing value and regressors of 0.
        """
        rows = slice(self.indptr[series_index], self.indptr[series_index + 1])
        y, x = np.array(self.y[rows]), np.array(self.regressors[rows])
        is_incomplete = np.isnan(x).any(axis=1)
        centres, basis = orthogonal_basis(x[~is_incomplete]) if learned is None else (learned["centres"], learned["basis"])
        x = (x - centres) @ basis
        y[is_incomplete], x[is_incomplete] = np.nan, 0.0
        return y, x, {"centres": centres, "basis": basis}

    def _random_walk(self, series_index: int, y: Floats, x: Floats) -> dict[str, Floats]:
        """Learned arrays of a random walk without covariate effects, for a series that was constant in the training data."""
        model = self._model(series_index, np.arange(float(len(y))), x, exact=True)
        n_states = int(model.k_states)
        values, first_state = y[~np.isnan(y)], np.zeros(n_states)
        first_state[0] = 1.0
        return {
            "params": np.zeros(len(model.param_names)),
            "converged": np.array(True),
            OUT_OF_ITERATIONS: np.array(False),
            "exact": np.array(True),
            "scale": np.array(0.0),
            "centre": np.array(values[0]),
            "design": first_state,
            "transition": np.eye(n_states),
            "shocks": first_state,
            "irregular": np.array(0.0),
            "state": first_state * (values[-1] - values[0]),
            "covariance": np.diag(first_state),
            "effects": np.zeros(x.shape[1]),
            "noise_floor": np.array(0.0),
            **interval_factor(np.diff(values), np.ones(len(values) - 1), 0.0, (0, 0.0)),
        }


def cycle_starts(model: Any) -> list[Floats]:
    """Starting parameters at six periods of the cycle.

    The likelihood has a local maximum near each peak of the periodogram, and statsmodels' optimizer
    returns the nearest one. The periods are a geometric sequence between the bounds (for 1.5 to 12
    years: 2.1, 3, 4.2, 6 and 8.5), and the most likely one of a finer grid for a persistent cycle.
    """
    longest, shortest = 2 * np.pi / np.asarray(model.cycle_frequency_bound)

    def start(fraction: float, damping: float | None = None) -> Floats:
        parameters = np.array(model.start_params, np.float64)
        period = shortest * (longest / shortest) ** fraction
        parameters[model.param_names.index("frequency.cycle")] = 2 * np.pi / period
        if damping is not None and model.damped_cycle:
            parameters[model.param_names.index("damping.cycle")] = damping
        return parameters

    grid = [start((position + 0.5) / N_GRID_PERIODS, GRID_DAMPING) for position in range(N_GRID_PERIODS)]
    likelihoods = [np.nan_to_num(model.loglike(parameters), nan=-np.inf) for parameters in grid]
    geometric_sequence = [start(position / (N_START_PERIODS + 1)) for position in range(1, N_START_PERIODS + 1)]
    return [*geometric_sequence, grid[int(np.argmax(likelihoods))]]


def series_scale(y: Floats) -> float:
    """Scale of a series: 1 if its standard deviation is in `ORDINARY_SCALE`, else the power of two above it; 0 if constant."""
    present = y[~np.isnan(y)]
    if present.min() == present.max():
        return 0.0
    power = int(np.frexp(np.max(np.abs(present)))[1])
    scaled_deviation = float(np.std(np.ldexp(present, -power)))  # cannot overflow
    with np.errstate(over="ignore", under="ignore"):
        deviation = float(np.ldexp(scaled_deviation, power))
    if ORDINARY_SCALE[0] <= deviation <= ORDINARY_SCALE[1]:
        return 1.0
    return float(np.ldexp(power_of_two(scaled_deviation), power))


def power_of_two(value: float) -> float:
    """The smallest power of two above a positive number; 1 for 0."""
    return float(np.ldexp(1.0, int(np.frexp(value)[1]))) if value > 0 else 1.0


def _state_arrays(model: Any, fit: Any, scale: float, centre: float) -> dict[str, Floats]:
    """State space matrices, final state and parameters of a statsmodels fit, in units of the scale, relative to the centre."""
    space, filter_results = model.ssm, fit.filter_results
    optimizer_report = getattr(fit, "mle_retvals", None)  # None: filtered with given parameters
    selection = np.asarray(space["selection"], np.float64)
    shocks = selection @ np.asarray(space["state_cov"], np.float64) @ selection.T
    effects = fit.params[len(fit.params) - model.k_exog :] if model.k_exog else np.zeros(0)
    return {
        "params": np.array(fit.params, np.float64),
        "converged": np.array(_converged(optimizer_report)),
        OUT_OF_ITERATIONS: np.array(optimizer_report is not None and optimizer_report["warnflag"] == 1),
        "exact": np.array(bool(model.use_exact_diffuse)),
        "scale": np.array(scale),
        "centre": np.array(centre),
        "design": np.array(np.asarray(space["design"])[0].reshape(model.k_states, -1)[:, 0], np.float64),
        "transition": np.array(space["transition"], np.float64).reshape(model.k_states, model.k_states),
        "shocks": np.array(np.diag(shocks)),
        "irregular": np.array(float(np.asarray(space["obs_cov"]).reshape(-1)[0])),
        "state": np.array(filter_results.predicted_state[:, -1]),
        "covariance": np.array(filter_results.predicted_state_cov[:, :, -1]),
        "effects": np.asarray(effects, np.float64),  # of the transformed regressors
    }


def _converged(optimizer_report: Mapping[str, Any] | None) -> bool:
    """Whether the optimizer reached a maximum; True without an optimization (None).

    At a maximum the line search may fail because numerical gradients are rounded (warnflag 2, which
    depends on the processor); this counts as converged if the gradient is small.
    """
    if optimizer_report is None or optimizer_report["converged"]:
        return True
    return bool(optimizer_report["warnflag"] == 2 and np.max(np.abs(optimizer_report["gopt"])) <= GRADIENT_TOLERANCE)


def residual_scale(y: Floats, scale: float, fit: Any, learned: Mapping[str, Floats] | None) -> dict[str, Floats]:
    """`noise_floor`, `n_errors_since` and `interval_factor` (see `_noise_floor`) of a fit; a perfect fit has a noise floor.

    With `learned` the noise floor is that of the training data.
    """
    filtered = fit.filter_results
    n_diffuse = max(int(fit.nobs_diffuse), int(fit.model.loglikelihood_burn))
    errors = np.where(np.isnan(y), np.nan, np.asarray(filtered.forecasts_error[0]))[n_diffuse:]
    variances = np.asarray(filtered.forecasts_error_cov[0, 0])[n_diffuse:]
    if learned is None:
        present = y[~np.isnan(y)]
        limit = PERFECT_FIT * float(np.max(present / scale) - np.min(present / scale))
        is_perfect = len(errors) > 0 and bool(np.all(~(np.abs(errors) > limit)))
        noise_floor = limit if is_perfect else np.nan
    else:
        noise_floor = float(learned["noise_floor"])
    return {"noise_floor": np.array(noise_floor), **interval_factor(errors, variances, noise_floor, (0, 1.0))}
