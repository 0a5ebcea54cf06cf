"""Build the documentation site and check its links: `make docs`, or `python -m builder` in docs.

1. Written pages, README, docstrings, declared parameters, benchmarks/results and the output of the
   tutorials become Markdown in build/site-source.
2. The site generator (Zensical) creates build/site.
3. Every link of the site is checked.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

import deepforecast
from builder import benchmarks, course, errors, further, home, models, reference, written
from builder.links import broken, linked
from builder.llms import index
from builder.mathematics import typeset
from builder.page import BUILD, ROOT, WRITTEN, BuildError, Page, folded

CONFIG = ROOT / "docs" / "config.yml"
Sections = dict[str, list[Page]]


def sections(course_pages: list[Page]) -> Sections:
    """Return all pages by section of the navigation."""
    start = [home.page(), *(written.page(name) for name in ("install", "guide", "networks", "migration")), errors.page()]
    copied = [home.copied(f"{title.upper()}.md", title) for title in ("Contributing", "Changelog", "Security")]
    background_pages = [written.page("design"), written.page("reliability"), *copied]
    return {
        "Start": start,
        "Course": course_pages,
        "Models": models.pages(),
        "Reference": [*reference.pages(), further.page(reference.places())],
        "Benchmarks": benchmarks.pages(),
        "How it is built": background_pages,
    }


def write(pages_by_section: Sections, source: Path) -> None:
    """Write the sources of the site generator: Markdown, pictures and configuration.

    Public names in the Markdown become links, and TeX formulas become MathML.

    Parameters
    ----------
    pages_by_section : dict of str to list of Page
        Pages by section of the navigation.
    source : Path
        Folder to write; existing contents are removed.
    """
    targets = reference.places()
    targets |= further.places(targets)
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(WRITTEN / "assets", source / "docs" / "assets")
    for page in (page for pages in pages_by_section.values() for page in pages):
        path = source / "docs" / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(typeset(linked(folded(page.text), page.path, targets), page.path), "utf-8")
        for picture in page.pictures:
            shutil.copy(picture, path.parent)
    (source / "mkdocs.yml").write_text(yaml.safe_dump(configuration(pages_by_section), sort_keys=False), "utf-8")


def configuration(pages_by_section: Sections) -> dict[str, Any]:
    """Return the settings of config.yml, completed by folders and navigation."""
    nav = [{section: _navigation_entries(section, pages)} for section, pages in pages_by_section.items() if pages]
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))
    name = f"{config['site_name']} {deepforecast.__version__}"
    return {**config, "site_name": name, "docs_dir": "docs", "site_dir": "site", "nav": nav}


def _navigation_entries(section: str, pages: list[Page]) -> list[Any]:
    """Return the navigation of a section; models are grouped by family."""
    if section != "Models":
        return [{page.title: page.path} for page in pages]
    overview, *model_pages = pages
    families: dict[str, list[Any]] = {}
    for page in model_pages:
        families.setdefault(models.family_title(page.title), []).append({page.title: page.path})
    return [{overview.title: overview.path}, *({family: entries} for family, entries in families.items())]


def generate(source: Path, site: Path) -> None:
    """Run the site generator; raises `BuildError` on its errors and warnings."""
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    process = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if process.returncode or not (source / "site" / "index.html").is_file():
        raise BuildError(f"The site generator failed:\n{process.stdout}{process.stderr}")
    (source / "site").rename(site)  # the generator writes only below its sources


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m builder", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tutorials", choices=("full", "short", "none"), default="full",
                        help="run the tutorials in full (default), with less training, or not at all")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="number of tutorials to run in parallel")
    parser.add_argument("--to", type=Path, default=BUILD, help="output folder of site/ and site-source/ (default: build)")
    options = parser.parse_args(arguments)
    begin, source, site = time.monotonic(), options.to / "site-source", options.to / "site"
    try:
        pages_by_section = sections(course.pages(options.tutorials, options.jobs))
        write(pages_by_section, source)
        generate(source, site)
        index(pages_by_section, site)
        if broken_links := broken(site):
            raise BuildError("Links must have a target; these have none:\n" + "\n".join(broken_links))
    except BuildError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    count = sum(map(len, pages_by_section.values()))
    print(f"docs: {count} pages in {time.monotonic() - begin:.0f} s; open {os.path.relpath(site)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
