"""What the package never does, whoever writes it: run code from files, assert, hide failures, change global chance.

ruff forbids some of this too; this walk sees what ruff's rules leave out, and every rule is shown to fail on a bad sample.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "deepforecast"

MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal"}
CALLS = {
    *("joblib.load", "joblib.dump", "torch.load", "torch.save", "pandas.read_pickle"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.unsafe_load_all"),
    *("os.system", "os.popen", "builtins.eval", "builtins.exec"),
}
GLOBAL_CHANCE = {
    *("numpy.random.seed", "numpy.random.set_state", "random.seed", "random.setstate", "random.random", "random.shuffle"),
    *("torch.seed", "torch.manual_seed", "torch.random.manual_seed", "torch.random.seed", "torch.set_rng_state"),
    *("torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "pytorch_lightning.seed_everything", "lightning.seed_everything"),
}
PUTS_BACK = {"deepforecast/training/process.py": "random.setstate"}  # what the first import of a library draws from it
METHODS = {"extractall", "to_pickle", "read_pickle"}
BUILTINS = {"eval", "exec", "__import__"}


def import_names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: `np` is numpy, `load` may be joblib.load."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def dotted(node: ast.AST, names: dict[str, str]) -> str:
    """`np.random.seed` as numpy.random.seed; empty for what is not a plain dotted name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute) and (stem := dotted(node.value, names)):
        return f"{stem}.{node.attr}"
    return ""


def of_module(node: ast.AST) -> list[str]:
    """The modules an import statement asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def swallows(node: ast.AST, names: dict[str, str]) -> bool:
    """Whether any failure at all would vanish here."""
    if isinstance(node, ast.ExceptHandler):
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        broad = any(isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException") for kind in kinds)
        empty = all(isinstance(line, ast.Pass | ast.Continue) or is_ellipsis(line) for line in node.body)
        return node.type is None or (broad and empty)
    if isinstance(node, ast.Call) and dotted(node.func, names) == "contextlib.suppress":
        return any(isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException") for kind in node.args)
    return False


def is_ellipsis(line: ast.stmt) -> bool:
    """Whether a statement is a bare `...`."""
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and line.value.value is ...


def unpickles_arrays(node: ast.AST) -> bool:
    """Whether a call asks numpy to unpickle: `allow_pickle` with anything but False."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return any(k.arg == "allow_pickle" and not (isinstance(k.value, ast.Constant) and k.value.value is False) for k in keywords)


def complaints(node: ast.AST, names: dict[str, str], prints: bool) -> Iterator[str]:
    """The rules that one node of the tree breaks."""
    for module in of_module(node):
        if module.split(".")[0] in MODULES:
            yield f"imports {module.split('.')[0]}"
    if isinstance(node, ast.Name | ast.Attribute) and (name := dotted(node, names)):
        if name in CALLS:
            yield f"uses {name}"
        if name in GLOBAL_CHANCE:
            yield f"{name} changes global chance: use a Generator of one's own"
    if isinstance(node, ast.Name) and node.id in BUILTINS and node.id not in names:
        yield f"uses {node.id}"
    if isinstance(node, ast.Attribute) and node.attr in METHODS:
        yield f"uses .{node.attr}"
    if isinstance(node, ast.Assert):
        yield "asserts: raise one of deepforecast.errors"
    if swallows(node, names):
        yield "swallows every failure"
    if unpickles_arrays(node):
        yield "allow_pickle"
    if not prints and isinstance(node, ast.Name) and node.id == "print":
        yield "prints outside the command line"


def forbidden(source: str, prints: bool = False) -> list[str]:
    """Each thing in `source` that the package must not do, with its line."""
    tree = ast.parse(source)
    names = import_names(tree)
    return [f"{node.lineno}: {said}" for node in ast.walk(tree) for said in complaints(node, names, prints)]


def test_the_package_does_nothing_forbidden() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 10
    found = [
        f"{path.relative_to(ROOT)}:{said}"
        for path in paths
        for said in forbidden(path.read_text("utf-8"), prints=path.is_relative_to(PACKAGE / "cli"))
        if PUTS_BACK.get(str(path.relative_to(ROOT)), "nothing") not in said
    ]
    assert not found, "\n".join(found)


BAD = {
    "pickle": ("import pickle", "imports pickle"),
    "pickle, inside a function": ("def f():\n    from pickle import loads", "imports pickle"),
    "cloudpickle": ("import cloudpickle as cp", "imports cloudpickle"),
    "dill": ("from dill import load", "imports dill"),
    "shelve": ("import os, shelve", "imports shelve"),
    "marshal": ("import marshal", "imports marshal"),
    "joblib.load": ("import joblib\njoblib.load(path)", "uses joblib.load"),
    "joblib.load by its own name": ("from joblib import load as get\nget(path)", "uses joblib.load"),
    "joblib.dump": ("import joblib as j\nj.dump(x, path)", "uses joblib.dump"),
    "torch.load": ("import torch\ntorch.load(path, weights_only=True)", "uses torch.load"),
    "torch.load, not called here": ("import torch\nread = torch.load", "uses torch.load"),
    "torch.save": ("import torch\ntorch.save(x, path)", "uses torch.save"),
    "yaml.load": ("import yaml\nyaml.load(text)", "uses yaml.load"),
    "yaml.unsafe_load": ("from yaml import unsafe_load\nunsafe_load(text)", "uses yaml.unsafe_load"),
    "eval": ("eval('1')", "uses eval"),
    "eval through builtins": ("import builtins\nbuiltins.eval('1')", "uses builtins.eval"),
    "exec": ("exec('x = 1')", "uses exec"),
    "__import__": ("__import__(name)", "uses __import__"),
    "extractall": ("import tarfile\ntarfile.open(path).extractall()", "uses .extractall"),
    "read_pickle": ("import pandas as pd\npd.read_pickle(path)", "uses pandas.read_pickle"),
    "to_pickle": ("frame.to_pickle(path)", "uses .to_pickle"),
    "allow_pickle": ("import numpy as np\nnp.load(path, allow_pickle=True)", "allow_pickle"),
    "assert": ("def f(x):\n    assert x > 0", "asserts"),
    "os.system": ("import os\nos.system('true')", "uses os.system"),
    "except Exception: pass": ("try:\n    f()\nexcept Exception:\n    pass", "swallows"),
    "except (A, Exception): ...": ("try:\n    f()\nexcept (ValueError, Exception):\n    ...", "swallows"),
    "except BaseException: continue": (
        "for i in x:\n    try:\n        f()\n    except BaseException as e:\n        continue",
        "swallows",
    ),
    "bare except": ("try:\n    f()\nexcept:\n    g()", "swallows"),
    "suppress(Exception)": ("from contextlib import suppress\nwith suppress(Exception):\n    f()", "swallows"),
    "numpy's global seed": ("import numpy as np\nnp.random.seed(1)", "numpy.random.seed changes global chance"),
    "torch's global seed": ("import torch\ntorch.manual_seed(1)", "torch.manual_seed changes global chance"),
    "Python's global seed": ("import random\nrandom.seed(1)", "random.seed changes global chance"),
    "Lightning's seed of everything": ("from pytorch_lightning import seed_everything\nseed_everything(1)", "global chance"),
    "print": ("print('hello')", "prints outside the command line"),
}


@pytest.mark.parametrize(("source", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_line_is_noticed(source: str, said: str) -> None:
    found = forbidden(source)
    assert len([complaint for complaint in found if said in complaint]) >= 1, found


@pytest.mark.parametrize(
    "source",
    [
        "model.eval()\nmodel.load(path)",
        "from deepforecast import load\nload(path)",
        "import numpy as np\nrng = np.random.default_rng(1)\nrng.random()\nnp.load(path, allow_pickle=False)",
        "import torch\ng = torch.Generator()\ng.manual_seed(1)",
        "try:\n    f()\nexcept ValueError:\n    pass",
        "try:\n    f()\nexcept Exception as error:\n    rows.append(error)",
        "from contextlib import suppress\nwith suppress(FileNotFoundError):\n    f()",
        "import yaml, json\nyaml.safe_load(text)\njson.load(file)",
        '"""print, eval and assert in a docstring are words."""',
    ],
)
def test_a_good_line_passes(source: str) -> None:
    assert forbidden(source) == []


def test_the_command_line_may_print() -> None:
    assert forbidden("print('hello')", prints=True) == []


OPTIMISED = """
import importlib, pkgutil, sys
import deepforecast, deepforecast.errors
for module in pkgutil.walk_packages(deepforecast.__path__, "deepforecast."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
if sys.flags.optimize != 2:
    sys.exit("not optimised")
try:
    deepforecast.SeasonalNaive(horizon=-1)
except deepforecast.errors.ParameterError as error:
    print("refused:", error)
"""


@pytest.mark.slow
def test_asserts_and_docstrings_are_not_needed_to_run() -> None:
    """Under -OO asserts and docstrings are gone: every module still imports, and a wrong parameter is still refused."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", OPTIMISED], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused:")
    assert "horizon" in done.stdout
