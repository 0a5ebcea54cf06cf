"""Linear Gaussian state space of many series side by side: forecast, go on over new rows, draw paths. No statsmodels here.

    y = design . state + irregular          state' = transition . state + shock

Each product is that of one series by itself, so a result does not depend on what stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepforecast.data.frames import Floats, Ints


@dataclass(frozen=True)
class StateSpace:
    """Matrices (series, states, ...), the state ahead of the next row and its covariance; shocks are independent."""

    design: Floats
    transition: Floats
    shocks: Floats  # variances (series, states)
    irregular: Floats  # variance (series,)
    state: Floats
    covariance: Floats

    def states_ahead(self, steps: int) -> Floats:
        """The state at each step ahead, (series, steps, states)."""
        found, state = np.empty((len(self.state), steps, self.state.shape[1])), self.state
        for step in range(steps):
            found[:, step] = state
            state = _times(self.transition, state)
        return found

    def deviations_ahead(self, steps: int) -> Floats:
        """The standard deviation of y at each step ahead, (series, steps)."""
        found, covariance = np.empty((len(self.state), steps)), self.covariance
        for step in range(steps):
            found[:, step] = _quadratic(self.design, covariance) + self.irregular
            covariance = self._predicted(covariance)
        return np.sqrt(np.maximum(found, 0.0))

    def filtered(self, y: Floats, indptr: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """State and covariance ahead of the row after those of `y`; a missing value moves time alone. And the rows' errors and
        their variances."""
        state, covariance = self.state.copy(), self.covariance.copy()
        errors, spreads = np.empty((2, len(y)))
        lengths = np.diff(indptr)
        for row in range(int(lengths.max(initial=0))):
            here = np.flatnonzero(lengths > row)
            part = self._take(here)
            at = indptr[here] + row
            spreads[at] = _quadratic(part.design, covariance[here]) + part.irregular
            errors[at] = y[at] - np.sum(part.design * state[here], axis=1)
            found, spread = _corrected(part, state[here], covariance[here], y[at])
            state[here], covariance[here] = _times(part.transition, found), part._predicted(spread)
        return state, covariance, errors, spreads

    def paths(self, first: Floats, shocks: Floats, noise: Floats) -> Floats:
        """Sample paths (series, samples, steps) from standard normal draws: of the state at the start (series, samples,
        states), of shocks (series, samples, steps, states) and of the irregular part (series, samples, steps)."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        state = self.state[:, None, :] + np.einsum("nij,nsj->nsi", root, first)
        found, size = np.empty(noise.shape), np.sqrt(self.shocks)[:, None, :]
        for step in range(noise.shape[-1]):
            found[..., step] = np.einsum("nsi,ni->ns", state, self.design)
            state = np.einsum("nij,nsj->nsi", self.transition, state) + size * shocks[:, :, step]
        return np.asarray(found + np.sqrt(self.irregular)[:, None, None] * noise)

    def _take(self, numbers: Ints) -> StateSpace:
        return StateSpace(*(getattr(self, name)[numbers] for name in self.__dataclass_fields__))

    def _predicted(self, covariance: Floats) -> Floats:
        moved = self.transition @ covariance @ self.transition.swapaxes(1, 2)
        moved[:, np.arange(moved.shape[1]), np.arange(moved.shape[1])] += self.shocks
        return np.asarray((moved + moved.swapaxes(1, 2)) / 2)


def _corrected(space: StateSpace, state: Floats, covariance: Floats, y: Floats) -> tuple[Floats, Floats]:
    """State and covariance once a row was seen."""
    pull = _times(covariance, space.design)
    spread = np.sum(space.design * pull, axis=1) + space.irregular
    seen = ~np.isnan(y) & (spread > 0)
    gain = np.where(seen[:, None], pull / np.where(seen, spread, 1.0)[:, None], 0.0)
    error = np.where(seen, np.nan_to_num(y) - np.sum(space.design * state, axis=1), 0.0)
    return state + gain * error[:, None], covariance - gain[:, :, None] * pull[:, None, :]


def _times(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray(np.matmul(matrix, vector[..., None])[..., 0])


def _quadratic(vector: Floats, matrix: Floats) -> Floats:
    return np.asarray(np.sum(vector * _times(matrix, vector), axis=1))
