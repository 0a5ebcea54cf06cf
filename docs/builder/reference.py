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
    """A page of the reference. `names` come from `module`; `table` adds a table or the like before them."""

    path: str
    title: str
    about: str
    names: tuple[str, ...] = ()
    module: str = "deepforecast"
    table: Callable[[], str] | None = None


def metrics_table() -> str:
    """All metrics by name, and what each rewards."""
    from deepforecast.evaluation.metrics import METRICS

    rows = [[f"`{name}`", metric.rewards, metric.unit, {"low": "low", "high": "high"}.get(metric.better, f"at {metric.better}")]
            for name, metric in METRICS.items()]  # fmt: skip
    return "## Metrics\n\nFor `metrics_table=` of `score`, `compare` and `tune`: names, or functions of your own.\n\n" + table(
        ["name", "rewards", "unit", "good is"], rows
    )


def datasets_table() -> str:
    """All datasets."""
    from deepforecast import datasets

    cards = [datasets.card(name) for name in datasets.names()]
    rows = [
        [f"`{card.name}`", card.what, str(card.frequency), f"{card.series:,}", f"{card.rows:,}", card.licence] for card in cards
    ]
    return "## Sets\n\n" + table(["name", "what", "frequency", "series", "rows", "licence"], rows)


def commands_help() -> str:
    """The help of every command, as it prints it."""
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
    """Public functions and classes of every module of `nn`."""
    package = import_module("deepforecast.nn")
    sections = []
    for module_info in pkgutil.iter_modules(package.__path__):
        module = import_module(f"deepforecast.nn.{module_info.name}")
        sections.append(f"## nn.{module_info.name} {{ #nn.{module_info.name} }}\n\n{markdown(module.__doc__)}")
        for name, member in vars(module).items():
            if not name.startswith("_") and getattr(member, "__module__", "") == module.__name__:
                sections.append(entry(f"{module_info.name}.{name}", member, level=3))
    return "\n\n".join(sections)


GROUPS = (
    Group("forecasting", "Models: the contract", "What every model does, in the same words.",
          ("Forecaster", "Capabilities", "load")),
    Group("data", "Data", "Frames, names and roles of columns, checks and repairs.",
          ("Columns", "check", "fill_gaps", "decompose", "Panel")),
    Group("evaluation", "Evaluation", "Forecasts of the past, scored and compared.",
          ("compare", "Leaderboard", "cross_validate", "score", "faithfulness", "BacktestOptions"), table=metrics_table),
    Group("tuning", "Tuning", "Search for hyperparameters, on rolling windows.", ("tune", "TuningResult", "TuningOptions")),
    Group("plotting", "Plots", "`plot` is in `deepforecast` too; the others in `deepforecast.plotting`.", ("*",),
          "deepforecast.plotting"),
    Group("datasets", "Datasets", "", ("*",), "deepforecast.datasets", datasets_table),
    Group("errors", "Errors", "[What each message means](../errors.md)", ("*",), "deepforecast.errors"),
    Group("own-model", "Your own model",
          "A class with declared parameters and three hooks; the [contract checks](testing.md) hold it to the rest.",
          ("param", "register")),
    Group("testing", "Contract checks", "", ("*",), "deepforecast.testing"),
    Group("networks", "Building blocks of networks", "", (), "deepforecast.nn", network_blocks),
    Group("command-line", "Command line", "`deepforecast COMMAND`, made from the same declarations.", (), "deepforecast.cli",
          commands_help),
)  # fmt: skip
# By what their names begin in texts: alone they are words that may mean anything, as `table` and `run`.
PREFIXES = {"reference/datasets.md": "datasets.", "reference/testing.md": "testing.", "reference/networks.md": "nn."}
EXEMPT_NAMES = {"datasets", "errors", "plot"}  # modules, and what has its place with its package


def pages() -> list[Page]:
    """All pages of the reference; raises `BuildError` if a public name has no place or no docstring."""
    if missing_names := unplaced():
        raise BuildError(f"Every public name has its place in GROUPS of {__name__}; see to {', '.join(missing_names)}.")
    return [Page(f"reference/{group.path}.md", group.title, _page_text(group)) for group in GROUPS]


def unplaced() -> list[str]:
    """Public names that neither the reference nor the model table shows, and names shown that are not public."""
    placed = {name for group in GROUPS if group.module == "deepforecast" for name in group.names} | EXEMPT_NAMES | set(MODELS)
    return sorted(placed ^ set(deepforecast.__all__))


def places() -> dict[str, str]:
    """Where each name is told, as texts may call it: page and anchor of classes, methods, blocks of `nn` and commands."""
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
    """Those listed, or with a star those that the module says are public."""
    if group.names != ("*",):
        return list(group.names)
    module = import_module(group.module)
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if callable(getattr(module, name))]
    classes = {name: cls for name, cls in vars(module).items() if inspect.isclass(cls) and issubclass(cls, Exception)}
    return [name for name, cls in classes.items() if cls.__module__ == group.module]
