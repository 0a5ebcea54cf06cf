"""The declared parameters of a model as options: nothing about a model is written down twice."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from deepforecast.cli.model_names import pair
from deepforecast.cli.parser import Parser
from deepforecast.cli.values import is_list, is_mapping, is_model, kinds_of, value_of
from deepforecast.core.params import Param, declared_params, refuse_unknown
from deepforecast.errors import ParameterError, format_list

KEPT = "parameter."  # before the names of parameters among the values of a command line


def add_flags(parser: Parser, cls: type) -> None:
    """One option for each parameter that one can express, and `--set` for the others."""
    group = parser.add_argument_group(f"parameters of {cls.__name__}", (cls.__doc__ or "").partition("\n")[0].strip())
    by_set = {}
    for name, one in declared_params(cls).items():
        try:
            kinds = kinds_of(one.annotation)
            if str not in kinds and any(is_model(kind) or is_mapping(kind) for kind in kinds):
                raise argparse.ArgumentError(None, "has no flag")
            group.add_argument(f"--{name.replace('_', '-')}", dest=KEPT + name, **_form(one))
        except argparse.ArgumentError:  # or the command has an option of that name
            by_set[name] = one
    others = "; ".join(f"{name}: {described(one)}" for name, one in by_set.items())
    example = "horizon=12" if not by_set else f"{next(iter(by_set))}=..."
    group.add_argument(
        "--set", dest="set", metavar="NAME=VALUE", action="append", default=[],
        help=_escaped(f"any parameter by its name, e.g. {example}" + (f" ({others})" if others else "")),
    )  # fmt: skip
    parser.subject = cls.__name__
    parser.set_only = [f"--{name.replace('_', '-')}" for name in by_set]


def parameters(values: argparse.Namespace, cls: type) -> dict[str, Any]:
    """The parameters that were given, as the constructor takes them."""
    given: dict[str, Any] = {name[len(KEPT) :]: said for name, said in vars(values).items() if name.startswith(KEPT)}
    for text in values.set:
        name, said = pair(text)
        refuse_unknown(cls, {name: said})
        if name in given:
            raise ParameterError(f"Each parameter is given once; {name} is given twice.")
        given[name] = said
    return {name: said if isinstance(said, bool) else value_of(said, cls, name) for name, said in given.items()}


def described(one: Param) -> str:
    """Meaning, kind, range and default of a parameter.

    >>> from deepforecast import SeasonalNaive
    >>> described(declared_params(SeasonalNaive)["season_length"])
    'steps after which the season repeats (auto or a whole number of at least 1; default auto)'
    """
    kinds = legal(one)
    default = "needed" if one.required else f"default {_word(one.default)}"
    return f"{one.help} ({'; '.join(part for part in (kinds, default) if part)})"


def _form(one: Param) -> Mapping[str, Any]:
    """How argparse takes it."""
    kinds = set(kinds_of(one.annotation)) - {type(None)}
    shared = {"default": argparse.SUPPRESS, "help": _escaped(described(one))}
    if kinds == {bool}:
        return {**shared, "action": argparse.BooleanOptionalAction}
    metavar = "{" + ",".join(map(_word, one.choices)) + "}" if one.choices and kinds <= {str} else "VALUE"
    return {**shared, "metavar": metavar, **({"nargs": "+"} if any(map(is_list, kinds)) else {})}


def legal(one: Param) -> str:
    """Which values a parameter takes, in words; empty for those of no kind that can be told."""
    words = [_word(choice) for choice in one.choices or ()]
    for kind in kinds_of(one.annotation):
        if kind in (type(None), Any) or any(type(choice) is kind for choice in one.choices or ()):
            continue
        word = _KINDS.get(kind) or (
            "a model" if is_model(kind) else "a list" if is_list(kind) else "JSON" if is_mapping(kind) else str(kind)
        )
        words.append(word + (_range(one) if kind in (int, float) or is_list(kind) else ""))
    return format_list(words, max_shown=len(words)) if len(words) < 2 else ", ".join(words[:-1]) + " or " + words[-1]


_KINDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _range(one: Param) -> str:
    bounds = (("of at least", one.at_least), ("above", one.above), ("of at most", one.at_most), ("below", one.below))
    said = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
    return f" {' and '.join(said)}" if said else ""


def _word(value: Any) -> str:
    return "none" if value is None else str(value)


def _escaped(text: str) -> str:
    """argparse formats help with %."""
    return text.replace("%", "%%")
