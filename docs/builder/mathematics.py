"""Mathematics in TeX to MathML, which browsers draw by themselves: nothing is fetched, no script runs."""

from __future__ import annotations

import re

from builder.page import BuildError

CODE = re.compile(r"(^ *```.*?^ *```[ ]*$|`[^`\n]+`)", flags=re.MULTILINE | re.DOTALL)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", flags=re.DOTALL)
OPERATORS = re.compile(r"\\(arg)(?![A-Za-z])")  # of TeX, but not of the converter
BAR = "<mo>&#x02016;</mo>"  # of a norm: two that stretch, one of them with an exponent, are drawn of unequal height
INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\d$])")


def typeset(markdown: str, where: str) -> str:
    """The text with `$...$` and `$$...$$` drawn; code is left alone."""
    parts = CODE.split(markdown)
    for at in range(0, len(parts), 2):
        shown = DISPLAY.sub(lambda found: _display(found[1], where), parts[at])
        parts[at] = INLINE.sub(lambda found: _inline(found[1], where), shown)
    return "".join(parts)


def _inline(tex: str, where: str) -> str:
    return f'<span class="formula">{_drawn(tex, where, "inline")}</span>'


def _display(tex: str, where: str) -> str:
    return f'\n\n<div class="formula">{_drawn(tex, where, "block")}</div>\n\n'


def _drawn(tex: str, where: str, display: str) -> str:
    from latex2mathml.converter import convert

    try:
        drawn: str = convert(OPERATORS.sub(r"\\operatorname{\1}", " ".join(tex.split())), display=display)
    except Exception as error:  # of whatever kind the converter raises: said with the page
        raise BuildError(f"{where}: the formula {tex.strip()!r} cannot be drawn: {type(error).__name__} {error}") from error
    if unknown := re.search(r"\\[A-Za-z]+|&#x0005C;\w*", drawn):
        raise BuildError(f"{where}: the formula {tex.strip()!r} has a command that is not known: {unknown.group()}")
    drawn = drawn.replace(BAR, BAR.replace("<mo>", '<mo stretchy="false">'))
    return re.sub(r"[*_]", lambda sign: f"&#{ord(sign.group())};", drawn)
