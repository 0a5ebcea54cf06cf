"""The API reference: every public name with signature and docstring. A public name without a page fails the build."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from unittest import mock

import deepforecast
from builder.docstrings import markdown
from builder.entries import entry
from builder.page import BuildError, Page, table
from deepforecast.core.registry import MODELS


@dataclass(frozen=True)
class Group:
    """A page of the reference.

    Parameters
    ----------
    path : str
        Name of the page below reference/.
    title : str
        Title of the page.
    about : str
        First paragraph.
    names : tuple of str
        Public names of `module` to document; ("*",) for all of them.
    module : str, default "deepforecast"
        Module of the names.
    table : callable, optional
        Returns Markdown to insert before the names.
    """

    path: str
    title: str
    about: str
    names: tuple[str, ...] = ()
    module: str = "deepforecast"
    table: Callable[[], str] | None = None


def metrics_table() -> str:
    """Return a table of all metrics."""
    from deepforecast.evaluation.metrics import METRICS

    best_values = {"low": "low", "high": "high", "zero": "0", "level": "the level"}
    rows = [[f"`{name}`", metric.rewards, metric.unit, best_values[metric.better]] for name, metric in METRICS.items()]
    about = "Names for the parameter `metrics` of `score`, `compare` and `tune`; user-defined functions are accepted too."
    return f"## Metrics\n\n{about}\n\n" + table(["name", "favours", "unit", "best value"], rows)


def datasets_table() -> str:
    """Return a table of all datasets."""
    from deepforecast import datasets

    cards = [datasets.card(name) for name in datasets.names()]
    rows = [
        [f"`{card.name}`", card.description, str(card.frequency), f"{card.series:,}", f"{card.rows:,}", card.licence] for card in cards
    ]
    return "## List of datasets\n\n" + table(["name", "description", "frequency", "series", "rows", "licence"], rows)


def commands_help() -> str:
    """Return the help text of every command."""
    from deepforecast.cli import main

    sections = []
    for name in ("", *_command_names()):
        buffer = io.StringIO()
        with contextlib.redirect_stdout(buffer), mock.patch.dict(os.environ, {"COLUMNS": "96"}):
            main([*([name] if name else []), "--help"])
        sections.append(f"## deepforecast {name}".rstrip() + f"\n\n```text\n{buffer.getvalue().rstrip()}\n```")
    return "\n\n".join(sections)


def _command_names() -> list[str]:
    from deepforecast.cli.program import COMMANDS

    return list(COMMANDS)


def network_blocks() -> str:
    """Return the entries of all public functions and classes of `deepforecast.nn`."""
    package = import_module("deepforecast.nn")
    sections = []
    for module_info in pkgutil.walk_packages(package.__path__, "deepforecast.nn."):
        if module_info.ispkg:
            continue
        module, short_name = import_module(module_info.name), module_info.name.removeprefix("deepforecast.nn.")
        sections.append(f"## nn.{short_name} {{ #nn.{short_name} }}\n\n{markdown(module.__doc__)}")
        for name, member in vars(module).items():
            if not name.startswith("_") and getattr(member, "__module__", "") == module.__name__:
                sections.append(entry(f"{short_name}.{name}", member, level=3))
    return "\n\n".join(sections)


GROUPS = (
    Group("forecasting", "Interface of models", "The methods of every model.",
          ("Forecaster", "Capabilities", "load")),
    Group("data", "Data", "Data frames: names and roles of columns, validation and repair.",
          ("Columns", "check", "fill_gaps", "decompose", "Panel")),
    Group("evaluation", "Evaluation", "Cross-validation, metrics and comparison of models.",
          ("compare", "Leaderboard", "cross_validate", "score", "faithfulness", "BacktestOptions"), table=metrics_table),
    Group("tuning", "Tuning", "Hyperparameter optimisation by rolling cross-validation.",
          ("tune", "TuningResult", "TuningOptions")),
    Group("plotting", "Plots", "Functions of `deepforecast.plotting`; `plot` is also in `deepforecast`.", ("*",),
          "deepforecast.plotting"),
    Group("datasets", "Datasets", "", ("*",), "deepforecast.datasets", datasets_table),
    Group("errors", "Errors", "See [Messages](../errors.md) for explanations of common messages.", ("*",),
          "deepforecast.errors"),
    Group("own-model", "Custom models",
          "A class with declared parameters and three methods; the [contract checks](testing.md) verify the rest.",
          ("param", "register", "Head")),
    Group("pretraining", "Pretraining", "Objectives of `pretrain`; see [Networks](../networks.md#pretraining).",
          ("Objective", "MaskedPatches", "MaskedSpans", "NextPatch", "NextWindow", "PermutationOrder")),
    Group("testing", "Contract checks", "", ("*",), "deepforecast.testing"),
    Group("networks", "Neural network modules", "", (), "deepforecast.nn", network_blocks),
    Group("command-line", "Command line",
          "`deepforecast COMMAND`; the options are generated from the declared parameters of the models.", (),
          "deepforecast.cli", commands_help),
)  # fmt: skip
# Prefixes required in texts, since some names are common words, e.g. `table` and `run`.
PREFIXES = {"reference/datasets.md": "datasets.", "reference/testing.md": "testing.", "reference/networks.md": "nn."}
EXEMPT_NAMES = {"datasets", "errors", "plot"}  # modules, and a function on the page of its module


def pages() -> list[Page]:
    """Return all pages of the reference; raises `BuildError` if a public name has no page or no docstring."""
    if missing_names := unplaced():
        raise BuildError(
            f"GROUPS of {__name__} must contain the public names and no others, got differences: {', '.join(missing_names)}."
        )
    return [Page(f"reference/{group.path}.md", group.title, _page_text(group)) for group in GROUPS]


def unplaced() -> list[str]:
    """Return public names that are neither in the reference nor models, and names in the reference that are not public."""
    placed = {name for group in GROUPS if group.module == "deepforecast" for name in group.names} | EXEMPT_NAMES | set(MODELS)
    return sorted(placed ^ set(deepforecast.__all__))


def places() -> dict[str, str]:
    """Return page and anchor of every documented name.

    Returns
    -------
    dict of str to str
        Keys are the names as written in texts: models, classes, functions, methods
        ("LSTM.fit"), modules of `nn` ("nn.attention") and commands ("deepforecast tune").
    """
    targets = {name: f"models/{name}.md" for name in MODELS}
    pages_of = {f"reference/{group.path}.md": _page_text(group) for group in GROUPS}
    for path, text in pages_of.items():
        for name in re.findall(r"^#+ .* \{ #(\S+) \}$", text, flags=re.MULTILINE):
            targets.setdefault(PREFIXES.get(path, "") + name, f"{path}#{name}")
    contract = {name.partition(".")[2]: target for name, target in targets.items() if name.startswith("Forecaster.")}
    for model in MODELS:
        targets |= {f"{model}.{name}": target for name, target in contract.items()}
    return targets | {f"deepforecast {name}": f"reference/command-line.md#deepforecast-{name}" for name in _command_names()}


@functools.cache
def _page_text(group: Group) -> str:
    module = import_module(group.module)
    about = [group.about] if group.about else []
    if group.module != "deepforecast" and module.__doc__:
        docstring = inspect.cleandoc(module.__doc__)
        about.append(f"```text\n{docstring}\n```" if "├──" in docstring else markdown(docstring))
    sections = [f"# {group.title}", *about, *([group.table()] if group.table else [])]
    return "\n\n".join([*sections, *(entry(name, getattr(module, name)) for name in _public_names(group))]) + "\n"


def _public_names(group: Group) -> list[str]:
    """Return the listed names, or all public names of the module for ("*",)."""
    if group.names != ("*",):
        return list(group.names)
    module = import_module(group.module)
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if callable(getattr(module, name))]
    classes = {name: cls for name, cls in vars(module).items() if inspect.isclass(cls) and issubclass(cls, Exception)}
    return [name for name, cls in classes.items() if cls.__module__ == group.module]
