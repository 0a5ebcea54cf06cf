"""Run a tutorial and write its text, code, printed output and figures as a Markdown page, like a notebook.

    python tutorials/show.py 03 FOLDER          # writes FOLDER/03_topic.md and FOLDER/03_topic-1.png, ...

Interactive plotly figures are written as separate HTML pages, e.g. 03_topic-2.plotly.html, and embedded in the page.
`cells` and `run` can be used to write other formats.
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

FOLDER = Path(__file__).resolve().parent
CELL_MARKER, MARKDOWN_MARKER = "# %%", "# %% [markdown]"


@dataclass(frozen=True)
class Cell:
    """A cell of Markdown (`prose`) or code, and the line of the script on which it begins."""

    prose: bool
    text: str
    line: int


def scripts() -> list[Path]:
    """All tutorials, in the order of the course."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def cells(source: str) -> list[Cell]:
    """The cells of a script in percent format, without empty cells."""
    parsed_cells: list[Cell] = []
    lines = source.splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith(CELL_MARKER)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        prose, body = lines[start].rstrip() == MARKDOWN_MARKER, lines[start + 1 : end]
        if prose:
            body = [line[2:] if line.startswith("# ") else line.removeprefix("#") for line in body]
        if text := "\n".join(body).rstrip():
            parsed_cells.append(Cell(prose, text, start + 2))
    return parsed_cells


def run(cell: Cell, namespace: dict[str, Any], name: str = "tutorial") -> tuple[str, list[Any]]:
    """Run a code cell and return its printed output and its figures.

    The figures are the value of the last line, if it is one, and the open pyplot figures.
    """
    tree = ast.increment_lineno(ast.parse(cell.text), cell.line - 1)
    last_expression = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else None
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(tree, name, "exec"), namespace)  # noqa: S102
        value = None
        if last_expression is not None:
            value = eval(compile(ast.Expression(last_expression), name, "eval"), namespace)  # noqa: S307
    is_figure = hasattr(value, "savefig") or hasattr(value, "to_plotly_json")
    return output.getvalue(), [*([value] if is_figure else []), *_close_open_figures()]


def _close_open_figures() -> list[Any]:
    """Close the open pyplot figures and return them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return figures


def page(script: Path, folder: Path) -> str:
    """Run a tutorial and return it as Markdown. Its figures are written to `folder`."""
    blocks, n_figures = [], 0
    with as_main() as namespace:
        for cell in cells(script.read_text("utf-8")):
            if cell.prose:
                blocks.append(cell.text)
                continue
            output, figures = run(cell, namespace, str(script))
            blocks.append(f"```python\n{cell.text}\n```")
            if output.strip():
                blocks.append(f"```text\n{output.rstrip()}\n```")
            for figure in figures:
                n_figures += 1
                blocks.append(_write_figure(figure, folder, f"{script.stem}-{n_figures}", f"picture {n_figures}"))
    return "\n\n".join(blocks) + "\n"


def _write_figure(figure: Any, folder: Path, name: str, title: str) -> str:
    """Write a figure and return the Markdown that embeds it."""
    if hasattr(figure, "savefig"):
        figure.savefig(folder / f"{name}.png", dpi=110)
        return f"![{title}]({name}.png)"
    path = folder / f"{name}.plotly.html"
    # "directory": all figures share one copy of plotly.min.js in the folder
    figure.write_html(path, include_plotlyjs="directory", config={"responsive": True, "displaylogo": False})
    height = (figure.layout.height or 450) + 10
    return f'<iframe class="interactive" src="{path.name}" title="{title}" loading="lazy" height="{height}"></iframe>'


@contextlib.contextmanager
def as_main() -> Iterator[dict[str, Any]]:
    """The namespace of a module that temporarily replaces `__main__`.

    Worker processes look up the classes of a script in `__main__`.
    """
    previous_main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        yield vars(sys.modules["__main__"])
    finally:
        sys.modules["__main__"] = previous_main


def main(number: str, output_folder: str) -> None:
    os.environ.setdefault("MPLBACKEND", "Agg")
    selected = [script for script in scripts() if script.name.startswith(number)]
    if not selected:
        raise SystemExit(f"No tutorial {number}. Use one of {', '.join(script.stem for script in scripts())}.")
    folder = Path(output_folder)
    folder.mkdir(parents=True, exist_ok=True)
    for script in selected:
        (folder / f"{script.stem}.md").write_text(page(script, folder), encoding="utf-8")
        print(folder / f"{script.stem}.md")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
