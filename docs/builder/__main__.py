"""The site, from sources to checked pages: `make docs`, or `python -m builder` in docs.

pages by hand, README, docstrings, declarations, benchmarks/results, tutorials run  ->  Markdown in build/site-source
the generator  ->  build/site  ->  every link followed
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
    """All pages by the section of the navigation they stand in."""
    start = [home.page(), *(written.page(name) for name in ("install", "guide", "migration")), errors.page()]
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
    """The sources the generator reads: Markdown with names linked and formulas drawn, pictures, configuration."""
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
    """What stands in config.yml, with folders and navigation."""
    nav = [{section: _navigation_entries(section, pages)} for section, pages in pages_by_section.items() if pages]
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))
    name = f"{config['site_name']} {deepforecast.__version__}"
    return {**config, "site_name": name, "docs_dir": "docs", "site_dir": "site", "nav": nav}


def _navigation_entries(section: str, pages: list[Page]) -> list[Any]:
    """Pages of a section; models stand under their families."""
    if section != "Models":
        return [{page.title: page.path} for page in pages]
    overview, *model_pages = pages
    families: dict[str, list[Any]] = {}
    for page in model_pages:
        families.setdefault(models.family_title(page.title), []).append({page.title: page.path})
    return [{overview.title: overview.path}, *({family: entries} for family, entries in families.items())]


def generate(source: Path, site: Path) -> None:
    """Runs the generator; what it warns of ends the build."""
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    process = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if process.returncode or not (source / "site" / "index.html").is_file():
        raise BuildError(f"The generator of the site failed:\n{process.stdout}{process.stderr}")
    (source / "site").rename(site)  # it writes nowhere but below its sources


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m builder", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tutorials", choices=("full", "short", "none"), default="full",
                        help="how they are run: as a reader would (default), with less training, or not at all")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="tutorials run at a time")
    parser.add_argument("--to", type=Path, default=BUILD, help="folder that gets site/ and its sources (default: build)")
    options = parser.parse_args(arguments)
    begin, source, site = time.monotonic(), options.to / "site-source", options.to / "site"
    try:
        pages_by_section = sections(course.pages(options.tutorials, options.jobs))
        write(pages_by_section, source)
        generate(source, site)
        index(pages_by_section, site)
        if broken_links := broken(site):
            raise BuildError("Links that lead nowhere:\n" + "\n".join(broken_links))
    except BuildError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    count = sum(map(len, pages_by_section.values()))
    print(f"docs: {count} pages in {time.monotonic() - begin:.0f} s; open {os.path.relpath(site)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
