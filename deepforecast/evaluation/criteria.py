"""What a leaderboard is judged by: every column of scores settled, and refused if need be, before any model runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deepforecast.core.forecast import interval_columns
from deepforecast.data import frames
from deepforecast.data.columns import Columns
from deepforecast.data.forecast_names import CUTOFF, SAMPLE, STEP
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import season_length, seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.evaluation.cross_validation import Rows
from deepforecast.evaluation.definition import Metric
from deepforecast.evaluation.forecast_columns import find_models, refuse_lookalikes
from deepforecast.evaluation.forecast_rows import read_rows
from deepforecast.evaluation.grouping import MODEL
from deepforecast.evaluation.material import Material
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.requests import OF_LEVEL, Request, requests
from deepforecast.evaluation.training_scale import checked_season, read_training

SCALED = ("mase", "rmsse", "smape", "relative_bias")
PLAIN = ("mae", "rmse", "smape", "relative_bias")  # where no season is known to scale by
OF_LEVELS = ("coverage", "width", "winkler")
LEFT_OUT, DISTANCE = "left_out", "distance"
ENDS = ("", "-low", "-high")  # of a mean's interval


@dataclass(frozen=True)
class Criterion:
    """One column of scores: a metric, of the intervals of a level if it takes any; `asked` for, or shown besides."""

    column: str
    metric: Metric
    level: float | None = None
    asked: bool = True

    def distance(self, values: ArrayLike) -> Floats:
        """How far from good, less being better."""
        return self.metric.distance(values, self.level)

    @property
    def best(self) -> float | None:
        """Where a good value lies, None for the lower or the higher the better.

        Series that lie too high and too low cancel in the mean of such a score, so models are judged by their mean distance.
        """
        if self.metric.better in ("low", "high"):
            return None
        return 0.0 if self.level is None else self.level / 100

    @property
    def judged_by(self) -> str:
        """The column of a board's table that puts models in order: the mean, or the mean distance from where it is best."""
        return self.column if self.best is None else f"{self.column}-{DISTANCE}"

    @property
    def columns(self) -> list[str]:
        """All columns of a board's table that it has."""
        return [f"{name}{end}" for name in dict.fromkeys((self.column, self.judged_by)) for end in ENDS]


@dataclass(frozen=True)
class Criteria:
    """All columns of scores, the one that decides first, and the season that scaled metrics go by (None: none is known)."""

    all: tuple[Criterion, ...]
    given: tuple[Any, ...]
    season: int | None

    @property
    def asked(self) -> tuple[Criterion, ...]:
        """The metrics asked for, or the usual ones."""
        return tuple(one for one in self.all if one.asked)


def settled(metrics: Any, models: Sequence[str], panel: Panel, rows: Rows, levels: Sequence[float], season: Any) -> Criteria:
    """The columns that `metrics` asks for (None: the usual ones), tried out on a few series without any model."""
    length = checked_season(season)
    if length is None and seasons(panel.calendar.frequency):
        length = season_length(panel.calendar.frequency)
    scaled = length is not None
    asked = listed(metrics, scaled)
    _refuse(asked, scaled)
    besides = [name for name in OF_LEVELS if levels and name not in asked]
    material = _sample(models, panel, rows, levels, length)
    wanted = [_criterion(request, True) for request in requests(asked, material)]
    more = [_criterion(request, False) for request in requests(besides, material)] if besides else []
    wanted += [one for one in more if one.column not in {known.column for known in wanted}]
    _check_columns(panel.series.columns, wanted)
    return Criteria(tuple(wanted), (*asked, *besides), length)


def listed(metrics: Any, scaled: bool) -> list[Any]:
    """`metrics` as a list: one or several names, functions or `Metric` objects."""
    if metrics is None:
        return list(SCALED if scaled else PLAIN)
    single = isinstance(metrics, str | Metric) or callable(metrics) or not isinstance(metrics, Iterable)
    return [metrics] if single else list(metrics)


def check_names(models: Sequence[str], columns: Columns, levels: Sequence[float]) -> None:
    """A model's columns are no keys of the frame and no columns of another model."""
    taken = {name: "column of the frame" for name in (columns.id, columns.time, columns.target) if name is not None}
    for name in (CUTOFF, SAMPLE):
        if name in taken:
            raise ParameterError(
                f"The forecasts have keys named {CUTOFF} and {SAMPLE}; the frame has a column {name} too. Rename it."
            )
    taken |= dict.fromkeys((CUTOFF, STEP, SAMPLE), "key of the forecasts")
    for name in models:
        own = _columns_of(name, levels)
        for column in own:
            if column in taken:
                raise ParameterError(
                    f"A model's columns have names of their own; {format_value(column)} of model {format_value(name)} is a {taken[column]}. "
                    "Give the model another alias=."
                )
        taken |= dict.fromkeys(own, f"column of model {format_value(name)}")
    refuse_lookalikes(models)


def _refuse(asked: Sequence[Any], scaled: bool) -> None:
    for one in asked:
        metric = get(one) if not isinstance(one, str) or OF_LEVEL.fullmatch(one) is None else None
        if metric is None:
            continue
        if "reference" in metric.needs:
            raise ParameterError(
                f"{metric.name} is computed once, on the totals of all series, so no row of a series has it. Take it from the "
                f"forecasts of the board: score(board.forecasts, metrics={metric.name!r}, train=frame, reference='Naive2')."
            )
        if not scaled and {"scale", "squared_scale"} & set(metric.needs):
            raise ParameterError(
                f"{metric.name} is scaled by the error of a seasonal naive forecast; integer time has no season to infer. Say "
                "season_length= (1 for none)."
            )


def _sample(models: Sequence[str], panel: Panel, rows: Rows, levels: Sequence[float], season: int | None) -> Material:
    """What there would be to score for a few series if every model forecast nothing but zeros."""
    few = np.unique(rows.series[rows.order[[0, len(rows.order) // 2, -1]]])
    own = np.flatnonzero(np.isin(rows.series[rows.order], few))
    sample = replace(rows, order=rows.order[own], columns={})
    for name in models:
        sample.columns |= dict.fromkeys(_columns_of(name, levels), np.zeros(len(rows.series)))
    table = frames.to_narwhals(sample.frame(panel))
    keys = panel.series.columns
    names = Columns(keys.id, keys.time, keys.target)
    held = read_rows(table, names)
    training = None
    if season is not None:
        training = read_training(panel.take(few).to_frame(), held, panel.calendar.frequency, season)
    return Material(table, held, find_models(table, set(names.all), quiet=True), sample.actual[sample.order], training, None)


def _columns_of(model: str, levels: Sequence[float]) -> list[str]:
    return [model, *(bound for _, low, high in interval_columns(model, levels) for bound in (low, high))]


def _criterion(request: Request, asked: bool) -> Criterion:
    return Criterion(request.column, request.metric, request.level, asked)


def _check_columns(columns: Columns, wanted: Sequence[Criterion]) -> None:
    """The table has every column once, and the table by series the id column beside the model and the scores."""
    every = [name for one in wanted for name in one.columns]
    twice = [name for place, name in enumerate(every) if name in every[:place]]
    if twice:
        raise ParameterError(f"The table has a column {format_value(twice[0])} for one metric already; give the other another name.")
    there = [MODEL, LEFT_OUT, *(name for one in wanted for name in (one.column, f"{one.column}-{LEFT_OUT}"))]
    if columns.id in there:
        raise ParameterError(
            f"The scores of every series stand in columns {MODEL}, {wanted[0].column} ...; the id column is named {columns.id} "
            "too. Rename it."
        )
