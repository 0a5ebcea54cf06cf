"""Mathematics in TeX to MathML, which browsers draw by themselves: nothing is fetched, no script runs."""

from __future__ import annotations

import re

from builder.page import BuildError

CODE = re.compile(r"(^ *```.*?^ *```[ ]*$|`[^`\n]+`)", flags=re.MULTILINE | re.DOTALL)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", flags=re.DOTALL)
OPERATORS = re.compile(r"\\(arg)(?![A-Za-z])")  # of TeX, but not of the converter
BAR = "<mo>&#x02016;</mo>"  # of a norm: two that stretch, one of them with an exponent, are drawn of unequal height
INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\d$])")


def typeset(markdown: str, page: str) -> str:
    """The text with `$...$` and `$$...$$` drawn; code is left alone."""
    pieces = CODE.split(markdown)
    for position in range(0, len(pieces), 2):
        with_displays = DISPLAY.sub(lambda match: _display(match[1], page), pieces[position])
        pieces[position] = INLINE.sub(lambda match: _inline(match[1], page), with_displays)
    return "".join(pieces)


def _inline(tex: str, page: str) -> str:
    return f'<span class="formula">{_to_mathml(tex, page, "inline")}</span>'


def _display(tex: str, page: str) -> str:
    return f'\n\n<div class="formula">{_to_mathml(tex, page, "block")}</div>\n\n'


def _to_mathml(tex: str, page: str, display: str) -> str:
    from latex2mathml.converter import convert

    try:
        mathml: str = convert(OPERATORS.sub(r"\\operatorname{\1}", " ".join(tex.split())), display=display)
    except Exception as error:  # of whatever kind the converter raises: said with the page
        raise BuildError(f"{page}: the formula {tex.strip()!r} cannot be drawn: {type(error).__name__} {error}") from error
    if unknown := re.search(r"\\[A-Za-z]+|&#x0005C;\w*", mathml):
        raise BuildError(f"{page}: the formula {tex.strip()!r} has a command that is not known: {unknown.group()}")
    mathml = mathml.replace(BAR, BAR.replace("<mo>", '<mo stretchy="false">'))
    return re.sub(r"[*_]", lambda sign: f"&#{ord(sign.group())};", mathml)
