"""From the runs of all models to a leaderboard: scores by series, their means and intervals, ranks, costs, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.forecast_names import models_in_columns
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, format_list, warn
from deepforecast.evaluation import significance
from deepforecast.evaluation.criteria import ENDS, LEFT_OUT, Criteria, Criterion
from deepforecast.evaluation.cross_validation import Rows
from deepforecast.evaluation.definition import without_rounding
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.material import BANDS
from deepforecast.evaluation.point import BIAS, RELATIVE_BIAS
from deepforecast.evaluation.requests import named
from deepforecast.evaluation.score import score

if TYPE_CHECKING:
    from deepforecast.evaluation.compare import Run


def ranked(
    runs: Sequence[Run], rows: Rows, panel: Panel, history: Frame, criteria: Criteria, settings: Mapping[str, Any]
) -> Leaderboard:
    """Score the forecasts of all runs that ended well and put the models in order."""
    runs, forecasts, by_series = _scored(runs, rows, panel, history, criteria)
    good = [run for run in runs if not run.error]
    scores = Scores.of(by_series, good, criteria)
    deciding = scores.deciding(criteria)
    good, scores = scores.in_order(good, deciding)
    failed = [run for run in runs if run.error]
    asked = tuple(one.column for one in criteria.asked)
    return Leaderboard(
        table=_table([*good, *failed], scores, _statistics(scores, criteria, deciding, rows.actual)),
        by_series=by_series,
        forecasts=forecasts,
        significance=_significance(deciding.distance(scores.values[deciding.column]), good),
        metrics=(deciding.column, *(name for name in asked if name != deciding.column)),
        settings=settings,
        history=history,
        criteria={one.column: one for one in criteria.all},
    )


@dataclass(frozen=True)
class Scores:
    """Arrays of shape (models, series), one for each criterion, and how many points each left out (models,)."""

    values: Mapping[str, Floats]
    left_out: Mapping[str, Any]

    @classmethod
    def of(cls, by_series: Any, runs: Sequence[Run], criteria: Criteria) -> Scores:
        """Read the table by series: a row for each series and, within it, each model."""
        count = len(runs)

        def pivoted(name: str) -> Any:
            return by_series[name].to_numpy().reshape(-1, count).T

        place = {name: number for number, name in enumerate(by_series["model"].iloc[:count])}
        order = [place[run.name] for run in runs]
        values = {one.column: pivoted(one.column)[order].astype(np.float64) for one in criteria.all}
        held = [LEFT_OUT, *(f"{one.column}-{LEFT_OUT}" for one in criteria.all)]
        left = {name: pivoted(name)[order].sum(axis=1).astype(np.int64) for name in held if name in by_series}
        return cls(values, left)

    def deciding(self, criteria: Criteria) -> Criterion:
        """The first criterion asked for that has a value in any series; said aloud if it is not the very first."""
        there = [one for one in criteria.asked if not np.isnan(self.values[one.column]).all()]
        if not there:
            raise _undefined(criteria)
        if there[0] is not criteria.asked[0]:
            warn(
                f"{criteria.asked[0].column} is undefined for every series (a constant history, or actual values that are all "
                f"zero), so {there[0].column} decides."
            )
        return there[0]

    def in_order(self, runs: Sequence[Run], deciding: Criterion) -> tuple[list[Run], Scores]:
        """Best first: by the mean over series of the distance from good; equal ones as they came, the undefined last."""
        mean = significance.mean_interval(deciding.distance(self.values[deciding.column]), n_resamples=1).mean
        order = np.argsort(np.nan_to_num(mean, nan=np.inf), kind="stable")
        held = ({name: values[order] for name, values in part.items()} for part in (self.values, self.left_out))
        return [runs[place] for place in order], Scores(*held)


def _scored(
    runs: Sequence[Run], rows: Rows, panel: Panel, history: Frame, criteria: Criteria
) -> tuple[list[Run], Frame, Any]:
    """The frame of forecasts and the table by series.

    A model whose forecasts cannot be scored has failed; if none can, it is the metrics' fault.
    """

    def scored(kept: Sequence[Run]) -> tuple[Frame, Any]:
        rows.columns = {name: values for run in kept for name, values in run.columns.items()}
        forecasts = rows.frame(panel)
        return forecasts, _by_series(forecasts, [run.name for run in kept], panel, history, criteria)

    good = [run for run in runs if not run.error]
    try:
        return list(runs), *scored(good)
    except Exception as error:  # a metric is anybody's function: who is to blame shows when each model is scored alone
        blamed: dict[str, Exception] = {}
        for run in good:
            try:
                scored([run])
            except Exception as own:
                blamed[run.name] = own
        if len(blamed) in (0, len(good)):
            raise error
    runs = [run.failed(blamed[run.name]) if run.name in blamed else run for run in runs]
    return runs, *scored([run for run in runs if not run.error])


def _by_series(forecasts: Frame, models: Sequence[str], panel: Panel, history: Frame, criteria: Criteria) -> Any:
    """Every metric for every series and model, as pandas."""
    names = panel.series.columns
    needs = {need for one in criteria.all for need in one.metric.needs}
    metrics = [one for one in criteria.given if _computable(one, forecasts, models)]
    if not metrics:
        raise _undefined(criteria)
    found = score(
        forecasts,
        metrics=metrics,
        train=history if needs & {"scale", "squared_scale"} else None,
        by=["series"] if names.id is not None else ["model"],
        columns={"id": names.id, "time": names.time, "target": names.target},
        models=models,
        freq=panel.calendar.frequency,
        season_length=criteria.season,
    )
    table = frames.to_narwhals(found).to_pandas()
    undefined = [one.column for one in criteria.all if one.column not in table]
    return table.assign(**dict.fromkeys(undefined, np.nan))


def _undefined(criteria: Criteria) -> DataError:
    names = format_list([one.column for one in criteria.asked], max_shown=9)
    return DataError(
        f"Models are put in order by a score; none of {names} is defined for any series (actual values missing in all windows, "
        "nothing to scale by, or no prediction intervals). Choose other windows or metrics."
    )


def _computable(metric: Any, forecasts: Frame, models: Sequence[str]) -> bool:
    """Whether any model has the prediction intervals that a metric needs; they may lack where a calibration failed."""
    metric, level = named(metric)
    if not (BANDS | {"quantile_forecast"}) & set(metric.needs):
        return True
    there = models_in_columns(frames.to_narwhals(forecasts).columns)
    levels = {known for model in there if model.name in models for known in model.lo}
    return bool(levels) if level is None else level in levels


def _table(runs: Sequence[Run], scores: Scores, statistics: Mapping[str, Floats]) -> Any:
    """A row for each model, those that failed without scores."""
    import pandas as pd

    found: dict[str, Any] = {"model": [run.name for run in runs]}
    for name, values in statistics.items():
        found[name] = np.concatenate([values, np.full(len(runs) - len(values), np.nan)])
    found[LEFT_OUT] = np.concatenate([_left_out(scores), np.zeros(len(runs), np.int64)])[: len(runs)]
    for name in ("fit_seconds", "predict_seconds", "peak_mb"):
        costs = [getattr(run, name) for run in runs]
        found[name] = np.array([np.nan if cost is None else cost for cost in costs], dtype=np.float64)
    found["unused"] = [", ".join(run.unused) for run in runs]
    found["error"] = [run.error for run in runs]
    return pd.DataFrame(found)


def _statistics(scores: Scores, criteria: Criteria, deciding: Criterion, actual: Floats) -> dict[str, Floats]:
    """Ranks by the deciding metric; every metric's mean over series with its interval, all from the same resamples.

    Of a metric that is best at some value the mean distance from there besides.
    """
    ranks = significance.ranks(deciding.distance(scores.values[deciding.column]))
    ranks = ranks[:, ~np.isnan(ranks).any(axis=0)]
    unknown = np.full(len(ranks), np.nan)
    found: dict[str, Floats] = {
        "rank": ranks.mean(axis=1) if ranks.size else unknown,
        "rank-median": np.median(ranks, axis=1) if ranks.size else unknown,
    }
    held = dict(scores.values)
    for one in criteria.all:
        if one.best is not None:
            held[one.judged_by] = one.distance(scores.values[one.column])
    interval = significance.mean_interval(np.concatenate(list(held.values())))
    for number, name in enumerate(held):
        own = slice(number * len(ranks), (number + 1) * len(ranks))
        for end, means in zip(ENDS, (interval.mean, interval.low, interval.high), strict=True):
            found[f"{name}{end}"] = means[own]
    for one in criteria.all:
        if one.best == 0:
            size = np.nanmax(np.abs(actual)) if one.metric is BIAS else float(one.metric is RELATIVE_BIAS)
            found |= {name: _settled(found[name], scores.values[one.column], size) for name in one.columns}
    return found


def _settled(means: Floats, values: Floats, size: float) -> Floats:
    """Means over series, without what rounding leaves where numbers of that size, or series too high and too low, cancel."""
    there = ~np.isnan(values)
    count = np.maximum(there.sum(axis=1), 1)
    return without_rounding(means, size + np.where(there, np.abs(values), 0.0).sum(axis=1) / count, count)


def _left_out(scores: Scores) -> Any:
    """Points that did not count: without an actual value, and besides those the most that any metric is undefined at."""
    count = len(next(iter(scores.values.values())))
    missing = scores.left_out.get(LEFT_OUT, np.zeros(count, np.int64))
    undefined = [values for name, values in scores.left_out.items() if name != LEFT_OUT]
    return missing + np.max(undefined, axis=0) if undefined else missing


def _significance(distance: Floats, runs: Sequence[Run]) -> Any:
    """A row for each pair of models, over the series both have a value for."""
    import pandas as pd

    found = significance.pairwise(distance)
    pairs = [(i, j) for i in range(len(runs)) for j in range(len(runs)) if i != j]
    first, second = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    names = pd.Series([run.name for run in runs])
    return pd.DataFrame(
        {
            "model": names.iloc[first].to_numpy(),
            "against": names.iloc[second].to_numpy(),
            "wins": found.wins[first, second],
            "p_value": found.corrected[first, second],
            "series": found.series[first, second],
        }
    )
