"""Observation weights: how much each observation counts in the training of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data import frames
from deepforecast.data.frames import Floats, Ints, Table
from deepforecast.data.keys import Keys, Report
from deepforecast.errors import DataError, format_value, pluralize, raise_error

if TYPE_CHECKING:
    from deepforecast.data.panel import Panel


def read_weight(table: Table, y: Floats, keys: Keys, report: Report) -> Floats:
    """The column of weights in the order of the keys; 0 where the target `y` is missing.

    Weights of observed targets that are not finite or negative are reported, and become 0.
    """
    name = str(keys.names.weight)
    weight = frames.read_numbers(table.native[name], name)
    weight = np.where(np.isnan(y), 0.0, weight if keys.order is None else weight[keys.order])
    is_valid = np.isfinite(weight) & (weight >= 0)
    invalid = np.flatnonzero(~is_valid)
    if not len(invalid):
        return weight
    report(
        DataError(
            f"The weight of an observation must be a finite number of at least 0, but column {format_value(name)} is "
            f"{weight[invalid[0]]:g} at {keys.format_timestamp(invalid[0])} in series {keys.labels_of_rows(invalid[:1])} "
            f"({pluralize(len(invalid), 'such row')}).",
            hint="Correct these weights; 0 leaves an observation out of the training.",
            series=keys.id_texts_of_rows(invalid),
            problem=f"{name} invalid",
            count=len(invalid),
            where=keys.where(invalid),
        )
    )
    return np.where(is_valid, weight, 0.0)


def scatter_weight(weight: Floats, rows: Ints, n_rows: int) -> Floats:
    """Place the weights at `rows` of `n_rows` rows; the weight of the others is 0."""
    scattered = np.zeros(n_rows)
    scattered[rows] = weight
    return scattered


def refuse_zero_weights(panel: Panel, report: Report = raise_error) -> None:
    """Report weights that are 0 for all observations, from which nothing can be learned."""
    if panel.weight is None or panel.weight.any():
        return
    numbers = np.arange(len(panel))
    labels = panel.series.labels(numbers)
    name = panel.series.columns.weight
    report(
        DataError(
            f"Column {format_value(name)} must have a positive weight for at least one observation to train on, but is 0 for "
            f"all of them in series {labels}.",
            hint="Set a positive weight for at least one of them.",
            series=panel.series.id_texts(numbers),
            problem=f"{name} all zero",
            count=len(panel.weight),
            where=labels if panel.series.native_ids is not None else "the series",
        )
    )
