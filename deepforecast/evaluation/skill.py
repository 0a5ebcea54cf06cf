"""How much better models are than a reference over many datasets, as fev and GIFT-Eval put it. Arrays in, arrays out.

`values` is shaped (models, datasets), one positive number each, less being better: errors of different size are compared as
ratios to the reference's on the same dataset, and put together by the geometric mean, so no dataset weighs more than another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import ParameterError, format_value
from deepforecast.evaluation.inputs import numbers

Array = NDArray[np.float64]
SMALLEST, LARGEST = 1e-2, 1e2  # of a ratio, as fev clips it: a dataset that is forecast exactly does not decide alone


@dataclass(frozen=True, eq=False)
class Scores:
    """A number a model with the ends of its bootstrap interval over datasets, and the datasets it rests on."""

    value: Array
    low: Array
    high: Array
    datasets: NDArray[np.int64]


def skill(values: ArrayLike, reference: int, *, level: float = 95, n_resamples: int = 1000, seed: int = 0) -> Scores:
    """1 less the geometric mean of the ratios to the reference: 0 as good as it, 0.2 a fifth less error, below 0 worse.

    Over the datasets that a model and the reference have (NaN: neither); a ratio counts for 0.01 at least and 100 at most.

    >>> skill([[1.0, 2.0, 4.0], [0.5, 1.0, 2.0], [2.0, 2.0, 4.0]], 0).value.round(3).tolist()
    [0.0, 0.5, -0.26]
    """
    errors = _checked(values, reference, n_resamples)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = errors / errors[reference]
    ratio[(errors == 0) & (errors[reference] == 0)] = 1.0
    logs = np.log(np.clip(ratio, SMALLEST, LARGEST))
    found = _resampled(logs, level, n_resamples, seed)
    return Scores(1 - np.exp(found.value), 1 - np.exp(found.high), 1 - np.exp(found.low), found.datasets)


def win_rates(values: ArrayLike, *, level: float = 95, n_resamples: int = 1000, seed: int = 0) -> Scores:
    """Of each model the share of the others it beats, over datasets and others alike; a tie counts half.

    >>> win_rates([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]]).value.tolist()
    [0.75, 0.75, 0.0]
    """
    errors = _checked(values, 0, n_resamples)
    share = np.stack([_mean(_beaten(errors, one)) for one in range(len(errors))])
    return _resampled(share, level, n_resamples, seed)


def pairwise_win_rates(values: ArrayLike, *, level: float = 95, n_resamples: int = 1000, seed: int = 0) -> Scores:
    """Of each pair the share of datasets on which the first is better, shape (models, models); a tie counts half.

    >>> float(pairwise_win_rates([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 4.0]]).value[0, 1])
    0.625
    """
    errors = _checked(values, 0, n_resamples)
    count, datasets = errors.shape
    every = np.stack([_beaten(errors, one) for one in range(count)]).reshape(count * count, datasets)
    found = _resampled(every, level, n_resamples, seed)
    square = [part.reshape(count, count) for part in (found.value, found.low, found.high, found.datasets)]
    return Scores(*square)  # type: ignore[arg-type]  # three of floats, one of counts


def _beaten(errors: Array, one: int) -> Array:
    """Whether `one` beats each model on each dataset: 1, 0.5 or 0; NaN against itself and where either has no value."""
    found = np.where(errors[one] < errors, 1.0, np.where(errors[one] == errors, 0.5, 0.0))
    found[np.isnan(errors) | np.isnan(errors[one])] = np.nan
    found[one] = np.nan
    return found


def _mean(values: Array) -> Array:
    """Of each column without its missing values; NaN where there is no other."""
    there = (~np.isnan(values)).sum(axis=0)
    total = np.where(np.isnan(values), 0.0, values).sum(axis=0)
    return np.asarray(np.divide(total, there, out=np.full(values.shape[1], np.nan), where=there > 0))


def _resampled(values: Array, level: float, n_resamples: int, seed: int) -> Scores:
    """The mean over datasets of each row, and its percentile interval when datasets are drawn with replacement."""
    there = ~np.isnan(values)
    used = there.sum(axis=1)
    filled = np.where(there, values, 0.0)
    drawn = np.random.default_rng(seed).multinomial(
        values.shape[1], np.full(values.shape[1], 1 / values.shape[1]), size=n_resamples
    )
    count = drawn @ there.T.astype(np.float64)
    means = np.divide(drawn @ filled.T, count, out=np.full(count.shape, np.nan), where=count > 0)
    value = np.divide(filled.sum(axis=1), used, out=np.full(len(values), np.nan), where=used > 0)
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    enough = used > 1
    if enough.any():
        low[enough], high[enough] = np.nanquantile(means[:, enough], [(100 - level) / 200, (100 + level) / 200], axis=0)
    return Scores(value, low, high, used.astype(np.int64))


def _checked(values: ArrayLike, reference: int, n_resamples: int) -> Array:
    errors = numbers("values", values)
    if errors.ndim != 2 or not errors.size:
        raise ParameterError(f"values is shaped (models, datasets), at least one of each; got shape {errors.shape}.")
    if (errors < 0).any() or np.isinf(errors).any():
        raise ParameterError("values are errors: finite and not negative, or missing (NaN) where a model has none.")
    if not 0 <= reference < len(errors):
        raise ParameterError(f"reference is the place of a model, 0 to {len(errors) - 1}; got {format_value(reference)}.")
    if n_resamples < 1:
        raise ParameterError(f"n_resamples is at least 1; got {format_value(n_resamples)}.")
    return errors
