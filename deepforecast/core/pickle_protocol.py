"""How models are copied, pickled and unpickled: in a forked process on one thread."""

from __future__ import annotations

from typing import Any, SupportsIndex

from deepforecast.core.threads import stay_on_one_thread_if_forked


class PickleProtocol:
    """Base of models whose boosters and networks pickle and copy may read or rebuild in a forked process.

    Both do so after the calls below and before the model is whole, so that the number of threads cannot be restored.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        stay_on_one_thread_if_forked()
        return _new_instance, (type(self),), self.__getstate__()


def _new_instance(cls: type[PickleProtocol]) -> PickleProtocol:
    """A model whose parameters and state are set next."""
    stay_on_one_thread_if_forked()
    return cls.__new__(cls)
