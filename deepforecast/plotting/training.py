"""`plot_training`: how a network learned, and which step was kept."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from deepforecast.data import frames as door
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, format_list
from deepforecast.plotting import inputs
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Chart, Dots, Key, Line, Mark, Panel, Rules, finite
from deepforecast.plotting.style import COLORS, NEUTRAL, short, short_number

_NEEDS = ("step", "loss", "rate", "gradient_norm")
_WIDE = 20.0  # largest over least from which a logarithm shows more
_SMOOTH = 50  # of so many steps a mean is one point of the line through the losses


class Network(Protocol):
    """What is drawn of a fitted network."""

    @property
    def training_report_(self) -> Frame:
        """Return a row per training step."""

    @property
    def stopped_(self) -> str:
        """Return why training ended."""


def plot_training(report: Frame | Network, *, stopped: str = "", backend: Backend = "matplotlib") -> Any:
    """Draw the losses of the steps, their mean, losses on validation, the step that was kept; rate and norm.

    `report`: a fitted network or its `training_report_`. `stopped`: why the run ended, to stand above; of a network its
    `stopped_`.

    >>> import pandas as pd
    >>> report = pd.DataFrame({"step": [1, 2], "loss": [2.0, 1.0], "rate": [0.1, 0.1], "gradient_norm": [3.0, 1.0]})
    >>> [axes.get_ylabel() for axes in plot_training(report, stopped="all steps done").axes]
    ['loss', 'learning rate', 'norm of the gradient']
    """
    check_backend(backend)
    if hasattr(type(report), "training_report_"):  # not of the model itself: before `fit` the attribute raises
        report, stopped = report.training_report_, stopped or report.stopped_
    columns, kept = _opened(report)
    steps = columns["step"]
    rule = [Rules(steps[kept], dash="dot", label="kept")] if kept.any() else []
    across = Axis("step")
    panels = (
        Panel((*_losses(columns), *rule), "", across, _scale("loss", columns["loss"], columns["validation"]), 2),
        Panel((Line(steps, columns["rate"], COLORS[0]), *rule), "", across, Axis("learning rate")),
        Panel((Line(steps, columns["gradient_norm"], COLORS[0], width=1.0), *rule), "", across,
              _scale("norm of the gradient", columns["gradient_norm"])),
    )  # fmt: skip
    return render(Chart(panels, 2, 10.0, 3.2, _note(columns, kept, stopped), _legend(columns)), backend)


def _opened(report: Frame) -> tuple[dict[str, Array], Array]:
    opened = inputs.opened(report, "report")
    if not set(_NEEDS) <= set(opened.columns):
        there = format_list(opened.columns, max_shown=10)
        raise DataError(f"`report` must have the columns {format_list(_NEEDS)}, got {there}. Pass a fitted network.")
    if len(opened) == 0:
        raise DataError("The report is empty: no step was made.")
    columns = {name: finite(door.read_numbers(opened.get_column(name), name)) for name in _NEEDS}
    empty = np.full(len(opened), np.nan)
    held = "validation" in opened.columns and opened.get_column("validation").null_count() < len(opened)
    columns["validation"] = finite(door.read_numbers(opened.get_column("validation"), "validation")) if held else empty
    kept = opened.get_column("kept").to_numpy().astype(bool) if "kept" in opened.columns else np.zeros(len(opened), dtype=bool)
    return columns, kept


def _losses(columns: dict[str, Array]) -> list[Mark]:
    steps, loss, validation = columns["step"], columns["loss"], columns["validation"]
    every = max(len(steps) // _SMOOTH, 1)
    marks: list[Mark] = []
    if every > 1:
        marks.append(Line(steps, loss, NEUTRAL, width=0.8, opacity=0.5))
        ends = np.arange(0, len(steps), every)
        known = np.isfinite(loss)
        counts = np.add.reduceat(known.astype(float), ends)
        sums = np.add.reduceat(np.where(known, loss, 0.0), ends)
        means = np.divide(sums, counts, out=np.full(len(ends), np.nan), where=counts > 0)
        middle = np.add.reduceat(steps, ends) / np.diff([*ends, len(steps)])
        marks.append(Line(middle, means, COLORS[0]))
    else:
        marks.append(Line(steps, loss, COLORS[0]))
    seen = np.isfinite(validation)
    if seen.any():
        told = tuple(f"step {step:g}: {short_number(value)}" for step, value in zip(steps[seen], validation[seen], strict=True))
        marks.append(Line(steps[seen], validation[seen], COLORS[1], width=1.2))
        marks.append(Dots(steps[seen], validation[seen], COLORS[1], names=told))
    return marks


def _legend(columns: dict[str, Array]) -> tuple[Key, ...]:
    keys = [Key("steps, their mean" if len(columns["step"]) >= 2 * _SMOOTH else "steps", COLORS[0])]
    if np.isfinite(columns["validation"]).any():
        keys.append(Key("validation", COLORS[1], "dot"))
    return tuple(keys)


def _scale(title: str, *values: Array) -> Axis:
    """A logarithm where values are positive and far apart."""
    known = np.concatenate([one[np.isfinite(one)] for one in values])
    wide = len(known) > 0 and known.min() > 0 and known.max() > _WIDE * known.min()
    return Axis(f"{title} (logarithmic)", "log") if wide else Axis(title)


def _note(columns: dict[str, Array], kept: Array, stopped: str) -> str:
    parts = [f"step {columns['step'][kept][0]:g} of {len(kept)} kept"] if kept.any() else []
    return "; ".join([*parts, *([short(stopped, 80)] if stopped else [])])
