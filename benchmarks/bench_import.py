"""What importing costs: seconds and memory of a fresh process, beside the budgets. Run: python benchmarks/bench_import.py"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path

ROUNDS = 7
BUDGETS = {
    "pass": (None, None),
    "import deepforecast": (0.3, 80),
    "from deepforecast import SeasonalNaive": (0.6, None),
    "from deepforecast import cross_validate": (None, None),
    "import pandas": (None, None),
}
PROBE = """
import time; start = time.perf_counter()
{statement}
seconds = time.perf_counter() - start
import json, resource; print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def once(statement: str) -> tuple[float, float]:
    done = subprocess.run([sys.executable, "-c", PROBE.format(statement=statement)], check=True, capture_output=True, text=True)
    seconds, megabytes = json.loads(done.stdout)
    return seconds, megabytes


def main() -> None:
    measured: dict[str, list[tuple[float, float]]] = {statement: [] for statement in BUDGETS}
    for _ in range(ROUNDS):  # interleaved, so that a busy minute hits all alike
        for statement in BUDGETS:
            measured[statement].append(once(statement))
    lines = [
        f"# Import times, {date.today()}",
        "",
        f"Command: `python benchmarks/bench_import.py` · Python {platform.python_version()}, {platform.machine()}, "
        f"medians of {ROUNDS} fresh processes.",
        "",
        "| statement | seconds | budget | MB in all | budget |",
        "|---|---|---|---|---|",
    ]
    for statement, (seconds, megabytes) in BUDGETS.items():
        took, held = (statistics.median(values) for values in zip(*measured[statement], strict=True))
        lines.append(f"| `{statement}` | {took:.3f} | {seconds or ''} | {held:.0f} | {megabytes or ''} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).parent / "results" / "import.md").write_text(text)


if __name__ == "__main__":
    main()
