"""Copying and pickling of models, on a single thread in forked processes."""

from __future__ import annotations

from typing import Any, SupportsIndex

from deepforecast.core.threads import stay_on_one_thread_if_forked


class PickleProtocol:
    """Mixin that makes copy and pickle safe in a forked process, where OpenMP must not use more than one thread.

    Boosters and networks are read and created after these calls return, so the number of threads
    cannot be restored.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        stay_on_one_thread_if_forked()
        return _new_instance, (type(self),), self.__getstate__()


def _new_instance(cls: type[PickleProtocol]) -> PickleProtocol:
    """A model without parameters and state, which pickle sets next."""
    stay_on_one_thread_if_forked()
    return cls.__new__(cls)
