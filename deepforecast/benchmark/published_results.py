"""Published results for comparison with a run, each with its protocol and its source.

They are of other people's runs: a report marks them as published, and where the protocol of a run differs from theirs the
figures do not compare. `metric` is named as in the columns of `score`, and two that it has not: `mse`, and `acd-95`, the
absolute distance of the coverage of a 95 % interval from 0.95.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class PublishedResult:
    """A published result; `horizon` is None for averages over several horizons, e.g. the totals of M4."""

    dataset: str
    horizon: int | None
    model: str
    metric: str
    value: float
    protocol: str
    source: str


def find_published(dataset: str, *, horizon: int | None = None, metric: str | None = None) -> list[PublishedResult]:
    """Return the published results of a dataset in file order, optionally for one horizon or metric.

    >>> [(one.model, one.value) for one in find_published("etth1", horizon=96, metric="mse")][:3]
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
