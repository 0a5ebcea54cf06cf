"""The project around the package: one version, a README whose code runs, files that suit any machine, a whole wheel."""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import math
import os
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import deepforecast
from deepforecast.core.registry import MODELS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TARGETS = ["demo", "test", "test-all", "golden", "mutants", "check", "benchmark", "docs", "clean"]
DECIMAL = re.compile(r"-?\d+\.\d{3,}(?!\.)")
# Written so that this file does not match itself.
PRIVATE = {
    "a path of one machine": re.compile(r"(?<![\w.$}~])/(?:work|root|home|Users|opt)/\w"),
    "a registry's host": re.compile(r"(?:pypi|python[h]osted|download\.pytorch|registry\.npmjs|deb\.debian)\.(?:org|com)\b"),
}


def tracked() -> list[Path]:
    """Every file of the project: those git knows, or all of them where there is no git (an unpacked source archive)."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = [name.decode() for name in listed.stdout.split(b"\0") if name]
    paths = [ROOT / name for name in names] or [p for p in ROOT.rglob("*") if ".venv" not in p.parts]
    return [path for path in paths if path.is_file()]


def private(text: str) -> list[str]:
    """What in `text` only means something on one machine."""
    return [f"{what}: {match.group()}" for what, pattern in PRIVATE.items() for match in pattern.finditer(text)]


def code_blocks(markdown: str) -> list[tuple[str, str | None]]:
    """Each python block, with what it is to print: the very next block, if that is one of text."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL)
    pairs = itertools.pairwise([*fences, ("", "")])
    return [(code, after if kind == "text" else None) for (language, code), (kind, after) in pairs if language == "python"]


def differences(markdown: str) -> list[str]:
    """Runs the python blocks in one namespace; where one prints other than promised, says both. `...` stands for anything."""
    namespace: dict[str, object] = {"__name__": "readme"}
    found = []
    for source, promised in code_blocks(markdown):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, "README.md", "exec"), namespace)
        if promised is not None and not same(promised, printed.getvalue()):
            found.append(f"promised:\n{promised}\nprinted:\n{printed.getvalue()}")
    return found


def same(promised: str, printed: str) -> bool:
    """Equal but for spaces at the ends of lines, what `...` leaves open, and the last digits of decimals.

    A model that searches for its parameters ends within that on another machine.
    """
    trimmed = ["\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n" for text in (promised, printed)]
    numbers = [[float(one) for one in DECIMAL.findall(text)] for text in trimmed]
    if numbers[0] and all(math.isclose(*pair, rel_tol=2e-3) for pair in zip(*numbers, strict=False)):  # `...` may hide the rest
        trimmed = [DECIMAL.sub("0.0", text) for text in trimmed]
    return doctest.OutputChecker().check_output(*trimmed, doctest.ELLIPSIS)


def test_one_version_everywhere() -> None:
    assert deepforecast.__version__ == PROJECT["version"]
    heading = rf"^## \[{re.escape(PROJECT['version'])}\] - (Unreleased|\d{{4}}-\d{{2}}-\d{{2}})$"
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)


@pytest.mark.filterwarnings("ignore:80 % prediction intervals cover less:UserWarning")  # shown on purpose
def test_readme_code_prints_what_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    markdown = (ROOT / "README.md").read_text("utf-8")
    promised = [output for _, output in code_blocks(markdown) if output is not None]
    assert promised, "README.md has no python block that is followed by a text block with what it prints"
    monkeypatch.chdir(tmp_path)
    assert not (found := differences(markdown)), "\n".join(found)


def test_readme_names_every_model() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in MODELS if f"`{name}`" not in readme and f"`{name}(" not in readme] == []


def test_readme_figures_are_those_measured() -> None:
    measured = runpy.run_path(str(ROOT / "benchmarks" / "readme_table.py"))
    readme = (ROOT / "README.md").read_text("utf-8")
    assert measured["updated"](readme) == readme, "run python benchmarks/readme_table.py"
    assert measured["cell"]("ets", ("statsforecast", "MASE")) == "0.9753"
    typed = readme.replace(measured["cell"]("ets", ("AutoETS", "CPU ms per series")), "0.1", 1)
    assert measured["updated"](typed) == readme
    with pytest.raises(SystemExit, match="has no row 'AutoNothing' with a column 'MASE'"):
        measured["cell"]("ets", ("AutoNothing", "MASE"))


def test_readme_names_the_models_that_lack_a_method() -> None:
    updated = runpy.run_path(str(ROOT / "benchmarks" / "readme_table.py"))["updated"]
    readme = (ROOT / "README.md").read_text("utf-8")
    (claims,) = re.findall(r"<!-- capabilities -->(.*?)<!-- end -->", readme)
    for method, capability in (("simulate", "simulates"), ("explain", "explains")):
        lacking = re.findall(rf"`{method}` \(all but ([^)]*)\)", claims)[0].replace("`", "").split(", ")
        models = [getattr(deepforecast, name) for name in MODELS if name not in ("Conformal", "Regression")]
        assert lacking == [model.__name__ for model in models if not getattr(model().capabilities, capability)]
    assert updated(readme.replace(claims, "`simulate`, `explain`")) == readme, "run python benchmarks/readme_table.py"


def test_readme_pictures_are_there() -> None:
    markdown = (ROOT / "README.md").read_text("utf-8")
    missing = [name for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", markdown) if not (ROOT / name).is_file()]
    assert not missing


@pytest.mark.parametrize(
    ("markdown", "count"),
    [
        ("```python\nx = 1\n```\nand\n```python\nprint(x + 1)\n```\n\n```text\n2\n```\n", 0),
        ("```python\nprint('a  ')\nprint(0.123)\n```\n```text\na\n0.1...\n```\n", 0),
        ("```python\nprint('a  0.12346 b 0.02')\n```\n```text\na  0.12345 b ...\n```\n", 0),
        ("```python\nprint(0.12346)\n```\n```text\n0.12446\n```\n", 1),
        ("```python\nprint(1)\n```\n```text\n2\n```\n", 1),
        ("```python\nprint(1)\n```\n```text\n```\n", 1),
        ("```python\nprint(1)\n```\n```bash\n2\n```\n", 0),
    ],
)
def test_a_promise_that_does_not_hold_is_noticed(markdown: str, count: int) -> None:
    assert len(differences(markdown)) == count


def test_readme_code_that_fails_is_noticed() -> None:
    with pytest.raises(ZeroDivisionError):
        differences("```python\n1 / 0\n```\n")


def test_types_are_shipped() -> None:
    assert (ROOT / "deepforecast" / "py.typed").is_file()


def test_no_file_speaks_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {said}"
        for path in tracked()
        for said in private(path.read_bytes().decode("utf-8", errors="replace"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["see /w*ork/main", '"/r*oot/x"', "/h*ome/me", "https://py*pi.org/x", "x.python*hosted.org"])
def test_what_speaks_of_one_machine_is_noticed(text: str) -> None:
    assert private(text) == []  # with the star, or this file would match itself
    assert len(private(text.replace("*", ""))) == 1


@pytest.mark.parametrize("text", ["https://example.org/home/page", "src/work/x", "$HOME/work/x", "/dev/null", "the pypi name"])
def test_what_any_machine_has_passes(text: str) -> None:
    assert private(text) == []


def test_nobody_is_told_to_install_a_package_that_is_somebody_elses() -> None:
    """The public index has another package of this name: ours comes from a checkout."""
    told = re.compile(r"pip install[^`\n]*[ '\"]deep" + r"forecast\b")
    assert told.search("pip install 'deep" + "forecast[onnx]'")
    mutants = ROOT / "tests" / "mutants"  # break this on purpose
    files = [path for path in tracked() if path.parent != mutants]
    assert [path.name for path in files if told.search(path.read_bytes().decode("utf-8", errors="replace"))] == []


def test_make_alone_lists_every_target() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    targets, _, _ = done.stdout.partition("Variables:")
    assert [line.split()[0] for line in targets.splitlines() if line.startswith("  ")] == ["help", *TARGETS]


@pytest.mark.parametrize("script", [".ci/run", ".ci/setup"])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", script], cwd=ROOT, check=True, timeout=240)


def test_the_wheel_is_whole(tmp_path: Path) -> None:
    """Built without the network: every file of the package is in it, and nothing that does not belong there."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("deepforecast-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {str(p.relative_to(ROOT)) for p in tracked() if p.is_relative_to(ROOT / "deepforecast")}
    assert "deepforecast/py.typed" in names
    assert package - names == set()
    assert {name.split("/")[0] for name in names} == {"deepforecast", f"deepforecast-{PROJECT['version']}.dist-info"}
    assert [name for name in names if "__pycache__" in name] == []
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_oldest_constraints_are_the_lower_bounds_of_pyproject() -> None:
    written = runpy.run_path(str(ROOT / ".ci" / "oldest.py"))["oldest"](ROOT)
    assert (ROOT / ".ci" / "oldest.txt").read_text("utf-8") == written, "run python .ci/oldest.py >.ci/oldest.txt"
    assert "\nnumpy==1.26\n" in written
    assert "pytest" not in written


@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        (["numpy"], "must have the form name>=version"),
        (["numpy>=1.26,<3"], "must have the form name>=version"),
        (["numpy>=1.26", "numpy>=2.0"], "numpy must have the same lower bound"),
    ],
)
def test_requirements_without_one_lower_bound_are_refused(tmp_path: Path, requirements: list[str], message: str) -> None:
    project = f"[project]\nname = 'x'\ndependencies = {requirements}\n[project.optional-dependencies]\n"
    (tmp_path / "pyproject.toml").write_text(project, "utf-8")
    with pytest.raises(SystemExit, match=message):
        runpy.run_path(str(ROOT / ".ci" / "oldest.py"))["oldest"](tmp_path)


def test_workflow_runs_the_commands_of_ci_run() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["bash .ci/run"]
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)
    matrix = job["strategy"]["matrix"]
    assert matrix["python"] == [f"3.{minor}" for minor in range(11, 15)]
    assert matrix["include"] == [{"python": "3.11", "dependencies": "oldest"}]
    assert PROJECT["requires-python"] == ">=3.11"
    for name in (*matrix["dependencies"], "oldest"):
        assert (ROOT / ".ci" / f"{name}.txt").is_file()
