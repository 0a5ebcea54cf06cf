"""Import times and memory in new processes, compared with the budgets. Run: python benchmarks/bench_import.py"""

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


def measure(statement: str) -> tuple[float, float]:
    command = [sys.executable, "-c", PROBE.format(statement=statement)]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes = json.loads(process.stdout)
    return seconds, megabytes


def main() -> None:
    measurements: dict[str, list[tuple[float, float]]] = {statement: [] for statement in BUDGETS}
    for _ in range(ROUNDS):  # interleaved, so that changes of the machine load affect all equally
        for statement in BUDGETS:
            measurements[statement].append(measure(statement))
    lines = [
        f"# Import times, {date.today()}",
        "",
        f"Command: `python benchmarks/bench_import.py` · Python {platform.python_version()}, {platform.machine()}, "
        f"medians of {ROUNDS} new processes.",
        "",
        "| statement | seconds | budget | MB in total | budget |",
        "|---|---|---|---|---|",
    ]
    for statement, (max_seconds, max_megabytes) in BUDGETS.items():
        median_seconds, median_memory = (statistics.median(values) for values in zip(*measurements[statement], strict=True))
        seconds_cells = f"{median_seconds:.3f} | {max_seconds or ''}"
        lines.append(f"| `{statement}` | {seconds_cells} | {median_memory:.0f} | {max_megabytes or ''} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).parent / "results" / "import.md").write_text(text)


if __name__ == "__main__":
    main()
