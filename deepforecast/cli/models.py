"""List the models and their capabilities, or describe the named models with all parameters."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser

USAGE = "[NAME ...] [options]"
EPILOG = """\
examples:
  deepforecast models
  deepforecast models Naive2 Conformal"""
SHOWN_SECTIONS = ("See Also", "References")  # of docstrings, after the parameters
INTERVAL_NAMES = {"analytic": "analytic", "samples": "samples", "quantiles": "quantiles", None: "conformal"}


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="models to describe (default: a table of all models)")


def run(values: argparse.Namespace) -> Outcome:
    """List or describe models."""
    from deepforecast.cli.model_names import find_model
    from deepforecast.core import registry

    classes = [find_model(name) for name in values.names] or list(registry.models())
    facts = [_facts(cls) for cls in classes]
    text = "\n\n".join(map(_describe_model, classes)) if values.names else _table(facts)
    return Outcome({"models": facts}, text)


def model_family(name: str) -> str:
    """Return the family of a model, i.e. its subpackage, or the package of an external model.

    Models of the library are not imported.
    """
    from deepforecast.core.registry import MODELS

    module = MODELS[name].split(".") if name in MODELS else _model_module(name).split(".")
    return module[2] if module[:2] == ["deepforecast", "models"] else module[0]


def _model_module(name: str) -> str:
    from deepforecast.core import registry

    return registry.get(name).__module__


def _facts(cls: type[Any]) -> dict[str, Any]:
    """Name, summary, family, capabilities and parameters of a model class for JSON."""
    from dataclasses import asdict

    from deepforecast.cli.flags import describe_parameter
    from deepforecast.core.params import declared_params

    return {
        "name": cls.__name__,
        "what": _first_sentence(cls),
        "family": model_family(cls.__name__),
        "capabilities": asdict(cls.capabilities),
        "parameters": {
            name: {
                "default": None if parameter.required else parameter.default,
                "required": parameter.required,
                "help": describe_parameter(parameter),
            }
            for name, parameter in declared_params(cls).items()
        },
    }


def _table(facts: Sequence[dict[str, Any]]) -> str:
    """A table with a row per model, and its summary in the row or, on narrow terminals, below it."""
    from deepforecast.cli.streams import one_line, paint
    from deepforecast.cli.table import format_table, terminal_width, wrap_text

    capabilities = [entry["capabilities"] for entry in facts]
    columns = {
        "model": [entry["name"] for entry in facts],
        "family": [entry["family"] for entry in facts],
        "covariates": [
            ", ".join(role for role in ("future", "past", "static") if entry[role]) or "-" for entry in capabilities
        ],
        "missing": ["yes" if entry["missing"] else "no" for entry in capabilities],
        "intervals": [INTERVAL_NAMES[entry["distribution"]] for entry in capabilities],
    }
    head, *rows = format_table(columns, left_aligned=list(columns))
    width = max(map(len, rows)) + 2
    fits_in_row = width + max(len(entry["what"]) for entry in facts) <= terminal_width()
    lines = [head]
    for row, entry in zip(rows, facts, strict=True):
        summary = one_line(entry["what"])
        lines += (
            [f"{row:<{width}}{summary}"] if fits_in_row else [row, *(paint(line, "dim") for line in wrap_text(summary, "  "))]
        )
    return "\n".join([*lines, "", "deepforecast models NAME describes a model and its parameters."])


def _describe_model(cls: type[Any]) -> str:
    """Return the description of a model, its parameters, related models and references."""
    from deepforecast.cli.flags import describe_parameter
    from deepforecast.cli.streams import paint
    from deepforecast.cli.table import wrap_text
    from deepforecast.core.params import declared_params

    sections = _docstring_sections(cls)
    lines = [paint(f"{cls.__name__} ({model_family(cls.__name__)})", "bold")]
    for paragraph in sections.pop("").split("\n\n"):
        if paragraph.startswith("    "):  # equations
            lines += paragraph.splitlines()
        elif paragraph.startswith("- "):
            for item in re.split(r"\n(?=- )", paragraph):
                lines += wrap_text(" ".join(item.split()), later_prefix="  ")
        else:
            lines += wrap_text(" ".join(paragraph.split()))
        lines.append("")
    parameters = declared_params(cls)
    width = max(map(len, parameters))
    lines.append(paint("Parameters", "bold"))
    for name, parameter in parameters.items():
        lines += wrap_text(describe_parameter(parameter), f"  {name:<{width}}  ")
    for title in SHOWN_SECTIONS:
        if title in sections:
            lines += ["", paint(title, "bold")]
            for entry in re.split(r"\n\n|\n(?=[\w, ]+ : )", sections[title]):
                lines += wrap_text(" ".join(entry.split()), "  ")
    return "\n".join(lines)


def _docstring_sections(cls: type[Any]) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title; the description has the title ""."""
    import inspect

    text = inspect.cleandoc(cls.__doc__ or "").replace("`", "")
    description, *parts = re.split(r"^(\S.*)\n-{3,}$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    return {title: content.strip() for title, content in {"": description, **sections}.items()}


def _first_sentence(cls: type[Any]) -> str:
    return (cls.__doc__ or "").partition("\n")[0].strip().replace("`", "")
