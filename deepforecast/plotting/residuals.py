"""`plot_residuals`: diagnostics of residuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.data.columns import Columns, ModelColumns
from deepforecast.data.frames import Frame
from deepforecast.errors import ParameterError, format_list, validate_integer
from deepforecast.plotting.autocorrelation import Residuals, autocorrelation, compute_residuals
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Bars, Chart, Dots, Line, Panel, Rules, Spans
from deepforecast.plotting.choices import unknown_choice
from deepforecast.plotting.frames import TidyFrame, choose_series, open_frame
from deepforecast.plotting.model_selection import find_models, no_model_error
from deepforecast.plotting.style import COLORS, format_compact, shorten

_MAX_DOTS = 20_000
_ZERO = Rules(np.zeros(1), vertical=False, dash="solid")


def plot_residuals(
    frame: Frame,
    model: str | None = None,
    *,
    ids: Any = None,
    lags: int | None = None,
    backend: Backend = "matplotlib",
    columns: Columns | Mapping[str, Any] | None = None,
) -> Any:
    """Plot residuals (observed minus forecast) over time, their distribution and autocorrelation.

    With a column `cutoff`, residuals by horizon step are added. Residuals of several series are
    divided by the standard deviation of their series. The autocorrelation uses the residual of the
    latest cutoff for each timestamp; its bounds are those of white noise.

    Parameters
    ----------
    frame : DataFrame
        Observed values and forecasts, such as the result of `cross_validate` or `compare`.
    model : str, optional
        Model to plot. Required if there are several.
    ids : id or list of ids, optional
        Series to use.
    lags : int, optional
        Number of lags of the autocorrelation.
    backend : {"matplotlib", "plotly", "svg"}, default "matplotlib"
        Library that draws the chart. plotly is an optional package.
    columns : Columns or mapping, optional
        Names of the id, time and target columns, and covariates.

    Returns
    -------
    matplotlib.figure.Figure, plotly.graph_objects.Figure or SvgFigure
        The figure of the chosen backend. Matplotlib figures are independent of pyplot; save them
        with `savefig`. `SvgFigure.svg(width)` is an SVG element in the colours of its page.
    """
    check_backend(backend)
    if lags is not None:
        lags = validate_integer(lags, "lags")
    table = open_frame(frame, "frame", columns)
    if ids is not None:
        table = table.select_series(choose_series([table], ids)[0])
    chosen = _choose_model(table, model)
    model_residuals = compute_residuals(table, chosen)
    y_axis = Axis("residual" if model_residuals.n_series == 1 else "residual / standard deviation")
    panels = [
        _over_time(model_residuals, table.axis(), y_axis, shorten(chosen.name)),
        _distribution(model_residuals, y_axis),
        _autocorrelation(model_residuals, lags),
    ]
    if model_residuals.steps is not None:
        panels.append(_by_step(model_residuals.values, model_residuals.steps, y_axis))
    return render(Chart(tuple(panels), 2, 12.0, 3.2, _note(model_residuals)), backend)


def _choose_model(table: TidyFrame, model: str | None) -> ModelColumns:
    """The model of this name, or the only one; raises if there is none or `model` is not unique."""
    available = find_models(table)
    names = list(available)
    if not names:
        raise no_model_error(table)
    if model is None and len(names) > 1:
        raise ParameterError(
            f"`model` must be passed for a frame with several models ({format_list(names, max_shown=10)}).",
            hint=f"Pass for example model={names[0]!r}.",
            parameter="model",
        )
    if model is not None and model not in names:
        raise unknown_choice("model", model, names)
    return available[names[0] if model is None else model]


def _note(model_residuals: Residuals) -> str:
    notes = [f"{model_residuals.n_series:,} series pooled"] if model_residuals.n_series > 1 else []
    if len(model_residuals.values) > _MAX_DOTS:
        notes.append(f"over time: {_MAX_DOTS:,} of {len(model_residuals.values):,} residuals shown, evenly spaced")
    return " · ".join(notes)


def _over_time(model_residuals: Residuals, time: Axis, y_axis: Axis, name: str) -> Panel:
    """Residuals as dots over time, at most _MAX_DOTS evenly chosen ones; more dots are more transparent."""
    values = model_residuals.values
    stamps = model_residuals.stamps
    if len(values) > _MAX_DOTS:
        rows = np.linspace(0, len(values) - 1, _MAX_DOTS).astype(int)
        values = values[rows]
        stamps = stamps[rows]
    opacity = float(np.clip(40 / np.sqrt(len(values)), 0.2, 0.8))
    dots = Dots(stamps, values, COLORS[0], size=4.0, opacity=opacity)
    return Panel((_ZERO, dots), f"Residuals of {name}", time, y_axis, span=2 if model_residuals.steps is None else 1)


def _distribution(model_residuals: Residuals, x_axis: Axis) -> Panel:
    """Histogram of unit area, and the normal density of the same mean and standard deviation."""
    finite_values = model_residuals.finite
    mean = float(finite_values.mean())
    deviation = float(finite_values.std())
    edges = _bin_edges(finite_values)
    heights = np.histogram(finite_values, edges, density=True)[0]
    marks: list[Bars | Line] = [Bars(edges, heights, COLORS[0], 0.45)]
    title = f"Mean {format_compact(mean)}, standard deviation {format_compact(deviation)}"
    if deviation > 1e-12 * max(abs(mean), 1e-300):
        x = np.linspace(min(edges[0], mean - 3 * deviation), max(edges[-1], mean + 3 * deviation), 200)
        density = np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
        marks.append(Line(x, density, COLORS[1], "normal density"))
        title += " (line: normal)"
    return Panel(tuple(marks), title, x_axis, Axis("density"))


def _bin_edges(values: Array) -> Array:
    """Bins by the Freedman-Diaconis rule, between 5 and 60."""
    low, high = float(values.min()), float(values.max())
    if not low < high:
        half = 0.5 * max(abs(low), 1.0)
        return np.array([low - half, low + half])
    width = 2 * float(np.subtract(*np.percentile(values, [75, 25]))) / len(values) ** (1 / 3)
    n_bins = (high - low) / width if width > 0 else 1 + np.log2(len(values))
    return np.linspace(low, high, int(np.clip(np.ceil(n_bins), 5, 60)) + 1)


def _autocorrelation(model_residuals: Residuals, lags: int | None) -> Panel:
    """Autocorrelations of the residuals with 95 % bounds of white noise, 1.96 / sqrt(n)."""
    values, codes = model_residuals.latest()
    n_longest = int(np.bincount(codes).max())
    n_lags = max(10, round(10 * np.log10(n_longest))) if lags is None else lags
    n_shown_lags = min(n_lags, n_longest - 1)
    axes = Axis("lag", "integer"), Axis("correlation")
    if n_shown_lags < 1:
        return Panel((), "Autocorrelation", *axes)
    correlations = autocorrelation(values, codes, n_shown_lags)
    lag_numbers = np.arange(1, n_shown_lags + 1)
    bound = 1.96 / np.sqrt(np.isfinite(values).sum())  # 95 % interval of the normal approximation
    marks = (
        _ZERO,
        Rules(np.array([-bound, bound]), vertical=False, label="95 % bounds of white noise"),
        Spans(lag_numbers, np.zeros(n_shown_lags), correlations, COLORS[0], 2.0),
        Dots(lag_numbers, correlations, COLORS[0], size=4.5),
    )
    return Panel(marks, "Autocorrelation (dashed: 95 % bounds of white noise)", *axes)


def _by_step(values: Array, steps: Array, y_axis: Axis) -> Panel:
    """Median (dot), 25-75 % range (thick) and 5-95 % range (thin) of each horizon step."""
    unique_steps = np.unique(steps)
    cuts = [5, 25, 50, 75, 95]
    percentiles = np.full((len(unique_steps), len(cuts)), np.nan)
    for row, step in enumerate(unique_steps):
        step_values = values[(steps == step) & np.isfinite(values)]
        if len(step_values):
            percentiles[row] = np.percentile(step_values, cuts)
    thick = float(np.clip(160 / len(unique_steps), 1.5, 7.0))
    marks = (
        _ZERO,
        Spans(unique_steps, percentiles[:, 0], percentiles[:, 4], COLORS[0], 1.2),
        Spans(unique_steps, percentiles[:, 1], percentiles[:, 3], COLORS[0], thick, 0.55),
        Dots(unique_steps, percentiles[:, 2], COLORS[0], size=5.0),
    )
    return Panel(marks, "By horizon step: median, 25-75 % and 5-95 % range", Axis("step", "integer"), y_axis)
