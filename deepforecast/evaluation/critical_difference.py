"""Several models on several datasets: are they all alike (Friedman), and which differ (Nemenyi)? Arrays in, arrays out.

`values` is shaped (models, datasets), one number each, less being better. Demšar (2006), Statistical comparisons of
classifiers over multiple data sets, Journal of Machine Learning Research 7.
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
    """`mean_ranks`: the mean rank of each model over the datasets that every model has, 1 the best; `n_datasets`: how many those are.

    `p_value`: of Friedman's test that all models are alike. `critical_difference`: what two mean ranks have to be apart for Nemenyi's
    test to call the models different. `cliques`: the longest rows of models, best first, that are not: the bars of the diagram.
    """

    mean_ranks: Array
    n_datasets: int
    statistic: float
    p_value: float
    critical_difference: float
    cliques: tuple[tuple[int, ...], ...]


def friedman(values: ArrayLike, *, level: float = 95) -> FriedmanTest:
    """Friedman's test, corrected for ties, and Nemenyi's critical difference at `level` percent.

    Datasets where a model has no value (NaN) are left out. Two models, and two datasets, are needed.

    >>> found = friedman([[1.0, 2.0, 1.5, 3.0], [2.0, 2.5, 2.5, 3.5], [3.0, 2.6, 9.0, 4.0]])
    >>> found.mean_ranks.tolist(), round(found.p_value, 4), round(found.critical_difference, 3), found.cliques
    ([1.0, 2.0, 3.0], 0.0183, 1.657, ((0, 1), (1, 2)))
    """
    if not 0 < level < 100:
        raise ParameterError(f"level is a number in (0, 100), for example 95; got {format_value(level)}.")
    errors = to_float64("values", values)
    if errors.ndim != 2:
        raise ParameterError(f"values is shaped (models, datasets); got shape {errors.shape}.")
    complete = errors[:, ~np.isnan(errors).any(axis=0)]
    n_models, n_datasets = complete.shape
    if n_models < 2 or n_datasets < 2:
        raise DataError(
            f"Models are compared over datasets that all of them have: two of each are needed; there are {n_models} models and "
            f"{n_datasets} such datasets. Leave out models that failed, or add datasets."
        )
    rank_matrix = ranks(complete)
    mean_ranks = rank_matrix.mean(axis=1)
    statistic, p_value = _friedman_statistic(rank_matrix)
    difference = critical_difference(n_models, n_datasets, level=level)
    return FriedmanTest(mean_ranks, n_datasets, statistic, p_value, difference, cliques(mean_ranks, difference))


def critical_difference(n_models: int, n_datasets: int, *, level: float = 95) -> float:
    """How far apart mean ranks have to be for Nemenyi's test: q sqrt(k (k + 1) / 6 N), q of the Studentized range over sqrt(2).

    >>> round(critical_difference(4, 14), 2), round(critical_difference(4, 14, level=90), 2)
    (1.25, 1.12)
    """
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(level / 100, n_models, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(n_models * (n_models + 1) / (6 * n_datasets))


def cliques(rank: ArrayLike, difference: float) -> tuple[tuple[int, ...], ...]:
    """The longest runs of models, best first, whose mean ranks lie within `difference`; none of one model alone.

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
    """The statistic and its p-value by the chi-squared distribution. Where all are tied everywhere, all are alike."""
    from scipy.stats import chi2

    n_models, n_datasets = rank_matrix.shape
    tie_term = 0.0
    for column in rank_matrix.T:
        sizes = np.unique(column, return_counts=True)[1].astype(np.float64)
        tie_term += float((sizes**3 - sizes).sum())
    correction = 1 - tie_term / (n_datasets * n_models * (n_models * n_models - 1))
    if correction <= 0:
        return 0.0, 1.0
    squared_sum = float((rank_matrix.sum(axis=1) ** 2).sum())
    statistic = (12 * squared_sum / (n_datasets * n_models * (n_models + 1)) - 3 * n_datasets * (n_models + 1)) / correction
    return statistic, float(chi2.sf(statistic, n_models - 1))
