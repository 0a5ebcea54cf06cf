"""Pages of the tutorials with their output and figures; a tutorial runs again only if it or the library has changed."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from builder.page import CACHE, ROOT, BuildError, Page

COURSE = ROOT / "tutorials"
DEPENDENCIES = ("numpy", "pandas", "torch", "matplotlib", "scikit-learn", "optuna", "scipy", "numba")
NOTES = {
    "full": "",
    "short": '!!! note "Run with less training: the figures differ from those in the text."\n\n',
    "none": '!!! note "Not run: output and figures are missing."\n\n',
}
TIMEOUT = 3600  # seconds; a tutorial takes at most 600 s on an idle machine


def scripts() -> list[Path]:
    """Return the tutorials in the order of the course."""
    return sorted(COURSE.glob("[0-9][0-9]_*.py"))


def pages(setting: str, jobs: int = 1) -> list[Page]:
    """Return the overview of the course and one page per tutorial.

    Parameters
    ----------
    setting : {"full", "short", "none"}
        Run the tutorials in full, with less training, or not at all.
    jobs : int, default 1
        Number of tutorials to run in parallel.

    Raises
    ------
    BuildError
        If a tutorial fails or exceeds the time limit.
    """
    if setting == "none":
        cells_of = runpy.run_path(str(COURSE / "show.py"))["cells"]
        rendered_scripts = [(_render_unrun(cells_of(script.read_text("utf-8"))), list[Path]()) for script in scripts()]
    else:
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            rendered_scripts = list(pool.map(lambda script: _shown(script, setting == "short", jobs), scripts()))
    tutorial_pages = [_page(script, setting, *rendered) for script, rendered in zip(scripts(), rendered_scripts, strict=True)]
    return [Page("tutorials/index.md", "The course", _index()), *tutorial_pages]


def _index() -> str:
    """Return the first part of the README of the tutorials; the rest is for their authors."""
    text = (COURSE / "README.md").read_text("utf-8").partition("\n## ")[0]
    return re.sub(r"\]\((\d\d_\w+)\.py\)", r"](\1.md)", text) + "\n"


def _page(script: Path, setting: str, text: str, pictures: list[Path]) -> Page:
    head, _, remainder = text.partition("\n")
    title = re.sub(r"\s*·\s*", " ", head.removeprefix("# ")).strip()
    body = f"{head}\n\n{NOTES[setting]}[{script.name}]({script.name}){{ download }} is the script of this page.\n{remainder}"
    return Page(f"tutorials/{script.stem}.md", title, body, (*pictures, script))


def _render_unrun(cells: list[Any]) -> str:
    """Return text and code of a tutorial without output."""
    return "\n\n".join(cell.text if cell.prose else f"```python\n{cell.text}\n```" for cell in cells) + "\n"


def _shown(script: Path, short: bool, jobs: int) -> tuple[str, list[Path]]:
    """Return a tutorial with its output, and its pictures; runs it unless the cache has them."""
    folder = CACHE / f"{script.stem}-{_key(script, short)}"
    if not (folder / f"{script.stem}.md").is_file():
        for stale in CACHE.glob(f"*{script.stem}*"):
            shutil.rmtree(stale)
        _run(script, folder, short, jobs)
    return (folder / f"{script.stem}.md").read_text("utf-8"), sorted(path for path in folder.iterdir() if path.suffix != ".md")


def _run(script: Path, folder: Path, short: bool, jobs: int) -> None:
    """Run a tutorial in a separate process; the folder gets its final name only when the run is complete."""
    begin, unfinished = time.monotonic(), folder.with_name(f"making-{script.stem}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    threads = str(max(1, (os.cpu_count() or 1) // jobs))  # parallel tutorials must not oversubscribe the CPUs
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "DEEPFORECAST_SHORT": "1" if short else "0",
           "OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}  # fmt: skip
    command = [sys.executable, str(COURSE / "show.py"), script.stem, str(unfinished)]
    try:
        process = subprocess.run(command, cwd=unfinished, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise BuildError(f"{script.relative_to(ROOT)} must end within {TIMEOUT} s, but was still running.") from None
    if process.returncode:
        raise BuildError(describe_failure(script, process.stderr))
    unfinished.rename(folder)
    print(f"docs: ran {script.relative_to(ROOT)} in {time.monotonic() - begin:.0f} s", flush=True)


def describe_failure(script: Path, trace: str) -> str:
    """Return the error message of a tutorial that failed: script, line and traceback."""
    lines = re.findall(rf'File "{re.escape(str(script))}", line (\d+)', trace)
    location = f"{script.relative_to(ROOT)}, line {lines[-1]}" if lines else str(script.relative_to(ROOT))
    return f"{location}: the tutorial failed.\n\n{trace.rstrip()}"


def _key(script: Path, short: bool) -> str:
    """Return the cache key of a tutorial: a hash of everything that may affect its output."""
    sources: Iterable[Path] = [script, COURSE / "show.py", *sorted((ROOT / "deepforecast").rglob("*.py"))]
    digest = hashlib.sha256(f"{short} {[version(name) for name in DEPENDENCIES]} {sys.version}".encode())
    for path in sources:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
