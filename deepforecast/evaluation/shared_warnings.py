"""Merge equal warnings of several models into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from deepforecast.errors import CollectedWarnings, collect_warnings, format_list, warn

Messages = list[tuple[str, type[UserWarning]]]


@contextmanager
def collect_messages() -> Iterator[Messages]:
    """Collect the warnings of the block in a picklable list, which is filled at its end."""
    collected: CollectedWarnings = {}
    messages: Messages = []
    with collect_warnings(collected):
        yield messages
    messages.extend(collected.values())


def warn_together(names: Sequence[str], messages_by_model: Sequence[Messages]) -> None:
    """Issue the warnings of all models.

    Of warnings that differ only in the model name they begin with, only the first is issued, followed by
    the names of the other models.
    """
    models_by_message: dict[tuple[str, type[UserWarning]], list[str]] = {}
    first_messages: dict[tuple[str, type[UserWarning]], str] = {}
    for name, model_messages in zip(names, messages_by_model, strict=True):
        for message, category in model_messages:
            nameless = (message.removeprefix(name), category)
            models_by_message.setdefault(nameless, []).append(name)
            first_messages.setdefault(nameless, message)
    for nameless, message in first_messages.items():
        other_models = models_by_message[nameless][1:] if message != nameless[0] else []
        ending = f" The same holds for {format_list(other_models, max_shown=9)}." if other_models else ""
        warn(f"{message}{ending}", nameless[1])
