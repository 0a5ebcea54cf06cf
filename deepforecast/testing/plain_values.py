"""Conversion of models to plain values (JSON) or text (repr) and back, without executing code."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.errors import format_list
from deepforecast.testing.assertions import RuleBroken

Classes = Mapping[str, type]


def collect_classes(value: Any) -> dict[str, type]:
    """Return the classes, by name, of a model and of all objects among its parameters."""
    classes: dict[str, type] = {}
    members = value.get_params(deep=False).values() if hasattr(value, "get_params") else ()
    if isinstance(value, (list, tuple)):
        members = value
    elif isinstance(value, Mapping):
        members = value.values()
    for member in members:
        classes |= collect_classes(member)
    return classes | ({type(value).__name__: type(value)} if hasattr(value, "get_params") else {})


def to_plain(value: Any) -> Any:
    """Convert a value to JSON types; models, tuples and mappings become tagged dicts."""
    if isinstance(value, Forecaster):
        return {
            "model": type(value).__name__,
            "parameters": {
                parameter_name: to_plain(parameter) for parameter_name, parameter in value.get_params(deep=False).items()
            },
        }
    if isinstance(value, tuple):
        return {"tuple": [to_plain(element) for element in value]}
    if isinstance(value, list):
        return [to_plain(element) for element in value]
    if isinstance(value, Mapping):
        return {"mapping": {name: to_plain(element) for name, element in value.items()}}
    return value


def from_plain(value: Any, classes: Classes) -> Any:
    """Invert `to_plain`."""
    if isinstance(value, list):
        return [from_plain(element, classes) for element in value]
    if not isinstance(value, dict):
        return value
    if "model" in value:
        return classes[value["model"]](**{name: from_plain(element, classes) for name, element in value["parameters"].items()})
    if "tuple" in value:
        return tuple(from_plain(element, classes) for element in value["tuple"])
    return {name: from_plain(element, classes) for name, element in value["mapping"].items()}


def evaluate(text: str, classes: Classes) -> Any:
    """Evaluate an expression of literals and calls of the given classes.

    Examples
    --------
    >>> evaluate("[1, (2.5, None), {'a': dict(b=True)}]", {"dict": dict})
    [1, (2.5, None), {'a': {'b': True}}]
    """
    return _evaluate_node(ast.parse(text, mode="eval").body, classes)


def _evaluate_node(node: ast.expr, classes: Classes) -> Any:
    """Evaluate a node of the syntax tree; calls are allowed for `classes` only, everything else must be a literal."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in classes:
            raise RuleBroken(
                "the repr of a model can only call its own class and the classes of its parameters "
                f"({format_list(sorted(classes))}), got {ast.unparse(node)}"
            )
        keywords = {keyword.arg: _evaluate_node(keyword.value, classes) for keyword in node.keywords if keyword.arg is not None}
        return classes[node.func.id](*(_evaluate_node(element, classes) for element in node.args), **keywords)
    if isinstance(node, ast.List | ast.Tuple):
        elements = [_evaluate_node(element, classes) for element in node.elts]
        return elements if isinstance(node, ast.List) else tuple(elements)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _evaluate_node(element, classes) for key, element in pairs if key is not None}
    return ast.literal_eval(node)
