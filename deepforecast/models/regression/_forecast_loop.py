"""Multi-step forecasts of all series from one-step regressors, in blocks of steps.

The strategy sets the block size: 1 (recursive), the horizon (direct) or in between. The regressor
of step k in a block reads features of the past with k - 1 additional lags. Only the features of
new rows are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.kernels import features as kernel
from deepforecast.models.regression._design import Design, encode_features

Predict = Callable[[Floats], Floats]
ToChanges = Callable[[Floats, int], None]  # forecasts (series, steps) in place, from a step on


class History:
    """Last values of every series with space for forecasts, and summaries of expanding windows."""

    def __init__(self, designs: Sequence[Design], tail: Floats, summaries: Floats, steps: int) -> None:
        self.values = np.concatenate([tail, np.full((len(tail), steps), np.nan)], axis=1)
        self.n_values, self._summaries = tail.shape[1], summaries
        self._features = [encode_features(design.target_features) for design in designs]

    def next_features(self, step: int, exogenous: Floats) -> Floats:
        """Features `step` rows after the next row; `exogenous` are its last columns."""
        features, levels = self._features[step]
        matrix = np.empty((len(exogenous), len(levels) + exogenous.shape[1]))
        kernel.fill_next_row(self.values, self.n_values + step, features, levels, self._summaries, matrix)
        matrix[:, len(levels) :] = exogenous
        return matrix

    def append(self, block: Floats) -> None:
        """Append the values of the next rows."""
        for value in block.T:
            self.values[:, self.n_values] = value
            self.n_values += 1
            if self._summaries.shape[2]:
                kernel.update_expanding(self.values, self.n_values, *self._features[0], self._summaries)


def forecast(history: History, predicts: Sequence[Predict], exogenous: Floats, to_changes: ToChanges) -> Floats:
    """Forecasts (series, steps).

    `predicts[k]` predicts step k of a block; `exogenous` (steps, series, columns) are the features
    independent of the target; `to_changes` converts predictions of a block to the scale of
    `history`.
    """
    steps, series, _ = exogenous.shape
    block = len(predicts)
    forecasts = np.empty((series, steps))
    for start in range(0, steps, block):
        n_steps = min(block, steps - start)
        for step in range(n_steps):
            forecasts[:, start + step] = predicts[step](history.next_features(step, exogenous[start + step]))
        to_changes(forecasts[:, : start + n_steps], start)
        history.append(forecasts[:, start : start + n_steps])
    return forecasts


def forecast_multioutput(
    history: History, predict: Predict, exogenous: Floats, block: int, n_past: int, to_changes: ToChanges
) -> Floats:
    """`forecast` for a regressor that predicts all steps of a block at once.

    The first `n_past` columns of `exogenous` are read at the first step of a block, the others at
    each step.
    """
    steps, series, _ = exogenous.shape
    forecasts = np.empty((series, steps))
    for start in range(0, steps, block):
        block_columns = exogenous[start : start + block]
        later_columns = block_columns[:, :, n_past:].transpose(1, 0, 2).reshape(series, -1)
        forecasts[:, start : start + block] = predict(
            history.next_features(0, np.concatenate([block_columns[0, :, :n_past], later_columns], axis=1))
        )
        to_changes(forecasts[:, : start + block], start)
        history.append(forecasts[:, start : start + block])
    return forecasts
