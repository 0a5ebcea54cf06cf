"""Friedman test and Nemenyi post-hoc test for several models on several datasets.

`values` has shape (models, datasets), lower being better.

Demšar (2006), Statistical Comparisons of Classifiers over Multiple Data Sets, Journal of Machine
Learning Research 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import DataError, ParameterError, format_value
from deepforecast.evaluation.metric_inputs import to_float64
from deepforecast.evaluation.significance import ranks

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FriedmanTest:
    """Result of `friedman`.

    Attributes
    ----------
    mean_ranks : array of shape (models,)
        Mean rank over the datasets that all models have; 1 is best.
    n_datasets : int
        Number of these datasets.
    statistic, p_value : float
        Friedman statistic, and p-value of the hypothesis that all models perform equally.
    critical_difference : float
        Difference of mean ranks above which the Nemenyi test finds two models different.
    cliques : tuple of tuple of int
        Maximal groups of models that do not differ, best first: the bars of the diagram.
    """

    mean_ranks: Array
    n_datasets: int
    statistic: float
    p_value: float
    critical_difference: float
    cliques: tuple[tuple[int, ...], ...]


def friedman(values: ArrayLike, *, level: float = 95) -> FriedmanTest:
    """Perform the Friedman test with tie correction and compute Nemenyi's critical difference.

    Parameters
    ----------
    values : array-like of shape (models, datasets)
        Scores, lower being better. Datasets with a missing value (NaN) are left out.
    level : float, default 95
        Confidence level of the critical difference in percent.

    Returns
    -------
    FriedmanTest

    Raises
    ------
    DataError
        With fewer than two models or two datasets.

    Examples
    --------
    >>> test = friedman([[1.0, 2.0, 1.5, 3.0], [2.0, 2.5, 2.5, 3.5], [3.0, 2.6, 9.0, 4.0]])
    >>> test.mean_ranks.tolist(), round(test.p_value, 4), round(test.critical_difference, 3), test.cliques
    ([1.0, 2.0, 3.0], 0.0183, 1.657, ((0, 1), (1, 2)))
    """
    if not 0 < level < 100:
        raise ParameterError(
            f"`level` must be above 0 and below 100, got {format_value(level)}.", parameter="level", value=level
        )
    errors = to_float64("values", values)
    if errors.ndim != 2:
        raise ParameterError(
            f"`values` must have shape (models, datasets), got {errors.shape}.",
            parameter="values",
            value=values,
        )
    complete = errors[:, ~np.isnan(errors).any(axis=0)]
    n_models, n_datasets = complete.shape
    if n_models < 2 or n_datasets < 2:
        raise DataError(
            "`values` must contain at least two models and two datasets with values of all models, got "
            f"{n_models} models and {n_datasets} such datasets.",
            hint="Drop failed models, or add datasets.",
            parameter="values",
            value=values,
        )
    rank_matrix = ranks(complete)
    mean_ranks = rank_matrix.mean(axis=1)
    statistic, p_value = _friedman_statistic(rank_matrix)
    difference = critical_difference(n_models, n_datasets, level=level)
    return FriedmanTest(
        mean_ranks=mean_ranks,
        n_datasets=n_datasets,
        statistic=statistic,
        p_value=p_value,
        critical_difference=difference,
        cliques=cliques(mean_ranks, difference),
    )


def critical_difference(n_models: int, n_datasets: int, *, level: float = 95) -> float:
    """Compute the critical difference of the Nemenyi test.

    CD = q sqrt(k (k + 1) / (6 N)) for k models and N datasets, with q the quantile of the
    Studentized range divided by sqrt(2) (Demšar 2006, section 3.2.2).

    >>> round(critical_difference(4, 14), 2), round(critical_difference(4, 14, level=90), 2)
    (1.25, 1.12)
    """
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(level / 100, n_models, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(n_models * (n_models + 1) / (6 * n_datasets))


def cliques(rank: ArrayLike, difference: float) -> tuple[tuple[int, ...], ...]:
    """Maximal groups of at least two models, best first, whose mean ranks are within `difference`.

    >>> cliques([3.143, 2.0, 2.893, 1.964], 1.25)
    ((3, 1, 2, 0),)
    >>> cliques([3.143, 2.0, 2.893, 1.964], 1.12)
    ((3, 1, 2), (2, 0))
    """
    mean_ranks = to_float64("rank", rank)
    order = np.argsort(mean_ranks, kind="stable")
    model_groups: list[tuple[int, ...]] = []
    previous_stop = 0
    for start in range(len(order)):
        stop = int(np.searchsorted(mean_ranks[order], mean_ranks[order[start]] + difference, side="right"))
        if stop > max(previous_stop, start + 1):
            model_groups.append(tuple(order[start:stop].tolist()))
            previous_stop = stop
    return tuple(model_groups)


def _friedman_statistic(rank_matrix: Array) -> tuple[float, float]:
    """Friedman's chi-squared statistic with correction for ties, and its p-value; 0 and 1 if all values
    are tied.

    With k models, N datasets, rank sums R_j and tie groups of size t:
    (12 sum R_j^2 / (N k (k + 1)) - 3 N (k + 1)) / (1 - sum (t^3 - t) / (N k (k^2 - 1))).
    """
    from scipy.stats import chi2

    n_models, n_datasets = rank_matrix.shape
    tie_term = 0.0
    for column in rank_matrix.T:
        tie_sizes = np.unique(column, return_counts=True)[1].astype(np.float64)
        tie_term += float((tie_sizes**3 - tie_sizes).sum())
    correction = 1 - tie_term / (n_datasets * n_models * (n_models * n_models - 1))
    if correction <= 0:
        return 0.0, 1.0
    squared_sum = float((rank_matrix.sum(axis=1) ** 2).sum())
    statistic = (12 * squared_sum / (n_datasets * n_models * (n_models + 1)) - 3 * n_datasets * (n_models + 1)) / correction
    return statistic, float(chi2.sf(statistic, n_models - 1))
