"""Skill scores and win rates over many datasets, as in fev and GIFT-Eval.

`values` has shape (models, datasets): errors, lower being better. Errors are divided by those of a
reference model on the same dataset and averaged by the geometric mean, so that all datasets weigh
the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import ParameterError, format_value
from deepforecast.evaluation.metric_inputs import to_float64

Array = NDArray[np.float64]
# ratios are clipped as in fev: an exact forecast must not dominate
MIN_RATIO = 1e-2
MAX_RATIO = 1e2


@dataclass(frozen=True, eq=False)
class SkillScores:
    """Values with bootstrap intervals over datasets and numbers of datasets, one per model."""

    value: Array
    low: Array
    high: Array
    n_datasets: NDArray[np.int64]


def skill(values: ArrayLike, reference: int, *, level: float = 95, n_resamples: int = 1000, seed: int = 0) -> SkillScores:
    """Compute skill scores: 1 minus the geometric mean of the error ratios to a reference model.

    0 is as good as the reference, 0.2 means 20 % less error, and negative values are worse.

    Parameters
    ----------
    values : array-like of shape (models, datasets)
        Errors, NaN where missing. Ratios are clipped to 0.01 and 100.
    reference : int
        Index of the reference model.
    level : float, default 95
        Confidence level in percent.
    n_resamples : int, default 1000
        Number of bootstrap resamples.
    seed : int, default 0
        Random seed.

    Returns
    -------
    SkillScores

    Examples
    --------
    >>> skill([[1.0, 2.0, 4.0], [0.5, 1.0, 2.0], [2.0, 2.0, 4.0]], 0).value.round(3).tolist()
    [0.0, 0.5, -0.26]
    """
    errors = _check_values(values, reference, n_resamples)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = errors / errors[reference]
    ratio[(errors == 0) & (errors[reference] == 0)] = 1.0
    logs = np.log(np.clip(ratio, MIN_RATIO, MAX_RATIO))
    log_scores = _bootstrap(logs, level, n_resamples, seed)
    return SkillScores(
        1 - np.exp(log_scores.value), 1 - np.exp(log_scores.high), 1 - np.exp(log_scores.low), log_scores.n_datasets
    )


def win_rates(values: ArrayLike, *, level: float = 95, n_resamples: int = 1000, seed: int = 0) -> SkillScores:
    """Compute the share of other models that each model beats, averaged over datasets; ties count
    half.

    Examples
    --------
    >>> win_rates([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]]).value.tolist()
    [0.75, 0.75, 0.0]
    """
    errors = _check_values(values, 0, n_resamples)
    win_shares = np.stack([_column_means(_wins_of(errors, model)) for model in range(len(errors))])
    return _bootstrap(win_shares, level, n_resamples, seed)


def pairwise_win_rates(values: ArrayLike, *, level: float = 95, n_resamples: int = 1000, seed: int = 0) -> SkillScores:
    """Compute for each pair of models the share of datasets on which the first is better; ties
    count half.

    Examples
    --------
    >>> float(pairwise_win_rates([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 4.0]]).value[0, 1])
    0.625
    """
    errors = _check_values(values, 0, n_resamples)
    n_models, n_datasets = errors.shape
    pair_wins = np.stack([_wins_of(errors, model) for model in range(n_models)]).reshape(n_models * n_models, n_datasets)
    rates = _bootstrap(pair_wins, level, n_resamples, seed)
    matrices = [array.reshape(n_models, n_models) for array in (rates.value, rates.low, rates.high, rates.n_datasets)]
    return SkillScores(*matrices)  # type: ignore[arg-type]  # three of floats, one of counts


def _wins_of(errors: Array, model: int) -> Array:
    """Whether `model` beats each model on each dataset: 1, 0.5 (tie) or 0; NaN against itself and
    for missing values."""
    wins = np.where(errors[model] < errors, 1.0, np.where(errors[model] == errors, 0.5, 0.0))
    wins[np.isnan(errors) | np.isnan(errors[model])] = np.nan
    wins[model] = np.nan
    return wins


def _column_means(values: Array) -> Array:
    """`nanmean` of each column without a warning if all are NaN."""
    n_defined = (~np.isnan(values)).sum(axis=0)
    sums = np.where(np.isnan(values), 0.0, values).sum(axis=0)
    return np.asarray(np.divide(sums, n_defined, out=np.full(values.shape[1], np.nan), where=n_defined > 0))


def _bootstrap(values: Array, level: float, n_resamples: int, seed: int) -> SkillScores:
    """The mean of each row over datasets with a percentile bootstrap interval."""
    defined = ~np.isnan(values)
    n_datasets = defined.sum(axis=1)
    filled = np.where(defined, values, 0.0)
    drawn_counts = np.random.default_rng(seed).multinomial(
        values.shape[1], np.full(values.shape[1], 1 / values.shape[1]), size=n_resamples
    )
    n_drawn = drawn_counts @ defined.T.astype(np.float64)
    means = np.divide(drawn_counts @ filled.T, n_drawn, out=np.full(n_drawn.shape, np.nan), where=n_drawn > 0)
    mean = np.divide(filled.sum(axis=1), n_datasets, out=np.full(len(values), np.nan), where=n_datasets > 0)
    low = np.full(len(values), np.nan)
    high = np.full(len(values), np.nan)
    has_interval = n_datasets > 1
    if has_interval.any():
        low[has_interval], high[has_interval] = np.nanquantile(
            means[:, has_interval], [(100 - level) / 200, (100 + level) / 200], axis=0
        )
    return SkillScores(mean, low, high, n_datasets.astype(np.int64))


def _check_values(values: ArrayLike, reference: int, n_resamples: int) -> Array:
    """`values` as a float64 array; invalid arguments raise `ParameterError`."""
    errors = to_float64("values", values)
    if errors.ndim != 2 or not errors.size:
        raise ParameterError(
            f"`values` must have shape (models, datasets) with at least one of each, got {errors.shape}.",
            parameter="values",
            value=values,
        )
    if (errors < 0).any() or np.isinf(errors).any():
        raise ParameterError(
            f"`values` must be finite and not negative, or missing (NaN), got values from {np.nanmin(errors)} to "
            f"{np.nanmax(errors)}.",
            parameter="values",
        )
    if not 0 <= reference < len(errors):
        raise ParameterError(
            f"`reference` must be the index of a model, 0 to {len(errors) - 1}, got {format_value(reference)}.",
            parameter="reference",
            value=reference,
        )
    if n_resamples < 1:
        raise ParameterError(
            f"`n_resamples` must be at least 1, got {format_value(n_resamples)}.",
            parameter="n_resamples",
            value=n_resamples,
        )
    return errors
