"""Merge equal warnings of several models into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from deepforecast.errors import CollectedWarning, CollectedWarnings, collect_warnings, format_list, warn

Messages = list[CollectedWarning]


@contextmanager
def collect_messages() -> Iterator[Messages]:
    """Collect the warnings of the block in a picklable list, which is filled at its end."""
    collected: CollectedWarnings = {}
    messages: Messages = []
    with collect_warnings(collected):
        yield messages
    messages.extend(collected.values())


def warn_together(messages_by_model: Sequence[Messages]) -> None:
    """Issue the warnings of all models.

    Of warnings that differ only in the model name they begin with, only the first is issued, followed by
    the names of the other models.
    """
    subjects: dict[tuple[str, type[UserWarning]], list[str]] = {}
    first_messages: dict[tuple[str, type[UserWarning]], str] = {}
    for model_messages in messages_by_model:
        for message, category, subject in model_messages:
            key = message.removeprefix(subject), category
            subjects.setdefault(key, []).append(subject)
            first_messages.setdefault(key, message)
    for key, message in first_messages.items():
        first, *others = subjects[key] if message != key[0] else [""]
        ending = f" The same holds for {format_list(others, max_shown=9)}." if others else ""
        warn(f"{message}{ending}", key[1], subject=first)
