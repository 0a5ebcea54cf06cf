"""Database storage of a study that writes all reports of a trial in one transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

MAX_READ_AGE = 0.1  # seconds for which trials read from the database are cached


@dataclass
class UnwrittenReports:
    """Reports of a running trial that are not in the database yet."""

    params: dict[str, tuple[float, BaseDistribution, BaseDistribution | None]] = field(default_factory=dict)
    user_attrs: dict[str, Any] = field(default_factory=dict)
    system_attrs: dict[str, Any] = field(default_factory=dict)
    intermediate_values: dict[int, float] = field(default_factory=dict)


class Database(RDBStorage):
    """RDBStorage that buffers the reports of a trial until `flush` or the end of the trial.

    Optuna commits each parameter, attribute and intermediate value separately, and each commit of
    SQLite waits for the disk. Other processes see the reports after `flush` or the end of the
    trial.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self.scoped_session: Any = _Sessions(self.scoped_session)
        self._unwritten: dict[int, UnwrittenReports] = {}
        self._last_read: tuple[float, Any, list[FrozenTrial]] | None = None  # time, query, trials

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.scoped_session = _Sessions(self.scoped_session)

    def _reports_of(self, trial_id: int) -> UnwrittenReports:
        return self._unwritten.setdefault(trial_id, UnwrittenReports())

    def _set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
        previous_distribution: BaseDistribution | None,
    ) -> None:
        self._reports_of(trial_id).params[param_name] = param_value_internal, distribution, previous_distribution

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Keep it until `flush`."""
        self._reports_of(trial_id).user_attrs[key] = value

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Keep it until `flush`."""
        self._reports_of(trial_id).system_attrs[key] = value

    def set_trial_intermediate_value(self, trial_id: int, step: int, intermediate_value: float) -> None:
        """Keep it until `flush`."""
        self._reports_of(trial_id).intermediate_values[step] = intermediate_value

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Write the state, the values and all reports of the trial in one transaction."""
        self._last_read = None
        if trial_id not in self._unwritten:
            return super().set_trial_state_values(trial_id, state, values)
        with self._transaction():
            self._write(trial_id)
            return super().set_trial_state_values(trial_id, state, values)

    def flush(self) -> None:
        """Write all buffered reports in one transaction."""
        if self._unwritten:
            self._last_read = None
            with self._transaction():
                for trial_id in list(self._unwritten):
                    self._write(trial_id)

    def _create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> FrozenTrial:
        self._last_read = None
        return super()._create_new_trial(study_id, template_trial)

    def _get_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        included_trial_ids: set[int],
        trial_id_greater_than: int,
    ) -> list[FrozenTrial]:
        """Trials of all processes, cached for `MAX_READ_AGE` or until a write of this process.

        Optuna, its samplers and pruners read them about a dozen times per trial.
        """
        query = (study_id, states, frozenset(included_trial_ids), trial_id_greater_than)
        if self._last_read is None or self._last_read[1] != query or time.monotonic() - self._last_read[0] > MAX_READ_AGE:
            trials = super()._get_trials(study_id, states, included_trial_ids, trial_id_greater_than)
            self._last_read = time.monotonic(), query, trials
        return self._last_read[2]

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """The trial including buffered reports."""
        trial = super().get_trial(trial_id)
        unwritten = self._unwritten.get(trial_id)
        if unwritten is not None and not trial.state.is_finished():
            for name, (internal_value, distribution, _) in unwritten.params.items():
                trial.params[name] = distribution.to_external_repr(internal_value)
                trial.distributions[name] = distribution
            trial.user_attrs.update(unwritten.user_attrs)
            trial.system_attrs.update(unwritten.system_attrs)
            trial.intermediate_values.update(unwritten.intermediate_values)
        return trial

    def get_trial_user_attrs(self, trial_id: int) -> dict[str, Any]:
        """User attributes including buffered ones."""
        unwritten = self._unwritten.get(trial_id)
        return super().get_trial_user_attrs(trial_id) | (unwritten.user_attrs if unwritten else {})

    def get_trial_system_attrs(self, trial_id: int) -> dict[str, Any]:
        """System attributes including buffered ones."""
        unwritten = self._unwritten.get(trial_id)
        return super().get_trial_system_attrs(trial_id) | (unwritten.system_attrs if unwritten else {})

    def _write(self, trial_id: int) -> None:
        """Write the buffered reports of a trial with the methods of Optuna, and empty the buffer."""
        unwritten = self._unwritten.pop(trial_id)
        for name, param in unwritten.params.items():
            super()._set_trial_param(trial_id, name, *param)
        for name, value in unwritten.user_attrs.items():
            super().set_trial_user_attr(trial_id, name, value)
        for name, value in unwritten.system_attrs.items():
            super().set_trial_system_attr(trial_id, name, value)
        for step, intermediate_value in unwritten.intermediate_values.items():
            super().set_trial_intermediate_value(trial_id, step, intermediate_value)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the calls of the block in one session that is committed at the end."""
        from sqlalchemy.exc import SQLAlchemyError

        with self.scoped_session.shared() as session:
            try:
                yield
                session.commit_all()
            except SQLAlchemyError as error:
                raise StorageInternalError("The reports of a trial cannot be written to the database.") from error


class _Sessions:
    """The session registry of Optuna; within `shared` all calls of a thread get the same
    session."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        self._thread_local = threading.local()

    def __call__(self) -> Any:
        return getattr(self._thread_local, "session", None) or self._registry()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    @contextmanager
    def shared(self) -> Iterator[_SharedSession]:
        """One session for all calls of this thread in the block; the caller commits it by `commit_all`."""
        session = self._thread_local.session = _SharedSession(self._registry())
        try:
            yield session
        except BaseException:
            session.rollback()
            raise
        finally:
            self._thread_local.session = None
            session.close_all()


class _SharedSession:
    """A session that calls neither commit nor close."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._rolled_back = False
        self.close_all: Callable[[], None] = session.close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def commit(self) -> None:
        self._session.flush()

    def rollback(self) -> None:
        self._rolled_back = True
        self._session.rollback()

    def close(self) -> None:
        """Keep the session open for other calls."""

    def commit_all(self) -> None:
        if self._rolled_back:  # by a call that ignores errors: earlier writes would be lost
            raise StorageInternalError("Two processes cannot write the same report of a trial.")
        self._session.commit()


def database_of(study: optuna.Study) -> Database | None:
    """The `Database` of a study, None for other storages."""
    backend = getattr(study._storage, "_backend", None)
    return backend if isinstance(backend, Database) else None
