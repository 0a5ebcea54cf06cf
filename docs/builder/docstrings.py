"""Docstrings and signatures as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import is_dataclass
from typing import Any

WIDE = 100  # signs of a signature on one line


def markdown(text: str | None, names: Collection[str] = ()) -> str:
    """A docstring as Markdown: examples and indented code fenced, a blank line before lists, a point for each of `names`."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return "\n\n".join(_fenced_neighbours([_block(block, names) for block in blocks]))


def _block(block: str, names: Collection[str]) -> tuple[str, str]:
    """The kind of a block (a language, or nothing for prose), and its text."""
    lines = block.splitlines()
    if block.startswith(">>>"):
        return "pycon", block
    if all(line.startswith("    ") for line in lines):
        return "python", inspect.cleandoc("\n" + block)
    out: list[str] = []
    for line in lines:
        if line.startswith("- ") and out and not out[-1].startswith(("- ", "  ")):
            out.append("")
        out.append(line)
    return "", _plain(_listed("\n".join(out), names))


def _listed(prose: str, names: Collection[str]) -> str:
    """A block that says of parameters `name: what it is. other: what that is.` as a list.

    >>> print(_listed("gap: rows left out. `size`, step: as there.", ["gap", "size", "step"]))
    - `gap`: rows left out.
    - `size`, `step`: as there.
    """
    one = f"`?(?:{'|'.join(map(re.escape, names))})`?"
    told = f"({one}(?:, {one})*): "
    if not names or not re.match(told, prose) or "\n- " in prose:
        return prose
    _, *found = re.split(rf"(?:^|(?<=[.;)]) ){told}", " ".join(prose.split()))
    if len(found) < 4:
        return prose
    heads = ["`" + re.sub("`?, `?", "`, `", head.strip("`")) + "`" for head in found[::2]]
    return "\n".join(f"- {head}: {what.rstrip(';')}" for head, what in zip(heads, found[1::2], strict=True))


def _plain(prose: str) -> str:
    """What would be taken for a tag is text."""
    parts = re.split(r"(`[^`]*`)", prose)
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


def _fenced_neighbours(blocks: list[tuple[str, str]]) -> list[str]:
    out: list[str] = []
    for at, (kind, text) in enumerate(blocks):
        if not kind:
            out.append(text)
        elif at and blocks[at - 1][0] == kind:  # a blank line within one piece of code
            out[-1] = out[-1].removesuffix("\n```") + f"\n\n{text}\n```"
        else:
            out.append(f"```{kind}\n{text}\n```")
    return out


def signature(name: str, thing: Callable[..., Any]) -> str:
    """`name(a, *, b: int = 3) -> Frame`, on several lines if it is long."""
    found = inspect.signature(thing)
    parts, star = [], False
    for one in found.parameters.values():
        if one.name in ("self", "cls") or one.name.startswith("_"):
            continue
        if one.kind is one.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        mark = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        parts.append(mark + one.name + _typed(one))
    end = "" if found.return_annotation is found.empty else f" -> {_type(found.return_annotation)}"
    short = f"{name}({', '.join(parts)}){end}"
    return short if len(short) <= WIDE else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def _typed(one: inspect.Parameter) -> str:
    kind = "" if one.annotation is one.empty else f": {_type(one.annotation)}"
    if one.default is one.empty:
        return kind
    default = re.sub(r" at 0x[0-9a-f]+", "", repr(one.default))
    if is_dataclass(one.default) and not isinstance(one.default, type) and one.default == type(one.default)():
        default = f"{type(one.default).__name__}()"
    return f"{kind} = {default}" if kind else f"={default}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
