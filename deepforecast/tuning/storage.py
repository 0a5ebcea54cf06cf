"""Storage of a study: memory, a journal file, SQLite, or a database server."""

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
HEARTBEAT_SECONDS = 30  # seconds between heartbeats of a trial in a database
GRACE_SECONDS = 120  # seconds without a heartbeat after which a trial counts as dead
DRIVER_PACKAGES = {
    "psycopg": "psycopg[binary]",
    "psycopg2": "psycopg2-binary",
    "MySQLdb": "mysqlclient",
    "cx_Oracle": "oracledb",
}
ALTERNATIVE_DRIVERS = {"postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
LOGGER_NAMES = ("study", "trial", "samplers", "pruners", "_gp")  # loggers of Optuna
SCHEMES = ("sqlite", "postgresql", "mysql", "mariadb", "mssql", "oracle")


def open_storage(storage: Any, on_dead_trial: Any = None) -> BaseStorage:
    """Open the storage of a path, a URL or None (memory). `on_dead_trial(study, trial)` is called
    for dead trials."""
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        raise ParameterTypeError(
            f"`storage` must be a path, a URL or an Optuna storage, got {format_value(storage)}.",
            parameter="storage",
            value=storage,
        )
    location = os.fspath(storage)
    if not isinstance(location, str) or not location or "\0" in location:
        raise ParameterError(
            f"`storage` must be a non-empty str path without null characters, a URL or an Optuna storage, got "
            f"{format_value(storage)}.",
            hint="Pass for example 'study.log'.",
            parameter="storage",
            value=storage,
        )
    if "://" in location:
        return _open_database(location, on_dead_trial)
    if location.lower().endswith(SQLITE_SUFFIXES):
        return _open_database(f"sqlite:///{location}", on_dead_trial)
    return open_journal(location)


def shareable_location(storage: Any) -> Any:
    """A storage in a form that other processes can open."""
    return os.path.abspath(storage) if isinstance(storage, str | os.PathLike) and "://" not in str(storage) else storage


def describe_storage(storage: Any) -> str:
    """The storage for messages, without passwords."""
    location = str(storage) if isinstance(storage, str | os.PathLike) else type(storage).__name__
    head, separator, host = location.rpartition("@")
    user, colon, _ = head.partition("://")[2].partition(":")
    if separator and colon and "://" in head:  # scheme://user:password@host
        location = f"{head.partition('://')[0]}://{user}:***@{host}"
    return format_value(location, 200)


def _open_database(url: str, on_dead_trial: Any) -> Database:
    """Open a database; on servers heartbeats reveal trials that died on other machines."""
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme not in SCHEMES:
        raise ParameterError(
            f"`storage` must be a path or the URL of a database ({', '.join(SCHEMES)}), got {describe_storage(url)}.",
            hint="Pass a path to use a journal file.",
            parameter="storage",
        )
    is_sqlite = scheme == "sqlite"
    heartbeat_options = {} if is_sqlite else {
        "heartbeat_interval": HEARTBEAT_SECONDS, "grace_period": GRACE_SECONDS, "heartbeat_stale_trial_callback": on_dead_trial
    }  # fmt: skip
    if is_sqlite and (folder := os.path.dirname(url.partition(":///")[2])) and not os.path.isdir(folder):
        raise ParameterError(
            f"The folder of `storage` must exist, got {describe_storage(url)}.", hint="Create it first.", parameter="storage"
        )
    options: dict[str, Any] = {"connect_args": {"timeout": 60}} if is_sqlite else {"pool_pre_ping": True}
    try:
        if is_sqlite and url.partition(":///")[2] not in ("", ":memory:"):
            from sqlalchemy.pool import NullPool

            options["poolclass"] = NullPool  # closes the file after each transaction (0.1 ms)
        with silence_optuna():
            return _open_with_retries(url, options, heartbeat_options)
    except ImportError as error:
        raise DependencyError(
            f"storage={describe_storage(url)} cannot be opened without {_driver_hint(error, scheme)}"
        ) from error
    except Exception as error:  # of SQLAlchemy, the driver or Optuna
        raise ParameterError(
            f"storage={describe_storage(url)} cannot be opened: {_first_line(error)}", parameter="storage"
        ) from error


def _driver_hint(error: BaseException, scheme: str) -> str:
    """The missing driver and how to install it, which the message of Optuna does not mention."""
    import_error: BaseException | None = error
    while import_error is not None and (not isinstance(import_error, ImportError) or not import_error.name):
        import_error = import_error.__cause__ or import_error.__context__
    if import_error is None:
        return f"a driver of {scheme}: {_first_line(error)}"
    package = DRIVER_PACKAGES.get(import_error.name or "", import_error.name)
    alternative = ALTERNATIVE_DRIVERS.get(scheme)
    hint = f" Or use an installed driver, as in {alternative}://." if alternative else ""
    return f"the driver {import_error.name}, which is not installed: pip install '{package}'.{hint}"


def _open_with_retries(url: str, options: dict[str, Any], heartbeat_options: dict[str, Any]) -> Database:
    """Retry, because several processes may create the tables of a new database at the same time."""
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


def storage_error(storage: Any, error: BaseException, best_so_far: str) -> DeepForecastError:
    """The error to raise if the storage or the sampler fails during a search."""
    root_cause = _root_cause(error)
    is_storage_error = isinstance(root_cause, OSError | optuna.exceptions.StorageInternalError) or type(
        root_cause
    ).__module__.startswith("sqlalchemy")
    location = describe_storage(storage)
    message = describe_error(root_cause)
    if is_storage_error:
        return SaveError(f"The storage {location} can no longer be read or written ({message}). {best_so_far}")
    return TrainingError(
        f"The search cannot continue, because its sampler or its storage ({location}) failed with {message}. {best_so_far}"
    )


def describe_error(error: BaseException) -> str:
    """The root cause of a storage error, without the generic messages of Optuna."""
    root_cause = _root_cause(error)
    prefix = "" if isinstance(root_cause, optuna.exceptions.StorageInternalError) else f"{type(root_cause).__name__}: "
    return prefix + _first_line(root_cause)


def _root_cause(error: BaseException) -> BaseException:
    """The error that caused a generic error of Optuna, by following its context."""
    generic_errors = AssertionError | UnboundLocalError | optuna.exceptions.StorageInternalError
    while isinstance(error, generic_errors) and not isinstance(error, LostStorageError) and error.__context__ is not None:
        error = error.__context__
    return error


@contextmanager
def silence_optuna() -> Iterator[None]:
    """Silence the log of Optuna, except for warnings about locks, and its ExperimentalWarning.

    The experimental features used here are stable: grouped TPE (since 2.8), heartbeats (2.9), Sobol
    (3.0), metric names (3.2) and the Wilcoxon pruner (3.6).
    """
    levels_by_name = {"optuna": logging.WARNING} | dict.fromkeys(map("optuna.{}".format, LOGGER_NAMES), logging.ERROR + 1)
    loggers = {logging.getLogger(name): level for name, level in levels_by_name.items()}
    # setLevel clears the caches of all loggers (milliseconds), so it is skipped in nested blocks
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
