"""statsmodels' unobserved components of one series at a time: fitted, filtered again, summed up."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from statsmodels.tsa.statespace.structural import UnobservedComponents

from deepforecast.data.frames import Floats, Ints

FAILED = "failed"
ORDINARY = (1e-3, 1e6)
"""Standard deviations of a series as statsmodels' optimiser knows them; others are brought near 1 by a power of two."""


@dataclass(frozen=True)
class Task:
    """Series, their regressors, and what statsmodels is told; travels to the processes that fit."""

    y: Floats
    indptr: Ints
    regressors: Floats
    specification: Mapping[str, Any]
    iterations: int

    def fitted(self, part: slice) -> list[dict[str, Floats]]:
        """What each of some series has learned."""
        return [self.one(number) for number in range(part.start, part.stop)]

    def one(self, number: int, held: Mapping[str, Floats] | None = None) -> dict[str, Floats]:
        """Fit a series, or only filter it with the parameters of an earlier fit; what went wrong under the key `FAILED`."""
        y, x = self._rows(number)
        scale = scale_of(y) if held is None else float(held["scale"])
        if scale == 0.0:
            return self._constant(y, x)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # what statsmodels warns of follows from the model asked for, or is in `converged`
            try:
                if held is None or bool(held["exact"]):
                    model = self._model(y / scale, x, exact=True)
                    result = self._found(model, held)
                    if result.nobs_diffuse < len(y):
                        return _arrays(model, result, scale, 0.0)
                return self._about_its_mean(y, x, held)
            except (np.linalg.LinAlgError, ValueError, IndexError) as error:
                return {FAILED: np.array(f"{type(error).__name__}: {error}")}

    def fitted_values(self, number: int, held: Mapping[str, Floats]) -> Floats:
        """One-step-ahead forecasts; NaN while the first states are not known."""
        y, x = self._rows(number)
        scale, centre = float(held["scale"]), float(held["centre"])
        if scale == 0.0:
            return np.asarray(np.where(np.arange(len(y)) == 0, np.nan, y[~np.isnan(y)][0]))
        model = self._model((y - centre) / scale, x, bool(held["exact"]))
        result = model.filter(held["params"])
        found = np.asarray(result.fittedvalues, np.float64) * scale + centre
        found[: max(int(result.nobs_diffuse), int(model.loglikelihood_burn))] = np.nan
        return found

    def result(self, number: int, held: Mapping[str, Floats]) -> Any:
        """statsmodels' own results object, with its summary and tests."""
        y, x = self._rows(number)
        return self._model((y - held["centre"]) / held["scale"], x, bool(held["exact"])).smooth(held["params"])

    def _about_its_mean(self, y: Floats, x: Floats, held: Mapping[str, Floats] | None) -> dict[str, Floats]:
        """With an approximately diffuse start of variance 1e6, around the mean and near 1: where the exact one, lost in
        rounding, leaves states unknown to the end (two components that are nearly the same)."""
        centre = float(np.nanmean(y))
        scale = near(float(np.nanstd(y))) if held is None else float(held["scale"])
        model = self._model((y - centre) / scale, x, exact=False)
        return _arrays(model, self._found(model, held), scale, centre)

    def _model(self, y: Floats, x: Floats, exact: bool) -> Any:
        return UnobservedComponents(y, exog=x if x.shape[1] else None, use_exact_diffuse=exact, **self.specification)

    def _found(self, model: Any, held: Mapping[str, Floats] | None) -> Any:
        if held is not None:
            return model.filter(held["params"])
        return model.fit(disp=False, maxiter=self.iterations, warn_convergence=False, cov_type="none")

    def _rows(self, number: int) -> tuple[Floats, Floats]:
        """Values and regressors; a row without a regressor counts as one without a value."""
        rows = slice(self.indptr[number], self.indptr[number + 1])
        y, x = np.array(self.y[rows]), np.array(self.regressors[rows])
        lacking = np.isnan(x).any(axis=1)
        y[lacking], x[lacking] = np.nan, 0.0
        return y, x

    def _constant(self, y: Floats, x: Floats) -> dict[str, Floats]:
        """A series that does not vary: no shocks, no effects, the value itself."""
        shape = self._model(np.arange(float(len(y))), x, exact=True)
        states = int(shape.k_states)
        return {
            "params": np.zeros(len(shape.param_names)),
            "converged": np.array(True),
            "exact": np.array(True),
            "scale": np.array(0.0),
            "centre": np.array(y[~np.isnan(y)][0]),
            "design": np.zeros(states),
            "transition": np.eye(states),
            "shocks": np.zeros(states),
            "irregular": np.array(0.0),
            "state": np.zeros(states),
            "covariance": np.zeros((states, states)),
            "effects": np.zeros(x.shape[1]),
        }


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
    selection = np.asarray(space["selection"], np.float64)
    shocks = selection @ np.asarray(space["state_cov"], np.float64) @ selection.T
    effects = result.params[len(result.params) - model.k_exog :] if model.k_exog else np.zeros(0)
    told = getattr(result, "mle_retvals", None)
    return {
        "params": np.array(result.params, np.float64),
        "converged": np.array(told is None or bool(told["converged"])),
        "exact": np.array(bool(model.use_exact_diffuse)),
        "scale": np.array(scale),
        "centre": np.array(centre),
        "design": np.array(np.asarray(space["design"])[0].reshape(model.k_states, -1)[:, 0], np.float64),
        "transition": np.array(space["transition"], np.float64).reshape(model.k_states, model.k_states),
        "shocks": np.array(np.diag(shocks)),
        "irregular": np.array(float(np.asarray(space["obs_cov"]).reshape(-1)[0])),
        "state": np.array(filtered.predicted_state[:, -1]),
        "covariance": np.array(filtered.predicted_state_cov[:, :, -1]),
        "effects": np.asarray(effects, np.float64),
    }
