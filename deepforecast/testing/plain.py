"""A model as plain values (for JSON) or as text (its repr), and back: for checks, without running any text as code."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.testing.expect import RuleBroken

Classes = Mapping[str, type]


def classes_in(value: Any) -> dict[str, type]:
    """The classes, by name, of a model and of every object among its parameters."""
    found: dict[str, type] = {}
    held = value.get_params(deep=False).values() if hasattr(value, "get_params") else ()
    if isinstance(value, (list, tuple)):
        held = value
    elif isinstance(value, Mapping):
        held = value.values()
    for inner in held:
        found |= classes_in(inner)
    return found | ({type(value).__name__: type(value)} if hasattr(value, "get_params") else {})


def as_plain(value: Any) -> Any:
    """A value as JSON takes it; models and tuples under keys of their own."""
    if isinstance(value, Forecaster):
        return {"model": type(value).__name__, "parameters": {n: as_plain(v) for n, v in value.get_params(deep=False).items()}}
    if isinstance(value, tuple):
        return {"tuple": [as_plain(item) for item in value]}
    if isinstance(value, list):
        return [as_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": {name: as_plain(item) for name, item in value.items()}}
    return value


def from_plain(value: Any, classes: Classes) -> Any:
    """The value that `as_plain` was given."""
    if isinstance(value, list):
        return [from_plain(item, classes) for item in value]
    if not isinstance(value, dict):
        return value
    if "model" in value:
        return classes[value["model"]](**{name: from_plain(item, classes) for name, item in value["parameters"].items()})
    if "tuple" in value:
        return tuple(from_plain(item, classes) for item in value["tuple"])
    return {name: from_plain(item, classes) for name, item in value["mapping"].items()}


def evaluated(text: str, classes: Classes) -> Any:
    """The value of an expression made of literals and calls of known classes.

    >>> evaluated("[1, (2.5, None), {'a': dict(b=True)}]", {"dict": dict})
    [1, (2.5, None), {'a': {'b': True}}]
    """
    return _value(ast.parse(text, mode="eval").body, classes)


def _value(node: ast.expr, classes: Classes) -> Any:
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in classes:
            raise RuleBroken(f"{ast.unparse(node)} calls what is no class among the parameters")
        named = {word.arg: _value(word.value, classes) for word in node.keywords if word.arg is not None}
        return classes[node.func.id](*(_value(item, classes) for item in node.args), **named)
    if isinstance(node, ast.List | ast.Tuple):
        items = [_value(item, classes) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _value(item, classes) for key, item in pairs if key is not None}
    return ast.literal_eval(node)
