"""Summary of the rows of a run: means over seeds, ranks, skill and wins over tasks, scaling of time and memory.

Failures are counted and never imputed: a comparison of two models uses the tasks on which both have results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.benchmark import job_results as rows_of_run
from deepforecast.benchmark.job_results import Row
from deepforecast.benchmark.suite import METRICS, Suite
from deepforecast.errors import DataError, ParameterError, format_list, format_value
from deepforecast.evaluation.critical_difference import FriedmanTest, friedman
from deepforecast.evaluation.metric_classes import Metric
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.skill import SkillScores, skill, win_rates

if TYPE_CHECKING:
    import pandas as pd

INTERVAL_LEVEL = 95  # percent
SIZES = ("series", "length", "horizon")
COSTS = ("fit_seconds", "predict_seconds", "peak_mb")


@dataclass(frozen=True, eq=False)
class Summary:
    """Comparison of the models of a run by one metric.

    Parameters
    ----------
    metric : str
        Metric that ranks the models.
    models, tasks : tuple of str
        Names of models and tasks.
    values : ndarray of shape (models, tasks)
        Means of the metric over seeds; NaN without a result.
    skill : SkillScores or None
        Skill against the reference; None if the reference has no results.
    wins : SkillScores
        Share of pairwise comparisons won.
    friedman_test : FriedmanTest or None
        Test of the models with results on every task; None for fewer than two models or tasks.
    complete_models : tuple of str
        Models with results on every task.
    table : DataFrame
        One row per model, best first (see `summarize`).
    """

    metric: str
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    values: NDArray[np.float64]
    skill: SkillScores | None
    wins: SkillScores
    friedman_test: FriedmanTest | None
    complete_models: tuple[str, ...]
    table: pd.DataFrame


def summarize(rows: Sequence[Row], *, metric: str | None = None, reference: str = "SeasonalNaive") -> Summary:
    """Rank the models of a run by one metric.

    The models are sorted by skill, or by wins without a reference; models with results on every
    task come first. The table contains the mean rank among complete models, skill and share of
    wins with bootstrap intervals over tasks, seconds summed over tasks, peak memory, and the number
    of failed jobs.

    Parameters
    ----------
    rows : sequence of Row
        Rows of the run.
    metric : str, optional
        Metric that ranks the models. Defaults to the first one of the suite.
    reference : str, default "SeasonalNaive"
        Reference model of the skill.

    Returns
    -------
    Summary

    Raises
    ------
    DataError
        If there are no rows, or no job has scored forecasts.
    """
    if not rows:
        raise DataError("A summary needs at least one row; the run has none yet.")
    metric = metric or default_metric(rows)
    means = mean_over_seeds(rows, metric)
    models, tasks = (tuple(dict.fromkeys(getattr(row, key) for row in rows)) for key in ("model", "task"))
    values = np.full((len(models), len(tasks)), np.nan)
    for mean_row in means.itertuples():
        values[models.index(mean_row.model), tasks.index(mean_row.task)] = mean_row.mean
    distances = distance(metric, values)
    has_reference = reference in models and bool((~np.isnan(distances[models.index(reference)])).any())
    skill_scores = skill(distances, models.index(reference)) if has_reference else None
    wins = win_rates(distances)
    complete: NDArray[np.bool_] = np.asarray(~np.isnan(distances).any(axis=1))
    complete_models = tuple(name for name, is_complete in zip(models, complete.tolist(), strict=True) if is_complete)
    comparison = friedman(distances[complete]) if complete.sum() > 1 and len(tasks) > 1 else None
    ranking_scores = wins.value if skill_scores is None else skill_scores.value
    # complete models first: skill on a subset of the tasks, possibly easy ones, is not comparable
    order = np.lexsort((-np.nan_to_num(ranking_scores, nan=-np.inf), ~complete))
    rank_by_model = {} if comparison is None else dict(zip(complete_models, comparison.mean_ranks.tolist(), strict=True))
    table = _summary_table(rows, models, distances, skill_scores, wins, rank_by_model)
    return Summary(
        metric, models, tasks, values, skill_scores, wins, comparison, complete_models, table.iloc[order].reset_index(drop=True)
    )


def mean_over_seeds(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """Average a metric over seeds.

    Parameters
    ----------
    rows : sequence of Row
        Rows of a run.
    metric : str
        Metric to average.

    Returns
    -------
    DataFrame
        One row per task and model: mean, 95 % interval of the mean (Student's t; missing for a
        single seed), and number of seeds.

    Examples
    --------
    >>> rows = [Row(suite="s", task="t", dataset="d", model="A", seed=n, job=str(n), settings="", metrics={"mae": 1.0 + n})
    ...         for n in range(3)]
    >>> mean_over_seeds(rows, "mae").round(3).values.tolist()
    [['t', 'A', 2.0, -0.484, 4.484, 3]]
    """
    import pandas as pd
    from scipy.stats import t

    values_by_pair: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.status == "ok" and metric in row.metrics:
            values_by_pair.setdefault((row.task, row.model), []).append(row.metrics[metric])
    table_rows = []
    for (task, model), values in values_by_pair.items():
        count, mean = len(values), float(np.mean(values))
        half_width = float("nan")
        if count > 1:
            half_width = float(t.ppf((100 + INTERVAL_LEVEL) / 200, count - 1) * np.std(values, ddof=1) / np.sqrt(count))
        table_rows.append((task, model, mean, mean - half_width, mean + half_width, count))
    return pd.DataFrame(table_rows, columns=["task", "model", "mean", "low", "high", "seeds"])


def owa(rows: Sequence[Row], reference: str = "Naive2") -> dict[tuple[str, str], float]:
    """Compute the overall weighted average (OWA) of the M4 competition.

    It is the mean of two ratios: sMAPE and MASE of a model divided by those of the reference.

    Parameters
    ----------
    rows : sequence of Row
        Rows of a run.
    reference : str, default "Naive2"
        Reference model.

    Returns
    -------
    dict of (task, model) to float
        Only for tasks on which both models have results.

    References
    ----------
    Makridakis, Spiliotis, Assimakopoulos (2020), The M4 Competition: 100,000 time series and 61
    forecasting methods, https://doi.org/10.1016/j.ijforecast.2019.04.014
    """
    means = {name: mean_over_seeds(rows, name).set_index(["task", "model"])["mean"].to_dict() for name in ("smape", "mase")}
    averages = {}
    for key, smape in means["smape"].items():
        reference_key = (key[0], reference)
        if key in means["mase"] and reference_key in means["smape"] and reference_key in means["mase"]:
            averages[key] = float(
                (smape / means["smape"][reference_key] + means["mase"][key] / means["mase"][reference_key]) / 2
            )
    return averages


def cost_slopes(rows: Sequence[Row]) -> pd.DataFrame:
    """Estimate how time and memory grow with the number of series, their length and the horizon.

    For each size, the regression uses the largest group of tasks that differ only in that size.

    Parameters
    ----------
    rows : sequence of Row
        Rows of a run.

    Returns
    -------
    DataFrame
        Slope of log cost on log size (1: proportional, 2: quadratic) and number of points, for
        each model, size and cost with at least two different sizes.
    """
    import pandas as pd

    table_rows = []
    successful = [row for row in rows if row.status == "ok" and None not in (row.series, row.length, row.horizon)]
    for model in dict.fromkeys(row.model for row in successful):
        model_rows = [row for row in successful if row.model == model]
        for size in SIZES:
            group = _rows_varying_in(model_rows, size)
            for cost in COSTS:
                points = [(getattr(row, size), getattr(row, cost)) for row in group if getattr(row, cost)]
                if len({x for x, _ in points}) > 1:
                    x, y = np.log(np.array(points, dtype=np.float64)).T
                    table_rows.append((model, size, cost, float(np.polyfit(x, y, 1)[0]), len(points)))
    return pd.DataFrame(table_rows, columns=["model", "size", "cost", "slope", "points"])


def default_metric(rows: Sequence[Row]) -> str:
    """Return the first metric of the first row with metrics; raises `DataError` if there is none."""
    for row in rows:
        for name in row.metrics:
            return name
    raise DataError("No job of the run has scored forecasts. See the errors of its rows.")


def check_metric(suite: Suite, metric: str) -> None:
    """Raise if no row of a suite can have a metric, before the suite is run.

    Parameters
    ----------
    suite : Suite
        The suite.
    metric : str
        Column name of the metric, e.g. "mase" or "coverage-80".
    """
    available: list[str] = []
    for task in suite.tasks:
        for name in task.metrics or METRICS:
            levels = task.level if "lo" in get(name.rpartition("-")[0] or name).needs else ()
            available += [f"{name}-{level:g}" for level in levels] if levels and "-" not in name else [name]
    if metric not in available:
        valid_names = format_list(list(dict.fromkeys(available)), max_shown=20)
        raise ParameterError(
            f"metric must be one of the suite ({valid_names}), got {format_value(metric)}.", parameter="metric"
        )


def distance(metric: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of values of a metric from its best value; lower is better."""
    parsed_metric, level = _parse_metric(metric)
    return parsed_metric.distance(values, level)


def describe_distance(metric: str) -> str:
    """Return the name of what `distance` measures: "error", or a distance from 0 or from the level."""
    return {"level": "distance from the nominal level", "zero": "distance from 0"}.get(_parse_metric(metric)[0].better, "error")


def group_failures(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Group the jobs of a task that failed with the same error.

    Returns
    -------
    list of (str, Row)
        The models with their seeds and the task, and one row of the group.
    """
    seeds = Counter((row.task, row.model) for row in rows)
    rows_by_failure: dict[tuple[str, str, str], dict[str, list[Row]]] = {}
    for row in rows:
        if row.status != "ok":
            rows_by_failure.setdefault((row.task, row.status, row.error), {}).setdefault(row.model, []).append(row)
    failures = []
    for (task, _, _), models in rows_by_failure.items():
        names = []
        for model, model_rows in models.items():
            numbers = f" (seed{'s' * (len(model_rows) > 1)} {', '.join(str(row.seed) for row in model_rows)})"
            names.append(format_value(model, 60) + numbers * (seeds[task, model] > 1))
        failures.append((f"{format_list(names)} on {task}", next(iter(models.values()))[0]))
    return failures


def read_series_metrics(folder: str | Path, rows: Sequence[Row], task: str, metric: str) -> tuple[list[str], list[str], Any]:
    """Read a metric of every series, for comparisons of models on one task.

    Parameters
    ----------
    folder : str or Path
        Folder of the run.
    rows : sequence of Row
        Its rows.
    task : str
        Name of the task.
    metric : str
        Metric to read.

    Returns
    -------
    models, series : list of str
        Names of models and ids of series.
    values : ndarray of shape (models, series)
        The metric, averaged over seeds.
    """
    import pandas as pd

    task_rows = [row for row in rows if row.task == task and row.status == "ok" and "series" in row.files]
    if not task_rows:
        raise DataError(f"task must have forecasts of at least one model; {format_value(task)} has none.")
    columns = []
    for row in task_rows:
        frame = rows_of_run.read_file(folder, row, "series")
        if metric not in frame:
            valid_names = format_list(list(frame)[1:], max_shown=20)
            raise ParameterError(
                f"metric must be one of the suite of the run ({valid_names}), got {format_value(metric)}.", parameter="metric"
            )
        columns.append(frame.set_index("unique_id")[metric].rename(row.model))
    combined = pd.concat(columns, axis=1).T.groupby(level=0, sort=False).mean()
    return combined.index.tolist(), combined.columns.tolist(), combined.to_numpy(np.float64)


def _parse_metric(column: str) -> tuple[Metric, float | None]:
    """Split the name of a metric column into metric and level, e.g. "coverage-80"."""
    name, _, level = column.rpartition("-")
    leveled = bool(name) and level.replace(".", "").isdecimal()
    return (get(name), float(level)) if leveled else (get(column), None)


def _rows_varying_in(rows: Sequence[Row], size: str) -> list[Row]:
    """Return the largest group of rows that differ only in that size."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, other_size) for other_size in SIZES if other_size != size), []).append(row)
    return max(groups.values(), key=lambda group: len({getattr(row, size) for row in group}), default=[])


def _summary_table(
    rows: Sequence[Row],
    models: Sequence[str],
    distances: Any,
    skill_scores: SkillScores | None,
    wins: SkillScores,
    rank: dict[str, float],
) -> pd.DataFrame:
    import pandas as pd

    def total(model: str, *names: str) -> float:
        values = [getattr(row, name) for row in rows for name in names if row.model == model and row.status == "ok"]
        return float(np.sum([value for value in values if value is not None])) if values else float("nan")

    def max_peak_mb(model: str) -> float:
        return max([row.peak_mb for row in rows if row.model == model and row.peak_mb is not None], default=float("nan"))

    columns: dict[str, Any] = {"model": list(models), "rank": [rank.get(name, np.nan) for name in models]}
    for name, scores in (("skill", skill_scores), ("wins", wins)):
        for statistic in ("value", "low", "high"):
            key = name if statistic == "value" else f"{name}-{statistic}"
            columns[key] = np.full(len(models), np.nan) if scores is None else getattr(scores, statistic)
    columns["tasks"] = (~np.isnan(distances)).sum(axis=1)
    columns["fit_seconds"] = [total(name, "fit_seconds") for name in models]
    columns["predict_seconds"] = [total(name, "predict_seconds") for name in models]
    columns["peak_mb"] = [max_peak_mb(name) for name in models]
    columns["failed"] = [sum(row.status != "ok" for row in rows if row.model == name) for name in models]
    columns["library"] = [next(row.library for row in rows if row.model == name) for name in models]
    return pd.DataFrame(columns)
