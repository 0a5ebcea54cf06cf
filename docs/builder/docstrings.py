"""Docstrings and signatures as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import is_dataclass
from typing import Any

MAX_WIDTH = 100  # signs of a signature on one line


def markdown(text: str | None, names: Collection[str] = ()) -> str:
    """A docstring as Markdown: examples and indented code fenced, a blank line before lists, a point for each of `names`."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return "\n\n".join(_fence_blocks([_block(block, names) for block in blocks]))


def _block(block: str, names: Collection[str]) -> tuple[str, str]:
    """The kind of a block (a language, or nothing for prose), and its text."""
    lines = block.splitlines()
    if block.startswith(">>>"):
        return "pycon", block
    if all(line.startswith("    ") for line in lines):
        return "python", inspect.cleandoc("\n" + block)
    processed: list[str] = []
    for line in lines:
        if line.startswith("- ") and processed and not processed[-1].startswith(("- ", "  ")):
            processed.append("")
        processed.append(line)
    return "", _escape_tags(_as_list("\n".join(processed), names))


def _as_list(prose: str, names: Collection[str]) -> str:
    """A block that says of parameters `name: what it is. other: what that is.` as a list.

    >>> print(_as_list("gap: rows left out. `size`, step: as there.", ["gap", "size", "step"]))
    - `gap`: rows left out.
    - `size`, `step`: as there.
    """
    name_pattern = f"`?(?:{'|'.join(map(re.escape, names))})`?"
    heading_pattern = f"({name_pattern}(?:, {name_pattern})*): "
    if not names or not re.match(heading_pattern, prose) or "\n- " in prose:
        return prose
    _, *pieces = re.split(rf"(?:^|(?<=[.;)]) ){heading_pattern}", " ".join(prose.split()))
    if len(pieces) < 4:
        return prose
    headings = ["`" + re.sub("`?, `?", "`, `", heading.strip("`")) + "`" for heading in pieces[::2]]
    return "\n".join(
        f"- {heading}: {description.rstrip(';')}" for heading, description in zip(headings, pieces[1::2], strict=True)
    )


def _escape_tags(prose: str) -> str:
    """What would be taken for a tag is text."""
    pieces = re.split(r"(`[^`]*`)", prose)
    pieces[::2] = [piece.replace("<", "&lt;") for piece in pieces[::2]]
    return "".join(pieces)


def _fence_blocks(blocks: list[tuple[str, str]]) -> list[str]:
    fenced: list[str] = []
    for position, (language, text) in enumerate(blocks):
        if not language:
            fenced.append(text)
        elif position and blocks[position - 1][0] == language:  # a blank line within one piece of code
            fenced[-1] = fenced[-1].removesuffix("\n```") + f"\n\n{text}\n```"
        else:
            fenced.append(f"```{language}\n{text}\n```")
    return fenced


def signature(name: str, thing: Callable[..., Any]) -> str:
    """`name(a, *, b: int = 3) -> Frame`, on several lines if it is long."""
    inspected = inspect.signature(thing)
    arguments, star = [], False
    for parameter in inspected.parameters.values():
        if parameter.name in ("self", "cls") or parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            arguments.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        arguments.append(stars + parameter.name + _annotation_and_default(parameter))
    end = "" if inspected.return_annotation is inspected.empty else f" -> {_format_annotation(inspected.return_annotation)}"
    short = f"{name}({', '.join(arguments)}){end}"
    return (
        short if len(short) <= MAX_WIDTH else f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){end}"
    )


def _annotation_and_default(parameter: inspect.Parameter) -> str:
    annotation = "" if parameter.annotation is parameter.empty else f": {_format_annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return annotation
    default = re.sub(r" at 0x[0-9a-f]+", "", repr(parameter.default))
    if (
        is_dataclass(parameter.default)
        and not isinstance(parameter.default, type)
        and parameter.default == type(parameter.default)()
    ):
        default = f"{type(parameter.default).__name__}()"
    return f"{annotation} = {default}" if annotation else f"={default}"


def _format_annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
