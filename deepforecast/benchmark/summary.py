"""What the rows of a run say: means over seeds, ranks, skill and wins over tasks, slopes of time and memory.

Failures are counted, never filled in: a model has a value where it forecast, and comparisons rest on what both have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.benchmark import rows as rows_of_run
from deepforecast.benchmark.rows import Row
from deepforecast.benchmark.suite import METRICS, Suite
from deepforecast.errors import DataError, ParameterError, format_list, format_value
from deepforecast.evaluation.critical import Comparison, friedman
from deepforecast.evaluation.definition import Metric
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.skill import Scores, skill, win_rates

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 95  # percent, of every interval here
SIZES = ("series", "length", "horizon")
COSTS = ("fit_seconds", "predict_seconds", "peak_mb")


@dataclass(frozen=True, eq=False)
class Summary:
    """`metric`: by which models are judged. `values`: its means over seeds, shape (models, tasks), less being better."""

    metric: str
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    values: NDArray[np.float64]
    skill: Scores | None
    wins: Scores
    comparison: Comparison | None
    compared: tuple[str, ...]
    table: pd.DataFrame


def summarise(rows: Sequence[Row], *, metric: str | None = None, reference: str = "SeasonalNaive") -> Summary:
    """The leaderboard of a run by one metric (default: the first asked for), best first, those of every task before others.

    Its table: mean rank over the tasks that every complete model has, skill against the reference, share of wins, each with its
    bootstrap interval over tasks; seconds and memory summed over tasks; how many jobs went wrong.
    """
    if not rows:
        raise DataError("A summary is of rows, at least one; the run has none yet.")
    metric = metric or deciding(rows)
    means = over_seeds(rows, metric)
    models, tasks = (tuple(dict.fromkeys(getattr(row, key) for row in rows)) for key in ("model", "task"))
    values = np.full((len(models), len(tasks)), np.nan)
    for one in means.itertuples():
        values[models.index(one.model), tasks.index(one.task)] = one.mean
    judged = distance(metric, values)
    known = reference in models and bool((~np.isnan(judged[models.index(reference)])).any())
    gained = skill(judged, models.index(reference)) if known else None
    wins = win_rates(judged)
    complete: NDArray[np.bool_] = np.asarray(~np.isnan(judged).any(axis=1))
    compared = tuple(name for name, whole in zip(models, complete.tolist(), strict=True) if whole)
    comparison = friedman(judged[complete]) if complete.sum() > 1 and len(tasks) > 1 else None
    good = wins.value if gained is None else gained.value
    # those that have every task first: skill on a few tasks, perhaps the easy ones, does not compare
    order = np.lexsort((-np.nan_to_num(good, nan=-np.inf), ~complete))
    rank = {} if comparison is None else dict(zip(compared, comparison.rank.tolist(), strict=True))
    table = _table(rows, models, judged, gained, wins, rank)
    return Summary(metric, models, tasks, values, gained, wins, comparison, compared, table.iloc[order].reset_index(drop=True))


def over_seeds(rows: Sequence[Row], metric: str) -> pd.DataFrame:
    """A row each (task, model): the mean over seeds with its interval (Student's t, of two seeds or more), and how many.

    >>> rows = [Row(suite="s", task="t", dataset="d", model="A", seed=n, job=str(n), settings="", metrics={"mae": 1.0 + n})
    ...         for n in range(3)]
    >>> over_seeds(rows, "mae").round(3).values.tolist()
    [['t', 'A', 2.0, -0.484, 4.484, 3]]
    """
    import pandas as pd
    from scipy.stats import t

    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.status == "ok" and metric in row.metrics:
            found.setdefault((row.task, row.model), []).append(row.metrics[metric])
    lines = []
    for (task, model), values in found.items():
        count, mean = len(values), float(np.mean(values))
        away = float("nan")
        if count > 1:
            away = float(t.ppf((100 + LEVEL) / 200, count - 1) * np.std(values, ddof=1) / np.sqrt(count))
        lines.append((task, model, mean, mean - away, mean + away, count))
    return pd.DataFrame(lines, columns=["task", "model", "mean", "low", "high", "seeds"])


def owa(rows: Sequence[Row], reference: str = "Naive2") -> dict[tuple[str, str], float]:
    """The overall weighted average of the M4 competition by (task, model): the mean of sMAPE and MASE over the reference's."""
    means = {name: over_seeds(rows, name).set_index(["task", "model"])["mean"].to_dict() for name in ("smape", "mase")}
    found = {}
    for key, smape in means["smape"].items():
        base = (key[0], reference)
        if key in means["mase"] and base in means["smape"] and base in means["mase"]:
            found[key] = float((smape / means["smape"][base] + means["mase"][key] / means["mase"][base]) / 2)
    return found


def slopes(rows: Sequence[Row]) -> pd.DataFrame:
    """How seconds and memory grow: of each model the slope of log cost on log size, along each size that varies alone.

    1 is proportional, 2 quadratic. Over the tasks that differ in that size alone; two points or more, which are counted.
    """
    import pandas as pd

    lines = []
    good = [row for row in rows if row.status == "ok" and None not in (row.series, row.length, row.horizon)]
    for model in dict.fromkeys(row.model for row in good):
        own = [row for row in good if row.model == model]
        for size in SIZES:
            group = _varying(own, size)
            for cost in COSTS:
                points = [(getattr(row, size), getattr(row, cost)) for row in group if getattr(row, cost)]
                if len({x for x, _ in points}) > 1:
                    x, y = np.log(np.array(points, dtype=np.float64)).T
                    lines.append((model, size, cost, float(np.polyfit(x, y, 1)[0]), len(points)))
    return pd.DataFrame(lines, columns=["model", "size", "cost", "slope", "points"])


def deciding(rows: Sequence[Row]) -> str:
    """The metric that judges where none is said: the first that the suite asks for, and any row has."""
    for row in rows:
        for name in row.metrics:
            return name
    raise DataError("No job of the run has forecasts that were scored; see the errors of its rows.")


def check_metric(suite: Suite, metric: str) -> None:
    """Refuse a metric that no row of the suite's run will have, before the run and not after it."""
    there: list[str] = []
    for task in suite.tasks:
        for name in task.metrics or METRICS:
            levels = task.level if "lo" in get(name.rpartition("-")[0] or name).needs else ()
            there += [f"{name}-{level:g}" for level in levels] if levels and "-" not in name else [name]
    if metric not in there:
        has = format_list(list(dict.fromkeys(there)), max_shown=20)
        raise ParameterError(f"A board is by a metric that the suite asks for, here {has}; got {format_value(metric)}.")


def distance(metric: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far from good, less being better whatever the metric."""
    one, level = _metric(metric)
    return one.distance(values, level)


def judged_by(metric: str) -> str:
    """What `distance` measures, in words: less of it is more skill."""
    return {"level": "distance from the nominal level", "zero": "distance from 0"}.get(_metric(metric)[0].better, "error")


def fallen(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """What went wrong, each thing once: whom it befell, with the seeds of models that have several, and a row that tells it."""
    seeds = Counter((row.task, row.model) for row in rows)
    alike: dict[tuple[str, str, str], dict[str, list[Row]]] = {}
    for row in rows:
        if row.status != "ok":
            alike.setdefault((row.task, row.status, row.error), {}).setdefault(row.model, []).append(row)
    found = []
    for (task, _, _), models in alike.items():
        names = []
        for model, own in models.items():
            numbers = f" (seed{'s' * (len(own) > 1)} {', '.join(str(row.seed) for row in own)})"
            names.append(format_value(model, 60) + numbers * (seeds[task, model] > 1))
        found.append((f"{format_list(names)} on {task}", next(iter(models.values()))[0]))
    return found


def by_series(folder: str | Path, rows: Sequence[Row], task: str, metric: str) -> tuple[list[str], list[str], Any]:
    """Models, series, and the metric of each, shape (models, series), means over seeds: for tests of every pair on one task."""
    import pandas as pd

    own = [row for row in rows if row.task == task and row.status == "ok" and "series" in row.files]
    if not own:
        raise DataError(f"Series are compared on a task that a model has forecast; {format_value(task)} has none.")
    parts = []
    for row in own:
        frame = rows_of_run.part(folder, row, "series")
        if metric not in frame:
            has = format_list(list(frame)[1:], max_shown=20)
            raise ParameterError(f"The files of a run hold the metrics of its suite, here {has}; got {format_value(metric)}.")
        parts.append(frame.set_index("unique_id")[metric].rename(row.model))
    joined = pd.concat(parts, axis=1).T.groupby(level=0, sort=False).mean()
    return joined.index.tolist(), joined.columns.tolist(), joined.to_numpy(np.float64)


def _metric(column: str) -> tuple[Metric, float | None]:
    """The metric of a column, and the level of one that has it."""
    name, _, level = column.rpartition("-")
    leveled = bool(name) and level.replace(".", "").isdecimal()
    return (get(name), float(level)) if leveled else (get(column), None)


def _varying(rows: Sequence[Row], size: str) -> list[Row]:
    """The largest group of rows that differ in that size alone."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, other) for other in SIZES if other != size), []).append(row)
    return max(groups.values(), key=lambda group: len({getattr(row, size) for row in group}), default=[])


def _table(
    rows: Sequence[Row], models: Sequence[str], judged: Any, gained: Scores | None, wins: Scores, rank: dict[str, float]
) -> pd.DataFrame:
    import pandas as pd

    def total(model: str, *names: str) -> float:
        values = [getattr(row, name) for row in rows for name in names if row.model == model and row.status == "ok"]
        return float(np.sum([value for value in values if value is not None])) if values else float("nan")

    def most(model: str) -> float:
        return max([row.peak_mb for row in rows if row.model == model and row.peak_mb is not None], default=float("nan"))

    found: dict[str, Any] = {"model": list(models), "rank": [rank.get(name, np.nan) for name in models]}
    for name, scores in (("skill", gained), ("wins", wins)):
        for part in ("value", "low", "high"):
            key = name if part == "value" else f"{name}-{part}"
            found[key] = np.full(len(models), np.nan) if scores is None else getattr(scores, part)
    found["tasks"] = (~np.isnan(judged)).sum(axis=1)
    found["fit_seconds"] = [total(name, "fit_seconds") for name in models]
    found["predict_seconds"] = [total(name, "predict_seconds") for name in models]
    found["peak_mb"] = [most(name) for name in models]
    found["failed"] = [sum(row.status != "ok" for row in rows if row.model == name) for name in models]
    found["library"] = [next(row.library for row in rows if row.model == name) for name in models]
    return pd.DataFrame(found)
