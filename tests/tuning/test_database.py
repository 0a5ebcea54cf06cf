"""Searches kept in SQLite: few transactions, none of them half, and nothing left open."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from optuna.distributions import FloatDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool, Pool, QueuePool

from deepforecast import TuningOptions, tune
from deepforecast.tuning import database
from deepforecast.tuning.database import Database
from deepforecast.tuning.result import TuningResult
from deepforecast.tuning.storage import open_storage
from deepforecast.tuning.study import DEFAULT_TUNING_OPTIONS
from tests.tuning.bent import Bent


def searched(
    frame: pd.DataFrame, n_trials: int, storage: Path, options: TuningOptions = DEFAULT_TUNING_OPTIONS
) -> TuningResult:
    return tune(Bent(), frame, n_trials=n_trials, horizon=3, storage=storage, options=options)


@pytest.fixture
def writes() -> Iterator[list[str]]:
    """The statements of each transaction that has changed something and was committed."""
    open_transactions: dict[Any, list[str]] = {}
    committed: list[str] = []

    def executed(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            open_transactions.setdefault(connection, []).append(statement)

    def commit(connection: Any) -> None:
        if connection in open_transactions:
            committed.append("; ".join(open_transactions.pop(connection)))

    event.listen(Engine, "after_cursor_execute", executed)
    event.listen(Engine, "commit", commit)
    yield committed
    event.remove(Engine, "after_cursor_execute", executed)
    event.remove(Engine, "commit", commit)


def test_trial_takes_three_transactions(frame: pd.DataFrame, tmp_path: Path, writes: list[str]) -> None:
    options = TuningOptions(n_windows=3)
    searched(frame, 1, storage=tmp_path / "study.db", options=options)
    writes.clear()
    found = searched(frame, 13, storage=tmp_path / "study.db", options=options)
    assert max(len(trial.params) + len(trial.intermediate_values) for trial in found.study.trials) > 5
    assert 12 <= len(writes) <= 3 * 12


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts the open files in /proc")
@pytest.mark.parametrize("pool", [NullPool, QueuePool])
def test_search_leaves_no_connection_open(
    frame: pd.DataFrame, tmp_path: Path, pool: type[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is closed after each transaction; connections to a server are pooled, as here those of `QueuePool`."""
    monkeypatch.setattr("sqlalchemy.pool.NullPool", pool)
    results = [searched(frame, 2, storage=tmp_path / "study.db")]
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        results.append(searched(frame, 3, storage=tmp_path / f"{number}.db", options=TuningOptions(holdout=1)))
        assert len(results[-1].trials) == 3
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def trial(tmp_path: Path) -> optuna.Trial:
    """Has drawn a parameter, and has reported a value and an attribute."""
    study = optuna.create_study(storage=open_storage(tmp_path / "study.db"), study_name="study")
    trial = study.ask({"x": FloatDistribution(0, 1)})
    trial.report(0.5, 1)
    trial.set_user_attr("note", "first")
    return trial


def elsewhere(tmp_path: Path) -> optuna.trial.FrozenTrial:
    """The trial as another process reads it."""
    return optuna.load_study(storage=RDBStorage(f"sqlite:///{tmp_path / 'study.db'}"), study_name="study").trials[0]


def test_reports_are_known_to_their_process_at_once_and_to_others_when_written(tmp_path: Path, trial: optuna.Trial) -> None:
    storage = trial.study._storage
    own = storage.get_trial(trial._trial_id)
    assert (own.params, own.intermediate_values, own.user_attrs) == (trial.params, {1: 0.5}, {"note": "first"})
    assert trial.user_attrs == {"note": "first"}
    assert elsewhere(tmp_path).params == elsewhere(tmp_path).intermediate_values == {}
    storage._backend.flush()
    assert (elsewhere(tmp_path).params, elsewhere(tmp_path).intermediate_values) == (trial.params, {1: 0.5})
    trial.report(0.25, 2)
    trial.study.tell(trial, 0.25)
    done = elsewhere(tmp_path)
    assert (done.state, done.value, done.intermediate_values) == (TrialState.COMPLETE, 0.25, {1: 0.5, 2: 0.25})


@pytest.mark.parametrize("method", ["set_trial_intermediate_value", "set_trial_state_values"])
def test_trial_ends_with_all_its_reports_or_with_none(
    tmp_path: Path, trial: optuna.Trial, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StorageInternalError("disk full")

    monkeypatch.setattr(RDBStorage, method, full)
    with pytest.raises(StorageInternalError, match="disk full"):
        trial.study.tell(trial, 0.25)
    left = elsewhere(tmp_path)
    assert (left.state, left.params, left.user_attrs) == (TrialState.RUNNING, {}, {})


def test_trials_of_others_are_read_again_after_a_tenth_of_a_second(
    tmp_path: Path, trial: optuna.Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = trial.study
    assert len(study.get_trials()) == 1
    other = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    other.create_new_trial(study._study_id)
    monkeypatch.setattr(database, "MAX_READ_AGE", -1.0)
    assert len(study.get_trials()) == 2


def test_a_report_that_another_process_writes_at_the_same_time_is_an_error(tmp_path: Path, trial: optuna.Trial) -> None:
    """Of both inserts only one can be: Optuna takes back its own without an error, and with it all of the transaction."""
    storage = trial.study._storage._backend  # type: ignore[attr-defined]
    storage.flush()
    other = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")

    @event.listens_for(storage.engine, "before_cursor_execute")
    def write_first(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO trial_intermediate_values"):
            other.set_trial_intermediate_value(trial._trial_id, 2, 0.75)

    trial.report(0.25, 2)
    with pytest.raises(StorageInternalError, match="Two processes cannot write the same report"):
        trial.study.tell(trial, 0.25)
    assert elsewhere(tmp_path).intermediate_values[2] == 0.75
    assert elsewhere(tmp_path).state == TrialState.RUNNING


def test_trials_of_others_are_read_again_after_a_write_of_ones_own(tmp_path: Path, trial: optuna.Trial) -> None:
    study = trial.study
    assert isinstance(study._storage._backend, Database)
    assert len(study.get_trials()) == 1
    other = optuna.load_study(storage=RDBStorage(f"sqlite:///{tmp_path / 'study.db'}"), study_name="study")
    other.add_trial(optuna.create_trial(value=1.0))
    study._storage._backend.flush()
    assert len(study.get_trials()) == 2
