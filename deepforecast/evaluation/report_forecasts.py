"""The part of a report that shows forecasts: the series the best model forecasts best, worst, and as well as most."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.forecast_names import CUTOFF
from deepforecast.data.frames import Frame
from deepforecast.errors import format_value
from deepforecast.evaluation.forecast_columns import find_models
from deepforecast.evaluation.report_figures import figure
from deepforecast.evaluation.verdict import name, number
from deepforecast.plotting import plot_cross_validation

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard


HORIZONS = 3  # of history before the first window


def forecasts(board: Leaderboard) -> str:
    """A plot of all windows for each of the sampled series."""
    metric, best = board.metrics[0], board.best_name
    said = f'<p class="quiet">All windows of {escape(name(best))}; a dashed line stands at each cutoff.</p>'
    plots = []
    for place, (what, key, value) in enumerate(_sampled(board)):
        told = f"{what}{escape(format_value(metric, 60))} {number(value)}" if np.isfinite(value) else what
        plots.append(f"<h3>{told}</h3>" + figure(f"forecast-{place}", _drawn(board, best, key)))
    return said + "".join(plots)


def _sampled(board: Leaderboard) -> list[tuple[str, Any, float]]:
    """What stands over the plot, id and score of the best, the median and the worst series; all of them if there are few."""
    own = board.by_series[board.by_series["model"] == board.best_name]
    values = own[board.metrics[0]].to_numpy(dtype=np.float64)
    distance = board.criteria[board.metrics[0]].distance(values)
    order = np.argsort(distance, kind="stable")[: int(np.isfinite(distance).sum())]
    label = board.settings["columns"]["id"]
    keys = [None] * len(own) if label is None else own[label].tolist()
    if len(own) == 1:
        return [("", keys[0], float(values[0]))]
    places = {"Best series: ": 0, "Median series: ": (len(order) - 1) // 2, "Worst series: ": len(order) - 1}
    if len(order) < 3:
        places = {"Best series: ": 0, **({"Worst series: ": 1} if len(order) == 2 else {})}
    return [(what, keys[order[place]], float(values[order[place]])) for what, place in places.items()]


def _drawn(board: Leaderboard, model: str, key: Any) -> Any:
    """The windows of one series, after what came before them. Read by position of columns: names may be anything."""
    names = board.settings["columns"]
    columns = {role: names[role] for role in ("id", "time", "target")}
    windows = _rows_of(board.forecasts, names["id"], key)
    opened = frames.to_narwhals(windows)
    own = next(one for one in find_models(opened, {*names.values(), CUTOFF}, quiet=True) if one.name == model)
    kept = [one for one in (names["id"], names["time"], CUTOFF, names["target"]) if one is not None]
    held = opened.select([*kept, *own.all]).to_native()
    history = _rows_of(board.history, names["id"], key)
    shown = HORIZONS * int(board.settings["horizon"])
    return plot_cross_validation(
        held, history=history, models=model, max_history=shown, backend="svg", columns=columns
    )


def _rows_of(frame: Frame, label: str | None, key: Any) -> Frame:
    """The rows of one series."""
    import narwhals.stable.v2 as nw

    opened = frames.to_narwhals(frame)
    if label is None:
        return opened.to_native()
    ids = opened[label]
    ids = ids.cast(nw.String()) if ids.dtype in (nw.Categorical, nw.Enum) else ids
    return opened.filter(ids.is_in([key])).to_native()
