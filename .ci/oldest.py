"""Print the lowest versions that pyproject.toml allows, as constraints of pip: python .ci/oldest.py >.ci/oldest.txt

What only builds, checks or documents the project is left out: users never install it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TOOLS = {
    *("beartype", "hatchling", "hypothesis", "import-linter", "jaxtyping", "latex2mathml", "mypy", "psutil", "pytest"),
    *("pytest-xdist", "ruff", "utilsforecast", "zensical"),
}
BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[\w+(?:,\w+)*\])?>=(?P<version>[\d.]+)(?:;.*)?")


def oldest(project: Path) -> str:
    """One line per requirement of [project], its extras included; one without a lower bound is an error."""
    declared = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    extras = declared["optional-dependencies"].values()
    versions: dict[str, str] = {}
    for requirement in [*declared["dependencies"], *(entry for extra in extras for entry in extra)]:
        if requirement.startswith(f"{declared['name']}["):
            continue
        bound = BOUND.fullmatch(requirement)
        if bound is None:
            raise SystemExit(f"{requirement!r} in pyproject.toml must have the form name>=version.")
        if versions.setdefault(bound["name"], bound["version"]) != bound["version"]:
            raise SystemExit(f"{bound['name']} must have the same lower bound everywhere in pyproject.toml.")
    lines = [f"{name}=={version}" for name, version in sorted(versions.items()) if name not in TOOLS]
    return "# The lowest versions that pyproject.toml allows, written by .ci/oldest.py.\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(oldest(Path(__file__).resolve().parents[1]), end="")
