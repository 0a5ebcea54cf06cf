from __future__ import annotations

import logging
import resource
import sys
import threading
import time
from pathlib import Path

import optuna
import pytest
from optuna.exceptions import StorageInternalError

from deepforecast.errors import DeepForecastError, DependencyError, ParameterError, ParameterTypeError
from deepforecast.tuning import journal as journals
from deepforecast.tuning.journal import open_journal
from deepforecast.tuning.storage import describe_storage, open_storage, silence_optuna
from deepforecast.tuning.trial_recovery import process_key


def trials(path, count):
    with silence_optuna():
        study = optuna.create_study(storage=open_journal(str(path)), study_name="s", load_if_exists=True)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=count)
        return len(study.trials)


def test_a_journal_is_one_that_optuna_reads(tmp_path):
    path = tmp_path / "study.log"
    trials(path, 3)
    backend = optuna.storages.journal.JournalFileBackend(str(path))
    assert len(optuna.load_study(study_name="s", storage=optuna.storages.JournalStorage(backend)).trials) == 3


def test_a_line_that_a_crash_cut_off_is_taken_away(tmp_path):
    path = tmp_path / "study.log"
    trials(path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op_code":4,"worker_id":"x","stu')
    assert trials(path, 1) == 3
    assert path.read_bytes().startswith(whole)


def test_a_line_that_another_process_left_unfinished_is_taken_away(tmp_path):
    path = tmp_path / "study.log"
    with silence_optuna():
        study = optuna.create_study(storage=open_journal(str(path)))
        study.ask()
        with path.open("ab") as file:
            file.write(b'{"op_code":4,"wor')
        study.ask()
        assert len(study.trials) == 2
        assert len(optuna.load_study(storage=open_journal(str(path)), study_name=study.study_name).trials) == 2


def test_what_a_full_disk_cuts_off_is_not_left_behind(tmp_path):
    path = tmp_path / "study.log"
    with silence_optuna():
        study = optuna.create_study(storage=open_journal(str(path)))
        study.ask()
        whole = path.read_bytes()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, before[1]))
        try:
            with pytest.raises(StorageInternalError, match="File too large"):
                study.ask()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert path.read_bytes() == whole
        study.ask()
        assert len(study.trials) == 2


@pytest.mark.parametrize("text", ["a,b\n1,2", "hello", '{"a": 1}', '[1, 2]\n{"op_code":'])
def test_a_file_of_something_else_is_left_as_it_is(tmp_path, text):
    path = tmp_path / "sales.csv"
    path.write_text(text)
    with pytest.raises(ParameterError, match="is a file of another kind"):
        open_storage(path)
    assert path.read_text() == text
    assert [one.name for one in tmp_path.iterdir()] == ["sales.csv"]


def test_a_file_that_has_gone_is_not_made_anew(tmp_path):
    path = tmp_path / "study.log"
    held = open_journal(str(path))
    path.unlink()
    with pytest.raises(StorageInternalError, match="FileNotFoundError"):
        held.create_new_study([optuna.study.StudyDirection.MINIMIZE], "s")
    assert not path.exists()


def test_the_lock_of_a_process_of_this_machine_that_is_dead_is_taken_over_at_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(journals, "LOCK_TIMEOUT", 3600)
    path = tmp_path / "study.log"
    trials(path, 1)
    place, pid, began = process_key().split("|")
    logging.getLogger("optuna").addHandler(caplog.handler)
    begin = time.monotonic()
    for gone in (f"{place}|{2**22 + 1}|5|x", f"{place}|{pid}|{int(began) - 1}|x"):
        Path(f"{path}.lock").write_text(gone)
        trials(path, 1)
    logging.getLogger("optuna").removeHandler(caplog.handler)
    assert time.monotonic() - begin < 300
    assert caplog.text.count("Taking over the lock") == 2
    Path(f"{path}.lock").write_text(f"{place}|{pid}|{began}|x")
    waiting = threading.Thread(target=trials, args=(path, 1), daemon=True)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    Path(f"{path}.lock").unlink()
    waiting.join(240)
    assert trials(path, 0) == 4


@pytest.mark.slow
def test_the_lock_of_a_dead_process_is_taken_over_and_it_is_said(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(journals, "LOCK_TIMEOUT", 3)
    path = tmp_path / "study.log"
    trials(path, 1)
    Path(f"{path}.lock").touch()
    logging.getLogger("optuna").addHandler(caplog.handler)
    begin = time.monotonic()
    assert trials(path, 1) == 2
    assert 3 < time.monotonic() - begin < 240
    assert "Taking over the lock" in caplog.text
    logging.getLogger("optuna").removeHandler(caplog.handler)


def test_threads_write_whole_lines(tmp_path):
    path = tmp_path / "study.log"
    trials(path, 1)
    crew = [threading.Thread(target=trials, args=(path, 3)) for _ in range(3)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    assert trials(path, 0) == 10


@pytest.mark.parametrize(
    ("given", "kind"),
    [("", ParameterError), ("a\0b", ParameterError), (3.5, ParameterTypeError), ("foo://x", ParameterError),
     ("/", ParameterError), ("/no/such/folder/study.log", ParameterError), ("/no/such/folder/study.db", ParameterError)],
)  # fmt: skip
def test_what_is_no_storage_is_refused(given, kind):
    with pytest.raises(kind, match="storage"):
        open_storage(given)


def test_a_read_only_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "study.log"
    trials(path, 1)
    real = open

    def denied(name, mode="r", *rest, **named):
        if str(name) == str(path) and "+" in mode:
            raise PermissionError(13, "Permission denied")
        return real(name, mode, *rest, **named)

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(DeepForecastError, match="Permission denied"):
        open_storage(path)


@pytest.mark.parametrize(
    ("url", "module", "way_out"),
    [
        ("postgresql+psycopg://me:secret@127.0.0.1:1/x", "psycopg", r"pip install 'psycopg\[binary\]'"),
        ("mysql://me:secret@127.0.0.1:1/x", "MySQLdb", r"pip install 'mysqlclient'.*mysql\+pymysql://"),
        ("mysql+pymysql://me:secret@127.0.0.1:1/x", "pymysql", "pip install 'pymysql'"),
    ],
)
def test_a_driver_that_is_missing_is_named(monkeypatch, url, module, way_out):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(DependencyError, match=way_out) as caught:
        open_storage(url)
    assert "secret" not in str(caught.value)


def test_passwords_are_not_told():
    assert describe_storage("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"
    assert describe_storage("study.log") == "study.log"


def test_the_log_level_of_the_caller_stays():
    logger = logging.getLogger("optuna")
    before = logger.level
    with silence_optuna():
        assert logger.level == logging.WARNING
    assert logger.level == before
