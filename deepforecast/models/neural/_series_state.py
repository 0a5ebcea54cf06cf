"""State per series: the last observations of target and covariates, and scales.

Entries of `LearnedState.by_series`, which are names in model files:

- "recent_values" and "recent_values:<column>" (series, input_size): last values of the target and of a covariate.
- "static:<column>" (series,): a static covariate.
- "loc" and "scale" (series,): location and scale of the series.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.arrays import warn_constant_in_fit
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import DataError, NotFittedError, format_list
from deepforecast.training.process import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


def window_columns(learned: LearnedState) -> WindowColumns:
    """The columns that the network was trained with."""
    columns: WindowColumns = learned.shared["network"].sizes.window_columns
    return columns


def last_observations(panel: Panel, columns: WindowColumns, scales: tuple[Floats, Floats]) -> dict[str, Any]:
    """The entries of `by_series` for the ends of the series in the panel, see the module.

    `scales` are location and scale, each (series,). Series shorter than the window are padded with
    NaN, or an unknown category.
    """
    length = columns.input_size
    by_series: dict[str, Any] = {"recent_values": panel.padded(length), "loc": scales[0], "scale": scales[1]}
    for name in (*columns.numeric, *columns.categorical):
        fill_value = np.nan if name in columns.numeric else float(UNKNOWN)
        column = panel.covariates[name].values
        by_series[f"recent_values:{name}"] = last_values(column, panel.indptr[:-1], panel.indptr[1:], length, fill_value)
    for name in (*columns.static, *columns.static_codes):
        by_series[f"static:{name}"] = panel.static[name].values.astype(np.float64)
    return by_series


def refuse_unobserved(name: str, learned: LearnedState) -> None:
    """Raise `DataError` if a series has no observation in its last window; `name` is the model's."""
    series = learned.series
    recent_values = learned.by_series["recent_values"]
    unobserved = np.flatnonzero(np.isnan(recent_values).all(axis=1))
    if not len(unobserved):
        return
    where = ""
    if series is not None and series.native_ids is not None:
        last_time = series.calendar.format(int(series.last[unobserved[0]]))
        where = f" in series {series.labels(unobserved)} (up to {last_time})"
    raise DataError(
        f"{name} requires at least one observation among the last {recent_values.shape[1]} time steps "
        f"of each series; all are missing{where}.",
        hint="Leave such series out, end them at their last observation, set missing='ffill', or fit with a larger input_size.",
    )


def warn_constant_covariates(name: str, state: State, future: Mapping[str, Covariate]) -> None:
    """Warn about future covariates that were constant in fit and change now: they have no effect."""
    columns = window_columns(state.learned)
    constant = {column: future[column] for column in future if columns.scale.get(column) == 0.0}
    if not constant:
        return
    warn_constant_in_fit(
        name,
        np.tile([columns.loc[column] for column in constant], (len(state.series), 1)),
        constant,
        state.series,
    )


def from_history(model: NeuralForecaster, learned: LearnedState, panel: Panel) -> dict[str, Any]:
    """The entries of `by_series` for series with these histories, as `last_observations`."""
    return last_observations(
        model._add_series_columns(panel, learned),
        window_columns(learned),
        known_scales(model, learned, panel),
    )


def advance(learned: LearnedState, panel: Panel) -> dict[str, Any]:
    """The entries of `by_series` after new observations, in a copy; scales do not change."""
    by_series = dict(learned.by_series)
    for name in [key for key in by_series if key == "recent_values" or key.startswith("recent_values:")]:
        values = panel.y if name == "recent_values" else panel.covariates[name.partition(":")[2]].values
        by_series[name] = _append_rows(by_series[name], values, panel)
    return by_series


def known_scales(model: NeuralForecaster, learned: LearnedState, panel: Panel) -> tuple[Floats, Floats]:
    """Location and scale of each series of a panel after a fit, two arrays (series,).

    A scale of the whole panel stays that of the training data. So does that of a series seen in fit
    if the model has `keeps_series_scale`.
    """
    panel_scale = learned.shared.get("panel_scale")
    if panel_scale is not None:
        return np.full(len(panel), panel_scale[0]), np.full(len(panel), panel_scale[1])
    loc, scale = series_scales(panel, model)
    if model.keeps_series_scale:
        index = series_index(learned, panel)
        is_known = index >= 0
        loc[is_known] = learned.by_series["loc"][index[is_known]]
        scale[is_known] = learned.by_series["scale"][index[is_known]]
    return loc, scale


def series_index(learned: LearnedState, panel: Panel) -> Ints:
    """Index of each series of the panel among those of the state, -1 for new ones; without ids the
    series are the same, in the same order.
    """
    series = learned.series
    if series is None or series.native_ids is None or panel.series.native_ids is None:
        return np.arange(len(panel))
    return series.index_of(panel.series.native_ids)


def series_scales(panel: Panel, model: NeuralForecaster) -> tuple[Floats, Floats]:
    """Location and scale of each series, two arrays (series,), estimated from the panel.

    With scaler_scope="panel" all are equal; with "window" they are 0 and 1.
    """
    loc, scale = np.zeros(len(panel)), np.ones(len(panel))
    if model.scaler_scope == "window":
        return loc, scale
    if model.scaler_scope == "panel":
        loc[:], scale[:] = estimate_scale(panel.y, model.scaler)
        return loc, scale
    for index, (begin, end) in enumerate(pairwise(panel.indptr)):
        loc[index], scale[index] = estimate_scale(panel.y[begin:end], model.scaler)
    return loc, scale


def estimate_scale(values: Floats, scaler: str) -> tuple[float, float]:
    """Location and scale of the values (steps,) of a series, which may have NaN, by this scaler."""
    import torch

    from deepforecast.nn.scaling import series_scale  # imports torch

    with torch_defaults():
        loc, scale = series_scale(torch.tensor(values).unsqueeze(0), scaler)
        return float(loc), float(scale)


def last_values(values: Floats, first: Ints, stop: Ints, length: int, fill_value: float = np.nan) -> Floats:
    """The last `length` values before each row in `stop`, (windows, length), left-padded with `fill_value`.

    `values` is a column of a panel, and `first` the first row of the series of each window.
    """
    index = stop[:, None] - length + np.arange(length)
    inside = index >= first[:, None]
    return np.where(inside, values[np.where(inside, index, 0)], fill_value)


def _append_rows(previous: Floats, values: Floats, panel: Panel) -> Floats:
    """Append the values of each series in the panel to the last values (series, length) before, and
    drop as many at the start.
    """
    length = previous.shape[1]
    updated = np.empty_like(previous)
    for index in range(len(previous)):
        new_values = values[panel.indptr[index] : panel.indptr[index + 1]][-length:]
        updated[index] = np.concatenate([previous[index, len(new_values) :], new_values])
    return updated


def refuse_pretrained(model: NeuralForecaster) -> None:
    """Raise `NotFittedError` if the network is only pretrained, by objectives that do not train its forecasts."""
    entry = model.fitted_state().learned.shared.get("pretraining")
    if entry is not None and not entry["trains_forecast"]:
        raise NotFittedError(
            f"{model.name} cannot forecast yet, as pretraining ({format_list(entry['objectives'])}) has not trained the output of "
            "forecasts.",
            hint="Call fine_tune(frame) first.",
        )
