"""Published results for comparison with a run, each with its protocol and its source.

The results come from experiments of other authors. A report marks them as published; they are
comparable only if the run follows the same protocol. Metrics are named as in the columns of `score`,
plus `acd-95`, the absolute difference between the coverage of a 95 % interval and 0.95.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class PublishedResult:
    """A published result.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    horizon : int or None
        Forecast horizon; None for averages over several horizons, e.g. the totals of M4.
    model : str
        Name of the model in the publication.
    metric : str
        Name of the metric.
    value : float
        Published value.
    protocol : str
        Evaluation protocol: split, scaling, cutoffs.
    source : str
        Citation or URL.
    """

    dataset: str
    horizon: int | None
    model: str
    metric: str
    value: float
    protocol: str
    source: str


def find_published(dataset: str, *, horizon: int | None = None, metric: str | None = None) -> list[PublishedResult]:
    """Return the published results of a dataset in file order.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    horizon : int, optional
        Only results of this horizon.
    metric : str, optional
        Only results of this metric.

    Returns
    -------
    list of PublishedResult

    Examples
    --------
    >>> [(result.model, result.value) for result in find_published("etth1", horizon=96, metric="mse")][:3]
    [('Repeat', 1.295), ('DLinear', 0.375), ('NLinear', 0.374)]
    """
    return [
        published
        for published in _load_all()
        if published.dataset == dataset and horizon in (None, published.horizon) and metric in (None, published.metric)
    ]


@cache
def _load_all() -> tuple[PublishedResult, ...]:
    return tuple(_read_results(Path(__file__).with_name("anchors.csv")))


def _read_results(path: Path) -> Iterator[PublishedResult]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield PublishedResult(
                dataset=row["dataset"],
                horizon=int(row["horizon"]) if row["horizon"] else None,
                model=row["model"],
                metric=row["metric"],
                value=float(row["value"]),
                protocol=row["protocol"],
                source=row["source"],
            )
