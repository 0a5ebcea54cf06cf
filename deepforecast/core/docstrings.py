"""Generates the Parameters section of model docstrings, in numpydoc style, from `param` declarations."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable
from textwrap import fill
from typing import Any

from deepforecast.core.params import Param, declared_params
from deepforecast.core.type_checks import NONE_TYPE, union_members

WIDTH = 100
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$|^>>> ", re.MULTILINE)  # the header of a section, or an example


def with_parameters(cls: type) -> str:
    """The docstring of a class with its parameters inserted before the first section or example.

    `horizon` comes first, then the parameters of the class itself, then those of its bases;
    parameters with a group are listed under "Other Parameters".
    """
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    if not text or "Parameters\n---" in text:
        return text
    params = declared_params(cls)
    names = [name for base in cls.__mro__ for name in vars(base).get("_own_params", ())]
    ordered = [params[name] for name in dict.fromkeys(["horizon", *names]) if name in params]
    sections = [
        _section("Parameters", (param for param in ordered if not param.group)),
        _section("Other Parameters", (param for param in ordered if param.group)),
    ]
    match = SECTION.search(text)
    end = match.start() if match else len(text)
    examples = ["Examples\n--------\n" + text[end:]] if match and not match[1] else [text[end:]]
    return "\n\n".join(section.strip("\n") for section in (text[:end], *sections, *examples) if section.strip()) + "\n"


def describe_type(param: Param) -> str:
    """Type, range and default of a parameter, as numpydoc writes them.

    >>> from deepforecast import LSTM
    >>> describe_type(declared_params(LSTM)["dropout"])
    'float in [0, 1), default 0.0'
    """
    members = [member for member in union_members(param.annotation) if member is not NONE_TYPE]
    words = [_name(member, _interval(param)) for member in members]
    if param.required:
        return " or ".join(words)
    if param.default is None:
        return f"{' or '.join(words)}, optional"
    if NONE_TYPE in union_members(param.annotation):
        words.append("None")
    return f"{' or '.join(words)}, default {_literal(param.default)}"


def _section(title: str, params: Iterable[Param]) -> str:
    entries = [f"{param.name} : {describe_type(param)}\n{_indented(param.help)}" for param in params]
    return "\n".join([title, "-" * len(title), *entries]) if entries else ""


def _indented(text: str) -> str:
    sentence = text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
    return fill(sentence, WIDTH - 8, initial_indent="    ", subsequent_indent="    ")


def _interval(param: Param) -> str:
    """The bounds of a parameter as text to follow its type: " in [0, 1)", " >= 1", " < 1" or ""."""
    low = f"[{param.at_least}" if param.at_least is not None else f"({param.above}" if param.above is not None else ""
    high = f"{param.at_most}]" if param.at_most is not None else f"{param.below})" if param.below is not None else ""
    if low and high:
        return f" in {low}, {high}"
    if low:
        return f" {'>=' if low.startswith('[') else '>'} {low[1:]}"
    return f" {'<=' if high.endswith(']') else '<'} {high[:-1]}" if high else ""


def _name(member: Any, interval: str) -> str:
    """The name of a type as numpydoc writes it; `interval` follows the names of numeric types."""
    origin, inner = typing.get_origin(member) or member, typing.get_args(member)
    if origin is typing.Literal:
        values = ", ".join(map(_literal, inner))
        return f"{{{values}}}" if len(inner) > 1 else values
    if origin in (int, float):
        return str(origin.__name__) + interval
    if inner:
        members = dict.fromkeys(_name(argument, "") for arg in inner if arg is not Ellipsis for argument in union_members(arg))
        return f"{origin.__name__.lower()} of {' or '.join(members)}{interval}"
    return "None" if member is NONE_TYPE else getattr(origin, "__name__", str(origin)).replace("Any", "object")


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
