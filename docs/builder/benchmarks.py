"""What was measured: every file of benchmarks/results as a page, and a list of them."""

from __future__ import annotations

import re

from builder.page import ROOT, Page, table

FOLDER = ROOT / "benchmarks"
RESULTS = """## Results

Every figure was written by a command that anyone can rerun; each page says which, on what machine, with what versions. Times
are those of two cores without a GPU. Where another library is ahead, the page says so.
"""


def pages() -> list[Page]:
    """The README beside the benchmarks with the list of results, and a page for each result."""
    result_pages = [_page(path.stem, path.read_text("utf-8")) for path in sorted((FOLDER / "results").glob("*.md"))]
    rows = [[f"[{page.title}]({page.path.removeprefix('benchmarks/')})", page.summary] for page in result_pages]
    about = (FOLDER / "README.md").read_text("utf-8")
    return [
        Page("benchmarks/index.md", "Overview", f"{about}\n{RESULTS}\n{table(['measured', 'what'], rows)}\n"),
        *result_pages,
    ]


def _page(name: str, text: str) -> Page:
    title = text.partition("\n")[0].removeprefix("# ").strip()
    return Page(f"benchmarks/{name}.md", title.replace("`", ""), re.sub(r"\]\((\w+)\.md\)", r"](\1.md)", text))
