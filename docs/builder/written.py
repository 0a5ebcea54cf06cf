"""Handwritten pages with parts generated from the library, between two comments.

<!-- models missing -->...<!-- end -->     the models that declare a capability
<!-- packages --><!-- end -->              the packages and their contents
<!-- source PATH --><!-- end -->           the text of a file of the project
<!-- synonyms --><!-- end -->              parameter names of other libraries

The lists of models and the messages of errors.md are stored in the files, since these are also read in the
repository: run `python -m builder.written` in docs to update them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator

from builder.home import placed
from builder.page import ROOT, WRITTEN, BuildError, Page, table
from deepforecast.core import registry
from deepforecast.core.synonyms import SYNONYMS

MARK = re.compile(r"<!-- (?P<what>\w+)(?: (?P<of>\S+))? -->(?P<content>.*?)<!-- end -->", flags=re.DOTALL)


def page(name: str) -> Page:
    """Return a page with its generated parts; the first heading is the title."""
    text = (WRITTEN / f"{name}.md").read_text("utf-8")
    text_with_contents = placed(MARK.sub(lambda mark: _filled(mark, name), text))
    return Page(f"{name}.md", text.partition("\n")[0].removeprefix("# "), text_with_contents)


def updated(name: str) -> str:
    """Return the source of a page with its generated parts updated."""
    text = (WRITTEN / f"{name}.md").read_text("utf-8")
    return MARK.sub(
        lambda mark: f"<!-- {mark['what']}{' ' + mark['of'] if mark['of'] else ''} -->{_filled(mark, name)}<!-- end -->", text
    )


def _filled(mark: re.Match[str], name: str) -> str:
    if mark["what"] not in FILLERS:
        raise BuildError(f"{name}.md: the mark must be one of {', '.join(FILLERS)}, got {mark.group()}.")
    return FILLERS[mark["what"]](mark["of"] or "")


def able(capability: str) -> str:
    """Return the names of the models that declare a capability.

    Parameters
    ----------
    capability : str
        Field of `Capabilities`, or "global" for models that are trained on all series.

    Returns
    -------
    str
        The names, or "all but ..." if more than two thirds of the models qualify.
    """
    classes = list(registry.models())
    if capability == "global":
        names = [cls.__name__ for cls in classes if not cls.capabilities.by_series]
    else:
        names = [cls.__name__ for cls in classes if getattr(cls.capabilities, capability)]
    if len(names) > len(classes) * 2 / 3:
        excluded = sorted({cls.__name__ for cls in classes} - set(names))
        return "all but " + ", ".join(f"`{name}`" for name in excluded) if excluded else "all"
    return ", ".join(f"`{name}`" for name in names)


def packages(_: str = "") -> str:
    """Return a table of the subpackages, from the top layer down, with the first line of their docstrings."""
    return table(["package", "contents"], [[f"`{name}`", _package_summary(name)] for name in layers()])


def layers() -> Iterator[str]:
    """Yield the subpackages in the order of the layers declared for import-linter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for line in project["tool"]["importlinter"]["contracts"][0]["layers"]:
        for name in line.split("|"):
            package = name.strip(" ()")
            if (ROOT / "deepforecast" / package).is_dir() or (ROOT / "deepforecast" / f"{package}.py").is_file():
                yield package


def _package_summary(package: str) -> str:
    path = ROOT / "deepforecast" / package / "__init__.py"
    source = (path if path.is_file() else ROOT / "deepforecast" / f"{package}.py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def source(path: str) -> str:
    """Return a file of the project as a code block."""
    return f"```python\n{(ROOT / path).read_text('utf-8').rstrip()}\n```"


def main() -> None:
    """Update the generated parts of the pages that the README links to."""
    from builder import errors

    for name, text in (("guide", updated("guide")), ("migration", updated("migration")), ("errors", errors.updated())):
        (WRITTEN / f"{name}.md").write_text(text, "utf-8")


def synonyms(_: str = "") -> str:
    """Return a table of parameter names of other libraries and their names in this one."""
    rows = [
        [library, f"`{name}`", " or ".join(f"`{target}`" for target in targets if " " not in target) or targets[0]]
        for library, names in SYNONYMS.items()
        if not library.startswith("deepforecast")
        for name, targets in names.items()
    ]
    return "\n" + table(["library", "name in that library", "name in deepforecast"], rows) + "\n"


FILLERS: dict[str, Callable[[str], str]] = {
    "models": able, "packages": packages, "source": source, "synonyms": synonyms,
}  # fmt: skip

if __name__ == "__main__":
    main()
