"""What several models have to say of the same data: said once, with all their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from deepforecast.errors import CollectedWarnings, collect_warnings, format_list, warn

Said = list[tuple[str, type[UserWarning]]]


@contextmanager
def heard() -> Iterator[Said]:
    """What is said inside, filled in at the end and plain enough to travel between processes."""
    kept: CollectedWarnings = {}
    said: Said = []
    with collect_warnings(kept):
        yield said
    said.extend(kept.values())


def say_together(names: Sequence[str], every: Sequence[Said]) -> None:
    """Say what each model said; of several that said the same, each beginning with its own name, the first in full."""
    speakers: dict[tuple[str, type[UserWarning]], list[str]] = {}
    first: dict[tuple[str, type[UserWarning]], str] = {}
    for name, said in zip(names, every, strict=True):
        for message, category in said:
            key = (message.removeprefix(name), category)
            speakers.setdefault(key, []).append(name)
            first.setdefault(key, message)
    for key, message in first.items():
        others = speakers[key][1:] if message != key[0] else []
        warn(f"{message} The same holds for {format_list(others, max_shown=9)}." if others else message, key[1])
