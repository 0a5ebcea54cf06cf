"""The reference: every public name, from its signature and docstring. What is not placed here fails the build and the tests."""

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
from deepforecast.core.index import MODELS


@dataclass(frozen=True)
class Group:
    """A page of the reference. `names` come from `module`; `more` adds a table or the like before them."""

    path: str
    title: str
    about: str
    names: tuple[str, ...] = ()
    module: str = "deepforecast"
    more: Callable[[], str] | None = None


def metrics() -> str:
    """All metrics by name, and what each rewards."""
    from deepforecast.evaluation.metrics import METRICS

    rows = [[f"`{name}`", one.rewards, one.unit, {"low": "low", "high": "high"}.get(one.better, f"at {one.better}")]
            for name, one in METRICS.items()]  # fmt: skip
    return "## Metrics\n\nFor `metrics=` of `score`, `compare` and `tune`: names, or functions of your own.\n\n" + table(
        ["name", "rewards", "unit", "good is"], rows
    )


def sets() -> str:
    """All datasets."""
    from deepforecast import datasets

    cards = [datasets.card(name) for name in datasets.names()]
    rows = [[f"`{one.name}`", one.what, str(one.frequency), f"{one.series:,}", f"{one.rows:,}", one.licence] for one in cards]
    return "## Sets\n\n" + table(["name", "what", "frequency", "series", "rows", "licence"], rows)


def commands() -> str:
    """The help of every command, as it prints it."""
    from deepforecast.cli import main

    parts = []
    for name in ("", *_commands()):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), mock.patch.dict(os.environ, {"COLUMNS": "96"}):
            main([*([name] if name else []), "--help"])
        parts.append(f"## deepforecast {name}".rstrip() + f"\n\n```text\n{printed.getvalue().rstrip()}\n```")
    return "\n\n".join(parts)


def _commands() -> list[str]:
    from deepforecast.cli.program import COMMANDS

    return list(COMMANDS)


def blocks() -> str:
    """Public functions and classes of every module of `nn`."""
    room = import_module("deepforecast.nn")
    parts = []
    for found in pkgutil.iter_modules(room.__path__):
        module = import_module(f"deepforecast.nn.{found.name}")
        parts.append(f"## nn.{found.name} {{ #nn.{found.name} }}\n\n{markdown(module.__doc__)}")
        for name, thing in vars(module).items():
            if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__:
                parts.append(entry(f"{found.name}.{name}", thing, level=3))
    return "\n\n".join(parts)


GROUPS = (
    Group("forecasting", "Models: the contract", "What every model does, in the same words.",
          ("Forecaster", "Capabilities", "load")),
    Group("data", "Data", "Frames, names and roles of columns, checks and repairs.",
          ("Columns", "check", "fill_gaps", "decompose", "Panel")),
    Group("evaluation", "Evaluation", "Forecasts of the past, scored and compared.",
          ("compare", "Leaderboard", "cross_validate", "score", "faithfulness", "BacktestOptions"), more=metrics),
    Group("tuning", "Tuning", "Search for hyperparameters, on rolling windows.", ("tune", "TuningResult", "TuningOptions")),
    Group("plotting", "Plots", "`plot` is in `deepforecast` too; the others in `deepforecast.plotting`.", ("*",),
          "deepforecast.plotting"),
    Group("datasets", "Datasets", "", ("*",), "deepforecast.datasets", sets),
    Group("errors", "Errors", "[What each message means](../errors.md)", ("*",), "deepforecast.errors"),
    Group("own-model", "Your own model",
          "A class with declared parameters and three hooks; the [contract checks](testing.md) hold it to the rest.",
          ("param", "register")),
    Group("testing", "Contract checks", "", ("*",), "deepforecast.testing"),
    Group("networks", "Building blocks of networks", "", (), "deepforecast.nn", blocks),
    Group("command-line", "Command line", "`deepforecast COMMAND`, made from the same declarations.", (), "deepforecast.cli",
          commands),
)  # fmt: skip
# By what their names begin in texts: alone they are words that may mean anything, as `table` and `run`.
PREFIXES = {"reference/datasets.md": "datasets.", "reference/testing.md": "testing.", "reference/networks.md": "nn."}
ELSEWHERE = {"datasets", "errors", "plot"}  # modules, and what has its place with its room


def pages() -> list[Page]:
    """All pages of the reference; raises `BuildError` if a public name has no place or no docstring."""
    if lacking := unplaced():
        raise BuildError(f"Every public name has its place in GROUPS of {__name__}; see to {', '.join(lacking)}.")
    return [Page(f"reference/{group.path}.md", group.title, _text(group)) for group in GROUPS]


def unplaced() -> list[str]:
    """Public names that neither the reference nor the model table shows, and names shown that are not public."""
    placed = {name for group in GROUPS if group.module == "deepforecast" for name in group.names} | ELSEWHERE | set(MODELS)
    return sorted(placed ^ set(deepforecast.__all__))


def places() -> dict[str, str]:
    """Where each name is told, as texts may call it: page and anchor of classes, methods, blocks of `nn` and commands."""
    found = {name: f"models/{name}.md" for name in MODELS}
    pages_of = {f"reference/{group.path}.md": _text(group) for group in GROUPS}
    for path, text in pages_of.items():
        for name in re.findall(r"^#+ .* \{ #(\S+) \}$", text, flags=re.MULTILINE):
            found.setdefault(PREFIXES.get(path, "") + name, f"{path}#{name}")
    contract = {name.partition(".")[2]: place for name, place in found.items() if name.startswith("Forecaster.")}
    for model in MODELS:
        found |= {f"{model}.{name}": place for name, place in contract.items()}
    return found | {f"deepforecast {name}": f"reference/command-line.md#deepforecast-{name}" for name in _commands()}


@functools.cache
def _text(group: Group) -> str:
    module = import_module(group.module)
    about = [group.about] if group.about else []
    if group.module != "deepforecast" and module.__doc__:
        said = inspect.cleandoc(module.__doc__)
        about.append(f"```text\n{said}\n```" if "├──" in said else markdown(said))
    parts = [f"# {group.title}", *about, *([group.more()] if group.more else [])]
    return "\n\n".join([*parts, *(entry(name, getattr(module, name)) for name in _names(group))]) + "\n"


def _names(group: Group) -> list[str]:
    """Those listed, or with a star those that the module says are public."""
    if group.names != ("*",):
        return list(group.names)
    module = import_module(group.module)
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if callable(getattr(module, name))]
    kinds = {name: one for name, one in vars(module).items() if inspect.isclass(one) and issubclass(one, Exception)}
    return [name for name, one in kinds.items() if one.__module__ == group.module]
