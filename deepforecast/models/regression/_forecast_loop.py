"""Multi-step forecasts of all series from one-step regressors, in blocks of steps.

The strategy sets the block size: 1 (recursive), the horizon (direct) or a number in between
(blocks). Within a block forecasts do not depend on each other: the lags of the regressor of step k
= 0, 1, ... are k larger. Forecasts of a block are appended to the history for the lags of the next
block. Only the features of new rows are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.kernels import features as kernel
from deepforecast.models.regression._design import Design, encode_features

Predict = Callable[[Floats], Floats]  # rows of the feature matrix (series, columns) to predictions (series,)
ToChanges = Callable[[Floats, int], None]  # converts forecasts (series, steps) from a step on to changes, in place


class History:
    """Last values of each series with space for forecasts, and summaries of expanding windows.

    `designs[k]` is the design of step k of a block. `values` (series, known values + steps) has `n_values` values, then NaN.
    """

    def __init__(self, designs: Sequence[Design], tail: Floats, summaries: Floats, steps: int) -> None:
        self.values = np.concatenate([tail, np.full((len(tail), steps), np.nan)], axis=1)
        self.n_values = tail.shape[1]
        self._summaries = summaries
        self._features = [encode_features(design.target_features) for design in designs]

    def next_features(self, step: int, exogenous: Floats) -> Floats:
        """Feature matrix (series, columns) for step `step` = 0, 1, ... of the next block.

        `exogenous` (series, columns) are the last columns.
        """
        features, levels = self._features[step]  # see `encode_features`
        n_features = len(levels)
        matrix = np.empty((len(exogenous), n_features + exogenous.shape[1]))
        kernel.fill_next_row(self.values, self.n_values + step, features, levels, self._summaries, matrix)
        matrix[:, n_features:] = exogenous
        return matrix

    def append(self, block: Floats) -> None:
        """Append the values (series, steps) of the next rows, and update the summaries."""
        for value in block.T:
            self.values[:, self.n_values] = value
            self.n_values += 1
            if self._summaries.shape[2]:
                kernel.update_expanding(self.values, self.n_values, *self._features[0], self._summaries)


def forecast(history: History, predicts: Sequence[Predict], exogenous: Floats, to_changes: ToChanges) -> Floats:
    """Forecasts (series, steps) on the transformed scale.

    `predicts[k]` predicts step k of a block; `exogenous` (steps, series, columns) are the features
    independent of the target; `to_changes` converts predictions of a block to the scale of
    `history`.
    """
    steps, n_series, _ = exogenous.shape
    block_size = len(predicts)
    forecasts = np.empty((n_series, steps))
    for start in range(0, steps, block_size):
        n_steps = min(block_size, steps - start)
        for step in range(n_steps):
            forecasts[:, start + step] = predicts[step](history.next_features(step, exogenous[start + step]))
        to_changes(forecasts[:, : start + n_steps], start)
        history.append(forecasts[:, start : start + n_steps])
    return forecasts


def forecast_multioutput(
    history: History, predict: Predict, exogenous: Floats, block_size: int, n_past: int, to_changes: ToChanges
) -> Floats:
    """`forecast` for a regressor that predicts all steps of a block at once: (series, steps), in whole blocks.

    The first `n_past` columns of `exogenous`, lags of past covariates, are read at the first step
    of a block, the others at each step.
    """
    steps, n_series, _ = exogenous.shape
    forecasts = np.empty((n_series, steps))
    for start in range(0, steps, block_size):
        stop = start + block_size
        block_columns = exogenous[start:stop]
        future_columns = block_columns[:, :, n_past:].transpose(1, 0, 2).reshape(n_series, -1)
        features = history.next_features(0, np.concatenate([block_columns[0, :, :n_past], future_columns], axis=1))
        forecasts[:, start:stop] = predict(features)
        to_changes(forecasts[:, :stop], start)
        history.append(forecasts[:, start:stop])
    return forecasts
