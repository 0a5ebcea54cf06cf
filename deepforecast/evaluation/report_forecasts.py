"""Forecasts in a report: the best, median and worst series of the best model."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.columns import CUTOFF
from deepforecast.data.frames import Frame
from deepforecast.errors import format_value
from deepforecast.evaluation.forecast_columns import find_models
from deepforecast.evaluation.leaderboard_summary import format_model_name, format_rounded
from deepforecast.evaluation.report_figures import figure_html
from deepforecast.plotting import plot_cross_validation

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard


HISTORY_HORIZONS = 3  # length of the history before the first window, in horizons


def forecast_figures(board: Leaderboard) -> str:
    """A plot of all windows for each of the sampled series."""
    metric = board.metrics[0]
    best_model = board.best_name
    caption = f'<p class="quiet">All windows of {escape(format_model_name(best_model))}; dashed lines mark the cutoffs.</p>'
    plots = []
    for index, (prefix, series_id, score) in enumerate(_sample_series(board)):
        heading = f"{prefix}{escape(format_value(metric, 60))} {format_rounded(score)}" if np.isfinite(score) else prefix
        plots.append(f"<h3>{heading}</h3>" + figure_html(f"forecast-{index}", _plot_series(board, best_model, series_id)))
    return caption + "".join(plots)


def _sample_series(board: Leaderboard) -> list[tuple[str, Any, float]]:
    """Heading, id and score of the best, median and worst series of the best model, without duplicates.

    Series are ordered by the distance of the ranking metric from its best value.
    """
    best_scores = board.by_series[board.by_series["model"] == board.best_name]
    values = best_scores[board.metrics[0]].to_numpy(dtype=np.float64)
    distance = board.criteria[board.metrics[0]].distance(values)
    order = np.argsort(distance, kind="stable")[: int(np.isfinite(distance).sum())]
    id_column = board.settings["columns"]["id"]
    ids = [None] * len(best_scores) if id_column is None else best_scores[id_column].tolist()
    if len(best_scores) == 1:
        return [("", ids[0], float(values[0]))]
    positions = {"Best series: ": 0, "Median series: ": (len(order) - 1) // 2, "Worst series: ": len(order) - 1}
    if len(order) < 3:
        positions = {"Best series: ": 0, **({"Worst series: ": 1} if len(order) == 2 else {})}
    return [(prefix, ids[order[position]], float(values[order[position]])) for prefix, position in positions.items()]


def _plot_series(board: Leaderboard, model: str, series_id: Any) -> Any:
    """Plot the history and all windows of one series."""
    names = board.settings["columns"]
    columns = {role: names[role] for role in ("id", "time", "target")}
    windows = _series_rows(board.forecasts, names["id"], series_id)
    table = frames.to_narwhals(windows)
    models = find_models(table, {*names.values(), CUTOFF}, warn_non_numeric=False)
    model_columns = next(entry for entry in models if entry.name == model)
    key_columns = [name for name in (names["id"], names["time"], CUTOFF, names["target"]) if name is not None]
    selected = table.select([*key_columns, *model_columns.all]).to_native()
    history = _series_rows(board.history, names["id"], series_id)
    max_history = HISTORY_HORIZONS * int(board.settings["horizon"])
    return plot_cross_validation(
        selected, history=history, models=model, max_history=max_history, backend="svg", columns=columns
    )


def _series_rows(frame: Frame, id_column: str | None, series_id: Any) -> Frame:
    """The rows of one series; all rows without an id column."""
    import narwhals.stable.v2 as nw

    table = frames.to_narwhals(frame)
    if id_column is None:
        return table.to_native()
    ids = table[id_column]
    ids = ids.cast(nw.String()) if ids.dtype in (nw.Categorical, nw.Enum) else ids
    return table.filter(ids.is_in([series_id])).to_native()
