"""The pages written by hand: their code runs, packages are drawn as the linter has them, and the whole site builds and is seen."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

from deepforecast.errors import DataWarning, TrainingWarning
from tests.docs import browse, webdriver

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "pages"


def ours(markdown: str) -> str:
    """The pieces of code that are run: those marked `python`; `py` is other libraries' code."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL))


def test_architecture_are_drawn_as_the_linter_has_them() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    drawn = " ─► ".join(layer.replace("(", "").replace(")", "") for layer in contract["layers"])
    for page in (PAGES / "design.md", ROOT / "CONTRIBUTING.md"):
        assert drawn in page.read_text("utf-8"), page.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["install", "guide", "migration", "networks"])
def test_code_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        for kind in (DataWarning, TrainingWarning):
            warnings.simplefilter("error", kind)
        exec(compile(ours((PAGES / f"{name}.md").read_text("utf-8")), f"{name}.md", "exec"), {"__name__": name})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without the tutorials, which have a test of their own."""
    if find_spec("zensical") is None:
        pytest.skip("the generator of the site is not installed: pip install '.[docs]'")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "docs"), *sys.path])}
    folder = tmp_path_factory.mktemp("build")
    command = [sys.executable, "-m", "builder", "--tutorials", "none", "--to", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_builds_and_every_link_leads_somewhere(site: Path) -> None:
    names = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert {"index.html", "migration.html", "errors.html", "models/LSTM.html", "reference/evaluation.html"} <= names
    told = (site / "llms.txt").read_text("utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", told):
        assert (site / target).is_file(), target
    said = (site / "errors.html").read_text("utf-8")
    assert "there are duplicates in series s0" in said


@pytest.mark.slow
def test_the_site_is_well_in_a_browser(site: Path) -> None:
    if lacking := webdriver.missing():
        pytest.skip(f"{lacking} is not installed")
    assert browse.browse(site) == []
