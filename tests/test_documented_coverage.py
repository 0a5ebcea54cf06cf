"""Every model's docstring states the coverage of its intervals, as measured by benchmarks/bench_coverage.py."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from deepforecast.core import registry
from deepforecast.core.registry import MODELS

BENCH: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[1] / "benchmarks" / "bench_coverage.py"), run_name="bench_coverage"
)
FIGURES = BENCH["read_figures"]()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_docstring_states_the_measured_coverage(name: str) -> None:
    docstring = " ".join((registry.get(name).__doc__ or "").split())
    assert set(FIGURES[name]) == set(BENCH["suitable"](name)), "run benchmarks/bench_coverage.py"
    assert BENCH["sentence"](name, FIGURES[name]) in docstring, (
        "run python benchmarks/bench_coverage.py --docstrings"
    )


def test_writing_the_coverage_twice_changes_nothing() -> None:
    before = '\nclass Naive(B):\n    """Do.\n\n    More.\n\n    >>> 1\n    1\n    """\n\n    x = 1\n'
    first = BENCH["documented"](before, "Naive", {"M1 yearly": "45.7 / 61.7"})
    assert "    More.\n\n    Measured coverage of 80 % intervals at defaults: M1 yearly 46 %" in first
    assert first.split("    >>>")[1] == before.split("    >>>")[1]
    assert BENCH["documented"](first, "Naive", {"M1 yearly": "45.7 / 61.7"}) == first
