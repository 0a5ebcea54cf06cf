"""Where a study is kept: in memory, in a journal file, in SQLite, or on a database server by its URL."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.storages import BaseStorage, InMemoryStorage

from deepforecast.errors import (
    DeepForecastError,
    DependencyError,
    ParameterError,
    ParameterTypeError,
    SaveError,
    TrainingError,
    format_value,
)
from deepforecast.tuning.database import Database
from deepforecast.tuning.journal import Lost, journal

SQLITE = (".db", ".sqlite", ".sqlite3")
HEARTBEAT, SILENCE = 30, 120  # seconds between two signs of life of a trial on a server, and after which it counts as dead
DRIVERS = {"psycopg": "psycopg[binary]", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient", "cx_Oracle": "oracledb"}
OTHERS = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
PARTS = ("study", "trial", "samplers", "pruners", "_gp")  # of Optuna, that log
SCHEMES = ("sqlite", "postgresql", "mysql", "mariadb", "mssql", "oracle")


def opened(storage: Any, retried: Any = None) -> BaseStorage:
    """The storage of a path, a URL, None (memory) or of Optuna. `retried(study, trial)` is told of trials that died."""
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        raise ParameterTypeError(f"storage is a path, a URL or a storage of Optuna; got {format_value(storage)}.")
    text = os.fspath(storage)
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(f"storage is a path, a URL or a storage of Optuna; got {format_value(storage)}.")
    if "://" in text:
        return _database(text, retried)
    if text.lower().endswith(SQLITE):
        return _database(f"sqlite:///{text}", retried)
    return journal(text)


def place_of(storage: Any) -> Any:
    """A storage as another process can open it."""
    return os.path.abspath(storage) if isinstance(storage, str | os.PathLike) and "://" not in str(storage) else storage


def told(storage: Any) -> str:
    """Which storage it is, for messages: without a password."""
    text = str(storage) if isinstance(storage, str | os.PathLike) else type(storage).__name__
    head, at, tail = text.rpartition("@")
    user, colon, _ = head.partition("://")[2].partition(":")
    return format_value(f"{head.partition('://')[0]}://{user}:***@{tail}" if at and colon and "://" in head else text, 200)


def _database(url: str, retried: Any) -> Database:
    """A database; on a server trials give signs of life, by which those that died elsewhere are found."""
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme not in SCHEMES:
        raise ParameterError(
            f"storage is a path or the URL of a database ({', '.join(SCHEMES)}); got {told(url)}. A path is a journal file."
        )
    single = scheme == "sqlite"
    signs = {} if single else {
        "heartbeat_interval": HEARTBEAT, "grace_period": SILENCE, "heartbeat_stale_trial_callback": retried
    }  # fmt: skip
    if single and (folder := os.path.dirname(url.partition(":///")[2])) and not os.path.isdir(folder):
        raise ParameterError(f"storage lies in a folder that exists; that of {told(url)} does not. Make it first.")
    options: dict[str, Any] = {"connect_args": {"timeout": 60}} if single else {"pool_pre_ping": True}
    try:
        if single and url.partition(":///")[2] not in ("", ":memory:"):
            from sqlalchemy.pool import NullPool

            options["poolclass"] = NullPool  # a file is closed after each transaction, at 0.1 ms
        with quiet():
            return _patiently(url, options, signs)
    except ImportError as error:
        raise DependencyError(f"storage={told(url)} needs {_driver(error, scheme)}") from error
    except Exception as error:  # of SQLAlchemy, of the driver, of Optuna: all say that it cannot be opened
        raise ParameterError(f"storage={told(url)} cannot be opened: {_first_line(error)}") from error


def _driver(error: BaseException, scheme: str) -> str:
    """Which package is missing, and how it comes: Optuna's own words do not say."""
    inner: BaseException | None = error
    while inner is not None and (not isinstance(inner, ImportError) or not inner.name):
        inner = inner.__cause__ or inner.__context__
    if inner is None:
        return f"a driver of {scheme}: {_first_line(error)}"
    package = DRIVERS.get(inner.name or "", inner.name)
    other = OTHERS.get(scheme)
    also = f" Or name the driver you have, as in {other}://." if other else ""
    return f"the driver {inner.name}, which is not installed: pip install '{package}'.{also}"


def _patiently(url: str, options: dict[str, Any], signs: dict[str, Any]) -> Database:
    """Several processes may set up the tables of a fresh database at once: who comes second tries again."""
    for wait in (0.1, 0.3, 1.0, 3.0):
        try:
            return Database(url, engine_kwargs=options, **signs)
        except ImportError:
            raise
        except Exception as error:
            if not any(word in str(error).lower() for word in ("exists", "locked", "unique", "duplicate")):
                raise
            time.sleep(wait)
    return Database(url, engine_kwargs=options, **signs)


def _first_line(error: BaseException) -> str:
    return format_value(str(error).strip().partition("\n")[0] or type(error).__name__, 300)


def lost(storage: Any, error: BaseException, best: str) -> DeepForecastError:
    """What to raise where a search cannot go on: its storage can no longer be read or written, or its sampler fails."""
    root = _root(error)
    kept = isinstance(root, OSError | optuna.exceptions.StorageInternalError) or type(root).__module__.startswith("sqlalchemy")
    where, words = told(storage), said(root)
    if kept:
        return SaveError(f"A study is kept in its storage; {where} can no longer be read or written ({words}). {best}")
    return TrainingError(f"A search asks its sampler and its storage ({where}) for each trial; one failed: {words}. {best}")


def said(error: BaseException) -> str:
    """What went wrong with a storage, without Optuna's words about it, which tell less."""
    root = _root(error)
    kind = "" if isinstance(root, optuna.exceptions.StorageInternalError) else f"{type(root).__name__}: "
    return kind + _first_line(root)


def _root(error: BaseException) -> BaseException:
    """What it came from."""
    vague = AssertionError | UnboundLocalError | optuna.exceptions.StorageInternalError
    while isinstance(error, vague) and not isinstance(error, Lost) and error.__context__ is not None:
        error = error.__context__
    return error


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna says nothing of its own but errors, and why a lock was taken over; its log level is as before afterwards.

    What is used of it that it calls experimental has not changed for years: TPE by groups of conditional parameters (since
    2.8), signs of life in databases (2.9), Sobol (3.0), names of metrics (3.2), the Wilcoxon pruner (3.6).
    """
    wanted = {"optuna": logging.WARNING} | dict.fromkeys(map("optuna.{}".format, PARTS), logging.ERROR + 1)
    loggers = {logging.getLogger(name): level for name, level in wanted.items()}
    # Inside another block all is set: to set a level makes every logger of the process forget what it knows, milliseconds each.
    before = {one: one.level for one, level in loggers.items() if one.level != level}
    for one in before:
        one.setLevel(loggers[one])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        for one, level in before.items():
            one.setLevel(level)
