"""The architecture holds: packages import downwards only, sizes stay readable, torch stays in its own, the import is light and quiet.

Each rule is a function from source text (or a module's name) to complaints, so that a bad sample can show it failing.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "deepforecast"
FILE_LINES, FUNCTION_LINES, PARAMETERS = 440, 50, 8
# Functions users call with models or a frame first, whose other options are keyword-only: about ten are allowed.
WIDE = {"cross_validate", "compare", "score", "decompose", "tune"}
WIDE_PARAMETERS = 16
TORCH_ROOMS = ("nn/", "training/", "models/neural/")
TORCH = {"torch", "pytorch_lightning", "lightning", "torchmetrics"}
HEAVY = [
    *("pandas", "torch", "pytorch_lightning", "lightning", "statsmodels", "sklearn", "optuna", "matplotlib", "plotly"),
    *("pyarrow", "polars", "narwhals", "scipy", "joblib", "numba", "tqdm"),
]
IMPORT_SECONDS = 3.0  # ten times the budget: only a blow-up fails


def sources() -> list[Path]:
    """Every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters a caller may give, besides self."""
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code of a function, its docstring not counted."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def file_lines(source: str, tree: ast.Module) -> int:
    """Lines of a file without its docstrings."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node) is not None]
    return source.count("\n") - sum((node.body[0].end_lineno or 0) - node.body[0].lineno + 1 for node in nodes)


def oversized(source: str, wide: set[str] = WIDE) -> list[str]:
    """What is larger than the style allows."""
    tree = ast.parse(source)
    found = [f"{n} lines in a file, at most {FILE_LINES}" for n in [file_lines(source, tree)] if n > FILE_LINES]
    for function in functions(tree):
        most = WIDE_PARAMETERS if function.name in wide else PARAMETERS
        if (lines := body_lines(function)) > FUNCTION_LINES:
            found.append(f"line {function.lineno}: {function.name} has {lines} lines, at most {FUNCTION_LINES}")
        if (count := parameters(function)) > most:
            found.append(f"line {function.lineno}: {function.name} takes {count} parameters, at most {most}")
    return found


def torch_imports(source: str) -> list[int]:
    """Lines that import torch or its kin, inside functions too."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        lines += [node.lineno for name in names if name.split(".")[0] in TORCH]
    return sorted(lines)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter's verdict on the package in `folder`, with the contract that stands in pyproject.toml there."""
    code = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command(['--no-cache']))"
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=240)


def toy_package(folder: Path) -> Path:
    """A package of empty packages under the real contract."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    packages = ["cli", "benchmark", "testing", "evaluation", "models", "core", "plotting", "datasets", "data", "errors"]
    for package in packages:
        (folder / "deepforecast" / package).mkdir(parents=True)
        (folder / "deepforecast" / package / "__init__.py").write_text("")
    for family in ("baselines", "neural", "prophet"):
        (folder / "deepforecast" / "models" / family).mkdir()
        (folder / "deepforecast" / "models" / family / "__init__.py").write_text("")
    (folder / "deepforecast" / "__init__.py").write_text("")
    return folder / "deepforecast"


def test_packages_import_downwards_only() -> None:
    verdict = lint_imports(ROOT)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    assert "2 kept, 0 broken" in verdict.stdout


@pytest.mark.parametrize(
    ("package", "line", "status"),
    [
        ("core", "import deepforecast.data", 0),
        ("data", "import deepforecast.core", 1),
        ("datasets", "import deepforecast.plotting", 1),
        ("core", "def late():\n    from deepforecast import models\n", 1),
        ("models/neural", "import deepforecast.core", 0),
        ("models/neural", "import deepforecast.models.prophet", 1),
        ("models/neural", "def late():\n    from deepforecast.models import prophet\n", 1),
    ],
    ids=["down", "up", "sideways", "up, inside a function", "family, down", "another family", "another family, inside a function"],
)
def test_the_contract_tells_up_from_down(tmp_path: Path, package: str, line: str, status: int) -> None:
    (toy_package(tmp_path) / package / "__init__.py").write_text(line)
    verdict = lint_imports(tmp_path)
    assert verdict.returncode == status, verdict.stdout + verdict.stderr


def test_a_package_nobody_planned_is_noticed(tmp_path: Path) -> None:
    (toy_package(tmp_path) / "utils.py").write_text("")
    verdict = lint_imports(tmp_path)
    assert verdict.returncode == 1
    assert "utils" in verdict.stdout + verdict.stderr


def test_files_functions_and_signatures_stay_small() -> None:
    found = [f"{path.relative_to(ROOT)}: {said}" for path in sources() for said in oversized(path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n" * 441, "441 lines in a file"),
        ("def long():\n" + "    x = 1\n" * 51, "long has 51 lines"),
        ("class A:\n    async def long(self):\n" + "        x = 1\n" * 51, "long has 51 lines"),
        ("def wide(a, b, c, d, e, f, g, h, *, i): ...", "wide takes 9 parameters"),
        ("def compare(" + ", ".join(f"a{i}" for i in range(17)) + "): ...", "compare takes 17 parameters, at most 16"),
    ],
)
def test_what_is_too_large_is_noticed(source: str, said: str) -> None:
    assert any(said in complaint for complaint in oversized(source))


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n" * 440,
        "def long():\n    '''Purpose.\n\n    And more.\n    '''\n" + "    x = 1\n" * 50,
        "class A:\n    def wide(self, a, b, c, d, e, f, g, h): ...",
        "def compare(" + ", ".join(f"a{i}" for i in range(12)) + "): ...",
    ],
)
def test_what_is_just_small_enough_passes(source: str) -> None:
    assert oversized(source) == []


def test_wide_signatures_are_only_those_that_need_it() -> None:
    trees = [ast.parse(path.read_text("utf-8")) for path in sources()]
    needed = {f.name for tree in trees for f in functions(tree) if f.name in WIDE and parameters(f) > PARAMETERS}
    assert needed == WIDE, f"take off the list of wide signatures: {sorted(WIDE - needed)}"


def test_torch_stays_in_its_packages() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources()
        if not path.relative_to(PACKAGE).as_posix().startswith(TORCH_ROOMS)
        for line in torch_imports(path.read_text("utf-8"))
    ]
    assert not found, f"torch belongs in {', '.join(TORCH_ROOMS)} only: {found}"


def test_torch_is_noticed() -> None:
    lines = ["import os, torch.nn as nn", "from .torch import x", "import torchless", "import lightning", "def f():"]
    assert torch_imports("\n".join([*lines, "    from torch import nn"])) == [1, 4, 6]


PROBE = """
import json, os, sys, time
noise = []
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
EVENTS = ("socket.", "subprocess.", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.system", "os.exec", "os.posix_spawn",
          "os.fork", "os.putenv", "shutil.", "tempfile.", "urllib.", "sqlite3.")
def hook(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        noise.append(f"open {arguments[0]} for writing")
    elif event.startswith(EVENTS):
        noise.append(event)
sys.addaudithook(hook)
begin = time.process_time()
__import__(sys.argv[1])
seconds = time.process_time() - begin
noise = list(noise)
print(json.dumps({"seconds": seconds, "noise": noise, "modules": sorted({name.split(".")[0] for name in sys.modules})}))
"""


def probe(module: str, folder: Path, home: str | None = None) -> dict[str, object]:
    """What importing `module` does in a fresh process, in an empty folder: seconds, modules loaded, noise made."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HOME", "XDG_", "PYTHON"))}
    env |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {} if home is None else {"HOME": home}
    empty = folder / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE, module], cwd=empty, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(empty.iterdir()) == []
    lines = done.stdout.splitlines()
    return {**json.loads(lines[-1]), "printed": lines[:-1]}


STARRED = ["cli", "core", "data", "datasets", "evaluation", "plotting", "testing", "models.baselines"]
STAR = """
import pkgutil, sys, types
import deepforecast
from deepforecast import *
for one in pkgutil.walk_packages(deepforecast.__path__, "deepforecast."):
    if not one.name.startswith(("deepforecast.kernels", "deepforecast.models.statistical", "deepforecast.__main__")):
        __import__(one.name)
for package in sys.argv[1:]:
    names = {}
    exec(f"from deepforecast.{package} import *", names)
    for name, value in names.items():
        if isinstance(value, types.ModuleType):
            print(package, name, value)
    if package == "evaluation":
        own = ("BacktestOptions", "compare", "cross_validate", "score")
        print([name for name in own if names[name] is getattr(deepforecast, name)])
"""


def test_a_star_import_of_a_package_gives_functions_and_replaces_none_by_a_module() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", STAR, *STARRED], env=env, capture_output=True, text=True, timeout=240)
    assert done.stdout.splitlines() == ["['BacktestOptions', 'compare', 'cross_validate', 'score']"], done.stdout + done.stderr


@pytest.mark.parametrize("home", [None, "/dev/null/nowhere"], ids=["HOME unset", "HOME not writable"])
def test_import_is_light_and_quiet(tmp_path: Path, home: str | None) -> None:
    seen = probe("deepforecast", tmp_path, home)
    assert set(HEAVY) & set(seen["modules"]) == set()
    assert seen["noise"] == []
    assert seen["printed"] == []
    assert seen["seconds"] < IMPORT_SECONDS


@pytest.mark.parametrize(
    ("line", "noise"),
    [
        ("open(__file__ + '.log', 'a').close()", r"open .*noisy\.py\.log for writing"),
        ("import socket; socket.socket().close()", r"socket\.__new__"),
        ("import os; os.mkdir(__file__ + '.d')", r"os\.mkdir"),
        ("import subprocess; subprocess.run(['true'])", r"subprocess\.Popen"),
    ],
)
def test_noise_on_import_is_noticed(tmp_path: Path, line: str, noise: str) -> None:
    (tmp_path / "noisy.py").write_text(f"{line}\nimport tqdm\nprint('hello')\n")
    seen = probe("noisy", tmp_path)
    assert any(re.fullmatch(noise, event) for event in seen["noise"])
    assert "tqdm" in seen["modules"]
    assert seen["printed"] == ["hello"]
