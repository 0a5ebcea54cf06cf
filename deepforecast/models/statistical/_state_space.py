"""Linear Gaussian state space models of many series: Kalman filter, forecasts and sample paths.

    y_t = design' state_t + irregular_t,     state_{t+1} = transition state_t + shock_t

Products are computed per series, so that results do not depend on the other series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepforecast.data.frames import Floats, Ints


@dataclass(frozen=True)
class StateSpace:
    """State spaces of many series, with the predicted state and covariance of the next row.

    All arrays begin with an axis for the series; the shocks of the states are independent.
    """

    design: Floats  # (series, states)
    transition: Floats  # (series, states, states)
    shocks: Floats  # variances (series, states)
    irregular: Floats  # variance (series,)
    state: Floats  # (series, states)
    covariance: Floats  # (series, states, states)

    def states_ahead(self, steps: int) -> Floats:
        """The expected state at each step ahead, (series, steps, states)."""
        states, state = np.empty((len(self.state), steps, self.state.shape[1])), self.state
        for step in range(steps):
            states[:, step] = state
            state = _matrix_vector(self.transition, state)
        return states

    def deviations_ahead(self, steps: int) -> Floats:
        """The standard deviation of y at each step ahead, (series, steps)."""
        variances, covariance = np.empty((len(self.state), steps)), self.covariance
        for step in range(steps):
            variances[:, step] = _quadratic_form(self.design, covariance) + self.irregular
            covariance = self._predict_covariance(covariance)
        return np.sqrt(np.maximum(variances, 0.0))

    def filter_rows(self, y: Floats, indptr: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Kalman filter: predicted state and covariance after the rows; one-step errors of the rows and their variances."""
        state, covariance = self.state.copy(), self.covariance.copy()
        errors, variances = np.empty((2, len(y)))
        lengths = np.diff(indptr)
        for row in range(int(lengths.max(initial=0))):
            series = np.flatnonzero(lengths > row)
            selected = self._select(series)
            rows = indptr[series] + row
            variances[rows] = _quadratic_form(selected.design, covariance[series]) + selected.irregular
            errors[rows] = y[rows] - np.sum(selected.design * state[series], axis=1)
            filtered_state, filtered_covariance = _update_state(selected, state[series], covariance[series], y[rows])
            state[series] = _matrix_vector(selected.transition, filtered_state)
            covariance[series] = selected._predict_covariance(filtered_covariance)
        return state, covariance, errors, variances

    def sample_paths(self, start_draws: Floats, shocks: Floats, noise: Floats) -> Floats:
        """Sample paths (series, samples, steps) from standard normal draws.

        Shapes: start_draws (series, samples, states), shocks (series, samples, steps, states),
        noise (series, samples, steps).
        """
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        state = self.state[:, None, :] + np.einsum("nij,nsj->nsi", root, start_draws)
        sampled, shock_deviation = np.empty(noise.shape), np.sqrt(self.shocks)[:, None, :]
        for step in range(noise.shape[-1]):
            sampled[..., step] = np.einsum("nsi,ni->ns", state, self.design)
            state = np.einsum("nij,nsj->nsi", self.transition, state) + shock_deviation * shocks[:, :, step]
        return np.asarray(sampled + np.sqrt(self.irregular)[:, None, None] * noise)

    def _select(self, series: Ints) -> StateSpace:
        return StateSpace(*(getattr(self, name)[series] for name in self.__dataclass_fields__))

    def _predict_covariance(self, covariance: Floats) -> Floats:
        """Covariance of the next state, T P T' + Q, made symmetric."""
        predicted = self.transition @ covariance @ self.transition.swapaxes(1, 2)
        predicted[:, np.arange(predicted.shape[1]), np.arange(predicted.shape[1])] += self.shocks
        return np.asarray((predicted + predicted.swapaxes(1, 2)) / 2)


def _update_state(space: StateSpace, state: Floats, covariance: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Filtered state and covariance given the values `y`, (series,); unchanged where y is missing or has variance 0."""
    state_covariance = _matrix_vector(covariance, space.design)
    variance = np.sum(space.design * state_covariance, axis=1) + space.irregular
    is_observed = ~np.isnan(y) & (variance > 0)
    gain = np.where(is_observed[:, None], state_covariance / np.where(is_observed, variance, 1.0)[:, None], 0.0)
    error = np.where(is_observed, np.nan_to_num(y) - np.sum(space.design * state, axis=1), 0.0)
    return state + gain * error[:, None], covariance - gain[:, :, None] * state_covariance[:, None, :]


def _matrix_vector(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray(np.matmul(matrix, vector[..., None])[..., 0])


def _quadratic_form(vector: Floats, matrix: Floats) -> Floats:
    return np.asarray(np.sum(vector * _matrix_vector(matrix, vector), axis=1))
