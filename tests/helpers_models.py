"""Small honest models that use covariates, for tests of what comes before and after a model. Not registered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.panel import Panel


def design(covariates: Mapping[str, Covariate]) -> np.ndarray:
    """Shape (..., features): numbers as they are, a column a category; an unknown category is in none of them."""
    parts = []
    for one in covariates.values():
        if one.categories is None:
            parts.append(one.values[..., None])
        else:
            parts.append((one.values[..., None] == np.arange(len(one.categories))).astype(float))
    return np.concatenate(parts, axis=-1)


def least_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients, the intercept first, of the rows that are there."""
    there = ~(np.isnan(y) | np.isnan(x).any(axis=1))
    one = np.column_stack([np.ones(len(y)), x])[there]
    return np.asarray(np.linalg.lstsq(one, y[there], rcond=None)[0])


class FutureRegression(Forecaster):
    """Least squares on the columns known ahead, each series apart."""

    capabilities = Capabilities(future=True, categorical=True, missing=True, local=True)

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        x = design(panel.covariates)
        rows = [slice(a, b) for a, b in zip(panel.indptr[:-1], panel.indptr[1:], strict=True)]
        return LearnedState({"weights": np.stack([least_squares(x[row], panel.y[row]) for row in rows])})

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return learned

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        x = design(future)
        weights = learned["weights"]
        return PointForecast(weights[:, :1] + np.einsum("nsf,nf->ns", x, weights[:, 1:]), self.name)


class PooledRegression(Forecaster):
    """Least squares on columns known ahead, on what a past column said last, and on static ones: one set of weights for all."""

    capabilities = Capabilities(future=True, past=True, static=True, categorical=True, missing=True, local=False)

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        rows = np.repeat(np.arange(len(panel)), panel.lengths)
        static = {name: one.take(rows) for name, one in panel.static.items()}
        past = {name: panel.covariates[name] for name in panel.series.columns.past}
        future = {name: panel.covariates[name] for name in panel.series.columns.future}
        weights = least_squares(design({**future, **past, **static}), panel.y)
        return LearnedState({"fixed": self._fixed(panel, past)}, {"weights": weights})

    def _fixed(self, panel: Panel, past: Mapping[str, Covariate]) -> np.ndarray:
        last = {name: one.take(panel.indptr[1:] - 1) for name, one in past.items()}
        fixed = {**last, **panel.static}
        return design(fixed) if fixed else np.zeros((len(panel), 0))

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        past = {name: panel.covariates[name] for name in panel.series.columns.past}
        return LearnedState({"fixed": self._fixed(panel, past)}, learned.shared)

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        fixed = np.repeat(learned["fixed"][:, None, :], steps, axis=1)
        x = np.concatenate([design(future), fixed], axis=-1) if future else fixed
        return PointForecast(learned["weights"][0] + x @ learned["weights"][1:], self.name)
