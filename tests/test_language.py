"""What users read is written in the field's words: no private phrases."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "deepforecast"
PHRASES = {  # what the field says instead
    r"hangs? on": "depends on",
    r"aloud": "with a warning",
    r"anew": "again",
    r"mend(?:s|ed|ing)?": "fix",
    r"by heart": "overfitted",
    r"way out": "hint",
    r"whatever becomes": "regardless of",
    r"(?:what|that) bends": "activation function",
    r"(?:is|are) (?:told|said)": "is reported",
    r"goes? without": "is fitted without",
    r"beside (?:it|them|the)": "next to",
    r"bands?": "prediction intervals",
    r"columns? known (?:ahead|up to now)": "future or past covariates",
    r"forms? that (?:add|multipl(?:y|ies))": "additive or multiplicative model",
    r"Say": "Pass, Use or Set",
    r"no number": "NaN or infinite",
}
FORBIDDEN = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs" / "pages").glob("*.md")]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, help texts and messages of a module, with their lines."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node, clean=False)):
            yield getattr(node, "lineno", 1), text
        elif isinstance(node, ast.keyword) and node.arg == "help":
            yield node.value.lineno, ast.unparse(node.value)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield node.lineno, _strings(node.exc)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "warn":
            yield node.lineno, _strings(node)


def _strings(node: ast.AST) -> str:
    return " ".join(part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_use_the_words_of_the_field(path: Path) -> None:
    found = [f"{line}: {match.group()}" for line, text in texts(path) for match in FORBIDDEN.finditer(text)]
    assert not found, f"{path.name}: {'; '.join(found)}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_use_the_words_of_the_field(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    found = [f"{number}: {match.group()}" for number, line in enumerate(lines, 1) for match in FORBIDDEN.finditer(line)]
    assert not found, f"{path.name}: {'; '.join(found)}"


def test_a_private_phrase_is_found() -> None:
    assert [match.group() for match in FORBIDDEN.finditer("It hangs on the bands. Say level=80.")] == [
        "hangs on",
        "bands",
        "Say",
    ]
