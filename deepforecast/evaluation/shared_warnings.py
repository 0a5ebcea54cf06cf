"""What several models have to say of the same data: said once, with all their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from deepforecast.errors import CollectedWarnings, collect_warnings, format_list, warn

Messages = list[tuple[str, type[UserWarning]]]


@contextmanager
def collect_messages() -> Iterator[Messages]:
    """What is said inside, filled in at the end and plain enough to travel between processes."""
    collected: CollectedWarnings = {}
    messages: Messages = []
    with collect_warnings(collected):
        yield messages
    messages.extend(collected.values())


def warn_together(names: Sequence[str], messages_by_model: Sequence[Messages]) -> None:
    """Say what each model said; of several that said the same, each beginning with its own name, the first in full."""
    models_by_message: dict[tuple[str, type[UserWarning]], list[str]] = {}
    first_messages: dict[tuple[str, type[UserWarning]], str] = {}
    for name, model_messages in zip(names, messages_by_model, strict=True):
        for message, category in model_messages:
            key = (message.removeprefix(name), category)
            models_by_message.setdefault(key, []).append(name)
            first_messages.setdefault(key, message)
    for key, message in first_messages.items():
        other_models = models_by_message[key][1:] if message != key[0] else []
        warn(f"{message} The same holds for {format_list(other_models, max_shown=9)}." if other_models else message, key[1])
