"""`plot`: series, forecasts and prediction intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.data.columns import Columns, ModelColumns
from deepforecast.data.frames import Frame
from deepforecast.errors import ParameterError, format_value
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Chart, Mark, Panel, Rules
from deepforecast.plotting.forecasts import forecast_marks, legend, observed_marks
from deepforecast.plotting.frames import TidyFrame, check_unique_timestamps, choose_series, open_frame
from deepforecast.plotting.gaps import TimeSteps, insert_breaks
from deepforecast.plotting.model_selection import choose_levels, choose_models
from deepforecast.plotting.style import shorten

MaxHistory = int | Literal["auto"] | None


def plot(
    history: Frame,
    forecast: Frame | None = None,
    *,
    ids: Any = None,
    models: str | Sequence[str] | None = None,
    level: float | Sequence[float] | None = None,
    max_history: MaxHistory = "auto",
    backend: Backend = "matplotlib",
    columns: Columns | Mapping[str, Any] | None = None,
) -> Any:
    """Plot series with their forecasts and prediction intervals, one panel per series.

    Lines are interrupted where a value or a row is missing.

    Parameters
    ----------
    history : DataFrame
        Observed values.
    forecast : DataFrame, optional
        Result of `predict`. Each numeric column is a model, except for keys and the covariates
        declared in `columns`.
    ids : id or list of ids, optional
        Series to plot. Default: the first 8; a note states the total number.
    models : str or list of str, optional
        Models to plot. Default: all.
    level : float or list of float, optional
        Levels of the prediction intervals in percent. Default: all; [] plots none.
    max_history : int, "auto" or None, default "auto"
        Number of points before the forecast. "auto": about ten times the forecast. None: all.
    backend : {"matplotlib", "plotly", "svg"}, default "matplotlib"
        Library that draws the chart. plotly is an optional package.
    columns : Columns or mapping, optional
        Names of the id, time and target columns, and covariates.

    Returns
    -------
    matplotlib.figure.Figure, plotly.graph_objects.Figure or SvgFigure
        The figure of the chosen backend. Matplotlib figures are independent of pyplot; save them
        with `savefig`. `SvgFigure.svg(width)` is an SVG element in the colours of its page.

    Examples
    --------
    >>> import pandas as pd
    >>> history = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=14), "y": range(14)})
    >>> forecast = pd.DataFrame({"ds": pd.date_range("2024-01-15", periods=7), "Naive": 13.0})
    >>> figure = plot(history, forecast)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['observed', 'Naive']
    """
    check_backend(backend)
    check_max_history(max_history)
    past = open_frame(history, "history", columns)
    if forecast is None:
        return render(_chart_of_history(past, ids, max_history), backend)
    future = open_frame(forecast, "forecast", columns, target=False)
    chosen, count = choose_series([future, past], ids)
    drawn = choose_models(future, models)
    levels = choose_levels(drawn, level)
    past = past.select_series(chosen)
    future = future.select_series(chosen)
    panels = [_panel(past.series_rows(key), future.series_rows(key), key, drawn, levels, max_history) for key in chosen]
    return render(
        panel_grid([panel for panel, _ in panels], count, max(n_cut for _, n_cut in panels), legend(drawn, levels)), backend
    )


def panel_grid(panels: Sequence[Panel], count: int, n_cut: int, keys: Sequence[Any]) -> Chart:
    """Chart with one panel per series; a note states what is omitted."""
    notes = [f"{len(panels)} of {count:,} series ({count - len(panels):,} more)"] if count > len(panels) else []
    if n_cut:
        notes.append(f"only the last {n_cut:,} points of the history")
    columns = 1 if len(panels) <= 3 else 2 if len(panels) <= 8 else 3
    width, longest = {1: (10.0, 90), 2: (12.0, 48), 3: (15.0, 40)}[columns]
    row_height = 3.9 if len(panels) == 1 else 2.7
    titled_panels = [
        # One title of the y axis per row of panels.
        replace(
            panel,
            title=shorten(panel.title, longest),
            y=panel.y if position % columns == 0 else replace(panel.y, title=""),
        )
        for position, panel in enumerate(panels)
    ]
    return Chart(tuple(titled_panels), columns, width, row_height, " · ".join(notes), tuple(keys))


def check_max_history(max_history: object) -> None:
    """Raise `ParameterError` unless it is a positive integer, 'auto' or None."""
    if max_history is None or max_history == "auto":
        return
    if isinstance(max_history, bool) or not isinstance(max_history, int | np.integer) or max_history < 1:
        raise ParameterError(
            f"`max_history` must be an integer of at least 1, 'auto' or None, got {format_value(max_history)}.",
            parameter="max_history",
            value=max_history,
        )


def cut_history(stamps: Array, future_stamps: Array, max_history: MaxHistory) -> tuple[int, int]:
    """Position of the first point of the history to plot, and their number (0 if none is omitted).

    Counted back from the first timestamp of the forecast, since the history may extend beyond it.
    """
    if max_history is None or (max_history == "auto" and len(future_stamps) == 0):
        return 0, 0
    n_before = int(np.searchsorted(stamps, future_stamps[0])) if len(future_stamps) else len(stamps)
    n_kept = max(10 * len(future_stamps), 60) if max_history == "auto" else int(max_history)
    return (n_before - n_kept, n_kept) if n_before > n_kept else (0, 0)


def series_title(key: Any) -> str:
    """Title of the panel of a series; empty without an id."""
    return "" if key is None else str(key)


def _chart_of_history(past: TidyFrame, ids: Any, max_history: MaxHistory) -> Chart:
    chosen, count = choose_series([past], ids)
    past = past.select_series(chosen)
    panels = [_panel(past.series_rows(key), None, key, [], [], max_history) for key in chosen]
    return panel_grid([panel for panel, _ in panels], count, max(n_cut for _, n_cut in panels), ())


def _panel(
    past: TidyFrame,
    future: TidyFrame | None,
    key: Any,
    models: Sequence[ModelColumns],
    levels: Sequence[float],
    max_history: MaxHistory,
) -> tuple[Panel, int]:
    """Panel of one series, and the number of points of its history (0 if it is complete)."""
    stamps = past.timestamps()
    axis = past.axis()
    future_stamps = stamps[:0] if future is None else future.timestamps()
    check_unique_timestamps(stamps, key, past)
    first, n_kept = cut_history(stamps, future_stamps, max_history)
    steps = TimeSteps.from_timestamps(stamps, axis.zone)
    marks: list[Mark] = []
    if future is not None and len(future_stamps):
        check_unique_timestamps(future_stamps, key, future)
        marks += _forecast(future, future_stamps, steps, models, levels)
    shown_stamps = stamps[first:]
    marks += observed_marks(*insert_breaks(shown_stamps, past.values(past.target)[first:], steps.find_gaps(shown_stamps)))
    return Panel(tuple(marks), series_title(key), axis, Axis(past.target)), n_kept


def _forecast(
    future: TidyFrame, future_stamps: Array, steps: TimeSteps, models: Sequence[ModelColumns], levels: Sequence[float]
) -> list[Mark]:
    """Marks of the forecasts of one series, with a rule at their start."""
    gaps = steps.find_gaps(future_stamps)
    x = np.insert(future_stamps, gaps, future_stamps[gaps - 1])
    marks = forecast_marks(x, lambda column: np.insert(future.values(column), gaps, np.nan), models, levels)
    return [*marks, Rules(future_stamps[:1], label="forecast start")]
