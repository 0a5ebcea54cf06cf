"""Conversion of TeX formulas to MathML, which browsers render without scripts."""

from __future__ import annotations

import re

from builder.page import BuildError

CODE = re.compile(r"(^ *```.*?^ *```[ ]*$|`[^`\n]+`)", flags=re.MULTILINE | re.DOTALL)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", flags=re.DOTALL)
OPERATORS = re.compile(r"\\(arg)(?![A-Za-z])")  # operators of TeX that the converter does not know
BAR = "<mo>&#x02016;</mo>"  # bar of a norm; if stretchy, the two bars can differ in height
INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![\d$])")


def typeset(markdown: str, page: str) -> str:
    """Convert `$...$` and `$$...$$` outside of code to MathML.

    Parameters
    ----------
    markdown : str
        Text of a page.
    page : str
        Path of the page, for messages.

    Raises
    ------
    BuildError
        If a formula is invalid or has an unknown command.
    """
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
    except Exception as error:  # the converter raises errors of many classes
        raise BuildError(f"{page}: the formula {tex.strip()!r} cannot be converted: {type(error).__name__}: {error}") from error
    if unknown := re.search(r"\\[A-Za-z]+|&#x0005C;\w*", mathml):
        raise BuildError(f"{page}: the formula {tex.strip()!r} must have only known commands, got {unknown.group()}.")
    mathml = mathml.replace(BAR, BAR.replace("<mo>", '<mo stretchy="false">'))
    return re.sub(r"[*_]", lambda sign: f"&#{ord(sign.group())};", mathml)
