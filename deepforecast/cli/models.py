"""List the models and what they can do; with names, describe those with all their parameters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser

USAGE = "[NAME ...] [options]"
EPILOG = """\
examples:
  deepforecast models
  deepforecast models Naive2 Conformal"""
INTERVALS = {"analytic": "analytic", "samples": "samples", "quantiles": "quantiles", None: "conformal"}


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="models to describe; all of them in a table if none is named")


def run(values: argparse.Namespace) -> Outcome:
    """Look the models up."""
    from deepforecast.cli.model_names import find
    from deepforecast.core import registry

    classes = [find(name) for name in values.names] or list(registry.models())
    facts = [_facts(cls) for cls in classes]
    text = "\n\n".join(map(_described, classes)) if values.names else _table(facts)
    return Outcome({"models": facts}, text)


def family_of(name: str) -> str:
    """The family of a model, by the folder it lives in; of another package's model, the package. Imports no model."""
    from deepforecast.core.index import MODELS

    module = MODELS[name].split(".") if name in MODELS else _module_of(name).split(".")
    return module[2] if module[:2] == ["deepforecast", "models"] else module[0]


def _module_of(name: str) -> str:
    from deepforecast.core import registry

    return registry.get(name).__module__


def _facts(cls: type[Any]) -> dict[str, Any]:
    from dataclasses import asdict

    from deepforecast.cli.flags import described
    from deepforecast.core.params import declared_params

    return {
        "name": cls.__name__,
        "what": _first_sentence(cls),
        "family": family_of(cls.__name__),
        "capabilities": asdict(cls.capabilities),
        "parameters": {
            name: {"default": None if one.required else one.default, "required": one.required, "help": described(one)}
            for name, one in declared_params(cls).items()
        },
    }


def _table(facts: Sequence[dict[str, Any]]) -> str:
    from deepforecast.cli.streams import one_line, paint
    from deepforecast.cli.table import folded, room, table_lines

    able = [one["capabilities"] for one in facts]
    columns = {
        "model": [one["name"] for one in facts],
        "family": [one["family"] for one in facts],
        "covariates": [", ".join(r for r in ("future", "past", "static") if one[r]) or "-" for one in able],
        "missing": ["yes" if one["missing"] else "no" for one in able],
        "intervals": [INTERVALS[one["distribution"]] for one in able],
    }
    head, *rows = table_lines(columns, left=list(columns))
    beside = max(map(len, rows)) + 2 + max(len(one["what"]) for one in facts) <= room()
    width = max(map(len, rows)) + 2
    lines = [head]
    for row, one in zip(rows, facts, strict=True):
        what = one_line(one["what"])
        lines += [f"{row:<{width}}{what}"] if beside else [row, *(paint(line, "dim") for line in folded(what, "  "))]
    return "\n".join([*lines, "", "deepforecast models NAME describes one with its parameters."])


def _described(cls: type[Any]) -> str:
    """The docstring without its examples, and the parameters."""
    import inspect

    from deepforecast.cli.flags import described
    from deepforecast.cli.streams import paint
    from deepforecast.cli.table import folded
    from deepforecast.core.params import declared_params

    text = inspect.cleandoc(cls.__doc__ or "").partition(">>>")[0].strip().replace("`", "")
    lines = [paint(f"{cls.__name__} ({family_of(cls.__name__)})", "bold")]
    for paragraph in text.split("\n\n"):
        lines += [*folded(" ".join(paragraph.split())), ""]
    for name, one in declared_params(cls).items():
        lines += folded(described(one), f"  {name:<16} ")
    return "\n".join(lines)


def _first_sentence(cls: type[Any]) -> str:
    return (cls.__doc__ or "").partition("\n")[0].strip().replace("`", "")
