"""What a notebook would show of a tutorial: its text, what each cell prints, and its pictures, as one page of Markdown.

    python tutorials/show.py 03 FOLDER          # writes FOLDER/03_topic.md and FOLDER/03_topic-1.png, ...

An interactive picture of plotly's becomes a page of its own, 03_topic-2.plotly.html, that is shown within the first.
`cells` and `run` are all that a page of another kind needs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MARK, TEXT = "# %%", "# %% [markdown]"


@dataclass(frozen=True)
class Cell:
    """Text in Markdown (`prose`) or code, and the line of the script on which it begins."""

    prose: bool
    text: str
    line: int


def scripts() -> list[Path]:
    """Every tutorial, in the order of the course."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def cells(source: str) -> list[Cell]:
    """The cells of a percent-format script, those without content left out."""
    found: list[Cell] = []
    lines = source.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith(MARK)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        prose, body = lines[start].rstrip() == TEXT, lines[start + 1 : end]
        if prose:
            body = [line[2:] if line.startswith("# ") else line.removeprefix("#") for line in body]
        if text := "\n".join(body).rstrip():
            found.append(Cell(prose, text, start + 2))
    return found


def run(cell: Cell, namespace: dict[str, Any], name: str = "tutorial") -> tuple[str, list[Any]]:
    """Runs a cell of code: what it prints, and its figures: the value of its last line, and those pyplot holds open."""
    tree = ast.increment_lineno(ast.parse(cell.text), cell.line - 1)
    last = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)  # noqa: S102
        value = None if last is None else eval(compile(ast.Expression(last), name, "eval"), namespace)  # noqa: S307
    drawn = hasattr(value, "savefig") or hasattr(value, "to_plotly_json")
    return printed.getvalue(), [*([value] if drawn else []), *_open_figures()]


def _open_figures() -> list[Any]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return figures


def page(script: Path, folder: Path) -> str:
    """The tutorial as Markdown; its pictures are written into `folder`."""
    parts, count = [], 0
    with as_main() as namespace:
        for cell in cells(script.read_text("utf-8")):
            if cell.prose:
                parts.append(cell.text)
                continue
            printed, figures = run(cell, namespace, str(script))
            parts.append(f"```python\n{cell.text}\n```")
            if printed.strip():
                parts.append(f"```text\n{printed.rstrip()}\n```")
            for figure in figures:
                count += 1
                parts.append(_drawn(figure, folder, f"{script.stem}-{count}", f"picture {count}"))
    return "\n\n".join(parts) + "\n"


def _drawn(figure: Any, folder: Path, name: str, title: str) -> str:
    """Writes a figure; the Markdown that shows it."""
    if hasattr(figure, "savefig"):
        figure.savefig(folder / f"{name}.png", dpi=110)
        return f"![{title}]({name}.png)"
    page = folder / f"{name}.plotly.html"  # "directory": the script that draws is written beside, once for all pictures
    figure.write_html(page, include_plotlyjs="directory", config={"responsive": True, "displaylogo": False})
    height = (figure.layout.height or 450) + 10
    return f'<iframe class="interactive" src="{page.name}" title="{title}" loading="lazy" height="{height}"></iframe>'


@contextlib.contextmanager
def as_main() -> Iterator[dict[str, Any]]:
    """A namespace that is the module `__main__` meanwhile: classes of a script are looked up there when they go to a worker."""
    before, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        yield vars(sys.modules["__main__"])
    finally:
        sys.modules["__main__"] = before


def main(number: str, to: str) -> None:
    os.environ.setdefault("MPLBACKEND", "Agg")
    found = [script for script in scripts() if script.name.startswith(number)]
    if not found:
        raise SystemExit(f"no tutorial {number}; there are {', '.join(script.stem for script in scripts())}")
    folder = Path(to)
    folder.mkdir(parents=True, exist_ok=True)
    for script in found:
        (folder / f"{script.stem}.md").write_text(page(script, folder), encoding="utf-8")
        print(folder / f"{script.stem}.md")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
