"""Entries of the reference: functions, classes, methods and properties."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

from builder.docstrings import markdown, signature
from builder.page import BuildError


def entry(name: str, thing: Any, level: int = 2, heading: str = "") -> str:
    """Return the entry of a public object: heading with anchor, signature and docstring.

    Parameters
    ----------
    name : str
        Public name, which becomes the anchor.
    thing : object
        Function, class, method or property. A class is followed by its public members.
    level : int, default 2
        Level of the heading.
    heading : str, optional
        Text of the heading. Defaults to `name`.

    Raises
    ------
    BuildError
        If the object has no docstring.
    """
    docstring = doc_of(thing)
    if not docstring.strip():
        raise BuildError(f"{name} is public and has no docstring, but must have one. Add it to the source.")
    signature_code = _signature_code(name, thing)
    sections = [
        f"{'#' * level} {heading or name} {{ #{name} }}",
        *([f"```python\n{signature_code}\n```"] if signature_code else []),
    ]
    sections.append(markdown(docstring, _documented_names(thing)))
    if inspect.isclass(thing) and not issubclass(thing, BaseException | Warning):
        sections += [entry(f"{name}.{member}", inspect.getattr_static(thing, member), level + 1) for member in members(thing)]
    return "\n\n".join(sections)


def doc_of(thing: Any) -> str:
    """Return the docstring of an object; the generated docstrings of dataclasses count as none."""
    docstring = (inspect.getdoc(_function(thing)) or "") if not inspect.isclass(thing) else (thing.__doc__ or "")
    is_generated = dataclasses.is_dataclass(thing) and docstring.startswith(f"{getattr(thing, '__name__', '')}(")
    return "" if is_generated else inspect.cleandoc(docstring)


def members(cls: type) -> list[str]:
    """Return the public methods and properties defined by classes of this library, base classes first."""
    names: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == cls.__module__.split(".")[0]:
            names |= {
                name: None for name, member in vars(base).items() if not name.startswith("_") and _is_callable_member(member)
            }
    return list(names)


def _is_callable_member(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, classmethod | staticmethod | property | functools.cached_property)


def _function(thing: Any) -> Any:
    if isinstance(thing, property):
        return thing.fget
    return thing.func if isinstance(thing, functools.cached_property) else inspect.unwrap(getattr(thing, "__func__", thing))


def _documented_names(thing: Any) -> list[str]:
    """Return the names that a docstring may document: parameters, and the fields of a class."""
    bases = thing.__mro__ if inspect.isclass(thing) else ()
    fields = [name for base in bases for name in vars(base).get("__annotations__", {})]
    try:
        return [*inspect.signature(thing if bases else _function(thing)).parameters, *fields]
    except (TypeError, ValueError):  # builtins have no signature
        return fields


def _signature_code(name: str, thing: Any) -> str:
    if isinstance(thing, property | functools.cached_property):
        return f"{name}  # a property"
    if inspect.isclass(thing):
        if issubclass(thing, BaseException):
            return ""
        return signature(name, thing) if _has_constructor(thing) else ""
    function: Callable[..., Any] = _function(thing)
    return signature(name, function) if callable(function) else ""


def _has_constructor(cls: type) -> bool:
    """Whether to show the signature of a class: not for protocols, nor for models, whose parameters have a table."""
    if getattr(cls, "_is_protocol", False) or hasattr(cls, "_own_params"):
        return False
    return any("__init__" in vars(base) for base in cls.__mro__[:-1])
