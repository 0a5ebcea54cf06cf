"""Estimation of Prophet for all series of a panel, in parallel over jobs of series with the same design matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.additive import build_components
from deepforecast.core.arrays import constant_values
from deepforecast.core.component_options import check_changepoints, refuse_outside
from deepforecast.core.parallel import map_chunks
from deepforecast.core.state import LearnedState
from deepforecast.data.calendar import timestamps_at
from deepforecast.data.components import to_dicts
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, warn
from deepforecast.models.prophet._design_matrix import (
    FitData,
    prepare_fit,
    used_rows,
)
from deepforecast.models.prophet._solver import fit_job

if TYPE_CHECKING:
    from deepforecast.models.prophet.prophet import Prophet

SECONDS_PER_VALUE = 3e-10  # approximate duration of the normal equations per row and column^2
NONLINEAR_COST = 12.0  # approximate duration of a nonlinear fit, relative to that of its normal equations
SECONDS_PER_SERIES = 1e-4  # approximate overhead


def fit_panel(model: Prophet, panel: Panel, previous: LearnedState | None) -> LearnedState:
    """Estimate the parameters of each series.

    The estimates of a `previous` fit with the same series and components are additional starting points of nonlinear
    fits. Raises for a logistic trend without cap, changepoints outside a history, and series with fewer than 2 rows.
    """
    if model.growth == "logistic" and model.cap is None:
        raise ParameterError(
            "`cap` must be set with growth='logistic'.",
            hint="Set it to a number or the name of a future covariate.",
            parameter="cap",
        )
    components = build_components(model, panel)
    first, last = _first_and_last(model, panel, used_rows(model, panel, components))
    if model.changepoints is not None and model.growth != "flat":
        _check_changepoints(model.changepoints, panel, first, last)
    previous_arrays = None
    if previous is not None and len(previous["rate"]) == len(panel) and previous["parts"] == to_dicts(components):
        previous_arrays = previous.by_series
    data = prepare_fit(model, panel, components)
    groups = data.groups()

    def fit_groups(selected: slice) -> list[tuple[int, dict[str, Any]]]:
        """Index and learned arrays of each series in the selected groups."""
        return [
            series_fit
            for series_indices in groups[selected]
            for series_fit in fit_job(model, data.job(model, series_indices), previous_arrays)
        ]

    costs = [_approximate_seconds(model, data, series_indices) for series_indices in groups]
    chunk_fits = map_chunks(fit_groups, len(groups), cost=costs)
    learned_by_index = {index: learned for chunk in chunk_fits for index, learned in chunk}
    learned_in_order = [learned_by_index[index] for index in range(len(panel))]
    arrays = {name: np.array([learned[name] for learned in learned_in_order]) for name in learned_in_order[0]}
    _warn_exact_fit(model, panel, arrays.pop("exact"))
    return LearnedState({**arrays, "end": last}, {"parts": to_dicts(components)}, history=panel)


def _first_and_last(model: Prophet, panel: Panel, used: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Positions of the first and last used row of each series; `DataError` if a series has fewer than 2 of them."""
    n_used = np.add.reduceat(used, panel.indptr[:-1], dtype=np.int64)
    few = np.flatnonzero(n_used < 2)
    if len(few):
        raise DataError(
            f"{model.name} requires at least 2 rows per series with a value and all future covariates; too few in series: "
            f"{panel.series.labels(few)} ({n_used[few[0]]} in {panel.series.label(few[0])}).",
            hint="Drop such series, or fill the "
            "missing covariates.",
            series=panel.series.id_texts(few),
        )
    rows = np.arange(len(used))
    first = np.minimum.reduceat(np.where(used, rows, len(used)), panel.indptr[:-1]) - panel.indptr[:-1]
    last = np.maximum.reduceat(np.where(used, rows, -1), panel.indptr[:-1]) - panel.indptr[:-1]
    step = panel.calendar.step
    return np.asarray(panel.start + step * first), np.asarray(panel.start + step * last)


def _warn_exact_fit(model: Prophet, panel: Panel, exact: NDArray[np.bool_]) -> None:
    """Warn of series with zero residuals (mask `exact`), whose prediction intervals contain no noise."""
    if exact.any():
        warn(
            f"{model.name} has zero residuals for series with no more values than parameters, whose prediction intervals "
            f"therefore contain no noise: {panel.series.labels(np.flatnonzero(exact))}. Pass longer series, or set a smaller "
            "n_changepoints.", subject=model.name
        )


def _check_changepoints(changepoints: list[Any], panel: Panel, first: Ints, last: Ints) -> None:
    """Raise `ParameterError` for invalid changepoints, or some outside the positions `first` to `last` of a series."""
    check_changepoints(changepoints, not panel.calendar.frequency.base)
    start, end = (timestamps_at(panel.calendar, positions) for positions in (first, last))
    refuse_outside(changepoints, panel, start.local_time_of_rows, end.local_time_of_rows, start.per_day)


def _approximate_seconds(model: Prophet, data: FitData, series_indices: list[int]) -> float:
    """Approximate duration of the job of these series, which share a design matrix."""
    n_observations = int(data.panel.lengths[series_indices[0]])
    n_columns = 2 + model.max_changepoints + sum(component.columns for component in data.components)
    has_multiplicative = any(component.multiplicative for component in data.components)
    is_linear = not has_multiplicative and model.errors == "normal" and model.growth != "logistic"
    nonlinear_cost = 0.0 if is_linear else NONLINEAR_COST * len(series_indices)
    design_seconds = n_observations * n_columns**2 * SECONDS_PER_VALUE
    return design_seconds * (1.0 + nonlinear_cost) + SECONDS_PER_SERIES * len(series_indices)


def constant_covariate_values(model: Prophet, panel: Panel) -> Floats:
    """The value of each future covariate that is constant in a series, (series, columns), else NaN.

    Also NaN for bounds, and for conditions that are always 1: their seasonality is estimated.
    """
    values = constant_values(panel)
    conditions = {season.get("condition") for season in (model.seasonalities or {}).values()}
    for index, name in enumerate(panel.series.columns.future):
        if name in (model.cap, model.floor):
            values[:, index] = np.nan
        elif name in conditions:
            values[:, index] = np.where(values[:, index] == 1.0, np.nan, values[:, index])
    return values
