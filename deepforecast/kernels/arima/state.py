"""The filter's state after a history, and forecasts from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.holes import prepare, run, state_size
from deepforecast.kernels.arima.layout import EXCESS, FACTORS, FULL_PHI, MEAN, RHO, Arrays, Form, arrays_for
from deepforecast.kernels.arima.polynomials import multiply
from deepforecast.kernels.compiling import announced, lean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOLD = 1e-9
"""Of what a row says of the unknown early values: if less than this share is not told by those before, nothing is."""


class State(NamedTuple):
    """Where a filter stands: the state before the next row has covariance sigma^2 (excess + ma ma')."""

    ar: Floats  # phi with its differences, of lags 1 ...
    ma: Floats  # 1 and theta
    mean: Floats
    excess: Floats  # (size, size)


def follow(form: Form, factors: Floats, delta: Floats, values: Floats) -> tuple[State, Floats, Floats]:
    """The state after all of `values` (NaN where missing), each value as it was foreseen, and the variance of that.

    The first m = len(delta) - 1 values are what it starts from: foreseen by nothing (NaN). Those missing among them are
    estimated, for the state from all values, and their uncertainty is part of the state's; for what was foreseen from those
    before, and it is NaN as long as these do not tell.
    """
    m = len(delta) - 1
    early = np.flatnonzero(np.isnan(values[:m]))
    data = np.vstack([values[None], np.eye(len(values))[early]]) if len(early) else values[None]
    data = np.ascontiguousarray(data)
    arrays = arrays_for(form, len(values), len(data), m, False)
    arrays.vectors[FACTORS, : form.size] = factors
    with announced("ARIMA"):
        _follow(form.form, form.lags, delta, data, m, arrays)
    size = max(int(form.form[7]) + m, int(form.form[8]) + 1)
    return _after(arrays, data, m, size)


def follow_on(state: State, values: Floats) -> tuple[State, Floats, Floats]:
    """The same, going on from a state."""
    size = len(state.mean)
    form = Form(np.zeros(17, np.int64), np.zeros((4, 1), np.int64))
    arrays = arrays_for(form, len(values), 1, size, False)
    for row, held in ((FULL_PHI, state.ar), (RHO, state.ma)):
        arrays.vectors[row, :size] = held
    arrays.states[MEAN, 0, :size] = state.mean
    arrays.square[EXCESS, :size, :size] = state.excess
    delta, data = np.zeros(size + 1), np.ascontiguousarray(values[None])
    with announced("ARIMA"):
        _follow(form.form, form.lags, delta, data, 0, arrays)
    return _after(arrays, data, 0, size)


def foreseen(ar: Floats, ma: Floats, mean: Floats, excess: Floats, steps: int) -> tuple[Floats, Floats, Floats]:
    """Means, standard deviations in units of sigma, and responses to a shock, each (series, steps).

    ar, ma, mean: (series, size); excess: (series, size (size + 1) / 2), the lower half by rows.
    """
    means, deviations, responses = np.zeros((3, len(ar), steps))
    with announced("ARIMA"):
        _foreseen(ar, ma, mean, excess, means, deviations, responses, np.zeros(steps))
    return means, deviations, responses


def pulses(ar: Floats, ma: Floats, steps: int) -> tuple[Floats, Floats]:
    """What one unit of the first state, and one shock, add to each step: 1 / phi and theta / phi, (series, steps) each."""
    of_state, of_shock = np.zeros((2, len(ar), steps))
    size = ar.shape[1]
    for h in range(steps):
        before = np.arange(max(h - size, 0), h)
        of_state[:, h] = 1.0 if h == 0 else (ar[:, h - 1 - before] * of_state[:, before]).sum(axis=1)
        since = np.arange(max(h - size + 1, 0), h + 1)
        of_shock[:, h] = (ma[:, h - since] * of_state[:, since]).sum(axis=1)
    return of_state, of_shock


def _after(arrays: Arrays, data: Floats, m: int, size: int) -> tuple[State, Floats, Floats]:
    """The state with unknown early values estimated, and what was foreseen."""
    mean, excess = arrays.states[MEAN, 0, :size].copy(), arrays.square[EXCESS, :size, :size].copy()
    ahead, variance = arrays.tracks[0, : data.shape[1]].copy(), arrays.against[:, 0].copy()
    ahead[:m], variance[:m] = np.nan, np.nan
    if len(data) > 1:
        seen = np.flatnonzero(~np.isnan(data[0]))
        seen = seen[seen >= m]
        errors = (data - arrays.tracks[: len(data), : data.shape[1]])[:, seen] / np.sqrt(variance[seen])
        known = np.linalg.pinv(errors[1:] @ errors[1:].T, hermitian=True)
        found = known @ (errors[1:] @ errors[0])
        responses = arrays.states[MEAN, 1 : len(data), :size]
        mean -= found @ responses
        excess += responses.T @ known @ responses
        tracks = arrays.tracks[: len(data), m : data.shape[1]]
        ahead[m:], variance[m:] = _by_those_before(data[0, m:], tracks, variance[m : data.shape[1]])
    return State(arrays.vectors[FULL_PHI, :size].copy(), arrays.vectors[RHO, :size].copy(), mean, excess), ahead, variance


def _by_those_before(y: Floats, tracks: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Each value as it is foreseen, and the variance of that, where the unknown early values are told by the rows before alone.

    Of those, `sure` is the covariance as far as it is told and `open_` spans what is not: the exact diffuse filter.
    """
    size = len(tracks) - 1
    known, sure, open_ = np.zeros(size), np.zeros((size, size)), np.eye(size)
    ahead, spread = np.full((2, len(y)), np.nan)
    for t in range(len(y)):
        response = tracks[1:, t]
        untold, told = open_ @ response, sure @ response
        far, near = float(response @ untold), float(response @ told) + variance[t]
        new = far > TOLD * float(response @ response)
        if not new:
            ahead[t], spread[t] = tracks[0, t] - known @ response, near
        if np.isnan(y[t]):
            continue
        error = tracks[0, t] - known @ response - y[t]
        if new:
            gain = untold / far
            sure += near * np.outer(gain, gain) - np.outer(gain, told) - np.outer(told, gain)
            open_ -= np.outer(gain, untold)
        else:
            gain = told / near
            sure -= np.outer(gain, told)
        known += gain * error
    return ahead, spread


@lean
def _follow(form: Ints, lags: Ints, delta: Floats, data: Floats, begin: int, arrays: Arrays) -> None:
    vectors, _, dense, _, _, states, square, _ = arrays
    if begin > 0 or len(delta) == 1:
        for one in range(2):
            multiply(form, lags, one, vectors)
        prepare(form, delta, data, vectors, dense, states, square)
    run(state_size(form, delta), data, begin, arrays)


@lean
def _foreseen(
    ar: Floats, ma: Floats, mean: Floats, excess: Floats, means: Floats, deviations: Floats, responses: Floats, pulse: Floats
) -> None:
    series, steps = means.shape
    size = ar.shape[1]
    for one in range(series):
        sure, total = True, 0.0
        for place in range(excess.shape[1]):
            sure = sure and excess[one, place] == 0.0
        for h in range(steps):
            pulse[h] = 1.0 if h == 0 else 0.0
            for i in range(min(h, size)):
                pulse[h] += ar[one, i] * pulse[h - 1 - i]
            for i in range(min(h + 1, size)):
                means[one, h] += pulse[h - i] * mean[one, i]
                responses[one, h] += pulse[h - i] * ma[one, i]
            total += responses[one, h] * responses[one, h]
            of_past, place = 0.0, 0
            for i in range(0 if sure else min(h + 1, size)):
                for j in range(i + 1):
                    twice = 1.0 if i == j else 2.0
                    of_past += twice * excess[one, place] * pulse[h - i] * pulse[h - j]
                    place += 1
            deviations[one, h] = np.sqrt(max(total + of_past, 0.0))
