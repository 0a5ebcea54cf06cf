"""Leakage audit: all values after a cutoff are replaced; every forecast from that cutoff must stay bitwise equal.

The values are replaced before any processing, so that scaling, slicing and imputation are audited
together with the models. If one fit serves several windows, the values between the first cutoff and
the audited one count as observed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.job import build_model, given_season_length
from deepforecast.benchmark.suite import Entry, Suite, Task
from deepforecast.benchmark.task_data import PreparedTask, limit_series, load_frame, prepare_frame
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import progress_bar
from deepforecast.data.frames import Floats
from deepforecast.errors import format_value
from deepforecast.evaluation.compare import ModelRun, format_error, run_model
from deepforecast.evaluation.cross_validation import BacktestRows

if TYPE_CHECKING:
    import pandas as pd

N_WINDOWS, N_SERIES = 2, 4
Progress = bool | None


@dataclass(frozen=True)
class Finding:
    """Result of the audit of one model on one task.

    Parameters
    ----------
    task, model : str
        Names of the task and of the model.
    verdict : {"clean", "leak", "failed"}
        Whether forecasts changed, or the model failed.
    window : int
        Number of the window with the leak, from 1.
    n_changed : int
        Number of forecasts that changed.
    n_rows : int
        Number of forecasts compared.
    max_change : float
        Largest absolute change.
    message : str
        Description of the leak, or the error.
    """

    task: str
    model: str
    verdict: str
    window: int = 0
    n_changed: int = 0
    n_rows: int = 0
    max_change: float = 0.0
    message: str = ""


def audit_suite(suite: Suite, *, windows: int = N_WINDOWS, series: int = N_SERIES, progress: Progress = None) -> list[Finding]:
    """Audit every model of a suite, except those of peers, on every task.

    Parameters
    ----------
    suite : Suite
        Suite to audit.
    windows : int, default 2
        Number of windows per task, the last ones.
    series : int, default 4
        Number of series per task.
    progress : bool, optional
        Whether to show a progress bar; None: in terminals and notebooks.

    Returns
    -------
    list of Finding
        One per task and model.
    """
    findings = []
    with progress_bar(sum(len(_own_entries(suite, task)) for task in suite.tasks), "audits", progress) as tick:
        for task in suite.tasks:
            short_task = shorten_task(task, windows, series)
            frame = load_frame(short_task)
            for entry in _own_entries(suite, task):
                findings.append(audit_model(entry, short_task, frame))
                tick(1)
    return findings


def shorten_task(task: Task, windows: int, series: int) -> Task:
    """Restrict a task to `series` series and the last `windows` windows; scaling and refits are unchanged."""
    window_spec = task.windows
    count = windows if window_spec.test is not None else min(window_spec.count, windows)
    return replace(limit_series(task, series)[0], windows=replace(window_spec, count=count, test=None))


def audit_model(entry: Entry, task: Task, frame: pd.DataFrame, make: Callable[[], Forecaster] | None = None) -> Finding:
    """Audit one model on one task, window by window, up to the first leak.

    Parameters
    ----------
    entry : Entry
        Model to audit.
    task : Task
        Task to audit it on.
    frame : DataFrame
        Data of the task before processing, as returned by `load_frame`.
    make : callable, optional
        Returns the model to audit in place of that of the entry.

    Returns
    -------
    Finding
        Exceptions of the model give the verdict "failed".
    """
    finding = Finding(task.name, entry.name, "clean")
    try:
        prepared = prepare_frame(task, frame)
        expected_run, row_windows = forecast_model(entry, prepared, make), window_numbers(prepared)
        for window in range(prepared.plan.n_windows):
            changed_task = prepare_frame(task, change_unseen(frame, prepared, window))
            changed_run = forecast_model(entry, changed_task, make)
            in_window = row_windows == window
            finding = _compare_runs(finding, expected_run, changed_run, in_window, window)
            if finding.verdict == "leak":
                return finding
    except Exception as error:  # any failure of a model is a finding
        return replace(finding, verdict="failed", message=format_error(error)[:500])
    return finding


def forecast_model(entry: Entry, prepared: PreparedTask, make: Callable[[], Forecaster] | None) -> ModelRun:
    """Fit the model and forecast all windows of the task; raises the exception of a model that fails."""
    model = build_model(entry, prepared.task, given_season_length(prepared)) if make is None else make()
    model = model.clone(horizon=prepared.plan.horizon)
    model_run = run_model(model, prepared.panel, prepared.plan, prepared.refit, prepared.levels, seed=0)
    if model_run.cause is not None:
        raise model_run.cause
    return model_run


def window_numbers(prepared: PreparedTask) -> Any:
    """Return the window of each evaluated row, from 0 for the first cutoff."""
    rows = BacktestRows.from_plan(prepared.panel, prepared.plan)
    last = prepared.panel.series.last[rows.series]
    back = (last - rows.cutoff) // prepared.panel.calendar.step - prepared.plan.horizon
    return prepared.plan.n_windows - 1 - back // prepared.plan.step


def change_unseen(frame: pd.DataFrame, prepared: PreparedTask, window: int) -> pd.DataFrame:
    """Replace all values that a forecast from a cutoff cannot know.

    These are the target and the past covariates after the cutoff, and the future covariates
    after the horizon. Missing values stay missing.

    Parameters
    ----------
    frame : DataFrame
        Data of the task before processing.
    prepared : PreparedTask
        The same task, prepared.
    window : int
        Window whose cutoff is meant, from 0.

    Returns
    -------
    DataFrame
    """
    plan = prepared.plan
    n_unseen = plan.horizon + (plan.n_windows - 1 - window) * plan.step  # rows after the cutoff
    from_end = frame.groupby("unique_id", sort=False, observed=True).cumcount(ascending=False).to_numpy()
    unseen, beyond = from_end < n_unseen, from_end < n_unseen - plan.horizon
    changed_frame = frame.assign(y=_replacement_values(frame["y"].to_numpy(np.float64), unseen))
    for names, rows in ((prepared.columns["past"], unseen), (prepared.columns["future"], beyond)):
        for name in names:
            changed_frame[name] = _shuffle_rows(changed_frame[name], rows)
    return changed_frame


def _replacement_values(values: Floats, where: Any) -> Floats:
    """Replace values by random ones of a larger scale; counts stay integers, as some models require."""
    observed = values[~np.isnan(values)]
    size = float(np.abs(observed).max()) if len(observed) else 1.0
    replacements = np.random.default_rng(0).uniform(1.5, 3.0, len(values)) * max(size, 1.0)
    replacements = np.rint(replacements) if len(observed) and (observed == np.rint(observed)).all() else replacements
    return np.where(where & ~np.isnan(values), replacements, values)


def _shuffle_rows(column: pd.Series, where: Any) -> pd.Series:
    """Replace rows of a column by values drawn at random from the column."""
    order = np.arange(len(column))
    rows = np.flatnonzero(where)
    order[rows] = np.random.default_rng(1).integers(0, len(column), len(rows))
    return column.take(order).set_axis(column.index)


def _compare_runs(finding: Finding, expected_run: ModelRun, changed_run: ModelRun, in_window: Any, window: int) -> Finding:
    """Return the finding, updated by the comparison of one window."""
    is_changed, max_change = np.zeros(int(in_window.sum()), dtype=bool), 0.0
    for name, values in expected_run.columns.items():
        expected, obtained = values[in_window], changed_run.columns[name][in_window]
        is_same = (expected == obtained) | (np.isnan(expected) & np.isnan(obtained))
        is_changed |= ~is_same
        if not is_same.all():
            max_change = max(max_change, float(np.nanmax(np.abs(expected - obtained)[~is_same], initial=0.0)))
    if not is_changed.any():
        return replace(finding, n_rows=finding.n_rows + len(is_changed))
    counts = f"{int(is_changed.sum())} of {len(is_changed)} forecasts changed"
    message = f"window {window + 1}: {counts}, by up to {format_value(f'{max_change:.3g}')}"
    return replace(
        finding,
        verdict="leak",
        window=window + 1,
        n_changed=int(is_changed.sum()),
        n_rows=len(is_changed),
        max_change=max_change,
        message=message,
    )


def _own_entries(suite: Suite, task: Task) -> Sequence[Entry]:
    return [entry for entry in suite.entries(task) if not entry.peer]
