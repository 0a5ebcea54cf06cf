"""Conversion of docstrings and signatures to Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import is_dataclass
from typing import Any

MAX_WIDTH = 100  # characters of a signature on one line
SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}(?:\n|$)", flags=re.MULTILINE)
DEFINITION_SECTIONS = (
    "Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also",
)  # fmt: skip


def markdown(text: str | None, names: Collection[str] = ()) -> str:
    """Convert a numpydoc docstring to Markdown.

    Section titles become bold lines, parameters and the like become lists, and examples and indented code become
    code blocks.

    Parameters
    ----------
    text : str or None
        The docstring.
    names : collection of str
        Parameters and fields; a block of sentences `name: description.` becomes a list.
    """
    summary, *sections = SECTION.split(inspect.cleandoc(text or ""))
    parts = [_prose(summary.strip("\n"), names)]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        body = body.strip("\n")
        parts.append(f"**{title}**\n\n{_definitions(title, body) if title in DEFINITION_SECTIONS else _prose(body)}")
    return "\n\n".join(part for part in parts if part)


def _definitions(title: str, body: str) -> str:
    """Convert a section with terms and indented descriptions to a list.

    >>> print(_definitions("Parameters", "low, high : float\\n    Bounds,\\n    inclusive."))
    - `low`, `high` (float): Bounds,
        inclusive.
    """
    items = []
    for definition in re.split(r"\n(?=\S)", body):
        term, _, indented = definition.partition("\n")
        names, colon, remainder = term.partition(" : ")
        heading = ", ".join(f"`{name}`" for name in names.split(", ")) if colon or title == "See Also" else f"`{names}`"
        if title == "See Also":
            description = remainder + "\n" + inspect.cleandoc("\n" + indented)
        else:
            heading += f" ({_escape_tags(remainder)})" if remainder else ""
            description = inspect.cleandoc("\n" + indented)
        content = _prose(description.strip("\n"))
        separator = "" if not content else ":\n\n" if content.startswith(("- ", "```")) else ": "
        items.append("- " + (heading + separator + content).replace("\n", "\n    ").replace("\n    \n", "\n\n"))
    return "\n".join(items)


def _prose(text: str, names: Collection[str] = ()) -> str:
    """Convert paragraphs, lists, examples and indented code."""
    return "\n\n".join(_fence_blocks([_block(block, names) for block in re.split(r"\n\s*\n", text)])) if text else ""


def _block(block: str, names: Collection[str]) -> tuple[str, str]:
    """Return the language of a block (empty for prose) and its text."""
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
    """Convert a block of sentences `name: description.` to a list.

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
    """Escape `<` outside of code."""
    pieces = re.split(r"(`[^`]*`)", prose)
    pieces[::2] = [piece.replace("<", "&lt;") for piece in pieces[::2]]
    return "".join(pieces)


def _fence_blocks(blocks: list[tuple[str, str]]) -> list[str]:
    fenced: list[str] = []
    for position, (language, text) in enumerate(blocks):
        if not language:
            fenced.append(text)
        elif position and blocks[position - 1][0] == language:  # a blank line within a code block
            fenced[-1] = fenced[-1].removesuffix("\n```") + f"\n\n{text}\n```"
        else:
            fenced.append(f"```{language}\n{text}\n```")
    return fenced


def signature(name: str, thing: Callable[..., Any]) -> str:
    """Return a signature as code, on several lines if it is long.

    Parameters
    ----------
    name : str
        Name to show.
    thing : callable
        Function or class; `self` and private parameters are omitted.
    """
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
