from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.benchmark import leak_audit as audits
from deepforecast.benchmark import task_data
from deepforecast.benchmark.leak_audit import audit_model, audit_suite, change_unseen, shorten_task
from deepforecast.benchmark.suite import Entry, Scaling, Suite, Task, Windows
from deepforecast.benchmark.task_data import load_frame, prepare_frame
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestWindow

TASK = Task(
    task="made", generate={"n_series": 3, "length": 80, "freq": "D", "seed": 3}, horizon=5,
    windows=Windows(test=20, step=1, refit=False), scaling=Scaling(rows=40),
)  # fmt: skip
SHORT = shorten_task(TASK, 2, 2)
ENTRY = Entry(model="Naive")


def test_models_that_see_nothing_are_clean() -> None:
    found = audit_suite(Suite(suite="s", tasks=(TASK,), models=(ENTRY, Entry(model="LinearModel"))), progress=False)
    assert [(one.model, one.verdict) for one in found] == [("Naive", "clean"), ("LinearModel", "clean")]
    assert found[0].n_rows == 2 * 5 * 3  # two windows, five steps, three series


def test_a_history_with_one_row_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = BacktestWindow.history

    def peeking(window: BacktestWindow, panel: Panel) -> Panel:
        return right(replace(window, cutoff=window.cutoff + 1), panel)

    monkeypatch.setattr(BacktestWindow, "history", peeking)
    found = audit_model(ENTRY, SHORT, load_frame(SHORT))
    assert (found.verdict, found.window, found.n_changed) == ("leak", 1, 10)
    assert "10 of 10 forecasts changed" in found.message


def test_a_scale_fitted_on_the_test_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_all(frame: pd.DataFrame, scaling: Any, judged: int, name: str) -> pd.DataFrame:
        y = frame.groupby("unique_id")["y"]
        return frame.assign(y=(frame["y"] - y.transform("mean")) / y.transform("std"))

    monkeypatch.setattr(task_data, "scale_frame", on_all)
    assert audit_model(ENTRY, SHORT, load_frame(SHORT)).verdict == "leak"


def test_bands_are_audited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    right = audits.run_model

    def telling(model: Any, panel: Panel, *rest: Any, **named: Any) -> Any:
        found = right(model, panel, *rest, **named)
        return replace(found, columns={**found.columns, "Naive-hi-80": found.columns["Naive-hi-80"] + panel.y[-1]})

    monkeypatch.setattr(audits, "run_model", telling)
    assert audit_model(ENTRY, replace(SHORT, level=(80.0,)), load_frame(SHORT)).verdict == "leak"


def test_a_model_that_fails_proves_nothing() -> None:
    found = audit_model(Entry(model="LinearModel", parameters={"lags": [500]}), SHORT, load_frame(SHORT))
    assert found.verdict == "failed"
    assert found.message


def test_what_is_changed_is_what_no_forecast_may_know() -> None:
    task = Task(dataset="generated", horizon=5, windows=Windows(count=2))
    frame = load_frame(task)
    prepared = prepare_frame(task, frame)
    found = change_unseen(frame, prepared, 0)
    row = frame.groupby("unique_id").cumcount(ascending=False).to_numpy()
    assert (found["y"].to_numpy() == frame["y"].to_numpy())[row >= 10].all()
    assert (found["y"].to_numpy() != frame["y"].to_numpy())[row < 10].all()
    assert (found["visits"].to_numpy() != frame["visits"].to_numpy())[row < 10].any()  # known up to now
    within = row >= 5
    assert (found["price"].to_numpy() == frame["price"].to_numpy())[within].all()  # known as far as is forecast
    assert (found["price"].to_numpy() != frame["price"].to_numpy())[row < 5].any()
    assert np.isfinite(found["y"]).all()


def test_other_values_stay_of_their_kind() -> None:
    frame = pd.DataFrame({"unique_id": "a", "ds": range(9), "y": [0.0, 1, 2, 0, np.nan, 3, 1, 0, 2]})
    task = Task(task="counts", generate={}, horizon=4)
    prepared = prepare_frame(replace(task, generate={"freq": 1}), frame)
    found = change_unseen(frame, prepared, 0)["y"].to_numpy()
    assert np.isnan(found[4])
    there = found[5:]
    assert (there == np.rint(there)).all()
    assert (there > 3).all()
