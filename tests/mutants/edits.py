"""Search and replace on a symbol: how a mutant changes the source code.

An edit replaces `old` by `new` in the source of one symbol, written `package.module:Class.method`. Code can then move to
another file, or its neighbours change, and at most the name of the symbol has to follow.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

Span = tuple[int, int]  # start and end of a piece of text, in characters


class GoneError(Exception):
    """The symbol, or its file, does not exist."""


class StaleError(Exception):
    """The text to replace does not occur exactly once."""


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in a symbol, or in a file that is not Python; without `old`, `new` is a new file."""

    target: str
    old: str | None
    new: str

    @property
    def is_symbol(self) -> bool:
        """Whether the target is a symbol (module:name), not a path."""
        return ":" in self.target

    def path(self, root: Path) -> Path:
        """The file to change."""
        if not self.is_symbol:
            return root / self.target
        stem = root / self.target.partition(":")[0].replace(".", "/")
        return stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")

    def apply(self, text: str | None) -> str:
        """The changed text of the file, which is None where there is no such file."""
        if self.old is None:
            if text is not None:
                raise StaleError(f"{self.target} exists already, and the mutant is to add it")
            return self.new
        if text is None:
            raise GoneError(f"{self.target.partition(':')[0]} does not exist")
        spans = symbol_spans(text, self.target.partition(":")[2]) if self.is_symbol else [(0, len(text))]
        if not spans:
            raise GoneError(f"{self.target} does not exist")
        return replace_once(text, spans, self.old, self.new, self.target)


def symbol_spans(text: str, name: str) -> list[Span]:
    """Where the symbol is defined, decorators included; no name stands for the code outside of functions and classes.

    A name defined several times (overloads, the branches of an `if`) has several spans.
    """
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = [
        (starts[first - 1], starts[node.end_lineno or first])
        for qualified_name, first, node in definitions(ast.parse(text))
        if qualified_name == name or (not name and "." not in qualified_name)
    ]
    if name:
        return spans
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def definitions(tree: ast.AST, prefix: str = "") -> list[tuple[str, int, ast.stmt]]:
    """Qualified name, first line and node of each function and class, those inside functions excepted."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.append((prefix + node.name, first, node))
            if isinstance(node, ast.ClassDef):
                found += definitions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            found += definitions(node, prefix)
    return found


def replace_once(text: str, spans: list[Span], old: str, new: str, target: str) -> str:
    """Replace the only occurrence of `old` in the spans.

    `old` and `new` are written without the indentation of the source. An empty `new` for complete lines deletes them.
    """
    matches = {match for span in spans for match in occurrences(text, span, old)}
    if len(matches) != 1:
        count = "not found" if not matches else f"found {len(matches)} times"
        raise StaleError(f"`old` must occur once in {target}, and is {count}: {old}")
    ((start, end, indent, at_line_start),) = matches
    replacement = indented(new, indent, at_line_start)
    if not new and at_line_start and text[end : end + 1] == "\n":
        end += 1
    if text[start:end] == replacement:
        raise StaleError(f"`old` and `new` are the same in {target}")
    return text[:start] + replacement + text[end:]


def occurrences(text: str, span: Span, old: str) -> list[tuple[int, int, str, bool]]:
    """Start, end, indentation, and whether it starts a line, of each occurrence of `old` in a span."""
    first_line = old.split("\n", 1)[0]
    fragment = first_line.lstrip(" ")
    own_indent = len(first_line) - len(fragment)
    found = []
    position = text.find(fragment, *span)
    while position >= 0:
        line_start = text.rfind("\n", 0, position) + 1
        line = text[line_start:]
        width = len(line) - len(line.lstrip(" "))
        indent = " " * (width - own_indent)
        at_line_start = position == line_start + width
        start = line_start if at_line_start else position
        raw = indented(old, indent, at_line_start)
        if own_indent <= (width if at_line_start else 0) and text.startswith(raw, start) and start + len(raw) <= span[1]:
            found.append((start, start + len(raw), indent, at_line_start))
        position = text.find(fragment, position + 1, span[1])
    return found


def indented(snippet: str, indent: str, with_first_line: bool) -> str:
    """The snippet with every line indented, blank lines and perhaps the first one excepted."""
    lines = snippet.split("\n")
    return "\n".join(indent + line if line and (i or with_first_line) else line for i, line in enumerate(lines))
