"""Pages made of the files at the top of the project: the first one is its README."""

from __future__ import annotations

import re

from builder.page import ROOT, BuildError, Page

LINK_TARGETS = {  # where what the files link to stands on the site; written pages link from their own folder
    r"\.\./\.\./README\.md#what-is-here": "models/index.md",
    r"\.\./\.\./benchmarks/results/(\w+)\.md": r"benchmarks/\1.md",
    r"\.\./\.\./benchmarks/results/": "benchmarks/index.md",
    r"\.\./\.\./CONTRIBUTING\.md": "contributing.md",
    r"\.\./\.\./SECURITY\.md": "security.md",
    r"((?:design|errors|guide|install|migration|reliability)\.md(?:#[\w-]+)?)": r"\1",
    r"(reference/[\w-]+\.md)": r"\1",
    r"benchmarks/results/(\w+)\.md": r"benchmarks/\1.md",
    r"benchmarks/(?:README\.md|results/)?": "benchmarks/index.md",
    r"CONTRIBUTING\.md": "contributing.md",
    r"CHANGELOG\.md": "changelog.md",
    r"SECURITY\.md": "security.md",
    r"tutorials/(\d\d_\w+)\.py": r"tutorials/\1.md",
    r"tutorials/(?:README\.md)?": "tutorials/index.md",
    r"docs/pages/(\w+)\.md": r"\1.md",
    r"\.github/(\w+\.png)": r"\1",
    r"LICENSE": "https://www.apache.org/licenses/LICENSE-2.0",
    r"((?:https?://|#).*)": r"\1",
}
ENTRY_LINKS = """
<div class="doors" markdown="0">
<a href="install.html"><strong>Install</strong>in two commands</a>
<a href="guide.html"><strong>Which model?</strong>from your data to three candidates</a>
<a href="tutorials/index.html"><strong>The course</strong>from baselines to Transformers, step by step</a>
<a href="migration.html"><strong>Coming from another library</strong>the same task side by side</a>
<a href="errors.html"><strong>What does this message mean?</strong>each with its way out</a>
</div>
"""


def page() -> Page:
    """The README, with doors to the rest behind its first paragraph."""
    text = placed((ROOT / "README.md").read_text("utf-8"))
    head, first, remainder = text.split("\n\n", 2)
    return Page(
        "index.md", "Home", f"{head}\n\n{first}\n{ENTRY_LINKS}\n{remainder}", tuple(sorted((ROOT / ".github").glob("*.png")))
    )


def copied(name: str, title: str) -> Page:
    """Another file of the top of the project."""
    return Page(name.lower(), title, placed((ROOT / name).read_text("utf-8")))


def placed(markdown: str) -> str:
    """The text with its links leading to where their targets stand on the site."""
    return re.sub(r"(?<=\]\()[^)\s]+(?=\))", lambda link: _link_target(link[0]), markdown)


def _link_target(link: str) -> str:
    for pattern, target in LINK_TARGETS.items():
        if re.fullmatch(pattern, link):
            return re.sub(f"^{pattern}$", target, link)
    raise BuildError(f"{link!r}, which a file at the top links to, has no place on the site: add it to PLACES in {__name__}.")
