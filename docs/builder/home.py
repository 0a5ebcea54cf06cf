"""Pages made from files in the root folder of the project; the home page is the README."""

from __future__ import annotations

import re

from builder.page import ROOT, BuildError, Page

LINK_TARGETS = {  # link in a file of the repository (pattern) -> page of the site
    r"\.\./\.\./README\.md#what-is-here": "models/index.md",
    r"\.\./\.\./benchmarks/results/(\w+)\.md": r"benchmarks/\1.md",
    r"\.\./\.\./benchmarks/results/": "benchmarks/index.md",
    r"\.\./\.\./CONTRIBUTING\.md": "contributing.md",
    r"docs/pages/(install\.md(?:#[\w-]+)?)": r"\1",
    r"\.\./\.\./SECURITY\.md": "security.md",
    r"((?:design|errors|guide|install|migration|networks|reliability)\.md(?:#[\w-]+)?)": r"\1",
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
<div class="entry-links" markdown="0">
<a href="install.html"><strong>Install</strong>in two commands</a>
<a href="guide.html"><strong>Which model?</strong>from your data to three candidates</a>
<a href="tutorials/index.html"><strong>The course</strong>from baselines to Transformers, step by step</a>
<a href="migration.html"><strong>Coming from another library</strong>the same task side by side</a>
<a href="errors.html"><strong>What does this message mean?</strong>each with its fix</a>
</div>
"""


def page() -> Page:
    """Return the home page: the README, with links to the main pages after its first paragraph."""
    text = placed((ROOT / "README.md").read_text("utf-8"))
    head, first, remainder = text.split("\n\n", 2)
    return Page(
        "index.md", "Home", f"{head}\n\n{first}\n{ENTRY_LINKS}\n{remainder}", tuple(sorted((ROOT / ".github").glob("*.png")))
    )


def copied(name: str, title: str) -> Page:
    """Return the page of another file in the root folder."""
    return Page(name.lower(), title, placed((ROOT / name).read_text("utf-8")))


def placed(markdown: str) -> str:
    """Replace the links of a file by links to pages of the site; raises `BuildError` for unknown targets."""
    return re.sub(r"(?<=\]\()[^)\s]+(?=\))", lambda link: _link_target(link[0]), markdown)


def _link_target(link: str) -> str:
    for pattern, target in LINK_TARGETS.items():
        if re.fullmatch(pattern, link):
            return re.sub(f"^{pattern}$", target, link)
    raise BuildError(
        f"The link {link!r} must have a page on the site, but has none. Use another link, or add it to LINK_TARGETS in "
        f"{__name__}."
    )
