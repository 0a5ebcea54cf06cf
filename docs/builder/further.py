"""The page of functions outside of the top-level package that the tutorials import."""

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
MODULES_WITH_PAGES = {group.module for group in GROUPS}
ABOUT = """# Further functions

Functions and classes of subpackages that the [course](../tutorials/index.md) uses, by module.
"""


def page(documented: Mapping[str, str]) -> Page:
    """Return the page with all imported functions and classes that have no other page."""
    sections = []
    for module, things in _imported_objects(frozenset(documented)).items():
        sections.append(f"## {_short_name(module)}\n\n{markdown(import_module(module).__doc__)}")
        sections += [entry(f"{_short_name(module)}.{name}", thing, 3, name) for name, thing in things.items()]
    return Page(PATH, "Further functions", "\n\n".join([ABOUT, *sections]) + "\n")


def places(documented: Mapping[str, str]) -> dict[str, str]:
    """Return page and anchor of these objects by name, with the full module path or only its last part."""
    names = [
        f"{_short_name(module)}.{name}"
        for module, things in _imported_objects(frozenset(documented)).items()
        for name in things
    ]
    return {key: f"{PATH}#{name}" for name in names for key in (name, ".".join(name.split(".")[-2:]))}


@functools.cache
def _imported_objects(documented: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Return functions and classes by module and name; all public functions of an imported module."""
    objects_by_module: dict[str, dict[str, Any]] = {}
    for module, name in sorted(set(_imported_names())):
        package = import_module(module)
        thing = getattr(package, name) if hasattr(package, name) else import_module(f"{module}.{name}")
        if isinstance(thing, ModuleType):
            functions = {
                key: function
                for key, function in vars(thing).items()
                if inspect.isfunction(function) and function.__module__ == thing.__name__
            }
            objects_by_module[thing.__name__] = {
                key: function for key, function in functions.items() if not key.startswith("_")
            }
        elif callable(thing) and not _has_page(module, name, thing, documented):
            objects_by_module.setdefault(module, {})[name] = thing
    return objects_by_module


def _has_page(module: str, name: str, thing: Any, documented: frozenset[str]) -> bool:
    """Whether another page documents the object: that of its module, or that of the top-level package."""
    return (
        module in MODULES_WITH_PAGES
        or f"{_short_name(module)}.{name}" in documented
        or getattr(deepforecast, name, None) is thing
    )


def _imported_names() -> Iterator[tuple[str, str]]:
    """Yield module and name of everything the tutorials import from subpackages."""
    for script in scripts():
        for node in ast.walk(ast.parse(script.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deepforecast."):
                yield from ((str(node.module), alias.name) for alias in node.names)


def _short_name(module: str) -> str:
    return module.removeprefix("deepforecast.")
