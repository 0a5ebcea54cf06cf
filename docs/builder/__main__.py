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
    built = [written.page("design"), written.page("reliability"), *copied]
    return {
        "Start": start,
        "Course": course_pages,
        "Models": models.pages(),
        "Reference": [*reference.pages(), further.page(reference.places())],
        "Benchmarks": benchmarks.pages(),
        "How it is built": built,
    }


def write(found: Sections, source: Path) -> None:
    """The sources the generator reads: Markdown with names linked and formulas drawn, pictures, configuration."""
    places = reference.places()
    places |= further.places(places)
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(WRITTEN / "assets", source / "docs" / "assets")
    for page in (page for pages in found.values() for page in pages):
        target = source / "docs" / page.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(typeset(linked(folded(page.text), page.path, places), page.path), "utf-8")
        for picture in page.pictures:
            shutil.copy(picture, target.parent)
    (source / "mkdocs.yml").write_text(yaml.safe_dump(configuration(found), sort_keys=False), "utf-8")


def configuration(found: Sections) -> dict[str, Any]:
    """What stands in config.yml, with folders and navigation."""
    nav = [{section: _entries(section, pages)} for section, pages in found.items() if pages]
    told: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))
    name = f"{told['site_name']} {deepforecast.__version__}"
    return {**told, "site_name": name, "docs_dir": "docs", "site_dir": "site", "nav": nav}


def _entries(section: str, pages: list[Page]) -> list[Any]:
    """Pages of a section; models stand under their families."""
    if section != "Models":
        return [{page.title: page.path} for page in pages]
    first, *rest = pages
    families: dict[str, list[Any]] = {}
    for page in rest:
        families.setdefault(models.family_title(page.title), []).append({page.title: page.path})
    return [{first.title: first.path}, *({family: entries} for family, entries in families.items())]


def generate(source: Path, site: Path) -> None:
    """Runs the generator; what it warns of ends the build."""
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if done.returncode or not (source / "site" / "index.html").is_file():
        raise BuildError(f"The generator of the site failed:\n{done.stdout}{done.stderr}")
    (source / "site").rename(site)  # it writes nowhere but below its sources


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m builder", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tutorials", choices=("full", "short", "none"), default="full",
                        help="how they are run: as a reader would (default), with less training, or not at all")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="tutorials run at a time")
    parser.add_argument("--to", type=Path, default=BUILD, help="folder that gets site/ and its sources (default: build)")
    given = parser.parse_args(arguments)
    begin, source, site = time.monotonic(), given.to / "site-source", given.to / "site"
    try:
        found = sections(course.pages(given.tutorials, given.jobs))
        write(found, source)
        generate(source, site)
        index(found, site)
        if lost := broken(site):
            raise BuildError("Links that lead nowhere:\n" + "\n".join(lost))
    except BuildError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    count = sum(map(len, found.values()))
    print(f"docs: {count} pages in {time.monotonic() - begin:.0f} s; open {os.path.relpath(site)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
