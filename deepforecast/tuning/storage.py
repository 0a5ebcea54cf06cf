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
from deepforecast.tuning.journal import LostStorageError, open_journal

SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
HEARTBEAT_SECONDS, GRACE_SECONDS = 30, 120  # seconds between two signs of life of a trial on a server, and after which it counts as dead
DRIVER_PACKAGES = {"psycopg": "psycopg[binary]", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient", "cx_Oracle": "oracledb"}
ALTERNATIVE_DRIVERS = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
LOGGER_NAMES = ("study", "trial", "samplers", "pruners", "_gp")  # of Optuna, that log
SCHEMES = ("sqlite", "postgresql", "mysql", "mariadb", "mssql", "oracle")


def open_storage(storage: Any, on_dead_trial: Any = None) -> BaseStorage:
    """The storage of a path, a URL, None (memory) or of Optuna. `on_dead_trial(study, trial)` is told of trials that died."""
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
        return _open_database(text, on_dead_trial)
    if text.lower().endswith(SQLITE_SUFFIXES):
        return _open_database(f"sqlite:///{text}", on_dead_trial)
    return open_journal(text)


def shareable_location(storage: Any) -> Any:
    """A storage as another process can open it."""
    return os.path.abspath(storage) if isinstance(storage, str | os.PathLike) and "://" not in str(storage) else storage


def describe_storage(storage: Any) -> str:
    """Which storage it is, for messages: without a password."""
    text = str(storage) if isinstance(storage, str | os.PathLike) else type(storage).__name__
    head, separator, host = text.rpartition("@")
    user, colon, _ = head.partition("://")[2].partition(":")
    return format_value(f"{head.partition('://')[0]}://{user}:***@{host}" if separator and colon and "://" in head else text, 200)


def _open_database(url: str, on_dead_trial: Any) -> Database:
    """A database; on a server trials give signs of life, by which those that died elsewhere are found."""
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme not in SCHEMES:
        raise ParameterError(
            f"storage is a path or the URL of a database ({', '.join(SCHEMES)}); got {describe_storage(url)}. A path is a journal file."
        )
    is_sqlite = scheme == "sqlite"
    heartbeat_options = {} if is_sqlite else {
        "heartbeat_interval": HEARTBEAT_SECONDS, "grace_period": GRACE_SECONDS, "heartbeat_stale_trial_callback": on_dead_trial
    }  # fmt: skip
    if is_sqlite and (folder := os.path.dirname(url.partition(":///")[2])) and not os.path.isdir(folder):
        raise ParameterError(f"storage lies in a folder that exists; that of {describe_storage(url)} does not. Make it first.")
    options: dict[str, Any] = {"connect_args": {"timeout": 60}} if is_sqlite else {"pool_pre_ping": True}
    try:
        if is_sqlite and url.partition(":///")[2] not in ("", ":memory:"):
            from sqlalchemy.pool import NullPool

            options["poolclass"] = NullPool  # a file is closed after each transaction, at 0.1 ms
        with silence_optuna():
            return _open_with_retries(url, options, heartbeat_options)
    except ImportError as error:
        raise DependencyError(f"storage={describe_storage(url)} needs {_driver_hint(error, scheme)}") from error
    except Exception as error:  # of SQLAlchemy, of the driver, of Optuna: all say that it cannot be opened
        raise ParameterError(f"storage={describe_storage(url)} cannot be opened: {_first_line(error)}") from error


def _driver_hint(error: BaseException, scheme: str) -> str:
    """Which package is missing, and how it comes: Optuna's own words do not say."""
    import_error: BaseException | None = error
    while import_error is not None and (not isinstance(import_error, ImportError) or not import_error.name):
        import_error = import_error.__cause__ or import_error.__context__
    if import_error is None:
        return f"a driver of {scheme}: {_first_line(error)}"
    package = DRIVER_PACKAGES.get(import_error.name or "", import_error.name)
    alternative = ALTERNATIVE_DRIVERS.get(scheme)
    hint = f" Or name the driver you have, as in {alternative}://." if alternative else ""
    return f"the driver {import_error.name}, which is not installed: pip install '{package}'.{hint}"


def _open_with_retries(url: str, options: dict[str, Any], heartbeat_options: dict[str, Any]) -> Database:
    """Several processes may set up the tables of a fresh database at once: who comes second tries again."""
    for wait in (0.1, 0.3, 1.0, 3.0):
        try:
            return Database(url, engine_kwargs=options, **heartbeat_options)
        except ImportError:
            raise
        except Exception as error:
            if not any(word in str(error).lower() for word in ("exists", "locked", "unique", "duplicate")):
                raise
            time.sleep(wait)
    return Database(url, engine_kwargs=options, **heartbeat_options)


def _first_line(error: BaseException) -> str:
    return format_value(str(error).strip().partition("\n")[0] or type(error).__name__, 300)


def storage_error(storage: Any, error: BaseException, best: str) -> DeepForecastError:
    """What to raise where a search cannot go on: its storage can no longer be read or written, or its sampler fails."""
    root_cause = _root_cause(error)
    is_storage_error = isinstance(root_cause, OSError | optuna.exceptions.StorageInternalError) or type(root_cause).__module__.startswith("sqlalchemy")
    location, message = describe_storage(storage), describe_error(root_cause)
    if is_storage_error:
        return SaveError(f"A study is kept in its storage; {location} can no longer be read or written ({message}). {best}")
    return TrainingError(f"A search asks its sampler and its storage ({location}) for each trial; one failed: {message}. {best}")


def describe_error(error: BaseException) -> str:
    """What went wrong with a storage, without Optuna's words about it, which tell less."""
    root_cause = _root_cause(error)
    prefix = "" if isinstance(root_cause, optuna.exceptions.StorageInternalError) else f"{type(root_cause).__name__}: "
    return prefix + _first_line(root_cause)


def _root_cause(error: BaseException) -> BaseException:
    """What it came from."""
    vague = AssertionError | UnboundLocalError | optuna.exceptions.StorageInternalError
    while isinstance(error, vague) and not isinstance(error, LostStorageError) and error.__context__ is not None:
        error = error.__context__
    return error


@contextmanager
def silence_optuna() -> Iterator[None]:
    """Optuna says nothing of its own but errors, and why a lock was taken over; its log level is as before afterwards.

    What is used of it that it calls experimental has not changed for years: TPE by groups of conditional parameters (since
    2.8), signs of life in databases (2.9), Sobol (3.0), names of metrics (3.2), the Wilcoxon pruner (3.6).
    """
    levels_by_name = {"optuna": logging.WARNING} | dict.fromkeys(map("optuna.{}".format, LOGGER_NAMES), logging.ERROR + 1)
    loggers = {logging.getLogger(name): level for name, level in levels_by_name.items()}
    # Inside another block all is set: to set a level makes every logger of the process forget what it knows, milliseconds each.
    previous_levels = {logger: logger.level for logger, level in loggers.items() if logger.level != level}
    for logger in previous_levels:
        logger.setLevel(loggers[logger])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        for logger, level in previous_levels.items():
            logger.setLevel(level)
