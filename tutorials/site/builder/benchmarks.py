"""What was measured: every file of benchmarks/results as a page, and a list of them."""

from __future__ import annotations

import re

from builder.page import ROOT, Page, table

RESULTS = ROOT / "benchmarks" / "results"
ABOUT = """# Benchmarks

Every figure here was written by a command in `benchmarks/` that anyone can rerun (`make benchmark`, or one script at a time);
each page says which, on what machine, with what versions. Times are those of two cores without a GPU. Where we lose, the page
says so.
"""


def pages() -> list[Page]:
    """The list, and a page for each result."""
    found = [_page(path.stem, path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.md"))]
    rows = [[f"[{page.title}]({page.path.removeprefix('benchmarks/')})", page.summary] for page in found]
    return [Page("benchmarks/index.md", "Overview", ABOUT + "\n" + table(["measured", "what"], rows) + "\n"), *found]


def _page(name: str, text: str) -> Page:
    title = text.partition("\n")[0].removeprefix("# ").strip()
    return Page(f"benchmarks/{name}.md", title.replace("`", ""), re.sub(r"\]\((\w+)\.md\)", r"](\1.md)", text))
