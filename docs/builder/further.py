"""What the course uses of the rooms beyond the names of `deepforecast`: read from the imports of its scripts, on a page."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import deepforecast
from builder.course import scripts
from builder.docstrings import markdown
from builder.entries import entry
from builder.page import Page
from builder.reference import GROUPS

PATH = "reference/further.md"
TOLD = {group.module for group in GROUPS}  # rooms with a page of their own
ABOUT = """# Further functions

Functions and classes of single rooms that the [course](../tutorials/index.md) uses, by the module they are imported from.
"""


def page(taken: Mapping[str, str]) -> Page:
    """Everything imported from rooms that has no other place."""
    parts = []
    for module, things in _found(frozenset(taken)).items():
        parts.append(f"## {_short(module)}\n\n{markdown(import_module(module).__doc__)}")
        parts += [entry(f"{_short(module)}.{name}", thing, 3, name) for name, thing in things.items()]
    return Page(PATH, "Further functions", "\n\n".join([ABOUT, *parts]) + "\n")


def places(taken: Mapping[str, str]) -> dict[str, str]:
    """Where each of them is told, by its name with its module or with the last part of that."""
    names = [f"{_short(module)}.{name}" for module, things in _found(frozenset(taken)).items() for name in things]
    return {one: f"{PATH}#{name}" for name in names for one in (name, ".".join(name.split(".")[-2:]))}


@functools.cache
def _found(taken: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Module -> name -> function or class; of a module that is imported itself all its public functions."""
    found: dict[str, dict[str, Any]] = {}
    for module, name in sorted(set(_imports())):
        room = import_module(module)
        thing = getattr(room, name) if hasattr(room, name) else import_module(f"{module}.{name}")
        if isinstance(thing, ModuleType):
            functions = {
                key: one for key, one in vars(thing).items() if inspect.isfunction(one) and one.__module__ == thing.__name__
            }
            found[thing.__name__] = {key: one for key, one in functions.items() if not key.startswith("_")}
        elif callable(thing) and not _told(module, name, thing, taken):
            found.setdefault(module, {})[name] = thing
    return found


def _told(module: str, name: str, thing: Any, taken: frozenset[str]) -> bool:
    """Whether another page tells it: that of its room, or that of the same thing in `deepforecast`."""
    return module in TOLD or f"{_short(module)}.{name}" in taken or getattr(deepforecast, name, None) is thing


def _imports() -> Iterator[tuple[str, str]]:
    """What the scripts import from within the package."""
    for script in scripts():
        for node in ast.walk(ast.parse(script.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deepforecast."):
                yield from ((str(node.module), alias.name) for alias in node.names)


def _short(module: str) -> str:
    return module.removeprefix("deepforecast.")
