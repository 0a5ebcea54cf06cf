"""Pages of the benchmarks: an overview, and one page for each file of benchmarks/results."""

from __future__ import annotations

import re

from builder.page import ROOT, Page, table

FOLDER = ROOT / "benchmarks"
RESULTS = """## Results

Every figure was produced by a command that can be run again; each page gives the command, the machine and the versions.
Times were measured on two cores without a GPU. Results in which another library is better are included.
"""


def pages() -> list[Page]:
    """Return the overview (README of the benchmarks and the list of results) and one page per result."""
    result_pages = [_page(path.stem, path.read_text("utf-8")) for path in sorted((FOLDER / "results").glob("*.md"))]
    rows = [[f"[{page.title}]({page.path.removeprefix('benchmarks/')})", page.summary] for page in result_pages]
    about = (FOLDER / "README.md").read_text("utf-8")
    return [
        Page("benchmarks/index.md", "Overview", f"{about}\n{RESULTS}\n{table(['benchmark', 'description'], rows)}\n"),
        *result_pages,
    ]


def _page(name: str, text: str) -> Page:
    title = text.partition("\n")[0].removeprefix("# ").strip()
    return Page(f"benchmarks/{name}.md", title.replace("`", ""), re.sub(r"\]\((\w+)\.md\)", r"](\1.md)", text))
