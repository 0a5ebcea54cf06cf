"""`plot_training`: losses of a neural network and the step of the final weights."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from deepforecast.data import frames as door
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, format_list
from deepforecast.plotting import inputs
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Chart, Dots, Key, Line, Mark, Panel, Rules, finite
from deepforecast.plotting.style import COLORS, NEUTRAL, format_compact, shorten

_REQUIRED_COLUMNS = ("step", "loss", "learning_rate", "gradient_norm")
_LOG_RATIO = 20.0  # ratio of maximum to minimum from which the axis is logarithmic
_N_MEANS = 50  # number of points of the mean-loss line


class Network(Protocol):
    """Attributes of a fitted network that are plotted."""

    @property
    def training_report_(self) -> Frame:
        """Return a row per training step."""

    @property
    def stop_reason_(self) -> str:
        """Return why training ended."""


def plot_training(report: Frame | Network, *, stop_reason: str = "", backend: Backend = "matplotlib") -> Any:
    """Plot training and validation losses, the learning rate and the gradient norm.

    A dotted line marks the training step whose weights are used.

    Parameters
    ----------
    report : neural network or DataFrame
        A fitted network, or its `training_report_`.
    stop_reason : str, optional
        Reason why training ended, shown as title. Default: `stop_reason_` of the network.
    backend : {"matplotlib", "plotly", "svg"}, default "matplotlib"
        Library that draws the chart. plotly is an optional package.

    Returns
    -------
    matplotlib.figure.Figure, plotly.graph_objects.Figure or SvgFigure
        The figure of the chosen backend. Matplotlib figures are independent of pyplot; save them
        with `savefig`. `SvgFigure.svg(width)` is an SVG element in the colours of its page.

    Examples
    --------
    >>> import pandas as pd
    >>> report = pd.DataFrame({"step": [1, 2], "loss": [2.0, 1.0], "learning_rate": [0.1, 0.1], "gradient_norm": [3.0, 1.0]})
    >>> [axes.get_ylabel() for axes in plot_training(report, stop_reason="all steps done").axes]
    ['loss', 'learning rate', 'gradient norm']
    """
    check_backend(backend)
    if hasattr(type(report), "training_report_"):  # on the class: the property raises before `fit`
        report, stop_reason = report.training_report_, stop_reason or report.stop_reason_
    columns, is_selected = _read_report(report)
    steps = columns["step"]
    rule = [Rules(steps[is_selected], dash="dot", label="weights used")] if is_selected.any() else []
    x_axis = Axis("step")
    panels = (
        Panel((*_losses(columns), *rule), "", x_axis, _scale("loss", columns["loss"], columns["validation_loss"]), 2),
        Panel((Line(steps, columns["learning_rate"], COLORS[0]), *rule), "", x_axis, Axis("learning rate")),
        Panel((Line(steps, columns["gradient_norm"], COLORS[0], width=1.0), *rule), "", x_axis,
              _scale("gradient norm", columns["gradient_norm"])),
    )  # fmt: skip
    return render(Chart(panels, 2, 10.0, 3.2, _note(columns, is_selected, stop_reason), _legend(columns)), backend)


def _read_report(report: Frame) -> tuple[dict[str, Array], Array]:
    """The columns of a training report as arrays (validation loss: NaN where missing), and whether the
    weights after each step are the final ones."""
    opened = inputs.open_input(report, "report")
    if not set(_REQUIRED_COLUMNS) <= set(opened.columns):
        present_columns = format_list(opened.columns, max_shown=10)
        raise DataError(
            f"`report` must have the columns {format_list(_REQUIRED_COLUMNS)}, got {present_columns}.",
            hint="Pass a fitted network.",
            parameter="report",
            value=present_columns,
        )
    if len(opened) == 0:
        raise DataError(
            "`report` must be a non-empty DataFrame, got 0 rows.",
            hint="Pass the report of a network that was trained.",
            parameter="report",
        )
    columns = {name: finite(door.read_numbers(opened.get_column(name), name)) for name in _REQUIRED_COLUMNS}
    empty = np.full(len(opened), np.nan)
    has_validation = "validation_loss" in opened.columns and opened.get_column("validation_loss").null_count() < len(opened)
    columns["validation_loss"] = (
        finite(door.read_numbers(opened.get_column("validation_loss"), "validation_loss")) if has_validation else empty
    )
    is_selected = (
        opened.get_column("selected").to_numpy().astype(bool) if "selected" in opened.columns else np.zeros(len(opened), dtype=bool)
    )
    return columns, is_selected


def _losses(columns: dict[str, Array]) -> list[Mark]:
    """The training loss (for many steps in grey with means of groups of steps in colour) and the validation loss."""
    steps = columns["step"]
    loss = columns["loss"]
    validation = columns["validation_loss"]
    stride = max(len(steps) // _N_MEANS, 1)
    marks: list[Mark] = []
    if stride > 1:
        marks.append(Line(steps, loss, NEUTRAL, width=0.8, opacity=0.5))
        ends = np.arange(0, len(steps), stride)
        is_finite = np.isfinite(loss)
        counts = np.add.reduceat(is_finite.astype(float), ends)
        sums = np.add.reduceat(np.where(is_finite, loss, 0.0), ends)
        means = np.divide(sums, counts, out=np.full(len(ends), np.nan), where=counts > 0)
        middle = np.add.reduceat(steps, ends) / np.diff([*ends, len(steps)])
        marks.append(Line(middle, means, COLORS[0]))
    else:
        marks.append(Line(steps, loss, COLORS[0]))
    has_validation = np.isfinite(validation)
    if has_validation.any():
        hover_texts = tuple(
            f"step {step:g}: {format_compact(value)}"
            for step, value in zip(steps[has_validation], validation[has_validation], strict=True)
        )
        marks.append(Line(steps[has_validation], validation[has_validation], COLORS[1], width=1.2))
        marks.append(Dots(steps[has_validation], validation[has_validation], COLORS[1], names=hover_texts))
    return marks


def _legend(columns: dict[str, Array]) -> tuple[Key, ...]:
    keys = [Key("training (mean over steps)" if len(columns["step"]) >= 2 * _N_MEANS else "training", COLORS[0])]
    if np.isfinite(columns["validation_loss"]).any():
        keys.append(Key("validation", COLORS[1], "dot"))
    return tuple(keys)


def _scale(title: str, *values: Array) -> Axis:
    """Logarithmic for positive values of different orders of magnitude."""
    finite_values = np.concatenate([array[np.isfinite(array)] for array in values])
    use_log = len(finite_values) > 0 and finite_values.min() > 0 and finite_values.max() > _LOG_RATIO * finite_values.min()
    return Axis(f"{title} (log scale)", "log") if use_log else Axis(title)


def _note(columns: dict[str, Array], is_selected: Array, stop_reason: str) -> str:
    selected_note = [f"weights of step {columns['step'][is_selected][0]:g} of {len(is_selected)}"] if is_selected.any() else []
    return "; ".join([*selected_note, *([shorten(stop_reason, 80)] if stop_reason else [])])
