"""Parsing of models: `naive2`, `SeasonalNaive:season_length=7,alias=Weekly`, `Conformal(Naive())`."""

from __future__ import annotations

import ast
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from deepforecast.core import registry
from deepforecast.errors import ParameterError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster


def find_model(name: str) -> type[Forecaster]:
    """Return the class of a model; case, dashes and underscores are ignored."""
    names = {_normalize(model_name): model_name for model_name in registry.names()}
    if _normalize(name) not in names:
        near = [names[match] for match in get_close_matches(_normalize(name), names, n=3, cutoff=0.5)]
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Available: {format_list(registry.names(), max_shown=60)}."
        raise ParameterError(
            f"The model must be a registered name, got {format_value(name)!r}.",
            hint=f"{hint} deepforecast models describes them.",
        )
    return registry.get(names[_normalize(name)])


def build_model(text: str) -> Forecaster:
    """Build a model from its name and parameters.

    Examples
    --------
    >>> build_model("seasonal-naive:season_length=7,alias=Weekly")
    SeasonalNaive(alias='Weekly', season_length=7)
    >>> build_model("Conformal(Naive(), horizon=3)")
    Conformal(horizon=3, model=Naive())
    """
    if "(" in text.partition(":")[0]:
        return _build_from_call(_parse_call(text), text)
    from deepforecast.cli.parameter_values import parse_value

    name, _, assignments = text.partition(":")
    cls = find_model(name)
    parameters = dict(_parse_pairs(assignments, text))
    _refuse_unknown(cls, parameters)
    return cls(**{key: parse_value(value, cls, key) for key, value in parameters.items()})


def parse_pair(text: str) -> tuple[str, str]:
    """Split `name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ParameterError(
            f"A parameter must be given as name=value, for example season_length=12, got '{format_value(text)}'."
        )
    return name.strip().replace("-", "_"), value.strip()


def _parse_pairs(text: str, full_text: str) -> list[tuple[str, str]]:
    """Split `a=1,b=2,3,c=x` into (a, 1), (b, "2,3") and (c, x); commas in brackets do not split."""
    pieces: list[str] = []
    depth = 0
    for piece in text.split(",") if text.strip() else []:
        if pieces and (depth or "=" not in piece):
            pieces[-1] += f",{piece}"
        else:
            pieces.append(piece)
        depth = sum(pieces[-1].count(sign) for sign in "([{") - sum(pieces[-1].count(sign) for sign in ")]}")
    pairs = [parse_pair(piece) for piece in pieces]
    duplicates = [name for position, (name, _) in enumerate(pairs) if name in dict(pairs[:position])]
    if duplicates:
        raise ParameterError(
            f"Each parameter must be given once; repeated in '{format_value(full_text)}': {format_list(duplicates)}.",
            hint="Drop the repetitions.",
        )
    return pairs


def _parse_call(text: str) -> ast.Call:
    """Parse `Name(...)` without evaluating it."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ParameterError(
            "A model must be given as Name, Name:parameter=value,... or Name(parameter=value, ...), got "
            f"{format_value(text)!r}."
        )
    return node


def _build_from_call(node: ast.Call, text: str) -> Forecaster:
    """The model of an expression such as `Theta(season_length=12)`; `text`: the whole argument, for messages."""
    cls = find_model(node.func.id if isinstance(node.func, ast.Name) else "")
    if any(keyword.arg is None for keyword in node.keywords):
        raise ParameterError(
            f"The parameters of a model cannot be given with **, got '{format_value(text)}'.", hint="Pass each as name=value."
        )
    return cls(
        *[_evaluate(argument, text) for argument in node.args], **{str(k.arg): _evaluate(k.value, text) for k in node.keywords}
    )


def _evaluate(node: ast.expr, text: str) -> Any:
    """Evaluate a literal, a name or a nested model."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _build_from_call(node, text)
    if isinstance(node, ast.Name):
        return find_model(node.id)() if _normalize(node.id) in map(_normalize, registry.names()) else node.id
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise ParameterError(
            "The parameters of a model must be Python literals or models, for example Theta(season_length=12), got "
            f"'{format_value(text)}'."
        ) from None


def _refuse_unknown(cls: type[Forecaster], parameters: dict[str, str]) -> None:
    from deepforecast.core.params import refuse_unknown

    refuse_unknown(cls, parameters)


def _normalize(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
