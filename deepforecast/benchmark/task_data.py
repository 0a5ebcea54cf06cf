"""Data of a task, shared by its jobs: the dataset, sliced and scaled, as a panel with its windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast import datasets
from deepforecast.benchmark.suite import METRICS, Scaling, Slice, Task
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan
from deepforecast.data.windows import backtest_windows as windows_of
from deepforecast.errors import DataError, ParameterError, format_list

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("future", "past", "static")


@dataclass(frozen=True)
class PreparedTask:
    """A task with its data.

    Parameters
    ----------
    task : Task
        The task.
    history : DataFrame
        All rows including the test part, in the units of the metrics (scaled if the task has `scaling`).
    panel : Panel
        The same as a panel.
    plan : BacktestPlan
        Horizon and cutoffs.
    season_length : int or None
        Season length of the task or dataset.
    levels : tuple of float
        Coverage of the prediction intervals in percent.
    metrics : tuple of str
        Metrics of the task.
    columns : mapping of str to sequence of str
        Names of the covariates by role.
    """

    task: Task
    history: pd.DataFrame
    panel: Panel
    plan: BacktestPlan
    season_length: int | None
    levels: tuple[float, ...]
    metrics: tuple[str, ...]
    columns: Mapping[str, Sequence[str]]

    @property
    def refit(self) -> Any:
        """Argument `refit` of `cross_validate`."""
        return self.task.windows.refit

    def row_fields(self) -> dict[str, Any]:
        """Return the fields of a result row that describe the task."""
        n_learning_rows = self.panel.lengths - self.plan.horizon - (self.plan.n_windows - 1) * self.plan.step
        return {
            "horizon": self.plan.horizon, "windows": self.plan.n_windows, "series": len(self.panel),
            "rows": int(n_learning_rows.sum()), "length": int(n_learning_rows.max()), "season_length": self.season_length,
        }  # fmt: skip


def prepare_task(task: Task) -> PreparedTask:
    """Load, slice and scale the data of a task.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    PreparedTask

    Raises
    ------
    ParameterError
        If the task is invalid, e.g. without a horizon.
    DataError
        If a series is too short for the windows.

    Examples
    --------
    >>> prepare_task(Task(dataset="air_passengers", horizon=6)).row_fields()["length"]
    138
    """
    return prepare_frame(task, load_frame(task))


def load_frame(task: Task) -> pd.DataFrame:
    """Load the dataset of a task or generate its series, and slice them."""
    if task.generate is None:
        frame = datasets.load(task.dataset)
    else:
        frame = datasets.generate(**task.generate)
    return frame if task.part is None else slice_frame(frame, task.part, task.name)


def prepare_frame(task: Task, frame: pd.DataFrame) -> PreparedTask:
    """Scale the data of a task and build the panel and the windows.

    Only the scaling depends on values of the target, and only on the first rows of each series.

    Parameters
    ----------
    task : Task
        The task.
    frame : DataFrame
        Its data, as returned by `load_frame`.

    Returns
    -------
    PreparedTask
    """
    card = datasets.card(task.dataset) if task.dataset else None
    horizon = horizon_of(task)
    season = task.season_length or (card.season_length if card else None)
    windows = task.windows
    step, count = windows.step or horizon, window_count(task)
    roles = _column_roles(task)
    frame = frame[["unique_id", "ds", "y", *(name for role in ROLES for name in roles[role])]]
    frame = frame.assign(y=frame["y"].to_numpy(np.float64))
    if task.scaling is not None:
        frame = scale_frame(frame, task.scaling, horizon + (count - 1) * step, task.name)
    freq = card.frequency if card else task.generate.get("freq", "D") if task.generate else None
    panel = Panel.from_frame(frame, freq=freq, columns={"id": "unique_id", "time": "ds", "target": "y", **roles})
    plan = BacktestPlan(horizon, count, step, train_size=windows.size, full_windows=bool(roles["future"]))
    try:
        windows_of(panel, plan)
    except ParameterError as error:  # holds for every model, so the task is named
        raise DataError(f"{task.name}: {error}") from None
    return PreparedTask(task, frame, panel, plan, season, tuple(task.level), task.metrics or METRICS, roles)


def horizon_of(task: Task) -> int:
    """Return the horizon of a task, by default that of the dataset card."""
    horizon = task.horizon or (datasets.card(task.dataset).horizon if task.dataset else None)
    if horizon is None:
        raise ParameterError("a task must have a horizon, and its dataset does not define one.", hint="Set `horizon`.")
    return horizon


def window_count(task: Task) -> int:
    """Return the number of windows of a task: `count`, or all that fit into the test rows."""
    windows, horizon = task.windows, horizon_of(task)
    if windows.test is None:
        return windows.count
    if windows.test < horizon:
        raise ParameterError(f"windows.test must be at least the horizon {horizon}, got {windows.test}.")
    return (windows.test - horizon) // (windows.step or horizon) + 1


def slice_frame(frame: pd.DataFrame, slice_spec: Slice, name: str) -> pd.DataFrame:
    """Select the series of a slice, and the last rows of each.

    Parameters
    ----------
    frame : DataFrame
        Data of a task.
    slice_spec : Slice
        Part to select.
    name : str
        Name of the task in messages.
    """
    ids = frame["unique_id"].drop_duplicates()
    if slice_spec.ids:
        known_ids = [series_id for series_id in slice_spec.ids if series_id in set(ids)]
        if len(known_ids) < len(slice_spec.ids):
            unknown_ids = format_list([series_id for series_id in slice_spec.ids if series_id not in known_ids])
            raise ParameterError(f"{name}: slice.ids must be ids of its series, got {unknown_ids}.")
        ids = ids[ids.isin(known_ids)]
    if slice_spec.series is not None and slice_spec.series < len(ids):
        positions = np.random.default_rng(slice_spec.seed).choice(len(ids), slice_spec.series, replace=False)
        ids = ids.iloc[np.sort(positions)]
    frame = frame[frame["unique_id"].isin(set(ids))]
    if slice_spec.last is not None:
        frame = frame[frame.groupby("unique_id", sort=False, observed=True).cumcount(ascending=False) < slice_spec.last]
    if isinstance(frame["unique_id"].dtype, type(frame["unique_id"].astype("category").dtype)):
        frame = frame.assign(unique_id=frame["unique_id"].cat.remove_unused_categories())
    return frame.reset_index(drop=True)


def scale_frame(frame: pd.DataFrame, scaling: Scaling, n_evaluated: int, name: str) -> pd.DataFrame:
    """Standardise each series by the mean and standard deviation of its first rows.

    Parameters
    ----------
    frame : DataFrame
        Data of a task.
    scaling : Scaling
        Number of rows that determine the scale.
    n_evaluated : int
        Number of rows from the first cutoff to the end of a series.
    name : str
        Name of the task in messages.

    Raises
    ------
    ParameterError
        If the rows overlap with the test part.
    DataError
        If a series has only missing values in these rows.
    """
    series = frame.groupby("unique_id", sort=False, observed=True)
    row = series.cumcount()
    shortest = int(series.size().min())
    if scaling.rows > shortest - n_evaluated:
        raise ParameterError(
            f"{name}: scaling.rows must be at most the {shortest - n_evaluated} rows before the first cutoff, "
            f"so that test rows do not affect the scale, got {scaling.rows}."
        )
    first = frame[row < scaling.rows].groupby("unique_id", sort=False, observed=True)["y"]
    mean, std = (frame["unique_id"].map(statistic).to_numpy(np.float64) for statistic in (first.mean(), first.std(ddof=0)))
    if np.isnan(mean).any():
        raise DataError(
            f"{name}: each series must have a value in its first {scaling.rows} rows, which determine the scale; one has none."
        )
    return frame.assign(y=(frame["y"].to_numpy() - mean) / np.where(std > 0, std, 1.0))


def sample_ids(prepared: PreparedTask, count: int) -> list[Any]:
    """Return the ids whose forecasts are saved: evenly spaced over the dataset, the same for every model."""
    ids = prepared.history["unique_id"].drop_duplicates()
    positions = np.unique(np.linspace(0, len(ids) - 1, min(count, len(ids))).astype(np.int64)).tolist()
    return [ids.iloc[position] for position in positions]


def plot_history(prepared: PreparedTask, ids: Sequence[Any]) -> pd.DataFrame:
    """Return the rows of some series that plots show, before and in the windows; at most 1,000 per series."""
    history = prepared.history[prepared.history["unique_id"].isin(set(ids))]
    n_evaluated = prepared.plan.horizon + (prepared.plan.n_windows - 1) * prepared.plan.step
    n_shown = min(1000, n_evaluated + max(4 * prepared.plan.horizon, 3 * (prepared.season_length or 1), 24))
    history = history[history.groupby("unique_id", sort=False, observed=True).cumcount(ascending=False) < n_shown]
    return history[["unique_id", "ds", "y"]].astype({"unique_id": str}).reset_index(drop=True)


def limit_series(task: Task, series: int | None) -> tuple[Task, str]:
    """Restrict a task to a number of series.

    Parameters
    ----------
    task : Task
        The task.
    series : int or None
        Largest number of series; None: all.

    Returns
    -------
    task : Task
        The restricted task.
    description : str
        The restriction, e.g. "m1: 100 of 1,001 series"; empty if there is none.
    """
    slice_spec = task.part or Slice()
    if series is None or (slice_spec.series is not None and slice_spec.series <= series):
        return task, ""
    if task.generate is not None:
        n_generated = int(task.generate.get("n_series", 3))
        if n_generated <= series:
            return task, ""
        return replace(
            task, generate={**task.generate, "n_series": series}
        ), f"{task.name}: {series:,} of {n_generated:,} series"
    n_series = slice_spec.series or (len(slice_spec.ids) if slice_spec.ids else datasets.card(task.dataset).series)
    if n_series <= series:
        return task, ""
    return replace(task, part=replace(slice_spec, series=series)), f"{task.name}: {series:,} of {n_series:,} series"


def _column_roles(task: Task) -> dict[str, tuple[str, ...]]:
    if isinstance(task.columns, Mapping):
        unknown = [role for role in task.columns if role not in ROLES]
        if unknown:
            raise ParameterError(f"{task.name}: columns must have roles from {', '.join(ROLES)}, got {format_list(unknown)}.")
        role_columns = {role: task.columns.get(role) or () for role in ROLES}
        return {role: (names,) if isinstance(names, str) else tuple(names) for role, names in role_columns.items()}
    if task.columns == "none" or not task.dataset:
        return dict.fromkeys(ROLES, ())
    return {role: tuple(names) for role, names in datasets.card(task.dataset).columns.items()}
